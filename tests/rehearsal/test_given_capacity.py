"""The reservations and blocks that a cluster file names, and how big they must be for it."""

from typing import Any

import pytest

from cdk_training_cluster_file import ClusterFile
from rehearsal.given_capacity import GivenCapacity, given_capacity

_A, _B, _C = "cr-0a000000", "cr-0b000000", "cr-0c000000"
_ARN = f"arn:aws:ec2:us-east-1:111122223333:capacity-reservation/{_C}"


def _cluster(*capacities: Any, count: int = 4) -> ClusterFile:
    groups = [
        {"name": f"group-{at}", "instance_types": ["p5.48xlarge"], "count": count, "image": "latest", "capacity": one}
        for at, one in enumerate(capacities)
    ]
    return ClusterFile.model_validate({"name": "pod", "availability_zone": "us-east-1b", "node_groups": groups})


def _given(id: str, count: int, *, is_block: bool = False, **more: Any) -> GivenCapacity:
    return GivenCapacity(id=id, is_block=is_block, instance_type="p5.48xlarge", instance_count=count, **more)


_GIVEN: dict[str, tuple[ClusterFile, list[GivenCapacity]]] = {
    "nothing": (_cluster("on_demand", "spot", {"reservation": {"end": "until_cancelled"}}), []),
    "a reservation as big as its group": (_cluster({"from_reservation": {"id": _A}}), [_given(_A, 4)]),
    "a reservation as big as the file says": (
        _cluster({"from_reservation": {"id": _A, "instance_count": 9}}),
        [_given(_A, 9)],
    ),
    "a reservation for two groups": (
        _cluster(
            {"from_reservation": {"id": _A}},
            {"from_reservation": {"id": _A, "placement_group": "mine", "instance_platform": "Linux/UNIX"}},
        ),
        [_given(_A, 8, placement_group="mine", instance_platform="Linux/UNIX")],
    ),
    "a block": (_cluster({"capacity_block": {"id": _A}}), [_given(_A, 4, is_block=True)]),
    "a block as big as the file says, for two groups": (
        _cluster({"capacity_block": {"id": _A, "instance_count": 16}}, {"capacity_block": {"id": _A}}),
        [_given(_A, 16, is_block=True)],
    ),
    "equal parts, one of them on demand": (
        _cluster({"prioritized": {"reservations": [_A, _C], "capacity_blocks": [_B]}}, count=8),
        [_given(_A, 2), _given(_C, 2), _given(_B, 2, is_block=True)],
    ),
    "parts that make up the whole": (
        _cluster({"prioritized": {"reservations": [_A], "capacity_blocks": [_B], "on_demand": False}}, count=5),
        [_given(_A, 3), _given(_B, 3, is_block=True)],
    ),
    "one of another account's, and few nodes": (
        _cluster({"prioritized": {"reservations": [_ARN, _A]}}, count=1),
        [_given(_C, 1), _given(_A, 1)],
    ),
    "one for all and for a group of its own": (
        _cluster({"from_reservation": {"id": _A}}, {"prioritized": {"reservations": [_A]}}),
        [_given(_A, 6)],
    ),
}


@pytest.mark.parametrize(("cluster", "given"), _GIVEN.values(), ids=_GIVEN)
def test_what_a_file_takes_for_granted_is_as_big_as_it_has_to_be(
    cluster: ClusterFile, given: list[GivenCapacity]
) -> None:
    assert given_capacity(cluster) == given
