"""What the power function may do: it reads what it needs, and writes on what carries its cluster's tag only."""

from collections.abc import Collection, Iterator

from aws_cdk import Aws
from aws_cdk import aws_iam as iam

from cdk_training_cluster.acknowledgements import acknowledge
from cdk_training_cluster.power.power_group import PowerGroup
from cdk_training_cluster.tags import CLUSTER_TAG

_POWER_TAGS = "cdk-training-cluster:power-*"
_ACCOUNT = f"{Aws.REGION}:{Aws.ACCOUNT_ID}"
_ACCOUNT_AS_NAG_SAYS = "<AWS::Region>:<AWS::AccountId>"
_GROUPS = "autoscaling:{account}:autoScalingGroup:*:autoScalingGroupName/*"
_FLEETS = "ec2:{account}:spot-fleet-request/*"
_RESERVATIONS = "ec2:{account}:capacity-reservation/*"


class PowerPermissions:
    """The permissions that some node groups need, and no more.

    Sources: https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2autoscaling.html,
    https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html and
    https://docs.aws.amazon.com/service-authorization/latest/reference/list_awssystemsmanager.html
    """

    def __init__(self, cluster_name: str, groups: Collection[PowerGroup], parameter: str) -> None:
        """Find out what is needed.

        Args:
            cluster_name: The value of the tag on what the function may write on.
            groups: The node groups.
            parameter: The name of the parameter that says which of them are stopped.
        """
        self._parameter = parameter
        self._of_this_cluster = {f"aws:ResourceTag/{CLUSTER_TAG}": cluster_name}
        self._auto_scaling = any(group.spot_fleet_id is None for group in groups)
        self._fleets = any(group.spot_fleet_id is not None for group in groups)
        self._reservations = any(
            group.capacity_block or group.capacity_blocks or group.capacity_reservation_id for group in groups
        )
        self._releases = any(group.released for group in groups)
        self._terminates = any(group.terminates_nodes for group in groups)

    def grant(self, role: iam.Role) -> None:
        """Give the permissions to the function's role."""
        reads = list(self._reads())
        role.add_to_policy(iam.PolicyStatement(actions=reads, resources=["*"]))
        acknowledge(
            role,
            "AwsSolutions-IAM5[Resource::*]",
            "Describe actions of Auto Scaling and EC2, which take no resource and change nothing.",
        )
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["ssm:GetParameter", "ssm:GetParameterHistory", "ssm:PutParameter"],
                resources=[f"arn:{Aws.PARTITION}:ssm:{_ACCOUNT}:parameter/{self._parameter}"],
            )
        )
        if self._auto_scaling:
            terminating = ["autoscaling:TerminateInstanceInAutoScalingGroup"] if self._terminates else []
            self._write(role, ["autoscaling:SetDesiredCapacity", *terminating], _GROUPS)
        # What a deploy could not take away is noted on it, too.
        self._write(role, ["autoscaling:CreateOrUpdateTags"], _GROUPS, tags=True)
        self._acknowledge(role, _GROUPS)
        if self._fleets:
            self._write(role, ["ec2:ModifySpotFleetRequest"], _FLEETS)
            self._write(role, ["ec2:CreateTags"], _FLEETS, tags=True)
            self._acknowledge(role, _FLEETS)
        if self._releases:
            self._write(role, ["ec2:ModifyCapacityReservation"], _RESERVATIONS)
            self._acknowledge(role, _RESERVATIONS)

    def _reads(self) -> Iterator[str]:
        yield "autoscaling:DescribeAutoScalingGroups"
        if self._auto_scaling:
            yield "autoscaling:DescribeScalingActivities"
        if self._fleets:
            yield from (
                "ec2:DescribeSpotFleetInstances",
                "ec2:DescribeSpotFleetRequestHistory",
                "ec2:DescribeSpotFleetRequests",
            )
        if self._reservations:
            yield "ec2:DescribeCapacityReservations"

    def _write(self, role: iam.Role, actions: list[str], resource: str, *, tags: bool = False) -> None:
        conditions: dict[str, dict[str, object]] = {"StringEquals": dict(self._of_this_cluster)}
        if tags:
            conditions["ForAllValues:StringLike"] = {"aws:TagKeys": [_POWER_TAGS]}
        arn = f"arn:{Aws.PARTITION}:{resource.format(account=_ACCOUNT)}"
        role.add_to_policy(iam.PolicyStatement(actions=actions, resources=[arn], conditions=conditions))

    def _acknowledge(self, role: iam.Role, resource: str) -> None:
        arn = f"arn:<AWS::Partition>:{resource.format(account=_ACCOUNT_AS_NAG_SAYS)}"
        acknowledge(
            role,
            f"AwsSolutions-IAM5[Resource::{arn}]",
            "Names and ids are made at deployment; the condition on the cluster's tag limits the writes.",
        )
