"""What HyperPod's nodes need of AWS beside what other nodes need."""

from typing import Final

from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk_training_cluster.core.acknowledgements import acknowledge
from cdk_training_cluster.core.conditions import HERE, in_this_region
from cdk_training_cluster.nodes.node_role import make_node_role
from cdk_training_cluster.orchestrators.hyperpod.settings import HyperPodOrchestration
from cluster_contract.tags import CLUSTER_TAG

_POLICY: Final = "AmazonSageMakerClusterInstanceRolePolicy"

# For a cluster in a network of the user's, and for pods.
# https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-prerequisites-iam.html
_NETWORK: Final = (
    "ec2:CreateNetworkInterface",
    "ec2:CreateNetworkInterfacePermission",
    "ec2:DeleteNetworkInterface",
    "ec2:DeleteNetworkInterfacePermission",
    "ec2:DescribeDhcpOptions",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcs",
    "ec2:DetachNetworkInterface",
)
_PODS: Final = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:AttachNetworkInterface",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances",
    "ec2:DescribeTags",
    "ec2:ModifyNetworkInterfaceAttribute",
    "ec2:UnassignPrivateIpAddresses",
    "ecr:BatchCheckLayerAvailability",
    "ecr:BatchGetImage",
    "ecr:GetAuthorizationToken",
    "ecr:GetDownloadUrlForLayer",
    "eks-auth:AssumeRoleForPodIdentity",
)


def make_execution_role(scope: Construct, orchestration: HyperPodOrchestration, *, cluster_name: str) -> iam.Role:
    """Make the role of a HyperPod cluster's nodes.

    Args:
        scope: The cluster.
        orchestration: What runs jobs.
        cluster_name: The value of the tag on the cluster.
    """
    role = make_node_role(scope, services=["sagemaker.amazonaws.com"])
    role.add_managed_policy(iam.ManagedPolicy.from_aws_managed_policy_name(_POLICY))
    acknowledge(
        role,
        f"AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{_POLICY}]",
        "HyperPod's own policy, which AWS requires and extends as the service needs more.",
    )
    pods = _PODS if orchestration is HyperPodOrchestration.EKS else ()
    role.add_to_policy(
        iam.PolicyStatement(actions=sorted((*_NETWORK, *pods)), resources=["*"], conditions=in_this_region())
    )
    if pods:
        _attach_interfaces(role, cluster_name)
    interfaces = HERE.arn("ec2", "network-interface/*")
    role.add_to_policy(iam.PolicyStatement(actions=["ec2:CreateTags"], resources=[interfaces]))
    acknowledge(
        role,
        "AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:ec2:<AWS::Region>:<AWS::AccountId>:network-interface/*]",
        "HyperPod tags the network interfaces that it makes for nodes, whose ids are not known beforehand.",
    )
    return role


def _attach_interfaces(role: iam.Role, cluster_name: str) -> None:
    """Let nodes of this cluster get more network interfaces: one has addresses for few pods.

    https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_AttachClusterNodeNetworkInterface.html
    """
    action = "sagemaker:AttachClusterNodeNetworkInterface"
    of_this_cluster = {"StringEquals": {f"aws:ResourceTag/{CLUSTER_TAG}": cluster_name}}
    resources = [HERE.arn("sagemaker", "cluster/*")]
    role.add_to_policy(iam.PolicyStatement(actions=[action], resources=resources, conditions=of_this_cluster))
    acknowledge(
        role,
        "AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:sagemaker:<AWS::Region>:<AWS::AccountId>:cluster/*]",
        "The cluster is made with this role, and its id is not known before: the condition is on its tag.",
    )
