"""The settings of the billing function, which its construct writes, and the names of its metrics."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from cluster_contract.codec import Within, variable

BILLING_VARIABLE = "BILLING_ALARMS_SETTINGS"

BILLING_REGION = "us-east-1"
"""The only region with billing metrics.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/monitor_estimated_charges_with_cloudwatch.html
"""

_Positive = Annotated[float, Within(above=0)]


@dataclass(frozen=True, kw_only=True)
class BillingFunctionSettings:
    """The settings of the function that keeps the billing alarms.

    Attributes:
        cluster: The name of what the budget is for; the dimension of the function's metrics.
        prefix: What the names of this budget's alarms start with, and no other alarm's. It ends with a slash.
        monthly_usd: The budget, in USD a month.
        thresholds: The shares of the budget, in percent.
        services: The services with alarms of their own.
        accounts: The linked accounts with alarms of their own.
        emails: The addresses that the alarms notify.
        alert_topic_arn: The topic in the function's region that is notified of problems with the alarms.
    """

    cluster: str
    prefix: str
    monthly_usd: _Positive
    thresholds: tuple[_Positive, ...]
    services: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    emails: tuple[str, ...] = ()
    alert_topic_arn: str = variable("ALERT_TOPIC_ARN")


class BillingMetric(StrEnum):
    """The metrics of the billing function, by cluster, one point a run each."""

    EVALUATIONS = "BillingEvaluations"
    """1 for a run that could compare everything, else 0."""

    SILENT_ACCOUNTS = "BillingSilentAccounts"
    """How many accounts CloudWatch has no billing metrics of."""

    UNCONFIRMED = "BillingUnconfirmedAddresses"
    """How many addresses have not confirmed their subscription."""
