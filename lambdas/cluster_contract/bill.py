"""A cluster's bill: what Cost Explorer is asked, and what its answers say by day and item."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Protocol

from cluster_contract.tags import CLUSTER_TAG

UNUSED = " unused reservation"
"""What follows the instance type in the item of a reservation in which no node ran."""
USD_A_REQUEST = Decimal("0.01")
"""Each page is a request: https://aws.amazon.com/aws-cost-management/aws-cost-explorer/pricing/"""
MAX_REQUESTS = 20
"""How many pages are asked for at most."""

# Savings Plans and Reserved Instances count at what they cost the hours that used them. Credits and refunds would
# hide what the cluster uses. https://docs.aws.amazon.com/cost-management/latest/userguide/ce-advanced.html
_METRIC = "AmortizedCost"
_NO_USAGE = ["Credit", "Refund", "Tax"]
_HOURS = "UsageQuantity"
# How an instance was bought, and what its item says of that. Of one on a Dedicated Host the host is billed.
# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-billing-usage-reports.html
# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-pricing-billing.html
_BOUGHT = {
    "BoxUsage": "",
    "DedicatedUsage": " Dedicated",
    "SpotUsage": " Spot",
    "UnusedBox": UNUSED,
    "UnusedDed": UNUSED,
}
# `BoxUsage:p5.48xlarge`, after its region and Local Zone, as in `USW2-LAX1-BoxUsage:g5.48xlarge`.
_INSTANCE = re.compile(rf"(?:[A-Z0-9]+-)*({'|'.join(_BOUGHT)}):(.+)")
# `USW2-`, `APN1-` or `EU-` before a usage type; us-east-1 has none.
_PREFIX = re.compile(r"(?:[A-Z]{2,4}\d+|EU)-")


class CostExplorer(Protocol):
    """What is used of Cost Explorer's client."""

    def get_cost_and_usage(self, **request: Any) -> Mapping[str, Any]:  # noqa: ANN401 - as botocore has it
        """Return a page of charges."""
        ...


@dataclass(frozen=True, kw_only=True)
class Charge:
    """What an item was billed on a day.

    Attributes:
        day: The day, in UTC.
        item: What was billed: an instance type, perhaps with how it was bought, or an AWS service.
        amount: What it cost.
        hours: How many instance-hours that is. None: it is no instance.
    """

    day: date
    item: str
    amount: Decimal
    hours: Decimal | None = None

    @property
    def is_unused(self) -> bool:
        """Whether it is a reservation's in which no node ran."""
        return self.item.endswith(UNUSED)


@dataclass(frozen=True, kw_only=True)
class Bill:
    """What a cluster was billed.

    Attributes:
        start: The first day.
        end: The day after the last.
        currency: What the amounts are in.
        charges: By day and item.
        requests: How many requests Cost Explorer answered.
    """

    start: date
    end: date
    currency: str
    charges: tuple[Charge, ...]
    requests: int

    def by_day(self, wanted: Callable[[str], bool] = lambda _: True) -> dict[date, Decimal]:
        """Return the sum of each day, also of days that cost nothing.

        Args:
            wanted: Which items count. Default: - all
        """
        days = {self.start + timedelta(days=each): Decimal(0) for each in range((self.end - self.start).days)}
        for charge in self.charges:
            if wanted(charge.item):
                days[charge.day] += charge.amount
        return days

    def used_by_day(self, wanted: Callable[[str], bool] = lambda _: True) -> dict[date, Decimal]:
        """Return the sum of each day without negative lines, which would hide what was used on their day.

        Args:
            wanted: Which items count. Default: - all
        """
        used = tuple(each for each in self.charges if each.amount > 0)
        return replace(self, charges=used).by_day(wanted)

    @property
    def first_charged(self) -> date:
        """The first day that cost something: before it the cluster was not there, or its tag was not active."""
        return min((each.day for each in self.charges if each.amount), default=self.start)

    def by_item(self) -> dict[str, Decimal]:
        """Return the sum of each item, the dearest first."""
        sums: dict[str, Decimal] = {}
        for charge in self.charges:
            sums[charge.item] = sums.get(charge.item, Decimal(0)) + charge.amount
        return dict(sorted(sums.items(), key=lambda each: (-each[1], each[0])))

    def since(self, start: date) -> "Bill":
        """Return the part of it that begins on a day.

        Args:
            start: The day, none before the first.
        """
        charges = tuple(each for each in self.charges if each.day >= start)
        return Bill(start=start, end=self.end, currency=self.currency, charges=charges, requests=self.requests)


class NoBillError(ValueError):
    """Say why Cost Explorer's answers are no bill of the cluster; a retry changes nothing and is billed."""


def fetch_bill(client: CostExplorer, cluster: str, region: str, start: date, end: date) -> Bill:
    """Return what a cluster was billed.

    Args:
        client: Cost Explorer.
        cluster: The cluster's name.
        region: Its region: clusters of one name in several have one tag.
        start: The first day.
        end: The day after the last.

    Raises:
        NoBillError: No charge has the cluster's tag, there are too many pages, or the amounts have no common sum.
        Exception: What the client raises.
    """
    request = _request(cluster, region, start, end)
    rows: list[tuple[date, Mapping[str, Any]]] = []
    for requests in range(1, MAX_REQUESTS + 1):
        page = client.get_cost_and_usage(**request)
        for result in page["ResultsByTime"]:
            day = date.fromisoformat(result["TimePeriod"]["Start"])
            rows += [(day, group) for group in result.get("Groups", ())]
        if not page.get("NextPageToken"):
            return _bill(rows, cluster, region, start=start, end=end, requests=requests)
        request["NextPageToken"] = page["NextPageToken"]
    raise NoBillError(
        f"Cost Explorer has more than {MAX_REQUESTS} pages of these days, and bills ${USD_A_REQUEST} each: ask for "
        "fewer days with training-cluster costs --days"
    )


def without_region(usage_type: str) -> str:
    """Return a usage type without the region that it begins with.

    Args:
        usage_type: The usage type, such as `USW2-NatGateway-Hours`.
    """
    return _PREFIX.sub("", usage_type, count=1)


def _request(cluster: str, region: str, start: date, end: date) -> dict[str, Any]:
    return {
        "TimePeriod": {"Start": start.isoformat(), "End": end.isoformat()},
        "Granularity": "DAILY",
        "Metrics": [_METRIC, _HOURS],
        "GroupBy": [{"Type": "DIMENSION", "Key": "SERVICE"}, {"Type": "DIMENSION", "Key": "USAGE_TYPE"}],
        "Filter": {
            "And": [
                {"Tags": {"Key": CLUSTER_TAG, "Values": [cluster], "MatchOptions": ["EQUALS"]}},
                {"Dimensions": {"Key": "REGION", "Values": [region]}},
                {"Not": {"Dimensions": {"Key": "RECORD_TYPE", "Values": _NO_USAGE}}},
            ]
        },
    }


def _bill(
    rows: Iterable[tuple[date, Mapping[str, Any]]],
    cluster: str,
    region: str,
    *,
    start: date,
    end: date,
    requests: int,
) -> Bill:
    charges: dict[tuple[date, str], Charge] = {}
    currencies = set()
    for day, group in rows:
        service, usage_type = group["Keys"]
        amount, quantity = group["Metrics"][_METRIC], group["Metrics"][_HOURS]
        currencies.add(amount["Unit"])
        found = _INSTANCE.fullmatch(usage_type)
        item = found[2] + _BOUGHT[found[1]] if found else service
        before = charges.get((day, item), Charge(day=day, item=item, amount=Decimal(0)))
        charges[day, item] = Charge(
            day=day,
            item=item,
            amount=before.amount + Decimal(amount["Amount"]),
            hours=(before.hours or Decimal(0)) + Decimal(quantity["Amount"]) if found else None,
        )
    if not charges:
        raise NoBillError(_nothing(cluster, region, start, end))
    if len(currencies) > 1:
        raise NoBillError(f"Cost Explorer answers in {' and '.join(sorted(currencies))}, which have no common sum")
    return Bill(
        start=start,
        end=end,
        currency=currencies.pop(),
        charges=tuple(charges[key] for key in sorted(charges)),
        requests=requests,
    )


def _nothing(cluster: str, region: str, start: date, end: date) -> str:
    return (
        f"Cost Explorer has no charge with the tag {CLUSTER_TAG} = {cluster} in {region} from {start} to "
        f"{end - timedelta(days=1)}: either there was none, or the tag is not active; the management account "
        f"activates it with: aws ce update-cost-allocation-tags-status --cost-allocation-tags-status "
        f"TagKey={CLUSTER_TAG},Status=Active"
    )
