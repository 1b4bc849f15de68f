"""What the health function may do, and what nodes may report and complete."""

from collections.abc import Collection
from typing import cast

from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct

from cdk_training_cluster.core.acknowledgements import acknowledge
from cdk_training_cluster.core.conditions import HERE
from cdk_training_cluster.functions import (
    OWNER_ACTIONS,
    ClusterPermissions,
    OwnedGroup,
    OwnerPermissions,
)
from cluster_contract.health import REPORT_DETAIL_TYPE, report_source
from cluster_contract.tags import CLUSTER_TAG, FAULTS_TAG, VERIFIED_TAG


class HealthPermissions:
    """The permissions that the repair of some node groups needs, and no more.

    Sources: https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2autoscaling.html and
    https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html
    """

    def __init__(self, cluster_name: str, groups: Collection[OwnedGroup], *, act: bool) -> None:
        """Find out what is needed.

        Args:
            cluster_name: The value of the tag on what the function may change.
            groups: The node groups.
            act: Whether it repairs nodes; if not, it only ends the repairs that it has begun.
        """
        self._cluster_name = cluster_name
        self._owners = OwnerPermissions(groups)
        self._kinds = sorted({group.owner_kind for group in groups})
        self._act = act

    def grant(self, role: iam.Role) -> None:
        """Give the permissions to the function's role."""
        permissions = ClusterPermissions(
            role, cluster_name=self._cluster_name, tag_key=CLUSTER_TAG, own_tags=VERIFIED_TAG
        )
        permissions.read(sorted({*self._owners.reads(), "ec2:DescribeInstanceStatus", "ec2:DescribeInstances"}))
        changes: dict[str, set[str]] = {}
        for kind in self._kinds:
            owner = OWNER_ACTIONS[kind]
            for resources, actions in (owner.repairs if self._act else owner.repair_ends).items():
                changes.setdefault(resources, set()).update(actions)
        for resources, allowed in changes.items():
            permissions.write(sorted(allowed), resources)


def let_nodes_report(nodes: iam.IPrincipal, cluster_name: str) -> None:
    """Let nodes send their reports in their own name alone, and write what they found into a tag of their own.

    The session of an instance's role has the instance's id for its name, which `aws:userid` holds in every request.

    Args:
        nodes: Their role.
        cluster_name: The cluster's name.

    Sources: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_variables.html, https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-use-conditions.html,
    https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html and
    https://docs.aws.amazon.com/aws-managed-policy/latest/reference/AWSEC2VssSnapshotPolicy.html, in which AWS itself
    lets an instance act on itself alone by this condition. A variable alone is no resource: IAM takes an ARN or `*`,
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_resource.html
    """
    source = report_source(cluster_name, "${aws:userid}")
    own = {"events:source": source, "events:detail-type": REPORT_DETAIL_TYPE}
    nodes.add_to_principal_policy(
        iam.PolicyStatement(
            actions=["events:PutEvents"],
            resources=[HERE.arn("events", "event-bus/default")],
            conditions={"StringEquals": own},
        )
    )
    nodes.add_to_principal_policy(
        iam.PolicyStatement(
            actions=["ec2:CreateTags"],
            resources=[HERE.arn("ec2", "instance/*")],
            conditions={
                "ArnEquals": {"ec2:SourceInstanceARN": HERE.arn("ec2", "instance/${ec2:InstanceID}")},
                "ForAllValues:StringEquals": {"aws:TagKeys": [FAULTS_TAG, VERIFIED_TAG]},
                "Null": {"aws:TagKeys": "false"},
            },
        )
    )
    # An imported role is a construct too, though none of this language's class.
    if Construct.is_construct(nodes):
        acknowledge(
            cast("IConstruct", nodes),
            "AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:ec2:<AWS::Region>:<AWS::AccountId>:instance/*]",
            "Ids are made at launch; the condition lets a node write on itself only, and one tag only.",
        )
