"""What the power function may do: it reads what it needs, and writes on what carries its cluster's tag only."""

import json
from collections.abc import Collection, Iterator

from aws_cdk import aws_iam as iam

from cdk_training_cluster.core.acknowledgements import acknowledge
from cdk_training_cluster.core.conditions import HERE
from cdk_training_cluster.functions import (
    INSTANCES,
    RESERVATIONS,
    ClusterPermissions,
    OwnerPermissions,
)
from cdk_training_cluster.guardrails.power.power_group import PowerGroup
from cluster_contract.owners import OwnerKind
from cluster_contract.tags import CLUSTER_TAG, POWER_TAG

_EXECUTIONS = "automation-execution/*"
_EXECUTIONS_AS_NAG_SAYS = f"arn:<AWS::Partition>:ssm:<AWS::Region>:<AWS::AccountId>:{_EXECUTIONS}"


def permit_execution_reads(role: iam.Role) -> None:
    """Let the function ask who started a runbook.

    Args:
        role: The function's role.
    """
    arn = HERE.arn("ssm", _EXECUTIONS)
    role.add_to_policy(iam.PolicyStatement(actions=["ssm:GetAutomationExecution"], resources=[arn]))
    reason = "An execution's id is made when the runbook is started; the action changes nothing."
    acknowledge(role, f"AwsSolutions-IAM5[Resource::{_EXECUTIONS_AS_NAG_SAYS}]", reason)


class PowerPermissions:
    """The permissions that some node groups need, and no more.

    Sources: https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2autoscaling.html,
    https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html and
    https://docs.aws.amazon.com/service-authorization/latest/reference/list_awssystemsmanager.html
    """

    def __init__(self, cluster_name: str, groups: Collection[PowerGroup]) -> None:
        """Find out what is needed.

        Args:
            cluster_name: The value of the tag on what the function may write on.
            groups: The node groups.
        """
        self._cluster_name, self._groups = cluster_name, groups
        # Auto Scaling groups that no node group has any longer are found by the cluster's tag.
        self._owners = OwnerPermissions(groups, also=[OwnerKind.AUTO_SCALING_GROUP])
        self._roles = {
            kind: [group.role for group in groups if group.owner_kind is kind and group.role is not None]
            for kind in OwnerKind
        }
        self._reservations = any(
            group.capacity_block
            or group.capacity_blocks
            or group.listed_reservations
            or group.capacity_reservation_id
            for group in groups
        )
        self._releases = any(group.released for group in groups)
        self._terminates = {group.owner_kind for group in groups if group.terminates_nodes}
        self._warm_pools = any(group.warm_pool for group in groups)

    def grant(self, role: iam.Role) -> None:
        """Give the permissions to the function's role."""
        permissions = ClusterPermissions(
            role, cluster_name=self._cluster_name, tag_key=CLUSTER_TAG, own_tags=POWER_TAG
        )
        permissions.read(sorted(set(self._reads())))
        self._owners.grant_sizes(permissions, terminates=self._terminates)
        self._owners.grant_roles(role, self._roles)
        self._grant_by_service(role)
        self._owners.grant_tags(permissions)
        if self._warm_pools:
            permissions.write(["ec2:TerminateInstances"], INSTANCES)
        if self._releases:
            permissions.write(["ec2:ModifyCapacityReservation"], RESERVATIONS)

    def _grant_by_service(self, role: iam.Role) -> None:
        """Allow what services do in the function's name with each size; node groups of one cluster share it."""
        statements = [each for group in self._groups for each in group.size_permissions]
        for statement in {json.dumps(each.to_statement_json()): each for each in statements}.values():
            role.add_to_policy(statement)
            for resource in (each for each in statement.resources if "*" in each):
                as_nag_says = resource.replace(HERE.partition, "<AWS::Partition>").replace(
                    HERE.region, "<AWS::Region>"
                )
                reason = (
                    "The owner's service does this in the function's name with each size, on what has no name yet."
                )
                acknowledge(role, f"AwsSolutions-IAM5[Resource::{as_nag_says}]", reason)

    def _reads(self) -> Iterator[str]:
        yield from self._owners.reads(history=True)
        if self._warm_pools:
            yield "autoscaling:DescribeWarmPool"
        if self._reservations:
            yield "ec2:DescribeCapacityReservations"
