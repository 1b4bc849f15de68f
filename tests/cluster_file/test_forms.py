"""Every way to write a single setting wrong, and the exact sentence that comes of it."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from cdk_training_cluster_file import FileSystemSettings
from cluster_files import RIGHT, problems

GROUP = "node_groups: [{name: workers, instance_types: [p5.48xlarge], count: 8, image: latest}]"

# What is changed in the right file (text, replacement), and all that is said of it then.
CHANGES = {
    "no zone": (
        "availability_zone: us-east-1b\n",
        "",
        ["1: availability_zone: is missing; add it, such as availability_zone: us-east-1b"],
    ),
    "a region for a zone": (
        "us-east-1b",
        "us-east-1",
        ['2: availability_zone: must be the name of an Availability Zone, such as us-east-1b, got "us-east-1"'],
    ),
    "a network in part": (
        "file_system: {}",
        "file_system: {}\nnetwork: {vpc_id: vpc-123}",
        [
            '4: network.vpc_id: must be the id of a VPC, such as vpc-0a1b2c3d4e5f67890, got "vpc-123"',
            "4: network.subnet_id: is missing; add it, such as subnet_id: subnet-0a1b2c3d4e5f67890",
        ],
    ),
    "an account without quotes": (
        "file_system: {}",
        "file_system: {}\naccount: 111122223333",
        ['4: account: must be text, got 111122223333; put it in quotes: "111122223333"'],
    ),
    "a FIFO topic for a backup": (
        "file_system: {}",
        "file_system: {}\nalerts: {backup_topic_arn: arn:aws:sns:us-east-1:111122223333:on-call.fifo}",
        [
            "4: alerts.backup_topic_arn: must be the ARN of an SNS topic that is no FIFO topic, such as "
            'arn:aws:sns:us-east-1:111122223333:on-call, got "arn:aws:sns:us-east-1:111122223333:on-call.fifo"'
        ],
    ),
    "a name that is not one": (
        "name: pod",
        "name: Base_Pod",
        ['1: name: must be lower-case letters, digits and hyphens, with a letter first, got "Base_Pod"'],
    ),
    "a name that is too long": (
        "name: pod",
        f"name: {'p' * 118}",
        [
            "1: name: must have at most 117 characters (the stack <name>-foundation has to fit "
            "CloudFormation's 128); this has 118"
        ],
    ),
    "an unknown key": (
        "node_groups:",
        "node_group:",
        ["7: node_group: unknown key; did you mean node_groups?"],
    ),
    "an unknown key like no other": (
        "file_system: {}",
        "file_system: {zzz: 1}",
        [f"3: file_system.zzz: unknown key; known here: {', '.join(FileSystemSettings.model_fields)}"],
    ),
    "a key twice": (
        "    count: 8",
        "    count: 8\n    count: 9",
        ["11: node_groups[0].count: is written twice, first in line 10; leave one of them"],
    ),
    "a key without a value": (
        "file_system: {}",
        "file_system:",
        ["3: file_system: has no value; write one, or leave the key out"],
    ),
    "an existing file system without its mount name": (
        "file_system: {}",
        "file_system: {existing: {file_system_id: fs-1}}",
        [
            "3: file_system.existing.file_system_id: must be the id of a file system, such as fs-0a1b2c3d4e5f67890, "
            'got "fs-1"',
            "3: file_system.existing.mount_name: is missing; add it, such as mount_name: abcdefgh",
        ],
    ),
    "no node groups": (
        RIGHT[RIGHT.index("node_groups") :],
        "node_groups: []\n",
        [f"7: node_groups: must hold at least 1, such as {GROUP}, got []"],
    ),
    "a node group that is not settings": (
        "node_groups:\n",
        "node_groups:\n  - workers\n",
        ['8: node_groups[0]: must be a mapping (key: value), got "workers"'],
    ),
    "a count in quotes": (
        "count: 8",
        'count: "8"',
        ['10: node_groups[0].count: must be a whole number, got "8"; take the quotes away'],
    ),
    "a count with a fraction": (
        "count: 8",
        "count: 2.5",
        ["10: node_groups[0].count: must be a whole number, got 2.5"],
    ),
    "what is not a type's name": (
        "p5.48xlarge",
        "p5",
        ['9: node_groups[0].instance_types[0]: must be the name of an instance type, such as p5.48xlarge, got "p5"'],
    ),
    "a flag that is a word": (
        "count: 8",
        "count: 8\n    efa: yes",
        ['11: node_groups[0].efa: must be true or false, got "yes"'],
    ),
    "a choice that is nearly right": (
        "count: 8",
        "count: 8\n    placement: clutser",
        ['11: node_groups[0].placement: must be cluster or none, got "clutser"; did you mean cluster?'],
    ),
    "a warm pool that is a number": (
        "count: 8",
        "count: 8\n    warm_pool: 2",
        ["11: node_groups[0].warm_pool: must be a mapping (key: value), such as warm_pool: {size: 2}, got 2"],
    ),
    "two ways to share a GPU": (
        "count: 8",
        "count: 8\n    gpu_sharing: {mig: 1g.10gb, mps: 2}",
        ["11: node_groups[0].gpu_sharing: must name one of mig, mps and time_slicing, such as {mig: 1g.10gb}"],
    ),
    "a fraction of a GPU": (
        "count: 8",
        "count: 8\n    gpu_sharing: {mig: '0.5'}",
        ['11: node_groups[0].gpu_sharing.mig.0.5: must be a MIG profile, such as 1g.10gb, got "0.5"'],
    ),
    "half a GPU": (
        "count: 8",
        "count: 8\n    gpu_sharing: {mig: {1g.10gb: 0.5}}",
        ["11: node_groups[0].gpu_sharing.mig.1g.10gb: must be a whole number, got 0.5"],
    ),
    "a share that is all": (
        "count: 8",
        "count: 8\n    gpu_sharing: {mps: 1}",
        ["11: node_groups[0].gpu_sharing.mps: must be at least 2, got 1"],
    ),
    "no image": (
        "    image: latest\n",
        "",
        ["8: node_groups[0].image: is missing; add it, such as image: latest or image: ami-0a1b2c3d4e5f67890"],
    ),
    "an image that is not one": (
        "image: latest",
        "image: ubuntu",
        [
            "11: node_groups[0].image: must be latest or the id of an image, such as ami-0a1b2c3d4e5f67890, "
            'got "ubuntu"'
        ],
    ),
    "a variable that is a number": (
        "count: 8",
        "count: 8\n    environment: {NCCL_NSOCKS_PERTHREAD: 4}",
        ['11: node_groups[0].environment.NCCL_NSOCKS_PERTHREAD: must be text, got 4; put it in quotes: "4"'],
    ),
    "a warm pool beyond what AWS's numbers hold": (
        "count: 8",
        "count: 8\n    warm_pool: {size: 2147483648}",
        ["11: node_groups[0].warm_pool.size: must be at most 2147483647, got 2147483648"],
    ),
    "a mount point that is not a path": (
        "file_system: {}",
        "file_system: {mount_point: fsx}",
        [
            "3: file_system.mount_point: must be a directory's full path of letters, digits, dots, hyphens "
            'and underscores, such as /fsx, got "fsx"'
        ],
    ),
    "a mount point that hides the operating system": (
        "file_system: {}",
        "file_system: {mount_point: /usr/local}",
        [
            "3: file_system.mount_point: must not be a directory of the operating system, got '/usr/local': the file "
            "system would hide what is in it; give a directory of its own, such as /fsx"
        ],
    ),
    "too many datasets": (
        "  - file_system_path: /data\n    prefix: tokens/\n",
        "".join(f"  - {{file_system_path: /{at}, prefix: {at}/}}\n" for at in range(9)),
        ["4: datasets: must hold at most 8, got 9"],
    ),
    "a path that is not one": (
        "/data",
        "data",
        ['5: datasets[0].file_system_path: must be a path that starts with one /, such as /data, got "data"'],
    ),
    "a prefix with the bucket in it": (
        "tokens/",
        "s3://bucket/tokens/",
        [
            "6: datasets[0].prefix: must be the start of keys, without the bucket and without a / in front, "
            'such as tokens/, got "s3://bucket/tokens/"'
        ],
    ),
    "a bucket with s3://": (
        "    prefix: tokens/",
        "    bucket: s3://x",
        [
            "6: datasets[0].bucket: must be the name of a bucket: 3 to 63 lower-case letters, digits, "
            'hyphens and dots, without s3:// and without a path, and none that AWS reserves, got "s3://x"'
        ],
    ),
    "an address that is not one": (
        "file_system: {}",
        "file_system: {}\nalerts: {emails: [ml@example.com, me]}",
        ['4: alerts.emails[1]: must be an e-mail address, such as ml-platform@example.com, got "me"'],
    ),
    "too many tags": (
        "file_system: {}",
        f"file_system: {{}}\ntags: {{{', '.join(f'k{number}: v' for number in range(21))}}}",
        ["4: tags: must hold at most 20, got 21"],
    ),
    "a tag without a value": (
        "file_system: {}",
        'file_system: {}\ntags: {x: ""}',
        [
            "4: tags.x: must be one or more letters, digits, spaces and . : / = + @ _ -, and not start with aws:, "
            'got ""'
        ],
    ),
    "a tag of AWS's": (
        "file_system: {}",
        "file_system: {}\ntags: {aws:x: y}",
        [
            "4: tags.aws:x: must be letters, digits, spaces and . : / = + @ _ -, and start with neither aws: "
            'nor cdk-training-cluster:, got "aws:x"'
        ],
    ),
    "an account of too few digits": (
        "file_system: {}",
        'file_system: {}\naccount: "1111"',
        ['4: account: must be the 12 digits of an AWS account, in quotes: "111122223333", got "1111"'],
    ),
    "a variable of two lines": (
        "count: 8",
        'count: 8\n    environment: {A: "b\\nc"}',
        ['11: node_groups[0].environment.A: must be one line, got "b\\nc"'],
    ),
    "facts that contradict each other": (
        "file_system: {}",
        "file_system: {}\ninstance_type_facts: [{name: p9.xlarge, vcpus: 1, memory_mib: 1, architectures: "
        "[arm64], network_cards: [{index: 1, interface_types: [interface], baseline_gbps: 1}]}]",
        [
            "4: instance_type_facts[0]: p9.xlarge: network_cards must have a card 0 that takes the primary "
            "'interface', got [1]"
        ],
    ),
}


@pytest.mark.parametrize(("old", "new", "said"), CHANGES.values(), ids=CHANGES)
def test_one_mistake_is_one_sentence(tmp_path: Path, old: str, new: str, said: Sequence[str]) -> None:
    assert old in RIGHT
    assert problems(tmp_path, RIGHT.replace(old, new)) == [f"cluster.yaml:{line}" for line in said]
