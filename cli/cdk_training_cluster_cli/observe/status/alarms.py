"""The cluster's alarms that are in ALARM."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, TypedDict

from cdk_training_cluster_cli.core.aws_errors import plain_refusals
from cdk_training_cluster_cli.observe.ages import moment_text, span
from cdk_training_cluster_cli.observe.deployed import Deployed
from cdk_training_cluster_cli.observe.status.part import Item, Moment, Part

# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/monitor_estimated_charges_with_cloudwatch.html
_BILLING_REGION = "us-east-1"


class Alarm(TypedDict):
    """An alarm that is in ALARM."""

    name: str
    since: datetime
    says: str
    description: str


class Alarms(Part[Sequence[Alarm]]):
    """What CloudWatch says."""

    key = "alarms"
    title = "Alarms"

    def ask(self, cluster: Deployed) -> Sequence[Alarm]:
        """Ask CloudWatch, in the cluster's region and where AWS keeps its charges."""
        regions = [cluster.target.region]
        if "billing_alarms" in cluster.description.functions and _BILLING_REGION not in regions:
            regions.append(_BILLING_REGION)
        return [alarm for region in regions for alarm in find_alarms(cluster, region)]

    def values(self, answer: Sequence[Alarm]) -> Any:  # noqa: ANN401 - as for Part
        """Return each alarm's fields."""
        return [{**alarm, "since": moment_text(alarm["since"])} for alarm in answer]

    def lines(self, answer: Sequence[Alarm], moment: Moment) -> Iterator[Item]:
        """Yield what each says."""
        if not answer:
            yield "None is in ALARM."
        for alarm in answer:
            yield f"ALARM for {span(moment.now - alarm['since'])}: {alarm['says']} ({alarm['name']})"


def find_alarms(cluster: Deployed, region: str) -> Iterator[Alarm]:
    """Yield the cluster's alarms that are in ALARM: their descriptions name it.

    Args:
        cluster: The cluster.
        region: The region that is asked.

    Raises:
        ValueError: CloudWatch refuses.

    Source: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DescribeAlarms.html
    """
    prefix, charges = f"{cluster.name}: ", f" USD for {cluster.name}. "
    with plain_refusals("the cluster's alarms"):
        pages = cluster.client("cloudwatch", region).get_paginator("describe_alarms").paginate(StateValue="ALARM")
        for alarm in (one for page in pages for one in page["MetricAlarms"]):
            description = str(alarm.get("AlarmDescription", ""))
            if description.startswith(prefix) or charges in description:
                yield Alarm(
                    name=alarm["AlarmName"],
                    since=alarm.get("StateTransitionedTimestamp") or alarm["StateUpdatedTimestamp"],
                    says=description.removeprefix(prefix).partition(". ")[0].removesuffix("."),
                    description=description,
                )
