"""How each way to buy must look when it is read back; whatever differs is told."""

from typing import Any

import pytest

from cdk_training_cluster_stacks.cluster_file import ClusterFile
from rehearsal.node_group_expectation import node_group_differences

_ID, _OTHER = "cr-0a1b2c3d4e5f67890", "cr-0b1b2c3d4e5f67890"
_TYPE = "p5.48xlarge"


def _cluster(capacity: Any, **settings: Any) -> ClusterFile:
    group = {"name": "workers", "instance_types": [_TYPE], "count": 4, "image": "latest", "capacity": capacity}
    return ClusterFile.model_validate(
        {"name": "pod", "availability_zone": "us-east-1b", "node_groups": [{**group, **settings}]}
    )


def _found(**group: Any) -> dict[str, Any]:
    return {
        "name": "workers",
        "instance_type": _TYPE,
        "count_running": 4,
        "interfaces_by_type": {_TYPE: [33, 32]},
        "placement_group": None,
        "market": "on-demand",
        "bought_from": {"on-demand": 4},
        "reservation": None,
        "spot_fleet": None,
        "warm_pool": None,
        "availability_zone": "us-east-1b",
        **group,
    }


_MADE = {
    "id": _ID,
    "instances": 4,
    "match_criteria": "targeted",
    "platform": "Linux/UNIX",
    "placement_group": "pg-1",
    "ends": None,
}
_RESERVED = {"bought_from": {_ID: 4}, "placement_group": "pg-1", "reservation": _MADE}
_IN_TURN = {"reservations": [_ID], "capacity_blocks": [_OTHER]}

# By way to buy: what the file says, and what is there when all is as it says.
_RIGHT: dict[str, tuple[ClusterFile, dict[str, Any]]] = {
    "on demand": (_cluster("on_demand"), _found(placement_group="pg-1")),
    "a warm pool": (
        _cluster("on_demand", warm_pool={"size": 2}),
        _found(placement_group="pg-1", warm_pool={"size": 2, "states": {}}),
    ),
    "a new reservation": (_cluster({"reservation": {"end": "until_cancelled"}}), _found(**_RESERVED)),
    "a new reservation with an end": (
        _cluster({"reservation": {"end": "2026-12-24T18:00:00+01:00", "instance_platform": "Ubuntu Pro"}}),
        _found(
            **{
                **_RESERVED,
                "reservation": {**_MADE, "ends": "2026-12-24T17:00:00+00:00", "platform": "Ubuntu Pro"},
            }
        ),
    ),
    "a new reservation in no placement group": (
        _cluster({"reservation": {"end": "until_cancelled"}}, placement="none"),
        _found(bought_from={_ID: 4}, reservation={**_MADE, "placement_group": None}),
    ),
    "a reservation": (_cluster({"from_reservation": {"id": _ID}}), _found(bought_from={_ID: 4})),
    "a reservation in a placement group": (
        _cluster({"from_reservation": {"id": _ID, "placement_group": "mine"}}),
        _found(bought_from={_ID: 4}, placement_group="mine"),
    ),
    "a block": (
        _cluster({"capacity_block": {"id": _ID}}),
        _found(bought_from={_ID: 4}, market="capacity-block"),
    ),
    "Spot": (_cluster("spot"), _found(bought_from={"spot": 4}, market="spot")),
    "Spot of several types": (
        _cluster("spot", instance_types=["g6e.48xlarge", "g5.48xlarge"]),
        _found(
            bought_from={"spot": 4},
            market="spot",
            instance_type=["g5.48xlarge", "g6e.48xlarge"],
            interfaces_by_type={"g5.48xlarge": [2, 1], "g6e.48xlarge": [5, 4]},
        ),
    ),
    "a fleet": (
        _cluster({"spot_fleet": {"max_price": 1}}),
        _found(bought_from={"spot": 4}, market="spot", spot_fleet="sfr-1"),
    ),
    # One of the three ways is on demand, and the two that are given hold a third each.
    "in turn": (
        _cluster({"prioritized": _IN_TURN}),
        _found(bought_from={_ID: 1, _OTHER: 1, "on-demand": 2}, market=["capacity-block", "on-demand"]),
    ),
    "in turn and nothing else": (
        _cluster({"prioritized": {**_IN_TURN, "on_demand": False}}),
        _found(bought_from={_ID: 2, _OTHER: 2}, market=["capacity-block", "on-demand"]),
    ),
}


@pytest.mark.parametrize(("cluster", "found"), _RIGHT.values(), ids=_RIGHT)
def test_nothing_differs_where_a_group_is_bought_as_the_file_says(
    cluster: ClusterFile, found: dict[str, Any]
) -> None:
    assert node_group_differences(cluster, [found]) == []


# What is there otherwise than the file says, by the way to buy; and what is told.
_WRONG: list[tuple[str, dict[str, Any], str]] = [
    (
        "a warm pool",
        {"warm_pool": None},
        "warm_pool is None, the file says 2",
    ),
    (
        "a new reservation",
        {"reservation": None, "bought_from": {"None": 4}},
        "its reservation is absent",
    ),
    (
        "a new reservation",
        {"bought_from": {"on-demand": 4}},
        f"bought_from is {{'on-demand': 4}}, the file says {{'{_ID}': 4}}",
    ),
    (
        "a new reservation",
        {"reservation": {**_MADE, "instances": 1}},
        "reservation: instances is 1, the file says 4",
    ),
    (
        "a new reservation",
        {"reservation": {**_MADE, "match_criteria": "open"}},
        "reservation: match_criteria is 'open', the file says 'targeted'",
    ),
    (
        "a new reservation",
        {"reservation": {**_MADE, "placement_group": None}},
        "reservation: placement_group is None, the file says 'pg-1'",
    ),
    (
        "a new reservation",
        {"reservation": {**_MADE, "ends": "2026-12-24T17:00:00+00:00"}},
        "reservation: ends is '2026-12-24T17:00:00+00:00', the file says None",
    ),
    (
        "a reservation",
        {"bought_from": {_ID: 3, "on-demand": 1}},
        f"bought_from is {{'{_ID}': 3, 'on-demand': 1}}, the file says {{'{_ID}': 4}}",
    ),
    (
        "a reservation",
        {"placement_group": "pg-1"},
        "placement_group is 'pg-1', the file says placement: none",
    ),
    (
        "a reservation in a placement group",
        {"placement_group": "another"},
        "placement_group is 'another', the file says mine",
    ),
    ("a block", {"market": "on-demand"}, "market is 'on-demand', the file says 'capacity-block'"),
    ("a block", {"placement_group": "pg-1"}, "placement_group is 'pg-1', the file says placement: none"),
    ("Spot", {"market": "on-demand"}, "market is 'on-demand', the file says 'spot'"),
    (
        "Spot of several types",
        {"interfaces_by_type": {"g5.48xlarge": [2, 1], "p5.48xlarge": [33, 32]}},
        "instance_type is 'p5.48xlarge', the file says g6e.48xlarge, g5.48xlarge",
    ),
    (
        "Spot of several types",
        {"interfaces_by_type": {"g6e.48xlarge": [2, 1]}},
        "g6e.48xlarge has 2 network interfaces, the file says 5",
    ),
    ("a fleet", {"spot_fleet": None}, "spot_fleet is None, the file says 'one'"),
    (
        "in turn",
        {"bought_from": {"on-demand": 4}},
        f"bought_from is {{'on-demand': 4}}, the file says {{'{_ID}': 1, '{_OTHER}': 1, 'on-demand': 2}}",
    ),
]


@pytest.mark.parametrize(("way", "changed", "difference"), _WRONG)
def test_what_is_bought_otherwise_is_told(way: str, changed: dict[str, Any], difference: str) -> None:
    cluster, found = _RIGHT[way]
    assert f"node group workers: {difference}" in node_group_differences(cluster, [{**found, **changed}])
