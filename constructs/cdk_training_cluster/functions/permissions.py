"""What a function of one cluster may do: read what it needs, and write on what carries its cluster's tag only."""

from collections.abc import Mapping, Sequence

from aws_cdk import aws_iam as iam

from cdk_training_cluster.core.acknowledgements import acknowledge
from cdk_training_cluster.core.conditions import HERE, in_this_region

AUTO_SCALING_GROUPS = "autoscaling:{account}:autoScalingGroup:*:autoScalingGroupName/*"
INSTANCES = "ec2:{account}:instance/*"
RESERVATIONS = "ec2:{account}:capacity-reservation/*"
SPOT_FLEETS = "ec2:{account}:spot-fleet-request/*"

_ACCOUNT_AS_NAG_SAYS = "<AWS::Region>:<AWS::AccountId>"


class ClusterPermissions:
    """Give a function's role permissions that end at its cluster."""

    def __init__(self, role: iam.Role, *, cluster_name: str, tag_key: str, own_tags: str) -> None:
        """Give nothing yet.

        Args:
            role: The function's role.
            cluster_name: The value of the tag on what the function may write on.
            tag_key: The tag's key.
            own_tags: The keys of the tags that the function itself writes, with `*` for any text.
        """
        self._role, self._own_tags = role, own_tags
        self._of_this_cluster = {f"aws:ResourceTag/{tag_key}": cluster_name}

    def read(self, actions: Sequence[str]) -> None:
        """Allow actions that take no resource.

        Args:
            actions: The actions; none changes anything.
        """
        self._role.add_to_policy(
            iam.PolicyStatement(actions=list(actions), resources=["*"], conditions=in_this_region())
        )
        reason = "Reading actions, which take no resource and change nothing, in one region."
        acknowledge(self._role, "AwsSolutions-IAM5[Resource::*]", reason)

    def write(
        self,
        actions: Sequence[str],
        resources: str,
        *,
        own_tags_only: bool = False,
        without_tags: Sequence[str] = (),
        tag_suffix: str = "",
        tagged: Mapping[str, object] | None = None,
    ) -> None:
        """Allow actions on resources that carry the cluster's tag.

        Args:
            actions: The actions.
            resources: What is written on: one of this module's constants.
            own_tags_only: Whether the actions write tags, of which only the function's own may be written.
            without_tags: The keys of tags that no resource has which is written on.
            tag_suffix: What follows the keys of the function's own tags. Default: - nothing.
            tagged: The tags that the resources carry. Default: - the cluster's.
        """
        conditions: dict[str, dict[str, object]] = {"StringEquals": dict(self._of_this_cluster)}
        if tagged is not None:
            conditions["StringEquals"] = {f"aws:ResourceTag/{key}": value for key, value in tagged.items()}
        if own_tags_only:
            # All of no keys are the function's own, and DeleteTags without a key takes every tag away.
            # https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-single-vs-multi-valued-context-keys.html
            conditions["ForAllValues:StringLike"] = {"aws:TagKeys": [f"{self._own_tags}{tag_suffix}"]}
            conditions["Null"] = {"aws:TagKeys": "false"}
        if without_tags:
            absent = {f"aws:ResourceTag/{key}": "true" for key in without_tags}
            conditions["Null"] = {**conditions.get("Null", {}), **absent}
        account = f"{HERE.region}:{HERE.account_id}"
        arn = f"arn:{HERE.partition}:{resources.format(account=account)}"
        self._role.add_to_policy(iam.PolicyStatement(actions=list(actions), resources=[arn], conditions=conditions))
        nag_says = f"arn:<AWS::Partition>:{resources.format(account=_ACCOUNT_AS_NAG_SAYS)}"
        acknowledge(
            self._role,
            f"AwsSolutions-IAM5[Resource::{nag_says}]",
            "Names and ids are made at deployment or launch; the condition on the cluster's tag limits the writes.",
        )
