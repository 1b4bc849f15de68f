"""The settings of the spend function, which its construct writes, and the names of its metrics."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated

from cluster_contract.codec import FunctionSettings, Within, variable
from cluster_contract.owners import OwnedGroupSettings

HOURS_OF_A_MONTH = 730
"""AWS's own month: https://docs.aws.amazon.com/pricing-calculator/latest/userguide/what-is-pricing-calculator.html"""

_Positive = Annotated[float, Within(above=0)]
_Quantity = Annotated[float, Within(minimum=0)]


class OnExceed(StrEnum):
    """What becomes of a cluster when its dollars reach the whole budget of a month."""

    NOTIFY = "notify"
    """Nothing but notifications."""

    NO_NEW_NODES = "no-new-nodes"
    """Node groups keep at most the nodes that they have."""

    STOP = "stop"
    """Node groups are stopped, after a warning."""


class SpendKind(StrEnum):
    """What is billed: the dimension `Kind` of the metrics."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"
    RESERVATION = "reservation"
    CAPACITY_BLOCK = "capacity-block"
    VOLUMES = "volumes"
    FILE_SYSTEM = "file-system"
    NETWORK = "network"
    GUARDRAILS = "guardrails"
    ORCHESTRATOR = "orchestrator"


@dataclass(frozen=True, kw_only=True)
class SpendGroupSettings(OwnedGroupSettings):
    """What the spend function has to know of one node group.

    Attributes:
        volume_gib: How large the root volume of each node is, in GiB.
        reservations: The ids of the capacity reservations and Capacity Blocks that its nodes may run in.
        release: Whether its reservation is lowered while it is stopped, so that stopping saves money.
        orchestrator: What the orchestrator bills for each of its nodes by the hour, by the names in the price
            list.
    """

    volume_gib: Annotated[int, Within(minimum=0)] = 0
    reservations: tuple[str, ...] = ()
    release: bool = False
    orchestrator: Mapping[str, _Quantity] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class SpendFunctionSettings(FunctionSettings):
    """The settings of the spend function.

    Attributes:
        cluster: The cluster's name, the value of the tag on its instances.
        monthly_usd: The budget, in USD a month.
        thresholds: The shares of the budget, in percent.
        on_exceed: What the function does at the whole budget.
        warning: How long before a stop its warning is sent.
        groups: The cluster's node groups, by name.
        fixed: What else is billed by the hour: units an hour by their names in the price list, by kind.
        starts: From when on units of `fixed` are billed, by their names; what is not named is billed always.
        node: What a running node adds to the kind `guardrails`, likewise.
        prices: What an hour of an instance costs, in USD, by its type or by the id of its Capacity Block, and what
            units cost by their names, where that is stated.
        tick: How much time passes between two runs.
        topic_arn: The SNS topic that is notified. Empty: there is none.
        power_function: The name of the function that owns the sizes of node groups. Empty: there is none.
        state_table: The name of the cluster's state table.
        stack_id: The end of the id of the stack that the function and the cluster's Auto Scaling groups belong to:
            `/` and its UUID, since an environment is small.
        region: The region that the function runs in.
    """

    environment_variable = "CLUSTER_SPEND_SETTINGS"

    cluster: str
    monthly_usd: _Positive
    thresholds: tuple[_Positive, ...] = (50, 80, 100)
    on_exceed: OnExceed = OnExceed.NOTIFY
    warning: Annotated[timedelta, Within(minimum=0)] = timedelta(minutes=30)
    groups: Mapping[str, SpendGroupSettings] = field(default_factory=dict)
    fixed: Mapping[str, Mapping[str, _Quantity]] = field(default_factory=dict)
    starts: Mapping[str, datetime] = field(default_factory=dict)
    node: Mapping[str, _Quantity] = field(default_factory=dict)
    prices: Mapping[str, _Positive] = field(default_factory=dict)
    tick: Annotated[timedelta, Within(above=0)] = timedelta(minutes=5)
    topic_arn: str = variable("ALERT_TOPIC_ARN")
    power_function: str = variable("POWER_FUNCTION")
    state_table: str = variable("STATE_TABLE")
    stack_id: str = variable("STACK_ID")
    region: str = variable("AWS_REGION")


KIND_DIMENSION = "Kind"
"""The dimension that holds what is billed."""


class SpendMetric(StrEnum):
    """The metrics of the spend function, one point a run each."""

    DOLLARS_PER_HOUR = "DollarsPerHour"
    """What the cluster costs an hour now, in USD, by cluster, by node group and by kind; what has no known price is
    left out."""

    MONTH_TO_DATE = "MonthToDateDollars"
    """What it has cost since the month began in UTC, likewise."""

    FORECAST = "ForecastDollars"
    """What it will have cost at the end of the month if it goes on costing as much an hour, by cluster."""

    UNKNOWN_PRICES = "UnknownPrices"
    """How many things are billed whose price is not known, by cluster."""

    GAP_MINUTES = "SpendGapMinutes"
    """In how many minutes of this month instances may have ended that no run has seen, by cluster."""

    SUCCESSFUL_TICKS = "SuccessfulSpendTicks"
    """1 for a run in which nothing failed, else 0, by cluster."""


def usd_text(amount: Decimal | float) -> str:
    """Return an amount as messages show it, such as `1,000 USD`, with cents where there are any.

    Args:
        amount: The US dollars.
    """
    return f"{amount:,.2f}".removesuffix(".00") + " USD"
