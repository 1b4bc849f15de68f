"""EKS managed node groups as owners of nodes: the size of one is its desired size."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from cluster_common.clients import Untyped
from cluster_common.errors import AWS_ERRORS, error_code
from cluster_common.owners.auto_scaling_groups import auto_scaling_group, read_scaling_activities
from cluster_common.owners.eks_configuration import changed_configuration
from cluster_common.owners.groups import Activity, OwnedGroup
from cluster_common.owners.kinds import EKS_NODEGROUP
from cluster_common.owners.named_owners import Named, NamedOwners
from cluster_common.owners.node_owner import OwnerBusyError
from cluster_contract.owners import OwnerSettings

if TYPE_CHECKING:
    from mypy_boto3_autoscaling.client import AutoScalingClient

_BUSY = frozenset({"CREATING", "UPDATING"})


class EksNodegroups(NamedOwners):
    """The managed node groups that the settings name by `<cluster>/<node group>`, with the Auto Scaling groups
    underneath.

    EKS terminates nodes beyond a smaller desired size at once, whatever the disruption budgets of their Pods say. The
    sizes that EKS shows may be out of date for a while: those of the Auto Scaling group count.

    Calls: eks `DescribeNodegroup`, `UpdateNodegroupConfig` (of scalingConfig desiredSize alone), `TagResource`,
    `UntagResource`; autoscaling, on the group that `resources.autoScalingGroups` names: `DescribeAutoScalingGroups`,
    `DescribeScalingActivities`, `ResumeProcesses`, `TerminateInstanceInAutoScalingGroup` (which lowers its desired
    capacity by one).

    Sources: https://docs.aws.amazon.com/eks/latest/APIReference/API_UpdateNodegroupConfig.html,
    https://docs.aws.amazon.com/eks/latest/APIReference/API_NodegroupScalingConfig.html and
    https://docs.aws.amazon.com/eks/latest/userguide/update-managed-node-group.html
    """

    traits = EKS_NODEGROUP

    def __init__(
        self,
        client: Untyped,
        auto_scaling: "AutoScalingClient",
        once: "Callable[[], AutoScalingClient]",
        named: Named,
    ) -> None:
        """Know the node groups.

        Args:
            client: The client of EKS.
            auto_scaling: The client of EC2 Auto Scaling.
            once: Makes a client of EC2 Auto Scaling that sends a request once.
            named: What the settings say of the node groups.
        """
        super().__init__(named)
        self._client = client
        self._auto_scaling = auto_scaling
        self._once = once
        self._described: dict[str, Mapping[str, Any]] = {}

    def read_activities(
        self,
        group: OwnedGroup,
        since: datetime | None,  # noqa: ARG002 (Auto Scaling returns its last activities, whenever they were)
    ) -> tuple[Activity, ...]:
        """Read what Auto Scaling last did with the group underneath, newest first."""
        if not group.auto_scaling_group:
            return ()
        return read_scaling_activities(self._auto_scaling, group.auto_scaling_group)

    def _set_size(self, group: OwnedGroup, size: int) -> None:
        """Set the desired size of a node group, and with a larger one what its settings say beside it.

        EKS refuses a request as a whole: a setting that it does not take may delay a start, and never a stop.
        """
        config: Mapping[str, Any] = {}
        if size > group.desired:
            options = self._owners[group.node_group].options
            config = changed_configuration(options, self._described.get(group.name, {}))
        try:
            self._client.update_nodegroup_config(**_names(group.name), scalingConfig={"desiredSize": size}, **config)
        except AWS_ERRORS as error:
            # An update of the node group is under way.
            if error_code(error) == "ResourceInUseException":
                raise OwnerBusyError from error
            raise

    def resume_launching(self, group: OwnedGroup) -> None:
        """Resume the process Launch of the Auto Scaling group underneath, and no other."""
        self._auto_scaling.resume_processes(
            AutoScalingGroupName=group.auto_scaling_group, ScalingProcesses=["Launch"]
        )

    def terminate(self, group: OwnedGroup, instance_id: str) -> None:  # noqa: ARG002 (Auto Scaling knows it)
        """Terminate one node and lower the desired capacity underneath by one; it is never sent again.

        EKS then drains the node before Auto Scaling terminates it.
        https://docs.aws.amazon.com/eks/latest/userguide/managed-node-groups.html
        """
        self._once().terminate_instance_in_auto_scaling_group(
            InstanceId=instance_id, ShouldDecrementDesiredCapacity=True
        )

    def tag(self, group: OwnedGroup, tags: Mapping[str, str]) -> None:
        """Write tags on a node group only, not on its nodes."""
        self._client.tag_resource(resourceArn=group.arn, tags=dict(tags))

    def untag(self, group: OwnedGroup, keys: Iterable[str]) -> None:
        """Take tags away from a node group."""
        self._client.untag_resource(resourceArn=group.arn, tagKeys=list(keys))

    def _read_group(self, name: str, owner: OwnerSettings) -> OwnedGroup | None:
        try:
            raw = self._client.describe_nodegroup(**_names(owner.id))["nodegroup"]
        except AWS_ERRORS as error:
            if error_code(error) != "ResourceNotFoundException":
                raise
            return None
        self._described[owner.id] = raw
        scaling, state, tags = raw["scalingConfig"], raw["status"], raw.get("tags", {})
        underneath = self._read_underneath(raw, tags)
        found = underneath or OwnedGroup(
            name=owner.id,
            node_group=name,
            desired=scaling["desiredSize"],
            minimum=scaling["minSize"],
            maximum=scaling["maxSize"],
            in_service=0,
        )
        return replace(
            found,
            name=owner.id,
            node_group=name,
            owner=EKS_NODEGROUP,
            busy=state in _BUSY,
            deleting=state == "DELETING",
            tags=tags,
            scheduler_sized=owner.scheduler_sized,
            auto_scaling_group=underneath.name if underneath else "",
            arn=raw["nodegroupArn"],
        )

    def _read_underneath(self, raw: Mapping[str, Any], tags: Mapping[str, str]) -> OwnedGroup | None:
        """Read the Auto Scaling group underneath. None: there is none yet, or no longer."""
        names = [one["name"] for one in raw.get("resources", {}).get("autoScalingGroups", [])]
        if not names:
            return None
        answer = self._auto_scaling.describe_auto_scaling_groups(AutoScalingGroupNames=names)
        return next((auto_scaling_group(one, tags) for one in answer["AutoScalingGroups"]), None)


def _names(owner: str) -> dict[str, str]:
    cluster, _, group = owner.partition("/")
    return {"clusterName": cluster, "nodegroupName": group}
