"""What one setting of a cluster file demands of another, and the exact sentence where it does not get it."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from cdk_training_cluster_stacks.cluster_file.rules import RULES, Complaint, Part
from cdk_training_cluster_stacks.cluster_file.source import parse
from cluster_files import RIGHT, problems

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
    "a key of another region": (
        "file_system: {}",
        "file_system: {}\n"
        "encryption_key: arn:aws:kms:us-east-2:111122223333:key/mrk-0a1b2c3d4e5f67890a1b2c3d4e5f6789",
        ["4: encryption_key: the key is in us-east-2 and the cluster in us-east-1b; name a key of the zone's region"],
    ),
    "a file system's key of another region": (
        "file_system: {}",
        "file_system:\n  encryption_key: arn:aws:kms:us-east-2:111122223333:key/mrk-0a1b2c3d4e5f67890a1b2c3d4e5f6789",
        [
            "4: file_system.encryption_key: the key is in us-east-2 and the cluster in us-east-1b; name a key of the "
            "zone's region"
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
    "a threshold twice": (
        "file_system: {}",
        "file_system: {}\nbudget: {monthly_usd: 1, thresholds: [50, 50]}",
        ["4: budget.thresholds: must be different, got 50 2 times: leave out all but one"],
    ),
    "access logs of no bucket": (
        "    prefix: tokens/\n",
        "    prefix: tokens/\n    bucket: my-corpus\naccess_logs: {bucket: my-logs}\n",
        [
            "8: access_logs: must have a bucket that is made here to tell of; leave it out, or leave out a "
            "dataset's bucket"
        ],
    ),
    "two groups of one name": (
        "    image: latest\n",
        "    image: latest\n  - {name: workers, instance_types: [g5.xlarge], count: 1, image: latest}\n",
        ['12: node_groups[1].name: "workers" is already the name of node_groups[0]; give each its own name'],
    ),
    "an unknown type": (
        "p5.48xlarge",
        "p5.48xlarg",
        [
            '9: node_groups[0].instance_types[0]: the catalog has no type "p5.48xlarg"; did you mean '
            "p5.48xlarge or p5e.48xlarge or p5.4xlarge? Facts about a newer type go under instance_type_facts"
        ],
    ),
    "a type like no other": (
        "p5.48xlarge",
        "zzzzz.qqqq",
        [
            '9: node_groups[0].instance_types[0]: the catalog has no type "zzzzz.qqqq"; it lists accelerated '
            "and EFA types. Facts about a newer type go under instance_type_facts"
        ],
    ),
    "a type that is not sold on demand": (
        "p5.48xlarge",
        "p6e-gb200.36xlarge",
        [
            "9: node_groups[0].instance_types: must be sold as on-demand for on_demand, got p6e-gb200.36xlarge, "
            "which is sold as capacity-block: choose another type, or buy it with capacity_block"
        ],
    ),
    "the root device of AWS's image": (
        "count: 8",
        "count: 8\n    root_device_name: /dev/sda1",
        ["11: node_groups[0].root_device_name: goes with an image of your own; leave it out with image: latest"],
    ),
    "a script that is not there": (
        "count: 8",
        "count: 8\n    scripts_after: [scripts/last.sh]",
        ['11: node_groups[0].scripts_after[0]: there is no file "scripts/last.sh" beside this one'],
    ),
    "datasets without a file system": (
        "file_system: {}\n",
        "",
        [
            "3: datasets: must have a file system to appear in; add one, such as "
            "file_system: {storage_capacity_gib: 1200}"
        ],
    ),
    "directories that nest": (
        "    prefix: tokens/\n",
        "    prefix: tokens/\n  - {file_system_path: /data/more, prefix: more/}\n",
        [
            "7: datasets[1].file_system_path: /data/more and /data (datasets[0]) lie in each other; choose "
            "directories side by side"
        ],
    ),
    "prefixes that nest in one bucket": (
        "    prefix: tokens/\n",
        "    prefix: tokens/\n  - {file_system_path: /more, prefix: tokens/more}\n",
        [
            '7: datasets[1].prefix: "tokens/more/" and "tokens/" (datasets[0]) lie in each other in one '
            "bucket; link the outer one alone, or use prefixes side by side"
        ],
    ),
    "a whole bucket beside a part of it": (
        "    prefix: tokens/\n",
        "    prefix: tokens/\n  - {file_system_path: /more}\n",
        [
            '7: datasets[1]: "" and "tokens/" (datasets[0]) lie in each other in one bucket; link the outer '
            "one alone, or use prefixes side by side"
        ],
    ),
}


@pytest.mark.parametrize(("old", "new", "said"), CHANGES.values(), ids=CHANGES)
def test_a_contradiction_is_one_sentence(tmp_path: Path, old: str, new: str, said: Sequence[str]) -> None:
    assert old in RIGHT
    assert problems(tmp_path, RIGHT.replace(old, new)) == [f"cluster.yaml:{line}" for line in said]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_rule_is_the_only_one_to_find_some_mistake(rule: Callable[[Part], Iterator[Complaint]]) -> None:
    found = {
        message
        for old, new, _ in CHANGES.values()
        if isinstance(file := parse(RIGHT.replace(old, new)).value, dict)
        for _, message in rule(file)
    }
    assert any(line.endswith(message) for message in found for *_, said in CHANGES.values() for line in said)
