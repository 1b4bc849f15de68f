"""What the idle stop may do."""

from collections.abc import Collection, Iterator

from aws_cdk import aws_iam as iam

from cdk_training_cluster.functions import (
    INSTANCES,
    ClusterPermissions,
    OwnerPermissions,
)
from cdk_training_cluster.guardrails.idle.idle_group import IdleGroup
from cdk_training_cluster.nodes import IdlePolicy
from cluster_contract.tags import IDLE_NOTE_TAG

# Only services can set these tags, on what they own; they replace a member that is stopped.
# https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-tagging.html,
# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/manage-spot-fleet.html
_OWNER_TAGS = ("aws:autoscaling:groupName", "aws:ec2spot:fleet-request-id", "aws:ec2:fleet-id")


class IdlePermissions:
    """The permissions that some node groups and their policies need, and no more.

    Sources: https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html,
    https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2autoscaling.html,
    https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazoncloudwatch.html and
    https://docs.aws.amazon.com/service-authorization/latest/reference/list_awssystemsmanager.html
    """

    def __init__(
        self, cluster_name: str, tag_key: str, groups: Collection[IdleGroup], policies: Collection[IdlePolicy]
    ) -> None:
        """Find out what is needed.

        Args:
            cluster_name: The value of the tag on what the function may write on.
            tag_key: The tag's key.
            groups: The node groups.
            policies: All policies that hold for some instance.
        """
        self._cluster_name, self._tag_key = cluster_name, tag_key
        self._owners = OwnerPermissions(groups)
        self._sessions = any(policy.has_signal("session") and not policy.is_off for policy in policies)

    def grant(self, role: iam.Role) -> None:
        """Give the permissions to the function's role."""
        permissions = ClusterPermissions(
            role, cluster_name=self._cluster_name, tag_key=self._tag_key, own_tags=IDLE_NOTE_TAG
        )
        permissions.read(sorted(set(self._reads())))
        permissions.write(["ec2:StopInstances"], INSTANCES, without_tags=_OWNER_TAGS)
        permissions.write(["ec2:CreateTags", "ec2:DeleteTags"], INSTANCES, own_tags_only=True)
        self._owners.grant_tags(permissions, untags=True)

    def _reads(self) -> Iterator[str]:
        yield from self._owners.reads()
        yield from ("cloudwatch:GetMetricData", "ec2:DescribeInstances", "ec2:DescribeSpotInstanceRequests")
        if self._sessions:
            yield "ssm:DescribeSessions"
