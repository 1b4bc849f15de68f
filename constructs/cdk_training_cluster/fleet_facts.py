"""What the functions of a cluster have to know of a node group's nodes."""

from dataclasses import replace

from cdk_training_cluster.capacity import OnIdle
from cdk_training_cluster.capacity.kinds import (
    CapacityBlock,
    ExistingReservation,
    Prioritized,
    Reservation,
    SpotFleet,
)
from cdk_training_cluster.guardrails import IdleGroup
from cdk_training_cluster.nodes import IdlePolicy, NodeFleet
from cdk_training_cluster.power import PowerGroup


def power_group(fleet: NodeFleet, policy: IdlePolicy) -> PowerGroup:
    """Return what the power function has to know of a group's nodes.

    Args:
        fleet: The nodes.
        policy: When they are idle and what becomes of them.
    """
    return replace(
        _bought_group(fleet),
        terminates_nodes=policy.takes_single_nodes,
        warm_pool=fleet.node_group.warm_pool is not None,
    )


def idle_group(fleet: NodeFleet, policy: IdlePolicy) -> IdleGroup:
    """Return what the idle stop has to know of a group's nodes.

    Args:
        fleet: The nodes.
        policy: When they are idle and what becomes of them.
    """
    capacity = fleet.node_group.capacity
    return IdleGroup(
        policy=policy,
        spot_fleet_id=fleet.spot_fleet.ref if isinstance(capacity, SpotFleet) else None,
        released=isinstance(capacity, Reservation) and capacity.on_idle is OnIdle.RELEASE,
    )


def _bought_group(fleet: NodeFleet) -> PowerGroup:
    count, capacity = fleet.node_group.count, fleet.node_group.capacity
    if isinstance(capacity, CapacityBlock):
        return PowerGroup(
            count=count,
            capacity_block=capacity.capacity_reservation_id,
            block_ends_early_minutes=fleet.instance_type.block_ends_early_minutes,
        )
    if isinstance(capacity, Prioritized):
        return PowerGroup(
            count=count,
            # Shared ones are given as ARNs, which end with the id that EC2 describes them by.
            capacity_blocks=[block.rpartition("/")[2] for block in capacity.capacity_blocks],
            listed_reservations=[one.rpartition("/")[2] for one in capacity.reservations],
            on_demand=capacity.falls_back,
            # Nobody knows here which block is of which type: all are told as early as the earliest wants it.
            block_ends_early_minutes=max(info.block_ends_early_minutes for info in fleet.instance_types),
        )
    if isinstance(capacity, SpotFleet):
        return PowerGroup(count=count, spot_fleet_id=fleet.spot_fleet.ref)
    if isinstance(capacity, Reservation) and fleet.capacity_reservation:
        return PowerGroup(
            count=count,
            capacity_reservation_id=fleet.capacity_reservation.ref,
            released=capacity.on_idle is OnIdle.RELEASE,
        )
    if isinstance(capacity, ExistingReservation):
        return PowerGroup(count=count, capacity_reservation_id=capacity.capacity_reservation_id)
    return PowerGroup(count=count)
