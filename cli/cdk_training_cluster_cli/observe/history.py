"""What happened to a cluster, from all that remember it: its functions, what owns its nodes, and CloudFormation."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from cdk_training_cluster_cli.core.aws_errors import plain_refusals
from cdk_training_cluster_cli.observe.deployed import Deployed, read_all, unqualified
from cdk_training_cluster_cli.observe.records import Record, quoted, read_records
from cluster_contract.events import EVENT_FIELD, Event
from cluster_contract.tags import CLUSTER_TAG, NODE_GROUP_TAG

_AT = re.compile(r"^At \S+ ")
_FAILED = ("Failed", "Cancelled")
_OF_FLEETS = timedelta(hours=48)
_STACK = "AWS::CloudFormation::Stack"


@dataclass(frozen=True, kw_only=True)
class Happening:
    """One thing that happened.

    Attributes:
        time: When.
        source: What remembers it: `the power function`, `Auto Scaling`, `Spot Fleet` or `CloudFormation`.
        what: What happened.
        who: Who did it, and why, as far as that is known.
        node_group: Whose nodes it is about. Empty: the whole cluster's.
        failed: Whether something failed.
    """

    time: datetime
    source: str
    what: str
    who: str = ""
    node_group: str = ""
    failed: bool = False


@dataclass(frozen=True, kw_only=True)
class History:
    """What happened, in order, and why some of it is not known.

    Attributes:
        happenings: What happened, the oldest first.
        unknown: Why a source could not be read, by its name.
    """

    happenings: Sequence[Happening]
    unknown: Mapping[str, str]


def read_history(cluster: Deployed, since: timedelta) -> History:
    """Ask everything that remembers what happened, at once.

    Args:
        cluster: The cluster.
        since: How far to look back.
    """
    sources: dict[str, Callable[[], Iterator[Happening]]] = {
        f"the {kind} function": lambda kind=kind: _of_function(cluster, kind, since)  # type: ignore[misc]
        for kind in cluster.description.functions
    }
    sources["Auto Scaling"] = lambda: activities(cluster, since)
    sources["Spot Fleet"] = lambda: fleet_events(cluster, since)
    sources["CloudFormation"] = lambda: _of_stack(cluster, since)
    found, unknown = read_all(sources)
    return History(happenings=sorted(found, key=lambda one: one.time), unknown=unknown)


def happening(record: Record) -> Happening:
    """Return what a record of a function's log tells.

    Args:
        record: The record, an event.
    """
    fields = record.fields
    by, why = str(fields.get("by", "")), str(fields.get("why", ""))
    is_said = not by or f"by {by}" in record.message
    action = f"{fields['action']}: " if "action" in fields else ""
    what = f"sent a message: {record.message}" if record.event is Event.MESSAGE else f"{action}{record.message}"
    return Happening(
        time=record.time,
        source=f"the {record.kind} function",
        what=what,
        who="" if is_said else f"by {by}: {why}" if why else f"by {by}",
        node_group=str(fields.get("node_group", "")),
        failed=record.is_error,
    )


def _of_function(cluster: Deployed, kind: str, since: timedelta) -> Iterator[Happening]:
    for record in read_records(cluster, kind, since, quoted(EVENT_FIELD)):
        if record.event is not None:
            yield happening(record)


def activities(cluster: Deployed, since: timedelta) -> Iterator[Happening]:
    """Yield what Auto Scaling launched and terminated, and why it could not, the newest first.

    Args:
        cluster: The cluster.
        since: How far to look back; Auto Scaling remembers six weeks.

    Raises:
        ValueError: Auto Scaling refuses.

    Source: https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeScalingActivities.html
    """
    client, first = cluster.client("autoscaling"), cluster.now - since
    with plain_refusals("the cluster's Auto Scaling groups"):
        filters = [{"Name": f"tag:{CLUSTER_TAG}", "Values": [cluster.name]}]
        for page in client.get_paginator("describe_auto_scaling_groups").paginate(Filters=filters):
            for group in page["AutoScalingGroups"]:
                yield from _of_group(client, group, first)


def _of_group(client: Any, group: Mapping[str, Any], first: datetime) -> Iterator[Happening]:  # noqa: ANN401 - a client
    tags = {tag["Key"]: tag["Value"] for tag in group.get("Tags", ())}
    name = group["AutoScalingGroupName"]
    for page in client.get_paginator("describe_scaling_activities").paginate(AutoScalingGroupName=name):
        for one in page["Activities"]:
            if one["StartTime"] < first:
                return
            failed = one["StatusCode"] in _FAILED
            said = one.get("StatusMessage", "").rstrip(".")
            message = f": {said}" if failed and said not in one["Description"] else ""
            yield Happening(
                time=one["StartTime"],
                source="Auto Scaling",
                what=f"{one['StatusCode'].lower()}: {one['Description'].rstrip('.')}{message}",
                who=_AT.sub("", one.get("Cause", "")).rstrip("."),
                node_group=tags.get(NODE_GROUP_TAG, ""),
                failed=failed,
            )


def fleet_events(cluster: Deployed, since: timedelta) -> Iterator[Happening]:
    """Yield what happened to the cluster's Spot Fleet requests, the oldest of each first.

    Args:
        cluster: The cluster.
        since: How far to look back; EC2 remembers 48 hours.

    Raises:
        ValueError: EC2 refuses.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSpotFleetRequestHistory.html
    """
    ec2, first = cluster.client("ec2"), cluster.now - min(since, _OF_FLEETS)
    with plain_refusals("the cluster's Spot Fleet requests"):
        for page in ec2.get_paginator("describe_spot_fleet_requests").paginate():
            for fleet in page["SpotFleetRequestConfigs"]:
                tags = {tag["Key"]: tag["Value"] for tag in fleet.get("Tags", ())}
                if tags.get(CLUSTER_TAG) == cluster.name:
                    yield from _of_fleet(ec2, fleet["SpotFleetRequestId"], tags.get(NODE_GROUP_TAG, ""), first)


def _of_fleet(ec2: Any, id: str, node_group: str, first: datetime) -> Iterator[Happening]:  # noqa: ANN401 - a client
    asked: dict[str, Any] = {"SpotFleetRequestId": id, "StartTime": first}
    while True:
        answer = ec2.describe_spot_fleet_request_history(**asked)
        for one in answer["HistoryRecords"]:
            what = one["EventInformation"]
            parts = (what.get("EventSubType"), what.get("InstanceId"), what.get("EventDescription"))
            yield Happening(
                time=one["Timestamp"],
                source="Spot Fleet",
                what=f"{one['EventType']}: {', '.join(part for part in parts if part)}",
                node_group=node_group,
                failed=one["EventType"] == "error",
            )
        if not answer.get("NextToken"):
            return
        asked["NextToken"] = answer["NextToken"]


def _of_stack(cluster: Deployed, since: timedelta) -> Iterator[Happening]:
    """Yield when the stack of the cluster's functions was deployed, and what of it failed.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStackResources.html finds the stack
    by a resource of it, and https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStackEvents.html
    lists its events, the newest first.
    """
    client, first = cluster.client("cloudformation"), cluster.now - since
    name = unqualified(cluster.description.functions["power"].invoke).rpartition(":")[2]
    with plain_refusals("the cluster's stack"):
        stack = client.describe_stack_resources(PhysicalResourceId=name)["StackResources"][0]["StackName"]
        for page in client.get_paginator("describe_stack_events").paginate(StackName=stack):
            for one in page["StackEvents"]:
                if one["Timestamp"] < first:
                    return
                failed = one["ResourceStatus"].endswith("_FAILED")
                if failed or one["ResourceType"] == _STACK:
                    reason = f": {one['ResourceStatusReason']}" if one.get("ResourceStatusReason") else ""
                    yield Happening(
                        time=one["Timestamp"],
                        source="CloudFormation",
                        what=f"{one['LogicalResourceId']} is {one['ResourceStatus']}{reason}",
                        failed=failed,
                    )
