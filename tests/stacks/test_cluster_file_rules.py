"""What one setting of a cluster file demands of another, and the exact sentence where it does not get it."""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path

import pytest
from aws_cdk import aws_ec2 as ec2

from cdk_training_cluster import NodeGroup, Placement
from cdk_training_cluster.instance_types import all_instance_types
from cdk_training_cluster.nodes.rules import node_group_problems
from cdk_training_cluster_stacks.cluster_file.rules import RULES, Complaint, Part, complaints
from cdk_training_cluster_stacks.cluster_file.source import Value, parse
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
    "two types on demand": (
        "[p5.48xlarge]",
        "[p5.48xlarge, p5e.48xlarge]",
        [
            "9: node_groups[0].instance_types: must name exactly one type for Capacity.on_demand(), got "
            "p5.48xlarge, p5e.48xlarge: make a node group for each type"
        ],
    ),
    "EFA on a type without it": (
        "[p5.48xlarge]",
        "[g4dn.xlarge]\n    efa: true",
        [
            "10: node_groups[0].efa: g4dn.xlarge has no Elastic Fabric Adapter; leave efa out, or take a "
            "type that has one"
        ],
    ),
    "a placement group for a type that takes none": (
        "[p5.48xlarge]\n    count: 8\n    image: latest",
        "[vt1.3xlarge]\n    count: 8\n    image: ami-0a1b2c3d\n    placement: cluster",
        ["12: node_groups[0].placement: vt1.3xlarge cannot be in a cluster placement group; write placement: none"],
    ),
    "a type that is not sold on demand": (
        "p5.48xlarge",
        "p6e-gb200.36xlarge",
        [
            "9: node_groups[0].instance_types: p6e-gb200.36xlarge cannot be bought with "
            "Capacity.on_demand(): its usage classes are capacity-block"
        ],
    ),
    "AWS's image for a type that has none": (
        "p5.48xlarge",
        "hpc7a.96xlarge",
        [
            "11: node_groups[0].image: AWS has no Deep Learning image for hpc7a.96xlarge; write the id of an "
            "image of your own, such as ami-0a1b2c3d4e5f67890"
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


def test_reading_refuses_of_every_type_what_the_constructs_refuse(tmp_path: Path) -> None:
    own = ec2.MachineImage.generic_linux({"us-east-1": "ami-0a1b2c3d"})
    for info in all_instance_types():
        for efa, placement, image in product((None, True), Placement, ("latest", "ami-0a1b2c3d")):
            group = NodeGroup(
                name="workers",
                instance_types=[info.name],
                count=1,
                efa=efa,
                placement=placement,
                machine_image=None if image == "latest" else own,
            )
            part: dict[str, Value] = {
                "name": "workers",
                "instance_types": [info.name],
                "placement": placement.value,
                "image": image,
                **({} if efa is None else {"efa": efa}),
            }
            said = list(complaints({"node_groups": [part]}, tmp_path))
            assert len(said) == len(node_group_problems(group)), (info.name, efa, placement, image)
