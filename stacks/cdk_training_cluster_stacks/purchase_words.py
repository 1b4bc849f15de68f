"""Says in a few plain words how the nodes of a group are bought."""

from datetime import UTC, datetime

from cdk_training_cluster_stacks.cluster_file import NodeGroupSettings
from cdk_training_cluster_stacks.cluster_file.capacity import (
    CapacityBlockSettings,
    ExistingReservationSettings,
    PrioritizedSettings,
    ReservationSettings,
    SpotFleetSettings,
    SpotSettings,
)
from cdk_training_cluster_stacks.cluster_file.fields import UNTIL_CANCELLED


def bought(group: NodeGroupSettings) -> str:
    """Say how the nodes of a group are bought, with its warm pool if it has one.

    Args:
        group: The node group.
    """
    match group.capacity.settings:
        case ReservationSettings() as settings:
            words = _reserved(settings)
        case ExistingReservationSettings() as settings:
            words = f"reservation {settings.id}"
        case CapacityBlockSettings() as settings:
            words = f"Capacity Block {settings.id}"
        case SpotSettings() as settings:
            words = f"Spot{_at_most(settings.max_price)}"
        case SpotFleetSettings() as settings:
            words = f"Spot Fleet{_at_most(settings.max_price)}"
        case PrioritizedSettings() as settings:
            words = _in_turn(settings)
        case _:
            words = "on demand"
    return words if group.warm_pool is None else f"{words}; warm pool of {group.warm_pool.size}"


def in_utc(time: datetime) -> str:
    """Say a time to the minute.

    Args:
        time: The time, with its zone.
    """
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _reserved(settings: ReservationSettings) -> str:
    until = "cancelled"
    if settings.end != UNTIL_CANCELLED:
        until = in_utc(datetime.fromisoformat(settings.end))
    released = ", released while stopped" if settings.on_idle == "release" else ""
    return f"new reservation until {until}{released}"


def _in_turn(settings: PrioritizedSettings) -> str:
    ways = [
        _counted(len(ids), noun)
        for ids, noun in ((settings.reservations, "reservation"), (settings.capacity_blocks, "Capacity Block"))
        if ids
    ]
    return ", then ".join([*ways, *(["on demand"] if settings.on_demand else [])])


def _at_most(price: float | None) -> str:
    return "" if price is None else f", at most ${price:g} an hour"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
