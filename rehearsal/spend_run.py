"""A budget in a rehearsal that the cluster's own dollars exceed: warned, stopped or limited, and resumed."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from rich.console import Console

from cdk_training_cluster import Budget, OnExceed
from cluster_contract.spend import SpendKind, SpendMetric
from local_aws import LocalAws
from local_aws.functions import DeployedFunction
from rehearsal.report import table_of

_HOUR = timedelta(hours=1)
_TICK = timedelta(minutes=5)
# A story within one month of UTC: a budget acts anew in the next one.
_STORY = timedelta(hours=3)

# AWS tells no price of a Capacity Block, and rehearsed files state none.
_AT_LISTED_PRICES = {SpendKind.ON_DEMAND.value, SpendKind.SPOT.value, SpendKind.RESERVATION.value}

# What AWS's Price List says of an On-Demand Linux instance.
_PRODUCT = {
    "operatingSystem": "Linux",
    "preInstalledSw": "NA",
    "tenancy": "Shared",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
    "locationType": "AWS Region",
}


@dataclass(kw_only=True)
class SpendStory:
    """What the spend function said and did.

    Attributes:
        budget: The budget.
        saving: The node groups whose stop saves money.
        said: What the function said, by what happened before.
        sizes: How many nodes each group had then, likewise.
        thresholds: The thresholds of the alarms on this month's dollars.
    """

    budget: Budget
    saving: Sequence[str]
    said: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    sizes: dict[str, Mapping[str, int]] = field(default_factory=dict)
    thresholds: Sequence[float] = ()

    def differences(self) -> Iterator[str]:
        """Say what is not as the budget has it."""
        budget, spent = self.budget, self.said["exceeded"]
        unknown = [name for name in spent["unknown_prices"] if name.startswith(("on-demand ", "spot "))]
        counts = _AT_LISTED_PRICES & spent["kinds"].keys()
        if unknown or (counts and spent["month_to_date_usd"] < budget.monthly_usd):
            names = ", ".join(unknown) or "nothing"
            yield f"spend: {spent['month_to_date_usd']:,.2f} USD were counted, without the prices of {names}"
        wanted = sorted(budget.monthly_usd * share / 100 for share in budget.thresholds)
        if list(self.thresholds) != wanted:
            yield f"spend: alarms on this month's dollars are at {list(self.thresholds)}, the budget says {wanted}"
        stops = sorted(self.saving) if budget.on_exceed is OnExceed.STOP else []
        if sorted(spent["acts"]["stops"]) != stops:
            yield f"spend: people were warned of {spent['acts']['stops']}, not of {stops}"
        whole = self.sizes["exceeded"]
        for moment, expected in (
            ("warning over", {name: 0 if name in stops else count for name, count in whole.items()}),
            ("resumed", whole),
            ("later", whole),
        ):
            if self.sizes.get(moment, expected) != expected:
                yield f"spend, {moment}: the node groups have {self.sizes[moment]} nodes, not {expected}"

    def results(self) -> dict[str, Any]:
        """Return what is written down."""
        return {"said": self.said, "sizes": self.sizes, "thresholds": list(self.thresholds)}


def tell_spend_story(
    aws: LocalAws,
    spend: DeployedFunction,
    budget: Budget,
    groups: Sequence[Mapping[str, Any]],
    *,
    zone: str,
    start: Callable[[], object],
    sizes: Callable[[], Mapping[str, int]],
) -> SpendStory:
    """Let every instance cost more an hour than the whole budget, and run the deployed function on that.

    Args:
        aws: The local AWS.
        spend: The deployed spend function.
        budget: The budget.
        groups: The node groups, as they were read back.
        zone: Their Availability Zone.
        start: Starts every node group as operators do.
        sizes: Reads how many nodes each group has.
    """
    saving = [group["name"] for group in groups if not all(one.startswith("cr-") for one in group["bought_from"])]
    story, now = SpendStory(budget=budget, saving=saving), datetime.now(UTC)
    month_ends = (now + _STORY).month != now.month
    later = _STORY if month_ends else timedelta()
    _set_prices(aws, groups, zone, budget.monthly_usd * 2)
    ids = [one for group in groups for one in group["instance_ids"]]
    aws.set_launch_time(now + later - _HOUR, *ids)
    story.thresholds = _thresholds(aws, spend.name)

    def tick(moment: str, after: timedelta) -> None:
        aws.set_clock(later + after)
        story.said[moment] = spend({"action": "tick"}, later=later + after)
        story.sizes[moment] = sizes()

    warning = timedelta(minutes=budget.warning_minutes)
    tick("exceeded", timedelta())
    if budget.on_exceed is not OnExceed.NOTIFY:
        tick("warning over", warning)
        start()
        story.sizes["resumed"] = sizes()
        tick("later", warning + _TICK)
    aws.set_clock(timedelta())
    return story


def show_spend(console: Console, story: SpendStory) -> None:
    """Show what the cluster costs, and what became of its node groups."""
    said = story.said["exceeded"]
    title = f"Dollars of the cluster, at prices beyond its budget of {story.budget.monthly_usd:,.0f} USD"
    table = table_of(title, "kind", "USD an hour", "USD this month")
    for kind, usd in said["kinds"].items():
        table.add_row(kind, f"{usd['usd_per_hour']:,.2f}", f"{usd['month_to_date_usd']:,.2f}")
    console.print(table)
    for moment, sizes in story.sizes.items():
        console.print(f"{moment}: {', '.join(f'{name} {count}' for name, count in sizes.items())}", soft_wrap=True)


def start_all(aws: LocalAws, order_name: str) -> None:
    """Start every node group as operators do: through Lambda, by the name that the stack's output gives."""
    aws.client("lambda").invoke(FunctionName=order_name, Payload=json.dumps({"action": "start"}))


def _set_prices(aws: LocalAws, groups: Sequence[Mapping[str, Any]], zone: str, usd: float) -> None:
    ids = [one for group in groups for one in group["instance_ids"]]
    reservations = aws.client("ec2").describe_instances(InstanceIds=ids)["Reservations"] if ids else []
    for name in sorted({one["InstanceType"] for each in reservations for one in each["Instances"]}):
        aws.set_spot_price(name, zone, usd)
        aws.set_product_price("AmazonEC2", {**_PRODUCT, "instanceType": name, "regionCode": aws.region}, usd)


def _thresholds(aws: LocalAws, function: str) -> list[float]:
    """Return the thresholds of the alarms on the month's dollars of the cluster that a function counts."""
    configuration = aws.client("lambda").get_function_configuration(FunctionName=function)
    settings = json.loads(configuration["Environment"]["Variables"]["CLUSTER_SPEND_SETTINGS"])
    of_cluster = {"Name": "Cluster", "Value": settings["cluster"]}
    found = aws.client("cloudwatch").get_paginator("describe_alarms").paginate().search("MetricAlarms[]")
    dollars = [one for one in found if one.get("MetricName") == SpendMetric.MONTH_TO_DATE]
    return sorted(one["Threshold"] for one in dollars if of_cluster in one["Dimensions"])
