"""Auto Scaling groups as owners of nodes."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from cluster_common.errors import AWS_ERRORS, error_code
from cluster_common.owners.ec2_nodes import terminate
from cluster_common.owners.groups import Activity, OwnedGroup, OwnedNode, is_old
from cluster_common.owners.kinds import AUTO_SCALING_GROUP
from cluster_common.owners.node_owner import OwnerBusyError, Reading
from cluster_contract.tags import CLUSTER_TAG, NODE_GROUP_TAG, STACK_ID_TAG

if TYPE_CHECKING:
    from mypy_boto3_autoscaling.client import AutoScalingClient
    from mypy_boto3_autoscaling.type_defs import (
        ActivityTypeDef,
        AutoScalingGroupTypeDef,
        FilterTypeDef,
        LaunchTemplateSpecificationTypeDef,
    )
    from mypy_boto3_ec2.client import EC2Client

_RESOURCE = "auto-scaling-group"

# Enough for every node of a large group to have failed once; only the newest matter.
_ACTIVITIES = 100

# EC2 bills no instance in these lifecycle states, but for its volumes; it bills those in all others, of which
# Auto Scaling gets more: an unknown one counts.
# https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-lifecycle.html and
# https://docs.aws.amazon.com/autoscaling/ec2/userguide/warm-pool-instance-lifecycle.html
_NOT_ALIVE = frozenset({"Terminated", "Warmed:Terminated", "Warmed:Stopped", "Warmed:Hibernated"})


class AutoScalingGroups:
    """The cluster's Auto Scaling groups: those of its stack with its tag, which others can write too."""

    traits = AUTO_SCALING_GROUP

    def __init__(
        self,
        client: "AutoScalingClient",
        once: "Callable[[], AutoScalingClient]",
        ec2: "Callable[[], EC2Client]",
        cluster: str,
        node_groups: Collection[str],
        *,
        stack_id: str,
        tag: str = CLUSTER_TAG,
    ) -> None:
        """Know the cluster.

        Args:
            client: The client for all that may be sent again.
            once: Makes a client that sends a request once.
            ec2: Makes the client of EC2.
            cluster: The value of the tag on the groups.
            node_groups: The node groups that they should own.
            stack_id: The id of the stack that they belong to, or the end of it that has the UUID.
            tag: The key of that tag.
        """
        self.node_groups = node_groups
        self._client = client
        self._once = once
        self._ec2 = ec2
        self._cluster_tag = {tag: cluster}
        self._stack_id = stack_id

    def read(self, node_group: str | None = None) -> Reading:
        """Find the cluster's groups by its tag, or those of one node group."""
        wanted = {**self._cluster_tag, **({NODE_GROUP_TAG: node_group} if node_group else {})}
        filters: list[FilterTypeDef] = [{"Name": f"tag:{key}", "Values": [value]} for key, value in wanted.items()]
        pages = self._client.get_paginator("describe_auto_scaling_groups").paginate(
            Filters=filters, PaginationConfig={"PageSize": 100}
        )
        groups = self._own(raw for page in pages for raw in page["AutoScalingGroups"])
        return Reading(groups=sorted(groups, key=lambda group: (group.node_group, group.name)))

    def describe(self, group: OwnedGroup) -> OwnedGroup | None:
        """Read one group again by its name. None: it is gone, or has become another cluster's."""
        # Auto Scaling takes names or filters, never both.
        # https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeAutoScalingGroups.html
        paginator = self._client.get_paginator("describe_auto_scaling_groups")
        pages = paginator.paginate(AutoScalingGroupNames=[group.name])
        found = self._own(raw for page in pages for raw in page["AutoScalingGroups"])
        return next(iter(found), None)

    def read_activities(
        self,
        group: OwnedGroup,
        since: datetime | None,  # noqa: ARG002 (Auto Scaling returns its last activities, whenever they were)
    ) -> tuple[Activity, ...]:
        """Read what Auto Scaling last did with a group, newest first."""
        return read_scaling_activities(self._client, group.name)

    def set_size(self, group: OwnedGroup, size: int) -> None:
        """Set a group's desired capacity, without waiting for its cooldown."""
        with _may_be_busy("ScalingActivityInProgress"):
            self._client.set_desired_capacity(
                AutoScalingGroupName=group.name, DesiredCapacity=size, HonorCooldown=False
            )

    def resume_launching(self, group: OwnedGroup) -> None:
        """Resume the process Launch of a group, and no other."""
        self._client.resume_processes(AutoScalingGroupName=group.name, ScalingProcesses=["Launch"])

    def retire_warm_nodes(self, group: OwnedGroup) -> None:
        """Terminate the nodes of a group's warm pool that an old launch template version has launched.

        Auto Scaling launches others in their place. Its own TerminateInstanceInAutoScalingGroup cannot be called on
        instances in a warm pool.
        https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_TerminateInstanceInAutoScalingGroup.html
        """
        pages = self._client.get_paginator("describe_warm_pool").paginate(AutoScalingGroupName=group.name)
        old = [
            one["InstanceId"]
            for page in pages
            for one in page["Instances"]
            if is_old(_template(one.get("LaunchTemplate", {})), group.templates)
            and not one["LifecycleState"].startswith("Warmed:Terminat")
        ]
        if old:
            terminate(self._ec2(), old)

    def terminate(self, group: OwnedGroup, instance_id: str) -> None:  # noqa: ARG002 (Auto Scaling knows it)
        """Terminate one node and lower its group's desired capacity by one.

        No AWS document says what a second request for the same node does. If it lowered the capacity once more,
        another node would go: so it is never sent again.
        https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_TerminateInstanceInAutoScalingGroup.html
        """
        self._once().terminate_instance_in_auto_scaling_group(
            InstanceId=instance_id, ShouldDecrementDesiredCapacity=True
        )

    def cordon(self, group: OwnedGroup, instance_id: str) -> None:
        """Put one node into Standby, and lower the desired capacity by one, so that no other is launched.

        It is sent once, and not for a node that is in Standby already, which Auto Scaling refuses.
        https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_EnterStandby.html
        """
        if instance_id in group.standby_ids:
            return
        with _may_be_busy("ScalingActivityInProgress", "ResourceContention"):
            self._once().enter_standby(
                InstanceIds=[instance_id], AutoScalingGroupName=group.name, ShouldDecrementDesiredCapacity=True
            )

    def uncordon(self, group: OwnedGroup, instance_id: str) -> None:
        """Put one node in Standby back into service, which raises the desired capacity by one.

        No lifecycle hook holds it then: they are for newly launched instances only, as AWS says in
        https://github.com/aws-samples/aws-codedeploy-samples/issues/30.
        https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_ExitStandby.html
        """
        with _may_be_busy("ScalingActivityInProgress", "ResourceContention"):
            self._once().exit_standby(InstanceIds=[instance_id], AutoScalingGroupName=group.name)

    def reboot(self, group: OwnedGroup, instance_id: str) -> None:  # noqa: ARG002 (EC2 knows it)
        """Reboot one node: in Standby, so that Auto Scaling checks its health only afterwards.

        EC2 forces the reboot of a node that does not shut down within a few minutes.
        https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RebootInstances.html
        """
        self._ec2().reboot_instances(InstanceIds=[instance_id])

    def replace(self, group: OwnedGroup, instance_id: str) -> None:  # noqa: ARG002 (Auto Scaling knows it)
        """Terminate one node and leave the desired capacity, which counts no node in Standby.

        Where it counts the node, Auto Scaling launches another; where the node was in Standby, the power function
        gives the group its place back. With a lower desired capacity a node that works would go in its place. What
        Auto Scaling does with one in Standby no document says: it launches until it has the desired capacity.
        https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_TerminateInstanceInAutoScalingGroup.html
        """
        with _may_be_busy("ScalingActivityInProgress", "ResourceContention"):
            self._client.terminate_instance_in_auto_scaling_group(
                InstanceId=instance_id, ShouldDecrementDesiredCapacity=False
            )

    def tag(self, group: OwnedGroup, tags: Mapping[str, str]) -> None:
        """Write tags on a group only, not on the nodes it launches."""
        self._client.create_or_update_tags(
            Tags=[
                {
                    "ResourceId": group.name,
                    "ResourceType": _RESOURCE,
                    "Key": key,
                    "Value": value,
                    "PropagateAtLaunch": False,
                }
                for key, value in tags.items()
            ]
        )

    def untag(self, group: OwnedGroup, keys: Iterable[str]) -> None:
        """Take tags away from a group."""
        self._client.delete_tags(
            Tags=[{"ResourceId": group.name, "ResourceType": _RESOURCE, "Key": key} for key in keys]
        )

    def _own(self, raws: "Iterator[AutoScalingGroupTypeDef]") -> list[OwnedGroup]:
        tagged = ((raw, _tags(raw)) for raw in raws)
        return [
            auto_scaling_group(raw, tags, is_configured=tags.get(NODE_GROUP_TAG) in self.node_groups)
            for raw, tags in tagged
            if self._is_own(tags)
        ]

    def _is_own(self, tags: Mapping[str, str]) -> bool:
        """Say whether a group has the cluster's tag and, from CloudFormation, that of its stack."""
        is_of_stack = bool(self._stack_id) and tags.get(STACK_ID_TAG, "").endswith(self._stack_id)
        return is_of_stack and self._cluster_tag.items() <= tags.items()


@contextmanager
def _may_be_busy(*codes: str) -> Iterator[None]:
    """Raise `OwnerBusyError` for codes by which Auto Scaling says that another activity or change is under way."""
    try:
        yield
    except AWS_ERRORS as error:
        if error_code(error) in codes:
            raise OwnerBusyError from error
        raise


def read_scaling_activities(client: "AutoScalingClient", name: str) -> tuple[Activity, ...]:
    """Return what Auto Scaling last did with the Auto Scaling group of a name, newest first."""
    answer = client.describe_scaling_activities(AutoScalingGroupName=name, MaxRecords=_ACTIVITIES)
    activities = [_activity(raw) for raw in answer["Activities"]]
    return tuple(sorted(activities, key=lambda activity: activity.started, reverse=True))


def _tags(raw: "AutoScalingGroupTypeDef") -> dict[str, str]:
    return {tag["Key"]: tag.get("Value", "") for tag in raw.get("Tags", [])}


def auto_scaling_group(
    raw: "AutoScalingGroupTypeDef", tags: Mapping[str, str], *, is_configured: bool = True
) -> OwnedGroup:
    """Return what DescribeAutoScalingGroups says of a group.

    Args:
        raw: The group.
        tags: Its tags.
        is_configured: Whether the cluster's file gives its node group an Auto Scaling group.
    """
    instances = [one for one in raw.get("Instances", []) if one["LifecycleState"] not in _NOT_ALIVE]
    states = [instance["LifecycleState"] for instance in instances]
    nodes = {
        instance["InstanceId"]: OwnedNode(
            state=instance["LifecycleState"],
            protected=instance.get("ProtectedFromScaleIn", False),
            template=_template(instance.get("LaunchTemplate", {})),
            unhealthy=instance.get("HealthStatus", "").upper() == "UNHEALTHY",
        )
        for instance in raw.get("Instances", [])
    }
    suspended = {
        process["ProcessName"]: process.get("SuspensionReason", "") for process in raw.get("SuspendedProcesses", [])
    }
    return OwnedGroup(
        name=raw["AutoScalingGroupName"],
        node_group=tags.get(NODE_GROUP_TAG, ""),
        is_configured=is_configured,
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
        ends_newest=raw.get("TerminationPolicies", [])[:1] == ["NewestInstance"],
        # Auto Scaling sets a status only while it deletes a group.
        # https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_AutoScalingGroup.html
        deleting=bool(raw.get("Status")),
        nodes=nodes,
        templates=_templates(raw),
        tags=tags,
    )


def _templates(raw: "AutoScalingGroupTypeDef") -> frozenset[str]:
    """Return what a group launches from: its launch template, or its mixed policy's and those of the overrides."""
    mixed = raw.get("MixedInstancesPolicy", {}).get("LaunchTemplate", {})
    named = [one.get("LaunchTemplateSpecification", {}) for one in (mixed, *mixed.get("Overrides", []))]
    return frozenset(map(_template, [raw.get("LaunchTemplate", {}), *named])) - {""}


def _template(said: "LaunchTemplateSpecificationTypeDef") -> str:
    if "LaunchTemplateId" not in said or "Version" not in said:
        return ""
    return f"{said['LaunchTemplateId']} {said['Version']}"


def _activity(raw: "ActivityTypeDef") -> Activity:
    status, said = raw["StatusCode"], raw.get("Description", "")
    return Activity(
        # "Launching a new EC2 instance: i-..."; a termination or a replacement has an activity of its own.
        # What is launched "into warm pool" is no node yet; what comes "from warm pool" is.
        # https://docs.aws.amazon.com/autoscaling/ec2/userguide/warm-pools-health-checks-monitor-view-instances.html
        launch=said.startswith("Launching") and "into warm pool" not in said,
        started=raw["StartTime"],
        failed=status in ("Failed", "Cancelled"),
        finished=status in ("Failed", "Cancelled", "Successful"),
        message=" ".join(raw.get("StatusMessage", said).split()),
        termination=said.startswith("Terminating"),
    )
