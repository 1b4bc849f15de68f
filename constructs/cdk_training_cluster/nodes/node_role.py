"""The instance role of the nodes: what Session Manager and Run Command need, and nothing of the account's own."""

from collections.abc import Sequence

from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk_training_cluster.core.acknowledgements import acknowledge
from cdk_training_cluster.core.conditions import in_this_region

_SESSION_MANAGER = (
    "ssm:UpdateInstanceInformation",
    "ssmmessages:CreateControlChannel",
    "ssmmessages:CreateDataChannel",
    "ssmmessages:OpenControlChannel",
    "ssmmessages:OpenDataChannel",
)

_RUN_COMMAND = (
    "ec2messages:AcknowledgeMessage",
    "ec2messages:DeleteMessage",
    "ec2messages:FailMessage",
    "ec2messages:GetEndpoint",
    "ec2messages:GetMessages",
    "ec2messages:SendReply",
)


def make_node_role(
    scope: Construct, *, path: str | None = None, services: Sequence[str] = ("ec2.amazonaws.com",)
) -> iam.Role:
    """Make the instance role of a cluster's nodes, with Session Manager's permissions.

    Args:
        scope: The cluster.
        path: The role's path, such as `/aws-pcs/`. Default: - `/`.
        services: The services that take the role. Default: - EC2.
    """
    principals = [iam.ServicePrincipal(service) for service in services]
    role = iam.Role(
        scope,
        "NodeRole",
        assumed_by=principals[0] if len(principals) == 1 else iam.CompositePrincipal(*principals),
        path=path,
        description="The nodes of a training cluster",
    )
    # Not AmazonSSMManagedInstanceCore, which lets every job on a node read the account's whole Parameter Store.
    # https://docs.aws.amazon.com/systems-manager/latest/userguide/getting-started-create-iam-instance-profile.html
    role.add_to_policy(
        iam.PolicyStatement(actions=list(_SESSION_MANAGER), resources=["*"], conditions=in_this_region())
    )
    acknowledge(
        role,
        "AwsSolutions-IAM5[Resource::*]",
        "Session Manager's, Auto Scaling's Describe and CloudWatch's PutMetricData actions know no resources; "
        "each is limited to the region, and the last to one namespace.",
    )
    return role


def allow_run_command(role: iam.Role) -> None:
    """Let nodes take commands.

    Older agents take them from here, newer ones where sessions come from.

    Args:
        role: The nodes' role.

    Source: https://docs.aws.amazon.com/systems-manager/latest/userguide/systems-manager-setting-up-messageAPIs.html
    """
    role.add_to_policy(iam.PolicyStatement(actions=list(_RUN_COMMAND), resources=["*"], conditions=in_this_region()))
