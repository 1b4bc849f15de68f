"""What the settings of each way to buy are held against by themselves."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, TypeAlias

from cdk_training_cluster.capacity.choices import UntilCancelled
from cdk_training_cluster.validation.bounds import Form, Number, OneOf, Text, Whole
from cdk_training_cluster.validation.checks import shown

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


# Synthesis reads no clock: an end before the library's first release is over whenever it runs. Of a later end that is
# over, the commands warn; where they see that the cluster is not deployed yet, they refuse it.
_FIRST_END = datetime(2026, 11, 1, tzinfo=UTC)


def end_problems(setting: str, end: object) -> Iterator[str]:
    """Say what is wrong with the end of a reservation."""
    if isinstance(end, UntilCancelled):
        return
    if not isinstance(end, datetime) or end.utcoffset() is None:
        yield (
            f"{setting} must be a datetime with its zone, such as datetime(2026, 12, 24, 18, tzinfo=UTC), or "
            f"UNTIL_CANCELLED: an idle reservation is billed all the same; got {shown(end)}"
        )
    elif not _is_in_utc(end):
        yield f"{setting} must be a date and time that exist in UTC, got {end.isoformat()}"
    elif end < _FIRST_END:
        yield f"{setting} must be in the future, got {end:%Y-%m-%d %H:%M}: EC2 makes no reservation that has ended"


def _is_in_utc(end: datetime) -> bool:
    try:
        end.astimezone(UTC)
    except OverflowError:  # before the year 1 or after 9999
        return False
    return True


ReservationEnd: TypeAlias = Annotated[datetime | UntilCancelled | None, end_problems]
"""The end of a reservation, which is refused if it is left out."""

Platform: TypeAlias = Annotated[str, OneOf(LINUX_PLATFORMS, ", since nodes run Linux")]
"""The platform of a reservation."""

ReservationId: TypeAlias = Annotated[
    str, Form(pattern=RESERVATION_ID, wanted=f"the id of a capacity reservation, such as {_EXAMPLE!r}")
]
"""The id of a reservation."""

ReservationIdOrArn: TypeAlias = Annotated[
    str,
    Form(
        pattern=re.compile(f"{RESERVATION_ID.pattern}|{_RESERVATION_ARN.pattern}"),
        wanted=f"ids or ARNs of capacity reservations, such as {_EXAMPLE!r}",
    ),
]
"""The id of a reservation, or the ARN of one that another account shares."""

TrainingPlanArn: TypeAlias = Annotated[
    str,
    Form(
        pattern=re.compile(r"arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:[0-9]{12}:training-plan/.+"),
        wanted="the ARN of a training plan, such as 'arn:aws:sagemaker:us-east-1:111122223333:training-plan/llama'",
    ),
]
"""https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ClusterInstanceGroupSpecification.html"""

PlacementGroupName: TypeAlias = Annotated[str, Text("the name of a cluster placement group", "placementGroupName")]
"""The placement group that a reservation was made in."""

Zone: TypeAlias = Annotated[str, Form(pattern=re.compile(".+"), wanted="a zone, such as 'us-east-1b'")]
"""The zone of a reservation."""

InstanceCount: TypeAlias = Annotated[int, Whole(minimum=1)]
"""How many instances a reservation has."""

# https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_InstancesDistribution.html
SPOT_PRICE = Number(minimum=0.001, maximum=MAX_HOURLY_USD)
# The smallest step in which AWS names a price.
FLEET_PRICE = Number(minimum=0.000001, maximum=MAX_HOURLY_USD)


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
