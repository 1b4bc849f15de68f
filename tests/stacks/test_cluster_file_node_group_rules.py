"""What the library refuses of a node group: told with its place and in the words of the file, and all of it."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest
from aws_cdk import aws_ec2 as ec2

from cdk_training_cluster import UNTIL_CANCELLED, Capacity, NodeGroup, Placement
from cdk_training_cluster.instance_types import all_instance_types
from cdk_training_cluster.nodes.images import public_image
from cdk_training_cluster.nodes.rules import CLUSTER_RULES, NODE_GROUP_RULES, Level, node_group_problems
from cdk_training_cluster_stacks.cluster_file.node_group_rules import ROWS
from cdk_training_cluster_stacks.cluster_file.rules import complaints
from cdk_training_cluster_stacks.cluster_file.source import Value
from cluster_files import RIGHT, problems

ID = "cr-0a1b2c3d4e5f67890"
ELSEWHERE = f"arn:aws:ec2:us-west-2:111122223333:capacity-reservation/{ID}"
BLOCK = f"capacity: {{capacity_block: {{id: {ID}}}}}"
TYPES, COUNT, IMAGE = "[p5.48xlarge]", "count: 8", "image: latest"
SEVERAL = ", ".join(f"c{number}.large" for number in range(41))

# By rule of the library's: what is changed in the right file (text, replacement), and all that is said of it then.
BROKEN: dict[str, tuple[str, str, list[str]]] = {
    "oneType": (
        TYPES,
        "[p5.48xlarge, p5e.48xlarge]",
        [
            "9: node_groups[0].instance_types: must name exactly one type for on_demand, got p5.48xlarge, "
            "p5e.48xlarge: make a node group for each type"
        ],
    ),
    "typeOnce": (
        TYPES,
        "[g5.xlarge, g5.2xlarge, g5.xlarge]\n    capacity: spot",
        ["9: node_groups[0].instance_types: must name each type once, got g5.xlarge 2 times"],
    ),
    "usageClass": (
        TYPES,
        f"[g5.xlarge]\n    {BLOCK}",
        [
            "9: node_groups[0].instance_types: must be sold as capacity-block for capacity_block, got g5.xlarge, "
            "which is sold as on-demand, spot: choose another type, or buy it with on_demand or spot"
        ],
    ),
    "prioritizedTypes": (
        TYPES,
        f"[p6e-gb200.36xlarge]\n    capacity: {{prioritized: {{capacity_blocks: [{ID}]}}}}",
        [
            "9: node_groups[0].instance_types: prioritized with reservations or on_demand needs a type that is sold "
            "as on-demand, got p6e-gb200.36xlarge: leave reservations out and set on_demand to false, or add such a "
            "type"
        ],
    ),
    "efaFamilies": (
        TYPES,
        "[p4d.24xlarge, p5.48xlarge]\n    capacity: spot",
        [
            "9: node_groups[0].instance_types: must not mix p4d.24xlarge with p5.48xlarge: EFA does not work between "
            "them; make a node group for each, or set efa to false"
        ],
    ),
    "acceleratorsAlike": (
        TYPES,
        "[g5.xlarge, trn1.2xlarge]\n    capacity: spot",
        [
            "9: node_groups[0].instance_types: must have accelerators of one maker, got NVIDIA (g5.xlarge) and AWS "
            "(trn1.2xlarge): they need other images and other programs; make a node group for each"
        ],
    ),
    "oneArchitecture": (
        f"{TYPES}\n    {COUNT}\n    {IMAGE}",
        f"[g5.xlarge, g5g.xlarge]\n    {COUNT}\n    image: ami-0a1b2c3d\n    capacity: spot",
        [
            "9: node_groups[0].instance_types: must have one architecture to share an image of your own, got "
            "g5.xlarge (x86_64), g5g.xlarge (arm64): make a node group for each, or write image: latest"
        ],
    ),
    "interfaces": (
        TYPES,
        "[g4dn.xlarge]\n    efa: true",
        [
            "10: node_groups[0].efa: instance type g4dn.xlarge has no EFA: leave efa out or set efa: false, or "
            "choose a type with EFA"
        ],
    ),
    "image": (
        TYPES,
        "[hpc7a.96xlarge]",
        [
            "11: node_groups[0].image: AWS publishes no Deep Learning image for hpc7a.96xlarge: give an image of "
            "your own for x86_64"
        ],
    ),
    "blockPlacement": (
        COUNT,
        f"{COUNT}\n    {BLOCK}\n    placement: cluster",
        [
            "12: node_groups[0].placement: must be left out, or none, for capacity_block with a Capacity Block, got "
            "cluster: blocks do not support placement groups, and EC2 puts their instances close together by itself"
        ],
    ),
    "placementStrategy": (
        f"{TYPES}\n    {COUNT}\n    {IMAGE}",
        f"[vt1.3xlarge]\n    {COUNT}\n    image: ami-0a1b2c3d",
        [
            "8: node_groups[0].placement: vt1.3xlarge cannot be launched into a cluster placement group: set "
            "placement to none, or choose another type"
        ],
    ),
    "blockSize": (
        COUNT,
        f"count: 65\n    {BLOCK}",
        [
            "10: node_groups[0].count: must be at most 64, as many as a Capacity Block of p5.48xlarge can have, got "
            "65: make a node group for each block"
        ],
    ),
    "reservedCount": (
        COUNT,
        f"{COUNT}\n    capacity: {{from_reservation: {{id: {ID}, instance_count: 7}}}}",
        [
            f"10: node_groups[0].count: must be at most 7, as many instances as {ID} has, got 8: lower count, or "
            "correct instance_count"
        ],
    ),
    "reservationSize": (
        COUNT,
        "count: 1001\n    capacity: {reservation: {end: until_cancelled}}",
        ["10: node_groups[0].count: must be at most 1000 for reservation, got 1001: make a second node group"],
    ),
    "release": (
        COUNT,
        "count: 1\n    capacity: {reservation: {end: until_cancelled, on_idle: release}}",
        [
            "11: node_groups[0].capacity.reservation.on_idle: must be keep for a node group of 1 node: a reservation "
            "cannot be lowered below 1 instance; leave on_idle out"
        ],
    ),
    "zone": (
        COUNT,
        f"{COUNT}\n    capacity: {{capacity_block: {{id: {ID}, availability_zone: us-east-1a}}}}",
        [
            "11: node_groups[0].capacity.capacity_block.availability_zone: must be the cluster's, us-east-1b, got "
            "us-east-1a: what is reserved in a zone cannot be used in another; make the cluster there, or reserve "
            "here"
        ],
    ),
    "reservedRegion": (
        COUNT,
        f"{COUNT}\n    capacity: {{prioritized: {{reservations: ['{ELSEWHERE}']}}}}",
        [
            "11: node_groups[0].capacity.prioritized.reservations: must be in the cluster's region, us-east-1, got "
            f"{ELSEWHERE}: what is reserved in a region cannot be used in another; leave it out, or make the cluster "
            "there"
        ],
    ),
    "platform": (
        COUNT,
        f"{COUNT}\n    capacity: {{from_reservation: {{id: {ID}, instance_platform: Ubuntu Pro}}}}",
        [
            "11: node_groups[0].capacity.from_reservation.instance_platform: must be 'Linux/UNIX' for AWS's Deep "
            "Learning images, got 'Ubuntu Pro': an instance is launched into a reservation of its own platform only; "
            "give an image of your own of that platform, or leave instance_platform out"
        ],
    ),
    "warmPool": (
        COUNT,
        f"{COUNT}\n    capacity: spot\n    warm_pool: {{size: 2}}",
        [
            "12: node_groups[0].warm_pool: must be left out with spot: Auto Scaling keeps no warm pool of Spot "
            "Instances, Capacity Blocks or distribution segments"
        ],
    ),
    "warmPoolSize": (
        COUNT,
        f"{COUNT}\n    warm_pool: {{size: 9}}",
        [
            "11: node_groups[0].warm_pool.size: must be at most the group's count, 8, got 9: no more nodes "
            "are ever needed"
        ],
    ),
    "an instance_count that no block has": (
        f"{TYPES}\n    {COUNT}",
        f"[p6e-gb200.36xlarge]\n    {COUNT}\n    capacity: {{capacity_block: {{id: {ID}, instance_count: 8}}}}",
        [
            "11: node_groups[0].capacity.capacity_block.instance_count: must be 9 or 18 for a Capacity Block of "
            "p6e-gb200.36xlarge, which is sold as a whole UltraServer, got 8"
        ],
    ),
}


@pytest.mark.parametrize(("old", "new", "said"), BROKEN.values(), ids=BROKEN)
def test_a_broken_rule_is_one_sentence_with_its_place(
    tmp_path: Path, old: str, new: str, said: Sequence[str]
) -> None:
    assert old in RIGHT
    assert problems(tmp_path, RIGHT.replace(old, new)) == [f"cluster.yaml:{line}" for line in said]


def test_every_rule_that_refuses_has_its_place_in_a_file() -> None:
    assert set(ROWS) == {rule.id for rule in NODE_GROUP_RULES if rule.level is Level.ERROR}


# The model refuses too many types itself, no image in a file is looked up at launch, and no real types have so many
# layouts; what needs facts of the file's own has a test below.
UNREACHABLE = {"mostTypes", "mostTemplates", "imageAtLaunch", "warmPoolRoot"}


def test_every_rule_that_a_file_can_break_is_broken_here() -> None:
    assert set(ROWS) - set(BROKEN) == UNREACHABLE


def test_too_many_types_are_told_of_once(tmp_path: Path) -> None:
    types = ", ".join(info.name for info in all_instance_types()[:41])
    found = problems(tmp_path, RIGHT.replace(TYPES, f"[{types}]\n    capacity: spot"))
    assert [said for said in found if "41" in said] == [
        "cluster.yaml:9: node_groups[0].instance_types: must hold at most 40, got 41"
    ]


def test_facts_of_the_file_s_own_break_rules_too(tmp_path: Path) -> None:
    facts = (
        "instance_type_facts: [{name: p9.large, vcpus: 2, memory_mib: 4, architectures: [x86_64], network_cards: "
        "[{index: 0, interface_types: [interface], baseline_gbps: 10}], "
        "supported_root_device_types: [instance-store]}]"
    )
    group = RIGHT.replace(TYPES, "[p9.large]\n    warm_pool: {size: 2}").replace(IMAGE, "image: ami-0a1b2c3d")
    assert problems(tmp_path, f"{group}{facts}\n") == [
        "cluster.yaml:10: node_groups[0].warm_pool: must be left out for p9.large: a node without an EBS root volume "
        "cannot be stopped"
    ]


def group(name: str, capacity: str, *, count: int = 4, types: str = TYPES) -> str:
    return (
        f"  - {{name: {name}, instance_types: {types}, count: {count}, {IMAGE},\n"
        f"     capacity: {{from_reservation: {{id: {ID}{capacity}}}}}}}\n"
    )


# By rule of the library's about groups together: the groups, and all that is said of them.
TOGETHER = {
    "sharedCount": (
        group("a", ", instance_count: 7") + group("b", ""),
        f"node groups 'a' and 'b' must have at most 7 nodes together, as many instances as {ID} has, got 4 + 4: "
        "lower a count, or give one a reservation of its own",
    ),
    "sharedPlacementGroup": (
        group("a", ", placement_group: one") + group("b", ", placement_group: two"),
        f"node groups 'a' and 'b' must name one placement_group for {ID}, got one and two: a reservation is made "
        "in one; name that one, or another reservation",
    ),
    "sharedType": (
        group("a", "") + group("b", "", types="[p5e.48xlarge]"),
        f"node groups 'a' and 'b' must have one type for {ID}, got p5.48xlarge and p5e.48xlarge: a reservation is of "
        "one type; name another for one of them",
    ),
}


def test_a_reservation_is_no_block(tmp_path: Path) -> None:
    reserved = f"capacity: {{prioritized: {{reservations: [{ID}]}}}}"
    second = f"  - {{name: more, instance_types: {TYPES}, count: 2, {IMAGE}, {reserved}}}\n"
    assert problems(tmp_path, RIGHT.replace(COUNT, f"{COUNT}\n    {BLOCK}") + second) == [
        "cluster.yaml:13: node_groups[1].capacity.prioritized: node groups 'workers' and 'more' must agree on what "
        f"{ID} is, got capacity_block and reservations of prioritized: it is either a reservation or a Capacity Block"
    ]


def test_what_is_used_in_turn_is_of_one_type_too(tmp_path: Path) -> None:
    in_turn = f"{{prioritized: {{reservations: [{ID}]}}}}"
    second = f"  - {{name: more, instance_types: [p5en.48xlarge], count: 2, {IMAGE}, capacity: {in_turn}}}\n"
    first = f"{COUNT}\n    capacity: {{from_reservation: {{id: {ID}}}}}"
    assert problems(tmp_path, RIGHT.replace(COUNT, first) + second) == [
        "cluster.yaml:13: node_groups[1].capacity.prioritized: node groups 'workers' and 'more' must have a type in "
        f"common for {ID}, got p5.48xlarge and p5en.48xlarge: a reservation is of one type; name "
        "another for one of them"
    ]


@pytest.mark.parametrize(("groups", "said"), TOGETHER.values(), ids=TOGETHER)
def test_what_groups_demand_of_each_other_is_told_at_the_last_one(tmp_path: Path, groups: str, said: str) -> None:
    text = RIGHT[: RIGHT.index("node_groups")] + "node_groups:\n" + groups
    assert problems(tmp_path, text) == [f"cluster.yaml:11: node_groups[1].capacity.from_reservation.id: {said}"]


def test_every_rule_about_groups_together_is_broken_here() -> None:
    assert {*TOGETHER, "reservationOrBlock"} == {rule.id for rule in CLUSTER_RULES if rule.level is Level.ERROR}


@pytest.mark.parametrize(
    ("setting", "place"),
    [
        (
            f"count: 0\n    capacity: {{from_reservation: {{id: {ID}, instance_count: 1}}}}",
            "10: node_groups[0].count",
        ),
        ("count: 0\n    warm_pool: {size: 9}", "10: node_groups[0].count"),
        ("count: 8\n    capacity: {spt: {}}\n    warm_pool: {size: 2}", "11: node_groups[0].capacity.spt"),
        (f"count: 8\n    {BLOCK}\n    placement: clutser", "12: node_groups[0].placement"),
    ],
)
def test_what_is_wrong_by_itself_contradicts_nothing_else(tmp_path: Path, setting: str, place: str) -> None:
    (said,) = problems(tmp_path, RIGHT.replace(COUNT, setting))
    assert said.startswith(f"cluster.yaml:{place}: ")


def test_one_mistake_hides_no_other(tmp_path: Path) -> None:
    text = RIGHT.replace(TYPES, "[p5.48xlarg, g5.xlarge]").replace(COUNT, f"count: 0\n    {BLOCK}\n    efa: maybe")
    assert [said.split(": ")[1] for said in problems(tmp_path, text)] == [
        "node_groups[0].instance_types[0]",
        "node_groups[0].instance_types",
        "node_groups[0].count",
        "node_groups[0].efa",
    ]


CAPACITIES: dict[str, tuple[Value, Capacity]] = {
    "on_demand": ("on_demand", Capacity.on_demand()),
    "reservation": ({"reservation": {"end": "until_cancelled"}}, Capacity.reservation(end=UNTIL_CANCELLED)),
    "from_reservation": (
        {"from_reservation": {"id": ID, "placement_group": "a", "instance_platform": "Ubuntu Pro"}},
        Capacity.from_reservation(ID, placement_group="a", instance_platform="Ubuntu Pro"),
    ),
    "capacity_block": ({"capacity_block": {"id": ID}}, Capacity.capacity_block(ID)),
    "spot": ("spot", Capacity.spot()),
    "spot_fleet": ("spot_fleet", Capacity.spot_fleet()),
    "prioritized": (
        {"prioritized": {"reservations": [ID], "capacity_blocks": ["cr-0a1b2c3d"]}},
        Capacity.prioritized(reservations=[ID], capacity_blocks=["cr-0a1b2c3d"]),
    ),
}


def kinds_of_types() -> list[str]:
    """Return a type of each kind: for types that are alike in all this, the rules about one type are too."""
    kinds = {
        (
            *(info.usage_classes, info.placement_strategies, info.supports_efa, info.ultraserver_sizes),
            public_image(info) is None,
        ): info.name
        for info in all_instance_types()
    }
    return sorted(kinds.values())


@pytest.mark.parametrize(("written", "capacity"), CAPACITIES.values(), ids=CAPACITIES)
def test_reading_refuses_of_every_kind_of_type_what_the_constructs_refuse(
    tmp_path: Path, written: Value, capacity: Capacity
) -> None:
    own = ec2.MachineImage.generic_linux({"us-east-1": "ami-0a1b2c3d"})
    kinds = kinds_of_types()
    assert 5 < len(kinds) < 30
    for name, efa, placement, image in product(kinds, (None, True), (None, *Placement), ("latest", "ami-0a1b2c3d")):
        group = NodeGroup(
            name="workers",
            instance_types=[name],
            count=1,
            capacity=capacity,
            efa=efa,
            placement=placement,
            machine_image=None if image == "latest" else own,
        )
        part: dict[str, Value] = {
            "name": "workers",
            "instance_types": [name],
            "count": 1,
            "capacity": written,
            "image": image,
            **({} if placement is None else {"placement": placement.value}),
            **({} if efa is None else {"efa": efa}),
        }
        said = list(complaints({"node_groups": [part]}, tmp_path))
        assert len(said) == len(node_group_problems(group)), (name, efa, placement, image)
