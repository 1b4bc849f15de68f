"""What the settings of each way to buy are held against by themselves."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from cdk_training_cluster.capacity.choices import UntilCancelled
from cdk_training_cluster.checks import is_finite, is_unknown, shown, whole_number_problems
from cdk_training_cluster.validation import text_problems

_EXAMPLE = "cr-0a1b2c3d4e5f67890"
RESERVATION_ID = re.compile(r"cr-[0-9a-f]{8}(?:[0-9a-f]{9})?")
# A reservation that another account shares is known by its ARN in a resource group.
_RESERVATION_ARN = re.compile(
    rf"arn:[a-z-]+:ec2:[a-z0-9-]+:[0-9]{{12}}:capacity-reservation/{RESERVATION_ID.pattern}"
)

MAX_HOURLY_USD = 1_000_000
"""Ten thousand times what an instance costs: a price above is a slip, such as one in another unit.

What the functions make of prices stays within CloudWatch's numbers.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_MetricDatum.html
"""

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


def end_problems(end: object) -> Iterator[str]:
    """Say what is wrong with the end of a reservation."""
    if isinstance(end, UntilCancelled):
        return
    wanted = (
        "end must be a datetime with its zone, such as datetime(2026, 12, 24, 18, tzinfo=UTC), or UNTIL_CANCELLED: "
        "an idle reservation is billed all the same"
    )
    if not isinstance(end, datetime) or end.utcoffset() is None:
        yield f"{wanted}; got {shown(end)}"


def platform_problems(platform: object) -> Iterator[str]:
    """Say what is wrong with the platform of a reservation."""
    if is_unknown(platform) or (isinstance(platform, str) and platform in LINUX_PLATFORMS):
        return
    platforms = ", ".join(LINUX_PLATFORMS)
    yield f"instance_platform must be one of {platforms}, since nodes run Linux; got {shown(platform)}"


def id_problems(setting: str, given: object) -> Iterator[str]:
    """Say what is wrong with the id of a reservation."""
    if is_unknown(given) or (isinstance(given, str) and RESERVATION_ID.fullmatch(given)):
        return
    yield f"{setting} must be the id of a capacity reservation, such as '{_EXAMPLE}', got {shown(given)}"


def ids_problems(setting: str, given: object) -> Iterator[str]:
    """Say what is wrong with a list of ids or ARNs of reservations."""
    if not isinstance(given, Sequence) or isinstance(given, str):
        yield f"{setting} must be a list of ids of capacity reservations, such as ['{_EXAMPLE}'], got {shown(given)}"
        return
    for one in given:
        if is_unknown(one) or (isinstance(one, str) and _RESERVATION_ARN.fullmatch(one)):
            continue
        if not isinstance(one, str) or not RESERVATION_ID.fullmatch(one):
            yield f"{setting} must be ids or ARNs of capacity reservations, such as '{_EXAMPLE}', got {shown(one)}"


def name_problems(setting: str, given: object, wanted: str) -> Iterator[str]:
    """Say what is wrong with a name that may be left out."""
    if given is not None and (not isinstance(given, str) or not given):
        yield f"{setting} must be {wanted}, got {shown(given)}"
    elif given is not None and setting == "placement_group":
        yield from text_problems(setting, given, "placementGroupName")


def count_problems(count: int | None) -> list[str]:
    """Say what is wrong with the size of a reservation."""
    return [] if count is None else whole_number_problems("instance_count", count, minimum=1)


def price_problems(price: object, lowest: float) -> Iterator[str]:
    """Say what is wrong with a price."""
    if price is None or is_unknown(price):
        return
    if not is_finite(price) or not lowest <= price <= MAX_HOURLY_USD:  # type: ignore[operator]  # a number here
        yield (
            f"max_price must be a number of US dollars an hour from {price_text(lowest)} to {MAX_HOURLY_USD}, such "
            f"as 12.5, got {shown(price)}"
        )


def price_text(price: float) -> str:
    """Return a price as AWS takes it: digits and a point, no exponent."""
    return f"{price:.6f}".rstrip("0").rstrip(".")


def together_problems(ids: Sequence[str]) -> Iterator[str]:
    """Say what is wrong with all the ids of `Capacity.prioritized()` together."""
    if not ids:
        yield (
            "Capacity.prioritized() needs at least one id in reservations or capacity_blocks, got none: for "
            "On-Demand Instances alone use Capacity.on_demand()"
        )
    names = ids_alone(ids)
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            yield f"reservations and capacity_blocks must name each id once, got {name} {names.count(name)} times"


def ids_alone(given: Sequence[str]) -> tuple[str, ...]:
    """Return the ids of reservations of which some are given as ARNs, which end with the id."""
    return tuple(one.rpartition("/")[2] for one in given)


def refuse(problems: Iterable[str]) -> None:
    """Raise what is wrong, a line each."""
    found = list(problems)
    if found:
        raise ValueError("\n".join(found))
