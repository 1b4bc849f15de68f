"""Which alarms there should be, and what follows from those that there are. Nothing here calls AWS."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from typing import Any

from billing_alarms.settings import Settings

METRIC_NAMESPACE, METRIC_NAME = "AWS/Billing", "EstimatedCharges"

_CURRENCY, _SERVICE, _ACCOUNT = "Currency", "ServiceName", "LinkedAccount"
_USD = "USD"
_SIX_HOURS = 21_600

Series = frozenset[tuple[str, str]]
"""One series of billing metrics: its dimensions."""

TOTAL: Series = frozenset({(_CURRENCY, _USD)})
"""The charges of the whole account."""


class Action(StrEnum):
    """What becomes of an alarm."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    KEEP = "keep"


@dataclass(frozen=True, kw_only=True)
class Alarm:
    """An alarm that there should be.

    Attributes:
        series: The dimensions of the metric.
        request: The parameters of PutMetricAlarm.
    """

    series: Series
    request: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The alarm's name."""
        return str(self.request["AlarmName"])


@dataclass(frozen=True, kw_only=True)
class Change:
    """What becomes of one alarm, and why.

    Attributes:
        action: What becomes of it.
        name: The alarm's name.
        reason: Why.
        request: The parameters of PutMetricAlarm, where it is created or updated.
    """

    action: Action
    name: str
    reason: str
    request: Mapping[str, Any] | None = None


def desired_alarms(settings: Settings) -> list[Alarm]:
    """Return the alarms of a budget: for each threshold in total, by service, by linked account, and by both.

    Args:
        settings: The function's settings.
    """
    scopes = product((None, *settings.accounts), (None, *settings.services), settings.thresholds)
    return [_alarm(settings, account, service, percent) for account, service, percent in scopes]


def decide(settings: Settings, present: Iterable[Mapping[str, Any]]) -> list[Change]:
    """Compare the alarms that there should be with those whose names start with the budget's prefix.

    Args:
        settings: The function's settings.
        present: Those alarms, as DescribeAlarms answers.
    """
    found = {str(alarm["AlarmName"]): alarm for alarm in present}
    changes = [_compare(alarm, found.pop(alarm.name, None)) for alarm in desired_alarms(settings)]
    return [
        *changes,
        *(Change(action=Action.DELETE, name=name, reason="the budget has no such alarm") for name in sorted(found)),
    ]


def silent_series(settings: Settings, seen: Iterable[Series]) -> list[str]:
    """Name the accounts whose charges AWS does not report, so that their alarms never go off.

    A service without charges has no metric either, and gets one with its first charge: it is not named.

    Args:
        settings: The function's settings.
        seen: The series of billing metrics that CloudWatch has.
    """
    known = set(seen)
    wanted = {
        f"account {settings.account}": TOTAL,
        **{f"linked account {each}": TOTAL | {(_ACCOUNT, each)} for each in settings.accounts},
    }
    return [name for name, series in wanted.items() if series not in known]


def _alarm(settings: Settings, account: str | None, service: str | None, percent: float) -> Alarm:
    series = TOTAL | {
        (name, value) for name, value in ((_SERVICE, service), (_ACCOUNT, account)) if value is not None
    }
    scope = "/".join([each for each in (account, service) if each is not None] or ["total"])
    threshold = round(settings.monthly_usd * percent / 100, 2)
    whose = "this AWS account" if account is None else f"the linked account {account}"
    what = f"Estimated charges of {whose}{'' if service is None else f' for {service}'}"
    return Alarm(
        series=series,
        request={
            "AlarmName": f"{settings.prefix}{scope}/{percent:g}",
            "AlarmDescription": (
                f"{what} this month have reached {threshold:,.2f} USD, {percent:g} percent of the budget of "
                f"{settings.monthly_usd:,.2f} USD for {settings.cluster}. They count everything in the account and "
                "are hours late. Cost Explorer shows what costs; stop what is not needed."
            ),
            "ActionsEnabled": True,
            "AlarmActions": [settings.topic_arn],
            "OKActions": [],
            "InsufficientDataActions": [],
            "Namespace": METRIC_NAMESPACE,
            "MetricName": METRIC_NAME,
            "Dimensions": [{"Name": name, "Value": value} for name, value in sorted(series)],
            "Statistic": "Maximum",
            "Period": _SIX_HOURS,
            "EvaluationPeriods": 1,
            "DatapointsToAlarm": 1,
            "Threshold": threshold,
            "ComparisonOperator": "GreaterThanOrEqualToThreshold",
            "TreatMissingData": "missing",
        },
    )


def _compare(wanted: Alarm, present: Mapping[str, Any] | None) -> Change:
    if present is None:
        return Change(action=Action.CREATE, name=wanted.name, reason="there is none", request=wanted.request)
    differences = list(_differences(wanted.request, present))
    if differences:
        reason = "; ".join(differences)
        return Change(action=Action.UPDATE, name=wanted.name, reason=reason, request=wanted.request)
    return Change(action=Action.KEEP, name=wanted.name, reason="it is as it should be")


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
