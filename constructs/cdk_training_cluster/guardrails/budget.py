"""What an account may cost in a month, and who hears of it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cdk_training_cluster.checks import is_unknown, number_problems, shown
from cdk_training_cluster.validation import text_problems
from cdk_training_cluster.validation.rule import refuse

# A service's name is whatever AWS reports it under, such as AmazonEC2 or awskms: an open set.
# https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/monitor-charges.html
_SERVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_ACCOUNT = re.compile(r"[0-9]{12}")

# Alarms on a name that AWS does not report under never go off. Compared without prefix and case.
_NAMES = {
    re.sub("^(amazon|aws)", "", name.lower()): name
    for name in (
        *("AmazonCloudWatch", "AmazonDynamoDB", "AmazonEC2", "AmazonECR", "AmazonEFS", "AmazonEKS", "AmazonFSx"),
        *("AmazonRDS", "AmazonS3", "AmazonSageMaker", "AmazonSNS", "AmazonVPC", "AWSLambda", "awskms"),
    )
}

MAX_MONTHLY_USD = 1_000_000_000_000
"""More than anybody is billed; each share of it is within CloudWatch's numbers.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_MetricDatum.html
"""

MAX_ALARMS = 100
"""The most alarms of one budget: CloudWatch takes three PutMetricAlarm a second, and a first run makes all of them.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_limits.html
"""

# A topic has at most 50 tags, and the function keeps one an address.
# https://docs.aws.amazon.com/sns/latest/api/API_TagResource.html
_MAX_EMAILS = 20


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
        emails: Addresses that the alarms notify; SNS asks each one to confirm. Default: - nobody; subscribe to the
            topic that the function makes.

    Source: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/monitor_estimated_charges_with_cloudwatch.html
    """

    monthly_usd: float
    thresholds: Sequence[float] = (50, 80, 100)
    services: Sequence[str] = ()
    linked_accounts: Sequence[str] = ()
    emails: Sequence[str] = ()

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
        yield f"  notify {', '.join(self.emails) or 'nobody'}"

    def _problems(self) -> Iterator[tuple[str, str]]:
        """Yield what is wrong, each with its setting."""
        lists = (
            ("thresholds", self.thresholds, "percentages, such as [50, 80, 100]"),
            ("services", self.services, "names of services, such as ['AmazonEC2']"),
            ("linked_accounts", self.linked_accounts, "account ids, such as ['111122223333']"),
            ("emails", self.emails, "addresses, such as ['ml-platform@example.com']"),
        )
        wrong = [
            (name, f"{name} must be a list of {example}, got {shown(value)}")
            for name, value, example in lists
            if isinstance(value, str | bytes) or not isinstance(value, Sequence)
        ]
        yield from _of("monthly_usd", _amount_problems("monthly_usd", self.monthly_usd, MAX_MONTHLY_USD))
        yield from wrong
        if wrong:
            return
        if not self.thresholds:
            yield "thresholds", "thresholds must hold at least one percentage, such as 100, got none"
        for each in self.thresholds:
            yield from _of("thresholds", _amount_problems("thresholds", each, 1000))
        names = "names of billing metrics, such as AmazonEC2"
        yield from _of("services", _text_problems("services", self.services, _SERVICE, names))
        for name in self.services:
            known = _NAMES.get(re.sub("^(amazon|aws)", "", str(name).lower()), name)
            if name != known:
                yield "services", f"services must be names of billing metrics, got {shown(name)}: write {known}"
        accounts = _text_problems("linked_accounts", self.linked_accounts, _ACCOUNT, "12 digits, as text")
        yield from _of("linked_accounts", accounts)
        for email in self.emails:
            told = text_problems("emails", email if isinstance(email, str) else repr(email), "email")
            yield from _of("emails", told)
        numbers = [f"{each:g}" for each in self.thresholds if isinstance(each, int | float)]
        yield from _of("thresholds", _twice("thresholds", numbers))
        for name, values, _ in lists[1:]:
            yield from _of(name, _twice(name, [str(each) for each in values]))
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


def _of(setting: str, problems: Iterable[str]) -> Iterator[tuple[str, str]]:
    return ((setting, problem) for problem in problems)


def _amount_problems(setting: str, value: object, maximum: float) -> list[str]:
    # The function computes with it.
    if not isinstance(value, bool) and is_unknown(value):
        return [f"{setting} must be known when the app runs, got a token: write the number"]
    return number_problems(setting, value, above=0, maximum=maximum)


def _text_problems(setting: str, values: Sequence[object], form: re.Pattern[str], wanted: str) -> Iterator[str]:
    for value in values:
        if not isinstance(value, str) or not (is_unknown(value) or form.fullmatch(value)):
            yield f"{setting} must be {wanted}, got {shown(value)}"


def _twice(setting: str, values: Sequence[str]) -> Iterator[str]:
    for value in dict.fromkeys(values):
        if values.count(value) > 1:
            yield f"{setting} must be different, got {value} {values.count(value)} times: leave out all but one"
