"""What stays when a stack goes.

A stack that could not be created takes everything with it again: what it kept would hold no data, and would bill.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-attribute-deletionpolicy.html
"""

from aws_cdk import CfnResource, RemovalPolicy


def keep(resource: CfnResource) -> None:
    """Keep a resource when it leaves its stack, and its predecessor when it is replaced.

    Args:
        resource: What holds data, or what that lives in.
    """
    resource.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)


def keep_unless_replaced(resource: CfnResource) -> None:
    """Keep a resource when it leaves its stack, but not its predecessor when it is replaced.

    For rules, routes and associations: beside its successor AWS would refuse the old one as a duplicate.

    Args:
        resource: What belongs to something that is kept.
    """
    keep(resource)
    resource.add_override("UpdateReplacePolicy", "Delete")
