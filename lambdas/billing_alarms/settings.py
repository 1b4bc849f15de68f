"""What the deploy tells the function: the budget, its alarms' names and whom they notify."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from cluster_common.environment import read_settings
from cluster_common.errors import InvalidSettingsError

SETTINGS_VARIABLE = "BILLING_ALARMS_SETTINGS"
TOPIC_VARIABLE = "ALERT_TOPIC_ARN"

BILLING_REGION = "us-east-1"
"""The only region with billing metrics.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/monitor_estimated_charges_with_cloudwatch.html
"""

_KEYS = ("accounts", "cluster", "emails", "monthly_usd", "prefix", "services", "thresholds")
_FUNCTION_ARN = re.compile(r"arn:([a-z-]+):lambda:[a-z0-9-]+:([0-9]{12}):function:([^:]+)(?::.+)?")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The function's settings, read from its environment.

    Attributes:
        cluster: The name of what the budget is for; the dimension of the function's metrics.
        prefix: What the names of this budget's alarms start with, and nobody else's. It ends with a slash.
        function: The function's name.
        account: The account that the function runs in, whose charges the alarms watch.
        monthly_usd: The budget, in USD a month.
        thresholds: The shares of the budget, in percent.
        services: The services with alarms of their own.
        accounts: The linked accounts with alarms of their own.
        emails: The addresses that the alarms notify.
        alert_topic_arn: The topic in the function's region that hears of problems with the alarms.
    """

    cluster: str
    prefix: str
    function: str
    account: str
    monthly_usd: float
    thresholds: tuple[float, ...]
    services: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    emails: tuple[str, ...] = ()
    alert_topic_arn: str

    @property
    def owner(self) -> str:
        """The name of the budget, as the tag on its topic says it."""
        return self.prefix.rstrip("/")

    @property
    def topic_arn(self) -> str:
        """The topic beside the alarms: an alarm notifies topics of its own region only."""
        return f"arn:aws:sns:{BILLING_REGION}:{self.account}:{self.owner.replace('/', '-')}"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], function_arn: str) -> "Settings":
        """Read `BILLING_ALARMS_SETTINGS` and `ALERT_TOPIC_ARN`.

        Args:
            environment: The function's environment.
            function_arn: The function's ARN, which says the partition and the account.

        Raises:
            InvalidSettingsError: The partition has no billing metrics, or what is there is not what the construct
                writes.
        """
        place = _FUNCTION_ARN.fullmatch(function_arn)
        if place is None or place[1] != "aws":
            raise InvalidSettingsError(
                f"billing alarms need {BILLING_REGION}, which has the only billing metrics and is in the partition "
                f"aws; the function is {function_arn}: leave the budget out"
            )
        raw = read_settings(environment, SETTINGS_VARIABLE)
        unknown = sorted(set(raw) ^ set(_KEYS))
        if unknown:
            raise InvalidSettingsError(
                f"{SETTINGS_VARIABLE}: it takes {', '.join(_KEYS)}; check {', '.join(unknown)}"
            )
        return cls(
            cluster=str(raw["cluster"]),
            prefix=str(raw["prefix"]),
            function=place[3],
            account=place[2],
            monthly_usd=_positive("monthly_usd", raw["monthly_usd"]),
            thresholds=tuple(_positive("thresholds", each) for each in _list(raw, "thresholds")),
            services=tuple(map(str, _list(raw, "services"))),
            accounts=tuple(map(str, _list(raw, "accounts"))),
            emails=tuple(map(str, _list(raw, "emails"))),
            alert_topic_arn=environment.get(TOPIC_VARIABLE, ""),
        )


def _list(raw: Mapping[str, object], key: str) -> list[object]:
    value = raw[key]
    if not isinstance(value, list):
        raise InvalidSettingsError(f"{SETTINGS_VARIABLE}: {key} must be a list, got {value!r}")
    return value


def _positive(key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not (math.isfinite(value) and value > 0):
        raise InvalidSettingsError(f"{SETTINGS_VARIABLE}: {key} must be above 0, got {value!r}")
    return float(value)
