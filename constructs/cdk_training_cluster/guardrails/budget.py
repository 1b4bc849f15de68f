"""What an account may cost in a month, and who hears of it."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from cdk_training_cluster.checks import shown
from cdk_training_cluster.validation.bounds import Form, Number, Text
from cdk_training_cluster.validation.kinds import checked
from cdk_training_cluster.validation.rule import refuse

# A service's name is whatever AWS reports it under, such as AmazonEC2 or awskms: an open set.
# https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/monitor-charges.html
_SERVICE = Form(
    pattern=re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"), wanted="names of billing metrics, such as AmazonEC2"
)
_ACCOUNT = Form(pattern=re.compile(r"[0-9]{12}"), wanted="12 digits, as text")
_EMAIL = Text("addresses, such as ml-platform@example.com", "email")

# Alarms on a name that AWS does not report under never go off. Compared without prefix and case.
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

# The function computes with both.
MONTHLY_USD = Number(above=0, maximum=MAX_MONTHLY_USD, known=True)
THRESHOLD = Number(above=0, maximum=1000, known=True)

MAX_ALARMS = 100
"""The most alarms of one budget: CloudWatch takes three PutMetricAlarm a second, and a first run makes all of them.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_limits.html
"""

# A topic has at most 50 tags, and the function keeps one an address.
# https://docs.aws.amazon.com/sns/latest/api/API_TagResource.html
_MAX_EMAILS = 20


@checked
@dataclass(frozen=True, kw_only=True)
class Budget:
    """What an AWS account may cost in a month, and the shares of it at which alarms go off.

    AWS reports estimated charges by account, not by cluster: the alarms count everything in the account, and in an
    organization's management account everything in the organization. For each
    threshold there is one alarm on the total, and one for each service, each linked account, and each service of
    each linked account, all on shares of the same budget.

    Attributes:
        monthly_usd: The budget, in USD a month: above 0, at most `MAX_MONTHLY_USD`.
        thresholds: The shares of the budget at which alarms go off, in percent: above 0, at most 1000.
            Default: - 50, 80 and 100.
        services: The services with alarms of their own, under the names that the billing metrics have, such as
            `AmazonEC2`, `AmazonFSx`, `AmazonSageMaker` or `AmazonS3`. Default: - none.
        linked_accounts: The accounts of the organization with alarms of their own; only the management account has
            their metrics. Default: - none.
        emails: Addresses that the alarms notify; SNS asks each one to confirm. Default: - none; subscribe to the
            topic that the function makes.

    Source: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/monitor_estimated_charges_with_cloudwatch.html
    """

    monthly_usd: Annotated[float, MONTHLY_USD]
    thresholds: Sequence[Annotated[float, THRESHOLD]] = (50, 80, 100)
    services: Sequence[Annotated[str, _SERVICE]] = ()
    linked_accounts: Sequence[Annotated[str, _ACCOUNT]] = ()
    emails: Sequence[Annotated[str, _EMAIL]] = ()

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
        """Say in a few lines which alarms there will be."""
        shares = _joined([f"{each:g} % ({_usd(self.monthly_usd * each / 100)})" for each in self.thresholds])
        accounts = [f"linked account {each}" for each in self.linked_accounts]
        yield (
            f"Billing alarms: {self.alarm_count} in us-east-1, for {self.alarm_count * 0.1:,.2f} USD a month, at "
            f"{shares} of a month's {_usd(self.monthly_usd)}"
        )
        whole = "organization" if accounts else "account; in a management account, of the organization"
        yield f"  of the whole {whole}: {_joined(['in total', *self.services])}"
        if accounts:
            yield f"  and the same of {_joined(accounts)}"
        yield f"  notify {', '.join(self.emails) or 'no address'}"

    def _problems(self) -> Iterator[tuple[str, str]]:
        """Yield what settings contradict of each other, each with its setting."""
        if not self.thresholds:
            yield "thresholds", "thresholds must hold at least one percentage, such as 100, got none"
        for name in self.services:
            known = _NAMES.get(re.sub("^(amazon|aws)", "", name.lower()), name)
            if name != known:
                yield "services", f"services must be names of billing metrics, got {shown(name)}: write {known}"
        for setting in ("thresholds", "services", "linked_accounts", "emails"):
            values = [f"{each:g}" if isinstance(each, int | float) else each for each in getattr(self, setting)]
            for value, times in Counter(values).items():
                if times > 1:
                    yield setting, f"{setting} must be different, got {value} {times} times: leave out all but one"
        if len(self.emails) > _MAX_EMAILS:
            yield "emails", f"emails must be at most {_MAX_EMAILS}, got {len(self.emails)}: use a mailing list"
        if self.alarm_count > MAX_ALARMS:
            yield (
                "thresholds",
                f"thresholds, services and linked_accounts must make at most {MAX_ALARMS} alarms, got "
                f"{self.alarm_count}: leave some out",
            )


def _usd(amount: float) -> str:
    return f"{amount:,.2f} USD".replace(".00 ", " ")


def _joined(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
