"""Node groups as Auto Scaling describes them, and the tags that are written on them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from cluster_common.tags import CLUSTER_TAG, NODE_GROUP_TAG
from cluster_power.memory import NO_MEMORY, Memory

if TYPE_CHECKING:
    from mypy_boto3_autoscaling.client import AutoScalingClient
    from mypy_boto3_autoscaling.type_defs import ActivityTypeDef, AutoScalingGroupTypeDef, FilterTypeDef

# Enough for every node of a large group to have failed once; only the newest matter.
_ACTIVITIES = 100

# EC2 bills no instance in these lifecycle states, but for its volumes; it bills those in all others, of which
# Auto Scaling gets more: an unknown one counts.
# https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-lifecycle.html and
# https://docs.aws.amazon.com/autoscaling/ec2/userguide/warm-pool-instance-lifecycle.html
_NOT_ALIVE = frozenset({"Terminated", "Warmed:Terminated", "Warmed:Stopped", "Warmed:Hibernated"})


@dataclass(frozen=True, kw_only=True)
class Activity:
    """One thing that Auto Scaling did or tried with a group.

    Attributes:
        launch: Whether it launches a node.
        started: When it began.
        failed: Whether it ended without a node.
        finished: Whether it ended at all.
        message: What Auto Scaling says of it.
    """

    launch: bool
    started: datetime
    failed: bool
    finished: bool
    message: str


@dataclass(frozen=True, kw_only=True)
class Group:
    """One Auto Scaling group that carries the cluster's tag.

    Attributes:
        name: The Auto Scaling group's name.
        node_group: The node group it is.
        desired: Its desired capacity.
        minimum: Its smallest allowed size.
        maximum: Its largest allowed size.
        in_service: How many of its nodes are in service.
        out_of_service: The lifecycle states of its other nodes that live, and are billed.
        protected: How many of its nodes are protected from scale-in.
        zones: The Availability Zones it launches in.
        instance_types: The types of the nodes it has.
        launching_suspended: Why it launches nothing, in Auto Scaling's words. None: it launches.
        terminating_suspended: Why it terminates nothing, in Auto Scaling's words. None: it terminates.
        deleting: Whether it is going away.
        memory: What the function wrote on it.
        activities: What Auto Scaling did with it, newest first. None: that could not be read.
    """

    name: str
    node_group: str
    desired: int
    minimum: int
    maximum: int
    in_service: int
    out_of_service: tuple[str, ...] = ()
    protected: int = 0
    zones: tuple[str, ...] = ()
    instance_types: tuple[str, ...] = ()
    launching_suspended: str | None = None
    terminating_suspended: str | None = None
    deleting: bool = False
    memory: Memory = NO_MEMORY
    activities: tuple[Activity, ...] | None = ()

    @property
    def alive(self) -> int:
        """How many of its nodes live and are billed, in service or not."""
        return self.in_service + len(self.out_of_service)


def read_groups(client: "AutoScalingClient", cluster: str, *, name: str | None = None) -> list[Group]:
    """Find the cluster's groups by its tag, sorted by node group and name.

    Args:
        client: EC2 Auto Scaling.
        cluster: The cluster's name.
        name: Read this one Auto Scaling group only. Default: - all of the cluster's.
    """
    paginator = client.get_paginator("describe_auto_scaling_groups")
    filters: list[FilterTypeDef] = [{"Name": f"tag:{CLUSTER_TAG}", "Values": [cluster]}]
    # Auto Scaling takes names or filters, never both.
    # https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeAutoScalingGroups.html
    pages = (
        paginator.paginate(AutoScalingGroupNames=[name])
        if name
        else paginator.paginate(Filters=filters, PaginationConfig={"PageSize": 100})
    )
    tagged = [(raw, _tags(raw)) for page in pages for raw in page["AutoScalingGroups"]]
    groups = [_group(raw, tags) for raw, tags in tagged if tags.get(CLUSTER_TAG) == cluster]
    return sorted(groups, key=lambda group: (group.node_group, group.name))


def read_activities(client: "AutoScalingClient", group: Group) -> tuple[Activity, ...]:
    """Read what Auto Scaling last did with a group, newest first."""
    answer = client.describe_scaling_activities(AutoScalingGroupName=group.name, MaxRecords=_ACTIVITIES)
    activities = [_activity(raw) for raw in answer["Activities"]]
    return tuple(sorted(activities, key=lambda activity: activity.started, reverse=True))


def write_tags(client: "AutoScalingClient", group: Group, tags: Mapping[str, str]) -> None:
    """Write tags on a group only, not on the nodes it launches."""
    client.create_or_update_tags(
        Tags=[
            {
                "ResourceId": group.name,
                "ResourceType": "auto-scaling-group",
                "Key": key,
                "Value": value,
                "PropagateAtLaunch": False,
            }
            for key, value in tags.items()
        ]
    )


def _tags(raw: "AutoScalingGroupTypeDef") -> dict[str, str]:
    return {tag["Key"]: tag.get("Value", "") for tag in raw.get("Tags", [])}


def _group(raw: "AutoScalingGroupTypeDef", tags: Mapping[str, str]) -> Group:
    instances = [one for one in raw.get("Instances", []) if one["LifecycleState"] not in _NOT_ALIVE]
    states = [instance["LifecycleState"] for instance in instances]
    suspended = {
        process["ProcessName"]: process.get("SuspensionReason", "") for process in raw.get("SuspendedProcesses", [])
    }
    return Group(
        name=raw["AutoScalingGroupName"],
        node_group=tags.get(NODE_GROUP_TAG, ""),
        desired=raw["DesiredCapacity"],
        minimum=raw["MinSize"],
        maximum=raw["MaxSize"],
        in_service=states.count("InService"),
        out_of_service=tuple(sorted(state for state in states if state != "InService")),
        protected=sum(instance.get("ProtectedFromScaleIn", False) for instance in instances),
        zones=tuple(raw.get("AvailabilityZones", [])),
        instance_types=tuple(sorted({instance.get("InstanceType", "") for instance in instances} - {""})),
        launching_suspended=suspended.get("Launch"),
        terminating_suspended=suspended.get("Terminate"),
        # Auto Scaling sets a status only while it deletes a group.
        # https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_AutoScalingGroup.html
        deleting=bool(raw.get("Status")),
        memory=Memory.from_tags(tags),
    )


def _activity(raw: "ActivityTypeDef") -> Activity:
    status = raw["StatusCode"]
    return Activity(
        # "Launching a new EC2 instance: i-..."; a termination or a replacement has an activity of its own.
        launch=raw.get("Description", "").startswith("Launching"),
        started=raw["StartTime"],
        failed=status in ("Failed", "Cancelled"),
        finished=status in ("Failed", "Cancelled", "Successful"),
        message=" ".join(raw.get("StatusMessage", raw.get("Description", "")).split()),
    )
