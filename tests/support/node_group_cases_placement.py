"""Cases of the rules about where nodes are placed, by the rule's id."""

from collections.abc import Mapping, Sequence
from typing import Any

from cdk_training_cluster import UNTIL_CANCELLED, Capacity, Placement
from node_group_cases import OTHER, OWN_IMAGE, RESERVED, Case, case, unknown_number, unknown_text
from node_group_cases_types import FLEET_WARNING

_SPOT, _FLEET = Capacity.spot(), Capacity.spot_fleet()

_RESERVATION = Capacity.reservation(end=UNTIL_CANCELLED)

_HELD, _BLOCK = Capacity.from_reservation(RESERVED), Capacity.capacity_block(RESERVED)

_HELD_IN_PLACE = Capacity.from_reservation(RESERVED, placement_group="pod")

_IN_TURN = Capacity.prioritized(reservations=[RESERVED], capacity_blocks=[OTHER], on_demand=False)

_RESERVATIONS_IN_TURN = Capacity.prioritized(reservations=[RESERVED])

_SPOT_TYPES: Mapping[str, Any] = {"instance_types": ["g5.48xlarge", "g6.48xlarge"], "capacity": _SPOT}

_NO_BLOCK_IN_A_GROUP = (
    "placement must be left out, or Placement.NONE, for {call} with a Capacity Block, got Placement.CLUSTER: blocks "
    "do not support placement groups, and EC2 puts their instances close together by itself"
)

_OUTSIDE = {
    "reservationOutsidePlacementGroup": "the nodes go into a placement group that the reservation was not made in: "
    "EC2 may find too little of the reserved capacity close together, or launch a part of the nodes; leave placement "
    "out, or reserve inside a placement group and name it"
}

_APART = {
    "noPlacementGroup": "placement is Placement.NONE for p5.48xlarge with Elastic Fabric Adapters: EC2 may place the "
    "nodes far apart, with less bandwidth and more latency between them; leave placement out unless they work alone"
}

_SEVERAL = {
    "severalTypesInPlacementGroup": "several instance types in one cluster placement group make it likelier that EC2 "
    "has too little capacity: name one type, or set placement to Placement.NONE"
}

_NO_CLUSTER = (
    "vt1.24xlarge cannot be launched into a cluster placement group: set placement to Placement.NONE, or choose "
    "another type"
)

_VT1: Mapping[str, Any] = {"instance_types": ["vt1.24xlarge"], "machine_image": OWN_IMAGE}


def _held(**settings: Any) -> Capacity:
    return Capacity.from_reservation(RESERVED, **settings)


PLACEMENT_CASES: Mapping[str, Sequence[Case]] = {
    "blockPlacement": (
        case(
            _NO_BLOCK_IN_A_GROUP.format(call="Capacity.capacity_block()"),
            capacity=_BLOCK,
            placement=Placement.CLUSTER,
        ),
        case(
            _NO_BLOCK_IN_A_GROUP.format(call="Capacity.prioritized()"),
            capacity=_IN_TURN,
            placement=Placement.CLUSTER,
        ),
        case(capacity=_BLOCK),
        case(capacity=_BLOCK, placement=Placement.NONE),
        case(capacity=_IN_TURN),
        case(capacity=_IN_TURN, placement=Placement.NONE),
        case(capacity=_RESERVATIONS_IN_TURN, placement=Placement.CLUSTER, warnings=_OUTSIDE),
    ),
    "placementStrategy": (
        case(_NO_CLUSTER, **_VT1),
        case(_NO_CLUSTER, **_VT1, capacity=_RESERVATION),
        case(_NO_CLUSTER, **_VT1, capacity=_HELD_IN_PLACE),
        case(_NO_CLUSTER, **_VT1, capacity=_SPOT, placement=Placement.CLUSTER),
        case(**_VT1, placement=Placement.NONE),
        case(**_VT1, capacity=_HELD),
        case(**_VT1, capacity=_SPOT),
        # AWS does not say what p3 can do.
        case(instance_types=["p3.16xlarge"], machine_image=OWN_IMAGE),
    ),
    "noPlacementGroup": (
        case(placement=Placement.NONE, warnings=_APART),
        case(placement=Placement.NONE, count=unknown_number(), warnings=_APART),
        case(placement=Placement.NONE, count=1),
        case(placement=Placement.NONE, instance_types=["g5.xlarge"]),
        case(),
    ),
    "reservationOutsidePlacementGroup": (
        case(capacity=_HELD, placement=Placement.CLUSTER, warnings=_OUTSIDE),
        case(capacity=_RESERVATIONS_IN_TURN, placement=Placement.CLUSTER, warnings=_OUTSIDE),
        # The reservation may be in a placement group all the same: it is enough to name the reservation.
        case(capacity=_HELD),
        case(capacity=_HELD, placement=Placement.NONE),
        case(capacity=_HELD_IN_PLACE),
        case(capacity=_HELD_IN_PLACE, placement=Placement.CLUSTER),
        case(capacity=_HELD_IN_PLACE, placement=Placement.NONE),
        case(capacity=_held(placement_group=unknown_text())),
        case(capacity=_RESERVATIONS_IN_TURN),
        case(capacity=_RESERVATION),
        case(capacity=_RESERVATION, placement=Placement.NONE, warnings=_APART),
    ),
    "severalTypesInPlacementGroup": (
        case(**_SPOT_TYPES, placement=Placement.CLUSTER, warnings=_SEVERAL),
        case(
            **{**_SPOT_TYPES, "capacity": _FLEET},
            placement=Placement.CLUSTER,
            warnings={**_SEVERAL, **FLEET_WARNING},
        ),
        case(
            **{**_SPOT_TYPES, "capacity": _RESERVATIONS_IN_TURN},
            placement=Placement.CLUSTER,
            warnings={**_SEVERAL, **_OUTSIDE},
        ),
        # What is interrupted is terminated, which is allowed in a placement group.
        case(instance_types=["g5.48xlarge"], capacity=_SPOT, placement=Placement.CLUSTER),
        case(**_SPOT_TYPES),
        case(**_SPOT_TYPES, placement=Placement.NONE),
    ),
}
