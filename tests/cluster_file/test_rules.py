"""What one setting of a cluster file demands of another, and the exact sentence where it does not get it."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from cdk_training_cluster_file.parts import Complaint, Part
from cdk_training_cluster_file.rules import RULES
from cdk_training_cluster_file.source import parse
from cluster_files import FACTS, RIGHT, problems

# What is changed in the right file (text, replacement), and all that is said of it then.
CHANGES = {
    "a subnet in another zone": (
        "file_system: {}",
        "file_system: {}\nnetwork: {vpc_id: vpc-0a1b2c3d, subnet_id: subnet-0a1b2c3d, availability_zone: us-east-1a}",
        [
            "4: network.availability_zone: the subnet is in us-east-1a and the cluster in us-east-1b; name a "
            "subnet in us-east-1b, or set the cluster's availability_zone to us-east-1a"
        ],
    ),
    "a subnet in a zone that sorts after the cluster's": (
        "file_system: {}",
        "file_system: {}\nnetwork: {vpc_id: vpc-0a1b2c3d, subnet_id: subnet-0a1b2c3d, availability_zone: us-east-1c}",
        [
            "4: network.availability_zone: the subnet is in us-east-1c and the cluster in us-east-1b; name a "
            "subnet in us-east-1b, or set the cluster's availability_zone to us-east-1c"
        ],
    ),
    "a range beside an existing network": (
        "file_system: {}",
        "file_system: {}\nvpc_cidr: 10.0.0.0/16\nnetwork: {vpc_id: vpc-0a1b2c3d, subnet_id: subnet-0a1b2c3d}",
        [
            "4: vpc_cidr: vpc_cidr and network exclude each other: an existing VPC has its own range; leave one of "
            "them out"
        ],
    ),
    "a layer of another region": (
        "file_system: {}",
        "file_system: {}\npowertools_layer_arn: arn:aws:lambda:us-east-2:111122223333:layer:powertools:1",
        [
            "4: powertools_layer_arn: the layer is in us-east-2, and this training cluster is in us-east-1b; "
            "name one of the zone's region"
        ],
    ),
    "a layer of another partition": (
        "file_system: {}",
        "file_system: {}\npowertools_layer_arn: arn:aws-cn:lambda:us-east-1:111122223333:layer:powertools:1",
        [
            "4: powertools_layer_arn: the ARN of the layer is of the partition aws-cn, and us-east-1 is in aws; "
            "write arn:aws:…"
        ],
    ),
    "a backup topic of another region": (
        "file_system: {}",
        "file_system: {}\nalerts: {backup_topic_arn: arn:aws:sns:us-west-2:111122223333:on-call}",
        [
            "4: alerts.backup_topic_arn: the backup topic is in us-west-2, and this training cluster is in "
            "us-east-1b; name one of the zone's region"
        ],
    ),
    "a backup topic of another partition": (
        "file_system: {}",
        "file_system: {}\nalerts: {backup_topic_arn: arn:aws-cn:sns:us-east-1:111122223333:on-call}",
        [
            "4: alerts.backup_topic_arn: the ARN of the backup topic is of the partition aws-cn, and us-east-1 is in "
            "aws; write arn:aws:…"
        ],
    ),
    "an EKS cluster of another region": (
        "file_system: {}\n",
        "orchestrator: {hyperpod: {orchestrator: eks, eks_security_group_id: sg-0a1b2c3d4e5f67890, eks_cluster_arn: "
        "'arn:aws:eks:us-west-2:111122223333:cluster/a'}}\n"
        "network: {vpc_id: vpc-0a1b2c3d, subnet_id: subnet-0a1b2c3d}\nfile_system: {}\n",
        [
            "3: orchestrator.hyperpod.eks_cluster_arn: the EKS cluster is in us-west-2, and this training "
            "cluster is in us-east-1b; name one of the zone's region"
        ],
    ),
    "a key of another region": (
        "file_system: {}",
        "file_system: {}\n"
        "encryption_key: arn:aws:kms:us-east-2:111122223333:key/mrk-0a1b2c3d4e5f67890a1b2c3d4e5f6789",
        [
            "4: encryption_key: the key is in us-east-2, and this training cluster is in us-east-1b; name one of the "
            "zone's region"
        ],
    ),
    "a file system's key of another region": (
        "file_system: {}",
        "file_system:\n  encryption_key: arn:aws:kms:us-east-2:111122223333:key/mrk-0a1b2c3d4e5f67890a1b2c3d4e5f6789",
        [
            "4: file_system.encryption_key: the key is in us-east-2, and this training cluster is in "
            "us-east-1b; name one of the zone's region"
        ],
    ),
    "a key of another account": (
        "file_system: {}",
        'file_system: {}\naccount: "444455556666"\n'
        "encryption_key: arn:aws:kms:us-east-1:111122223333:key/mrk-0a1b2c3d4e5f67890a1b2c3d4e5f6789",
        [
            "5: encryption_key: the key is in the account 111122223333 and the cluster in 444455556666; name a key "
            "of 444455556666"
        ],
    ),
    "an EKS cluster of another account": (
        "file_system: {}",
        "file_system: {}\nnetwork: {vpc_id: vpc-0a1b2c3d, subnet_id: subnet-0a1b2c3d}\norchestrator: {hyperpod: {"
        "orchestrator: eks, eks_security_group_id: sg-0a1b2c3d, "
        "eks_cluster_arn: arn:aws:eks:us-east-1:111122223333:cluster/a}}\n"
        'account: "444455556666"',
        [
            "5: orchestrator.hyperpod.eks_cluster_arn: the EKS cluster is in the account 111122223333 and the "
            "cluster in 444455556666; name one of 444455556666"
        ],
    ),
    "a threshold twice": (
        "file_system: {}",
        "file_system: {}\nbudget: {monthly_usd: 1, thresholds: [50, 50]}",
        ["4: budget.thresholds: must be different, got 50 2 times: leave out all but one"],
    ),
    "an orchestrator without what it needs": (
        "file_system: {}",
        "file_system: {}\norchestrator: eks",
        [
            "4: orchestrator: control_plane_zone is required, and goes without control_plane_subnet_id: EKS's "
            "control plane needs subnets in two zones; name a second zone of the region, such as 'us-east-1a', or "
            "with an existing VPC a subnet in one"
        ],
    ),
    "an add-on that may do nothing": (
        "file_system: {}",
        "file_system: {}\norchestrator: {eks: {control_plane_zone: us-east-1a, add_ons: [external-dns]}}",
        [
            "4: orchestrator.eks.add_on_policies: is required for external-dns, whose role may do nothing without: "
            "add its IAM policies, such as add_on_policies: {external-dns: "
            "[arn:aws:iam::111122223333:policy/external-dns]}, or leave it out of add_ons"
        ],
    ),
    "access logs of no bucket": (
        "    prefix: tokens/\n",
        "    prefix: tokens/\n    bucket: my-corpus\naccess_logs: {bucket: my-logs}\n",
        [
            "8: access_logs: must have a bucket that the foundation makes; leave it out, or leave out a "
            "dataset's bucket"
        ],
    ),
    "directories that nest": (
        "    prefix: tokens/\n",
        "    prefix: tokens/\n  - {file_system_path: /data/more, prefix: more/}\n",
        [
            "7: datasets[1].file_system_path: the datasets at /data and /data/more overlap: file_system_path must "
            "not lie in another dataset's; choose directories side by side"
        ],
    ),
    "facts of one type twice": (
        "file_system: {}",
        f"file_system: {{}}\ninstance_type_facts: [{FACTS}, {FACTS}]",
        [
            '4: instance_type_facts[1].name: "p9.large" is already the name of instance_type_facts[0]; give each its '
            "own name"
        ],
    ),
    "one address twice": (
        "file_system: {}",
        "file_system: {}\nalerts: {emails: [a@example.com, b@example.com, a@example.com]}",
        ['4: alerts.emails[2]: "a@example.com" is listed twice; leave one of them'],
    ),
    "a range that starts amid itself": (
        "file_system: {}",
        "file_system: {}\nvpc_cidr: 10.0.0.5/16",
        ["4: vpc_cidr: must start with the first address of its range, got '10.0.0.5/16': write 10.0.0.0/16"],
    ),
    "more nodes than are reserved": (
        "count: 8",
        "count: 8\n    capacity: {from_reservation: {id: cr-0a1b2c3d, instance_count: 7}}",
        [
            "10: node_groups[0].count: must be at most 7, as many instances as cr-0a1b2c3d has, got 8: lower count, "
            "or correct instance_count"
        ],
    ),
    "a script that is not there": (
        "count: 8",
        "count: 8\n    scripts_after: [scripts/last.sh]",
        ['11: node_groups[0].scripts_after[0]: there is no file "scripts/last.sh" beside this one'],
    ),
    "checkpoints without a file system": (
        "file_system: {}\ndatasets:\n  - file_system_path: /data\n    prefix: tokens/\n",
        "checkpoints: {}\n",
        [
            "3: checkpoints: must have a file system to be exported from; add one, such as "
            "file_system: {storage_capacity_gib: 1200}, or write checkpoints: {express: {}}"
        ],
    ),
    "backups of a file system with exported checkpoints": (
        "file_system: {}\ndatasets:\n  - file_system_path: /data\n    prefix: tokens/\n",
        "file_system:\n  automatic_backup_retention_days: 7\ncheckpoints: {}\n",
        [
            "4: file_system.automatic_backup_retention_days: must be 0 beside datasets or exported checkpoints, got "
            "7: FSx takes no backups of a file system that is linked to S3"
        ],
    ),
    "exported checkpoints of a file system without links": (
        "file_system: {}\ndatasets:\n  - file_system_path: /data\n    prefix: tokens/\n",
        "file_system: {storage_type: INTELLIGENT_TIERING}\ncheckpoints: {}\n",
        [
            "4: checkpoints: datasets and exported checkpoints cannot be linked to PERSISTENT_2 INTELLIGENT_TIERING: "
            "choose PERSISTENT_2 with SSD"
        ],
    ),
    "a file system that FSx does not make": (
        "file_system: {}",
        "file_system: {deployment_type: SCRATCH_2, efa_enabled: true, storage_capacity_gib: 3600}",
        [
            "3: file_system.storage_capacity_gib: must be 1200 or a multiple of 2400 for SCRATCH_2, got 3600",
            "3: file_system.efa_enabled: must be False for SCRATCH_2, got True: only PERSISTENT_2 has EFA",
        ],
    ),
    "settings of a file system that exists": (
        "file_system: {}",
        "file_system:\n  existing: {file_system_id: fs-0a1b2c3d, mount_name: fsx}\n  mount_point: /data\n"
        "  efa_enabled: true\n  storage_capacity_gib: 1300",
        [
            "7: file_system.storage_capacity_gib: must be left out beside existing, which names a file system that "
            "is made already; change that with aws fsx update-file-system, or leave existing out"
        ],
    ),
    "datasets without a file system": (
        "file_system: {}\n",
        "",
        [
            "3: datasets: must have a file system to appear in; add one, such as "
            "file_system: {storage_capacity_gib: 1200}"
        ],
    ),
}


@pytest.mark.parametrize(("old", "new", "said"), CHANGES.values(), ids=CHANGES)
def test_a_contradiction_is_one_sentence(tmp_path: Path, old: str, new: str, said: Sequence[str]) -> None:
    assert old in RIGHT
    assert problems(tmp_path, RIGHT.replace(old, new)) == [f"cluster.yaml:{line}" for line in said]


def test_a_whole_bucket_of_the_foundation_overlaps_with_no_other_bucket(tmp_path: Path) -> None:
    more = "    prefix: tokens/\n    bucket: my-corpus\n  - {file_system_path: /made}\n"
    assert problems(tmp_path, RIGHT.replace("    prefix: tokens/\n", more), legal=True) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_rule_is_the_only_one_to_find_some_mistake(rule: Callable[[Part], Iterator[Complaint]]) -> None:
    found = {
        message
        for old, new, _ in CHANGES.values()
        if isinstance(file := parse(RIGHT.replace(old, new)).value, dict)
        for _, message in rule(file)
    }
    assert any(line.endswith(message) for message in found for *_, said in CHANGES.values() for line in said)
