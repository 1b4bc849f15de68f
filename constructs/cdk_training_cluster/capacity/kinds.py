"""The ways to buy, each with its settings checked by themselves; what depends on types and groups is in `nodes`."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

from aws_cdk import Token

from cdk_training_cluster.capacity.capacity import Capacity
from cdk_training_cluster.capacity.choices import OnIdle, UntilCancelled
from cdk_training_cluster.checks import choice_problems, is_unknown, whole_number_problems
from cdk_training_cluster.validation import text_problems

_EXAMPLE = "cr-0a1b2c3d4e5f67890"
_RESERVATION_ID = re.compile(r"cr-[0-9a-f]{8}(?:[0-9a-f]{9})?")
# A reservation that another account shares is known by its ARN in a resource group.
_RESERVATION_ARN = re.compile(
    rf"arn:[a-z-]+:ec2:[a-z0-9-]+:[0-9]{{12}}:capacity-reservation/{_RESERVATION_ID.pattern}"
)

LINUX_PLATFORMS = (
    "Linux with SQL Server Enterprise",
    "Linux with SQL Server Standard",
    "Linux with SQL Server Web",
    "Linux/UNIX",
    "RHEL with HA",
    "RHEL with HA and SQL Server Enterprise",
    "RHEL with HA and SQL Server Standard",
    "RHEL with SQL Server Enterprise",
    "RHEL with SQL Server Standard",
    "RHEL with SQL Server Web",
    "Red Hat Enterprise Linux",
    "SUSE Linux",
    "Ubuntu Pro",
)
"""The platforms of a reservation that nodes can have, whose scripts need Linux.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-capacityreservation.html
"""


@dataclass(frozen=True, kw_only=True)
class OnDemand(Capacity):
    """See `Capacity.on_demand`."""

    call = "Capacity.on_demand()"
    usage_classes = ("on-demand",)
    keeps_together = True


@dataclass(frozen=True, kw_only=True)
class Reservation(Capacity):
    """See `Capacity.reservation`."""

    end: datetime | UntilCancelled
    on_idle: OnIdle
    instance_platform: str

    call = "Capacity.reservation()"
    usage_classes = ("on-demand",)
    keeps_together = True

    def __post_init__(self) -> None:
        """Check each setting by itself."""
        _raise(
            [
                *_end_problems(self.end),
                *choice_problems("on_idle", self.on_idle, OnIdle),
                *_platform_problems(self.instance_platform),
            ]
        )

    @property
    def end_date(self) -> str | None:
        """The end as CloudFormation takes it, in UTC; None: there is none."""
        if isinstance(self.end, UntilCancelled):
            return None
        return self.end.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, kw_only=True)
class ExistingReservation(Capacity):
    """See `Capacity.from_reservation`."""

    capacity_reservation_id: str
    placement_group: str | None
    availability_zone: str | None
    instance_platform: str | None
    instance_count: int | None

    call = "Capacity.from_reservation()"
    usage_classes = ("on-demand",)

    def __post_init__(self) -> None:
        """Check each setting by itself."""
        platform = self.instance_platform
        _raise(
            [
                *_id_problems("capacity_reservation_id", self.capacity_reservation_id),
                *_text_problems("placement_group", self.placement_group, "the name of a cluster placement group"),
                *_text_problems("availability_zone", self.availability_zone, "a zone, such as 'us-east-1b'"),
                *([] if platform is None else _platform_problems(platform)),
                *_count_problems(self.instance_count),
            ]
        )

    @property
    def keeps_together(self) -> bool:
        """Whether the reservation was made in a placement group: then the nodes go into it too."""
        return self.placement_group is not None


@dataclass(frozen=True, kw_only=True)
class CapacityBlock(Capacity):
    """See `Capacity.capacity_block`."""

    capacity_reservation_id: str
    availability_zone: str | None
    instance_count: int | None

    call = "Capacity.capacity_block()"
    usage_classes = ("capacity-block",)

    def __post_init__(self) -> None:
        """Check each setting by itself."""
        _raise(
            [
                *_id_problems("capacity_reservation_id", self.capacity_reservation_id),
                *_text_problems("availability_zone", self.availability_zone, "a zone, such as 'us-east-1b'"),
                *_count_problems(self.instance_count),
            ]
        )


@dataclass(frozen=True, kw_only=True)
class _AtSpotPrice(Capacity):
    max_price: float | None

    usage_classes = ("spot",)
    lowest_price: ClassVar[float]

    def __post_init__(self) -> None:
        """Check the price."""
        _raise(_price_problems(self.max_price, self.lowest_price))

    @property
    def max_price_text(self) -> str | None:
        """The price as AWS takes it: digits and a point, no exponent. None: no limit but the On-Demand price."""
        if self.max_price is None:
            return None
        if Token.is_unresolved(self.max_price):
            return Token.as_string(self.max_price)
        return _price_text(self.max_price)


@dataclass(frozen=True, kw_only=True)
class Spot(_AtSpotPrice):
    """See `Capacity.spot`."""

    capacity_rebalancing: bool

    call = "Capacity.spot()"
    # https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_InstancesDistribution.html
    lowest_price = 0.001

    def __post_init__(self) -> None:
        """Check each setting by itself."""
        _raise(
            [
                *_price_problems(self.max_price, self.lowest_price),
                *_flag_problems("capacity_rebalancing", self.capacity_rebalancing),
            ]
        )


@dataclass(frozen=True, kw_only=True)
class SpotFleet(_AtSpotPrice):
    """See `Capacity.spot_fleet`."""

    call = "Capacity.spot_fleet()"
    # The smallest step in which AWS names a price.
    lowest_price = 0.000001


@dataclass(frozen=True, kw_only=True)
class Prioritized(Capacity):
    """See `Capacity.prioritized`."""

    reservations: Sequence[str]
    capacity_blocks: Sequence[str]
    falls_back: bool

    call = "Capacity.prioritized()"

    def __post_init__(self) -> None:
        """Check each setting by itself, and keep the lists as they are now."""
        lists = {"reservations": self.reservations, "capacity_blocks": self.capacity_blocks}
        wrong_ids = [problem for setting, ids in lists.items() for problem in _ids_problems(setting, ids)]
        _raise([*wrong_ids, *_flag_problems("on_demand", self.falls_back)])
        for setting, ids in lists.items():
            object.__setattr__(self, setting, tuple(ids))
        _raise(_together_problems([*self.reservations, *self.capacity_blocks]))

    @property
    def usage_classes(self) -> tuple[str, ...]:
        """What is bought: both reservations and their substitute are On-Demand Instances."""
        on_demand = ("on-demand",) if self.reservations or self.falls_back else ()
        return (*on_demand, *(("capacity-block",) if self.capacity_blocks else ()))

    @property
    def capacity_types(self) -> tuple[str, ...]:
        """The list of a distribution segment, in the order in which Auto Scaling goes through it."""
        return (
            *(("on-demand-capacity-reservation",) if self.reservations else ()),
            *(("capacity-block",) if self.capacity_blocks else ()),
            *(("on-demand",) if self.falls_back else ()),
        )


def _end_problems(end: object) -> Iterator[str]:
    if isinstance(end, UntilCancelled):
        return
    wanted = (
        "end must be a datetime with its zone, such as datetime(2026, 12, 24, 18, tzinfo=UTC), or UNTIL_CANCELLED: "
        "an idle reservation is billed all the same"
    )
    if not isinstance(end, datetime) or end.utcoffset() is None:
        yield f"{wanted}; got {end!r}"


def _platform_problems(platform: object) -> Iterator[str]:
    if is_unknown(platform) or platform in LINUX_PLATFORMS:
        return
    yield f"instance_platform must be one of {', '.join(LINUX_PLATFORMS)}, since nodes run Linux; got {platform!r}"


def _id_problems(setting: str, given: object) -> Iterator[str]:
    if is_unknown(given) or (isinstance(given, str) and _RESERVATION_ID.fullmatch(given)):
        return
    yield f"{setting} must be the id of a capacity reservation, such as '{_EXAMPLE}', got {given!r}"


def _ids_problems(setting: str, given: object) -> Iterator[str]:
    if not isinstance(given, Sequence) or isinstance(given, str):
        yield f"{setting} must be a list of ids of capacity reservations, such as ['{_EXAMPLE}'], got {given!r}"
        return
    for one in given:
        if is_unknown(one) or (isinstance(one, str) and _RESERVATION_ARN.fullmatch(one)):
            continue
        if not isinstance(one, str) or not _RESERVATION_ID.fullmatch(one):
            yield f"{setting} must be ids or ARNs of capacity reservations, such as '{_EXAMPLE}', got {one!r}"


def _text_problems(setting: str, given: object, wanted: str) -> Iterator[str]:
    if given is not None and (not isinstance(given, str) or not given):
        yield f"{setting} must be {wanted}, got {given!r}"
    elif given is not None and setting == "placement_group":
        yield from text_problems(setting, given, "placementGroupName")


def _count_problems(count: int | None) -> list[str]:
    return [] if count is None else whole_number_problems("instance_count", count, minimum=1)


def _price_problems(price: object, lowest: float) -> Iterator[str]:
    if price is None or is_unknown(price):
        return
    is_number = isinstance(price, int | float) and not isinstance(price, bool)
    if not is_number or not math.isfinite(price) or price < lowest:  # type: ignore[arg-type,operator]
        yield (
            f"max_price must be a number of US dollars an hour of at least {_price_text(lowest)}, such as 12.5, got "
            f"{price!r}"
        )


def _price_text(price: float) -> str:
    return f"{price:.6f}".rstrip("0").rstrip(".")


def _flag_problems(setting: str, given: object) -> Iterator[str]:
    if not isinstance(given, bool):
        yield f"{setting} must be True or False, got {given!r}"


def _together_problems(ids: Sequence[str]) -> Iterator[str]:
    if not ids:
        yield (
            "Capacity.prioritized() needs at least one id in reservations or capacity_blocks, got none: for "
            "On-Demand Instances alone use Capacity.on_demand()"
        )
    names = [one.rpartition("/")[2] for one in ids]  # an ARN ends with the id
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            yield f"Capacity.prioritized() takes each id once, got {name} {names.count(name)} times"


def _raise(problems: Iterable[str]) -> None:
    found = list(problems)
    if found:
        raise ValueError("\n".join(found))
