"""Tags of managed node groups, which stay as they are while a group runs."""

import jsii
from aws_cdk import AspectPriority, Aspects, IAspect
from aws_cdk import aws_eks_v2 as eks
from constructs import IConstruct

from cluster_contract.tags import CLUSTER_TAG, NODE_GROUP_TAG

_FIXED = frozenset({CLUSTER_TAG, NODE_GROUP_TAG, "Name"})
_ABOVE_ANY_PRIORITY = 2**31


@jsii.implements(IAspect)
class _OnlyFixedTags:
    """Leave off a managed node group each tag that a later deployment could change."""

    def visit(self, node: IConstruct) -> None:
        """Look at the tags of a resource, when all that CDK gives it are there.

        Args:
            node: A construct of the node group's tree.
        """
        if isinstance(node, eks.CfnNodegroup):
            for key in sorted(node.tags.tag_values().keys() - _FIXED):
                node.tags.remove_tag(key, _ABOVE_ANY_PRIORITY)


def keep_fixed_tags(group: eks.CfnNodegroup) -> None:
    """Give a managed node group the tags of the library alone; its nodes get theirs from the launch template.

    CloudFormation may send DesiredSize with a change of tags, as no document says that it does not, and it refuses to
    change tags and the launch template, which has the same tags, in one update. EKS hands tags of a node group on to
    no other resource, so that none is missing on a bill.

    Args:
        group: The node group.

    Sources: https://github.com/aws/aws-cdk/issues/16644 and
    https://docs.aws.amazon.com/eks/latest/userguide/eks-using-tags.html
    """
    # CDK gives resources their tags by aspects too, which run before this one.
    Aspects.of(group).add(_OnlyFixedTags(), priority=AspectPriority.READONLY)
