"""What the cluster may cost: `budget:` in a cluster file."""

from typing import Annotated, Literal

from pydantic import Field

from cdk_training_cluster import Budget
from cdk_training_cluster_file import fields
from cdk_training_cluster_file.derivation import ModelOf
from cdk_training_cluster_file.fields import Flag
from cdk_training_cluster_file.model_base import Settings


class BudgetSettings(Settings, ModelOf[Budget]):
    """What may be spent in a month, for three watchers: billing alarms in us-east-1 watch the account's charges, a
    function this cluster's dollars now, an AWS budget this cluster's billed dollars."""

    monthly_usd: float = Field(examples=[20000])
    """The budget in USD a month. Billing alarms compare it with all that the account does."""

    thresholds: Annotated[tuple[float, ...], Field(min_length=1)] = Field(
        default=(50, 80, 100), examples=[[50, 80, 100]]
    )
    """The shares of the budget that send a notification, in percent: 0.1 to 1000. All three use them."""

    forecast_thresholds: tuple[float, ...] = Field(default=(100,), examples=[[100]])
    """The shares that the forecast of the month's end must stay below, in percent. The function and the AWS budget
    watch them; AWS forecasts no account's charges for alarms."""

    on_exceed: Literal["notify", "no-new-nodes", "stop"] = Field(default="notify", examples=["stop"])
    """What the function does when this cluster's dollars of the month reach the budget: `notify` leaves the nodes
    alone, `no-new-nodes` starts none beside those that run, `stop` sends a warning and then stops the node groups."""

    warning_minutes: float = 30
    """How long before such a stop the alert topic gets a warning: 10 to 660."""

    max_usd_per_hour: float | None = Field(default=None, examples=[500])
    """What this cluster may cost in an hour, in USD, before an alarm goes into ALARM. Left out: no such alarm."""

    prices: dict[str, float] = Field(default={}, examples=[{"cr-0a1b2c3d4e5f67890": 30}])
    """What an instance costs an hour, in USD, by its type or by the id of its Capacity Block, where AWS's price list
    does not say it or your price is another. The function uses them."""

    weekly_report: Flag = False
    """Whether alerts get a report of this cluster's own bill each week. Cost Explorer bills about $0.01 for it."""

    services: tuple[fields.BilledService, ...] = Field(default=(), examples=[["AmazonEC2", "AmazonFSx"]])
    """Services with billing alarms of their own, under the names that AWS's billing metrics have."""

    linked_accounts: tuple[fields.AccountId, ...] = Field(default=(), examples=[["111122223333"]])
    """Accounts of the organization with billing alarms of their own, in quotes; only the management account has
    their charges."""

    emails: tuple[fields.Email, ...] | None = Field(default=None, examples=[["ml-platform@example.com"]])
    """At most 10 addresses that billing alarms and the AWS budget notify; for the alarms AWS asks each one to confirm
    first. Left out: those of alerts."""
