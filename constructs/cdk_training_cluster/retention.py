"""What stays when a stack goes."""

from aws_cdk import CfnDeletionPolicy, CfnResource, RemovalPolicy


def keep(resource: CfnResource) -> None:
    """Keep a resource when it leaves its stack, and its predecessor when it is replaced.

    Args:
        resource: What holds data, or what that lives in.
    """
    resource.apply_removal_policy(RemovalPolicy.RETAIN)


def keep_unless_replaced(resource: CfnResource) -> None:
    """Keep a resource when it leaves its stack, but not its predecessor when it is replaced.

    For rules, routes and associations: beside its successor AWS would refuse the old one as a duplicate.

    Args:
        resource: What belongs to something that is kept.
    """
    resource.cfn_options.deletion_policy = CfnDeletionPolicy.RETAIN
    resource.cfn_options.update_replace_policy = CfnDeletionPolicy.DELETE
