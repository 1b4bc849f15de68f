"""Which alarms there should be, and what follows from those that there are. Nothing here calls AWS."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import product
from typing import Any

from billing_alarms.watched_budget import WatchedBudget

_CURRENCY, _SERVICE, _ACCOUNT = "Currency", "ServiceName", "LinkedAccount"
_SIX_HOURS = 21_600

# Metrics appear about 15 minutes after billing alerts are switched on, and are sent several times a day. A service
# has none before its first charge.
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/monitor_estimated_charges_with_cloudwatch.html
_ACCOUNT_SILENT, _SERVICE_SILENT = timedelta(days=1), timedelta(days=7)


_CHANGED = ("AlarmConfigurationUpdatedTimestamp", "StateTransitionedTimestamp")


class Action(StrEnum):
    """What becomes of an alarm."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    KEEP = "keep"


@dataclass(frozen=True, kw_only=True)
class Change:
    """What becomes of one alarm, and why.

    Attributes:
        action: What becomes of it.
        name: The alarm's name.
        reason: Why.
        request: The parameters of PutMetricAlarm, where it is created or updated.
        present: The alarm as DescribeAlarms answers; nothing: there is none.
    """

    action: Action
    name: str
    reason: str
    request: Mapping[str, Any] | None = None
    present: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rings(self) -> bool:
        """Whether the alarm should be there, and the charges have reached its threshold."""
        return self.action is not Action.DELETE and self.present.get("StateValue") == "ALARM"


def desired_alarms(settings: WatchedBudget) -> list[dict[str, Any]]:
    """Return what PutMetricAlarm takes: for each threshold in total, by service, by linked account, and by both.

    Args:
        settings: The function's settings.
    """
    scopes = product((None, *settings.accounts), (None, *settings.services), settings.thresholds)
    return [_alarm(settings, account, service, percent) for account, service, percent in scopes]


def decide(settings: WatchedBudget, present: Iterable[Mapping[str, Any]]) -> list[Change]:
    """Compare the alarms that there should be with those whose names start with the budget's prefix.

    Args:
        settings: The function's settings.
        present: Those alarms, as DescribeAlarms answers.
    """
    found = {str(alarm["AlarmName"]): alarm for alarm in present}
    changes = [_compare(alarm, found.pop(alarm["AlarmName"], {})) for alarm in desired_alarms(settings)]
    return [
        *changes,
        *(Change(action=Action.DELETE, name=name, reason="the budget has no such alarm") for name in sorted(found)),
    ]


def silent(settings: WatchedBudget, changes: Iterable[Change], now: datetime) -> tuple[list[str], list[str]]:
    """Name the accounts whose charges AWS does not report, and the services of other accounts without charges.

    Args:
        settings: The function's settings.
        changes: The alarms; one counts if it is as it should be, and has had no data since long enough.
        now: The time.
    """
    accounts, services = {}, {}
    for change in changes:
        alarm = change.present
        if change.action is not Action.KEEP or alarm["StateValue"] != "INSUFFICIENT_DATA":
            continue
        age = now - max((alarm[each] for each in _CHANGED if each in alarm), default=now)
        dimensions = {each["Name"]: each["Value"] for each in alarm["Dimensions"]}
        account, service = dimensions.get(_ACCOUNT), dimensions.get(_SERVICE)
        name = f"account {settings.account}" if account is None else f"linked account {account}"
        if service is None and age >= _ACCOUNT_SILENT:
            accounts[name] = True
        elif service is not None and age >= _SERVICE_SILENT:
            services[f"{service} of {name}"] = name
    return list(accounts), [service for service, account in services.items() if account not in accounts]


def _alarm(settings: WatchedBudget, account: str | None, service: str | None, percent: float) -> dict[str, Any]:
    series = {_CURRENCY: "USD", _ACCOUNT: account, _SERVICE: service}
    scope = "/".join([each for each in (account, service) if each is not None] or ["total"])
    threshold = round(settings.monthly_usd * percent / 100, 2)
    whose = settings.charged if account is None else f"the linked account {account}"
    what = f"Estimated charges of {whose}{'' if service is None else f' for {service}'}"
    return {
        "AlarmName": f"{settings.prefix}{scope}/{percent:g}",
        "AlarmDescription": (
            f"{what} this month have reached {threshold:,.2f} USD, {percent:g} percent of the budget of "
            f"{settings.monthly_usd:,.2f} USD for {settings.cluster}. They count everything that {whose} is charged "
            f"for, not {settings.cluster} alone, and are hours late. Cost Explorer shows which services and "
            "resources cost most; stop what is not needed."
        ),
        "ActionsEnabled": True,
        "AlarmActions": [settings.topic_arn],
        "OKActions": [],
        "InsufficientDataActions": [],
        "Namespace": "AWS/Billing",
        "MetricName": "EstimatedCharges",
        "Dimensions": [{"Name": name, "Value": value} for name, value in series.items() if value is not None],
        "Statistic": "Maximum",
        "Period": _SIX_HOURS,
        "EvaluationPeriods": 1,
        "DatapointsToAlarm": 1,
        "Threshold": threshold,
        "ComparisonOperator": "GreaterThanOrEqualToThreshold",
        "TreatMissingData": "missing",
    }


def _compare(wanted: Mapping[str, Any], present: Mapping[str, Any]) -> Change:
    name = wanted["AlarmName"]
    if not present:
        return Change(action=Action.CREATE, name=name, reason="the alarm does not exist", request=wanted)
    differences = "; ".join(_differences(wanted, present))
    if differences:
        return Change(action=Action.UPDATE, name=name, reason=differences, request=wanted, present=present)
    return Change(action=Action.KEEP, name=name, reason="the alarm matches the settings", present=present)


# What an alarm has that was changed to something that no alarm of a budget has.
_FOREIGN = ("ExtendedStatistic", "Metrics", "ThresholdMetricId", "Unit")


def _differences(wanted: Mapping[str, Any], present: Mapping[str, Any]) -> Iterator[str]:
    for name in (*wanted, *_FOREIGN):
        want, have = _plain(wanted.get(name)), _plain(present.get(name))
        if want != have:
            yield f"{name} was {have!r}, should be {want!r}"


def _plain(value: Any) -> Any:  # noqa: ANN401 - any part of an alarm
    if isinstance(value, list) and all(isinstance(each, dict) and "Name" in each for each in value):
        return sorted((each["Name"], each["Value"]) for each in value) or None
    return value or None if isinstance(value, list | str) else value
