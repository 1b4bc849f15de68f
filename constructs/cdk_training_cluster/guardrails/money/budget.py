"""What a cluster may cost in a month, what happens when it costs more, and who is notified."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from cdk_training_cluster.validation.bounds import Form, Number, Text
from cdk_training_cluster.validation.checks import shown
from cdk_training_cluster.validation.kinds import checked
from cdk_training_cluster.validation.rule import refuse
from cluster_contract.spend import OnExceed, usd_text

# A service's name is whatever AWS reports it under, such as AmazonEC2 or awskms: an open set.
# https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/monitor-charges.html
_SERVICE = Form(
    pattern=re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"), wanted="names of billing metrics, such as AmazonEC2"
)
_ACCOUNT = Form(pattern=re.compile(r"[0-9]{12}"), wanted="12 digits, as text")
_EMAIL = Text("addresses, such as ml-platform@example.com", "email")

# Alarms on a name that AWS does not report under never go into ALARM. Compared without prefix and case.
_NAMES = {
    re.sub("^(amazon|aws)", "", name.lower()): name
    for name in (
        *("AmazonCloudWatch", "AmazonDynamoDB", "AmazonEC2", "AmazonECR", "AmazonEFS", "AmazonEKS", "AmazonFSx"),
        *("AmazonRDS", "AmazonS3", "AmazonSageMaker", "AmazonSNS", "AmazonVPC", "AWSLambda", "awskms"),
    )
}

MAX_MONTHLY_USD = 1_000_000_000_000
"""More than any bill; each share of it is within CloudWatch's numbers.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_MetricDatum.html
"""

# Functions compute with them.
USD = Number(above=0, maximum=MAX_MONTHLY_USD, known=True)
MONTHLY_USD = Number(minimum=0.01, maximum=MAX_MONTHLY_USD, known=True)
# The least that CloudFormation takes for an AWS budget.
THRESHOLD = Number(minimum=0.1, maximum=1000, known=True)
# As long as the warning of an idle stop, but a number: the warning waits for nothing else.
WARNING_MINUTES = Number(minimum=10, maximum=11 * 60, known=True)

MAX_ALARMS = 100
"""The most alarms of one budget: CloudWatch takes three PutMetricAlarm a second, and a first run makes all of them.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_limits.html
"""

# Those of two AWS budgets, each to at most ten addresses.
# https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_budgets_NotificationWithSubscribers.html
_MAX_NOTIFICATIONS = 10
_MAX_EMAILS = 10


@checked
@dataclass(frozen=True, kw_only=True)
class Budget:
    """What a cluster may cost in a month, the shares of it that notify, and what happens at the whole of it.

    The same amount, thresholds and addresses serve three guardrails, each of another sum:

    - The billing alarms (`BillingAlarms`) compare it with the charges of the whole AWS account, and in an
      organization's management account with those of the organization, hours late. For each threshold there is one
      alarm on the total, and one for each service, each linked account, and each service of each linked account.
    - The spend function compares it with the cluster's own dollars: what its nodes, volumes, file system and
      functions cost by their prices, every five minutes. It alone acts: `on_exceed`, `warning_minutes` and
      `max_usd_per_hour` are its settings.
    - An AWS budget compares it with the cluster's own bill, which AWS adds up by the cluster's tag, up to a day late.

    Attributes:
        monthly_usd: The budget, in USD a month: at least 0.01, at most `MAX_MONTHLY_USD`.
        thresholds: The shares of the budget that send a notification when a sum reaches them, in percent: 0.1 to
            1000. Used by all three. Default: - 50, 80 and 100.
        forecast_thresholds: The shares that send a notification when the month is forecast to end above them,
            likewise. Used by the spend function and the AWS budget; CloudWatch has no forecast of an account's
            charges. Default: - 100.
        services: The services with billing alarms of their own, under the names that the billing metrics have, such
            as `AmazonEC2`, `AmazonFSx`, `AmazonSageMaker` or `AmazonS3`. Default: - none.
        linked_accounts: The accounts of the organization with billing alarms of their own; only the management
            account has their metrics. Default: - none.
        emails: Addresses to notify, at most 10. Used by the billing alarms, for which SNS asks each one to confirm,
            and by the AWS budget, for which AWS does not ask; the spend function notifies the cluster's alert topic.
            Default: - none; subscribe to that topic, and to the one that the billing function makes in us-east-1.
        on_exceed: What the spend function does at the whole budget: see `OnExceed`. Default: - `OnExceed.NOTIFY`.
        warning_minutes: How long before `OnExceed.STOP` stops nodes the spend function warns the alert topic, in
            minutes: 10 to 660. Default: - 30.
        max_usd_per_hour: What the cluster may cost in an hour, in USD, before the spend function's alarm on the rate
            goes into ALARM: above 0. Default: - no such alarm.
        prices: What an instance costs an hour, in USD, by its type or by the id of the Capacity Block that it runs
            in, where that is known better than from AWS's price list; above 0. What else the spend function names
            under `unknown_prices` is stated under that name: `{"spot p5.48xlarge us-east-1b": 20}` in USD an hour,
            `{"fsx-persistent-2-500": 0.34}` in USD a GB-month. Only the spend function uses them.
            Default: - AWS's prices; of a Capacity Block none is known.
        weekly_report: Whether the alert topic gets a report of the cluster's own bill each week. Default: False

    Sources: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/monitor_estimated_charges_with_cloudwatch.html
    and https://docs.aws.amazon.com/cost-management/latest/userguide/budgets-managing-costs.html
    """

    monthly_usd: Annotated[float, MONTHLY_USD]
    thresholds: Sequence[Annotated[float, THRESHOLD]] = (50, 80, 100)
    forecast_thresholds: Sequence[Annotated[float, THRESHOLD]] = (100,)
    services: Sequence[Annotated[str, _SERVICE]] = ()
    linked_accounts: Sequence[Annotated[str, _ACCOUNT]] = ()
    emails: Sequence[Annotated[str, _EMAIL]] = ()
    on_exceed: OnExceed = OnExceed.NOTIFY
    warning_minutes: Annotated[float, WARNING_MINUTES] = 30
    max_usd_per_hour: Annotated[float, USD] | None = None
    prices: Mapping[str, Annotated[float, USD]] = field(default_factory=dict)
    weekly_report: bool = False

    def __post_init__(self) -> None:
        """Check the settings.

        Raises:
            ValueError: A setting is wrong; every reason, a line each.
        """
        found: dict[str, list[str]] = {}
        for setting, problem in self._problems():
            found.setdefault(setting, []).append(problem)
        refuse(found)

    @property
    def alarm_count(self) -> int:
        """How many alarms there will be."""
        return len(self.thresholds) * (1 + len(self.services)) * (1 + len(self.linked_accounts))

    def describe(self) -> Iterator[str]:
        """Say in a few lines which billing alarms there will be."""
        accounts = [f"linked account {each}" for each in self.linked_accounts]
        yield (
            f"Billing alarms: {self.alarm_count} in us-east-1, for {self.alarm_count * 0.1:,.2f} USD a month, at "
            f"{self._shares(self.thresholds)} of a month's {usd_text(self.monthly_usd)}"
        )
        whole = "organization" if accounts else "account; in a management account, of the organization"
        yield f"  of the whole {whole}: {_joined(['in total', *self.services])}"
        if accounts:
            yield f"  and the same of {_joined(accounts)}"
        yield f"  notify {', '.join(self.emails) or 'no address'}"

    def describe_bill(self) -> Iterator[str]:
        """Say in a few lines which notifications the AWS budget has."""
        shares = f"at {self._shares(self.thresholds)} of a month's {usd_text(self.monthly_usd)}"
        yield f"AWS budget: of the cluster's own bill, up to a day late; notifies {shares}"
        if self.forecast_thresholds:
            yield f"  when AWS forecasts that the month reaches {self._shares(self.forecast_thresholds)}"

    def describe_spend(self) -> Iterator[str]:
        """Say in a few lines which alarms and actions the cluster's own dollars have."""
        month = usd_text(self.monthly_usd)
        yield f"Cluster's dollars: alarms at {self._shares(self.thresholds)} of a month's {month}"
        if self.forecast_thresholds:
            yield f"  when the month is forecast to reach {self._shares(self.forecast_thresholds)}"
        if self.max_usd_per_hour is not None:
            yield f"  above {usd_text(self.max_usd_per_hour)} an hour"
        yield f"  at the whole budget: {self._effect}"

    @property
    def _effect(self) -> str:
        if self.on_exceed is OnExceed.STOP:
            return f"node groups are stopped {self.warning_minutes:g} minutes after a warning"
        if self.on_exceed is OnExceed.NO_NEW_NODES:
            return "no new nodes are started"
        return "the alert topic is notified, and the nodes run on"

    def _shares(self, thresholds: Sequence[float]) -> str:
        return _joined([f"{each:g} % ({usd_text(self.monthly_usd * each / 100)})" for each in thresholds])

    def _problems(self) -> Iterator[tuple[str, str]]:
        """Yield what settings contradict of each other, each with its setting."""
        if not self.thresholds:
            yield "thresholds", "thresholds must hold at least one percentage, such as 100, got none"
        for name in self.services:
            known = _NAMES.get(re.sub("^(amazon|aws)", "", name.lower()), name)
            if name != known:
                yield "services", f"services must be names of billing metrics, got {shown(name)}: write {known}"
        for setting in ("thresholds", "forecast_thresholds", "services", "linked_accounts", "emails"):
            values = [f"{each:g}" if isinstance(each, int | float) else each for each in getattr(self, setting)]
            for value, times in Counter(values).items():
                if times > 1:
                    yield setting, f"{setting} must be different, got {value} {times} times: leave out all but one"
        if len(self.emails) > _MAX_EMAILS:
            yield "emails", f"emails must be at most {_MAX_EMAILS}, got {len(self.emails)}: use a mailing list"
        notifications = len(self.thresholds) + len(self.forecast_thresholds)
        if notifications > _MAX_NOTIFICATIONS:
            yield (
                "thresholds",
                f"thresholds and forecast_thresholds must be at most {_MAX_NOTIFICATIONS} together, got "
                f"{notifications}: leave some out",
            )
        if self.alarm_count > MAX_ALARMS:
            yield (
                "thresholds",
                f"thresholds, services and linked_accounts must make at most {MAX_ALARMS} alarms, got "
                f"{self.alarm_count}: leave some out",
            )


def _joined(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
