"""The one question of `make live` that needs a node: does an update of a managed node group lower its size?"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from aws_cdk import App, Environment, Stack, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks as eks
from aws_cdk import aws_iam as iam

from cdk_training_cluster.orchestrators.eks import EksSettings
from cdk_training_cluster.orchestrators.eks.rules import REFUSED_ZONES
from cdk_training_cluster_file import ClusterFile
from cluster_contract.tags import CLUSTER_TAG
from rehearsal.readback import Client, stack_resources

EKS = "eks"
"""The end of the stack's name."""

EKS_ASKS = "Does a change of labels or tags in the template end a node that was started beside the template?"

_NODE_TYPE = "t3.small"
_CONTROL_PLANE_ZONES = 2

# At list prices in us-east-1: https://aws.amazon.com/eks/pricing/, https://aws.amazon.com/ec2/pricing/on-demand/ and
# https://aws.amazon.com/vpc/pricing/
EKS_PRICES: Mapping[str, Decimal] = {
    "EKS control plane, at the price in us-east-1": Decimal("0.10"),
    f"one {_NODE_TYPE} with its address and volume, at the price in us-east-1": Decimal("0.03"),
}


@dataclass(frozen=True, kw_only=True)
class EksQuestion:
    """What the stack is like at one time.

    Attributes:
        zones: Two Availability Zones in which EKS has control planes.
        label: The value of the nodes' one label.
        tag: The value of the node group's one tag.
    """

    zones: tuple[str, str]
    label: str = "first"
    tag: str = "first"


def make_eks_stack(app: App, cluster: ClusterFile, question: EksQuestion) -> None:
    """Make the stack: a network with a way out, a control plane, and a node group with a desired size of 0.

    Args:
        app: The app.
        cluster: The cluster file.
        question: What the stack is like.

    Sources: https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html and
    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-eks-nodegroup.html
    """
    stack = Stack(
        app,
        f"{cluster.name}-{EKS}",
        description=EKS_ASKS,
        env=Environment(account=cluster.account, region=cluster.region),
    )
    public = ec2.SubnetConfiguration(name="Public", subnet_type=ec2.SubnetType.PUBLIC, cidr_mask=24)
    vpc = ec2.Vpc(
        stack,
        "Vpc",
        availability_zones=list(question.zones),
        nat_gateways=0,
        subnet_configuration=[public],
        restrict_default_security_group=False,
    )
    subnets = [subnet.subnet_id for subnet in vpc.public_subnets]
    control_plane = eks.CfnCluster(
        stack,
        "Cluster",
        version=EksSettings.kubernetes_version,
        role_arn=_role(stack, "ClusterRole", "eks", "AmazonEKSClusterPolicy").role_arn,
        access_config=eks.CfnCluster.AccessConfigProperty(authentication_mode="API"),
        resources_vpc_config=eks.CfnCluster.ResourcesVpcConfigProperty(subnet_ids=subnets),
    )
    nodes = eks.CfnNodegroup(
        stack,
        "NodeGroup",
        cluster_name=control_plane.ref,
        node_role=_role(
            stack,
            "NodeRole",
            "ec2",
            "AmazonEKSWorkerNodePolicy",
            "AmazonEKS_CNI_Policy",
            "AmazonEC2ContainerRegistryReadOnly",
        ).role_arn,
        subnets=subnets,
        instance_types=[_NODE_TYPE],
        scaling_config=eks.CfnNodegroup.ScalingConfigProperty(min_size=0, desired_size=0, max_size=1),
        labels={"live-check": question.label},
        tags={"live-check": question.tag},
    )
    nodes.node.add_dependency(vpc)
    Tags.of(stack).add(CLUSTER_TAG, cluster.name)


def _role(stack: Stack, id: str, service: str, *policies: str) -> iam.Role:
    return iam.Role(
        stack,
        id,
        assumed_by=iam.ServicePrincipal(f"{service}.amazonaws.com"),
        managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name(name) for name in policies],
    )


def start_node(client: Client, stack: str) -> None:
    """Set the desired size of the stack's node group to 1 beside the template, unless it is, and wait for EKS.

    Args:
        client: Makes clients.
        stack: The stack's name.
    """
    if desired_size(client, stack):
        return
    names = _names(client, stack)
    client("eks").update_nodegroup_config(**names, scalingConfig={"desiredSize": 1})
    client("eks").get_waiter("nodegroup_active").wait(**names)


def desired_size(client: Client, stack: str) -> int:
    """Return how many nodes the stack's node group should have.

    Args:
        client: Makes clients.
        stack: The stack's name.
    """
    return int(client("eks").describe_nodegroup(**_names(client, stack))["nodegroup"]["scalingConfig"]["desiredSize"])


def eks_zones(client: Client, zone: str) -> tuple[str, str]:
    """Return two zones for the control plane and its nodes.

    Args:
        client: Makes clients.
        zone: The zone of the check, which is taken where EKS can.

    Raises:
        ValueError: There are no two.
    """
    found = client("ec2").describe_availability_zones()["AvailabilityZones"]
    zones = sorted(
        (each["ZoneName"] for each in found if each["ZoneId"] not in REFUSED_ZONES),
        key=lambda name: (name != zone, name),
    )
    if len(zones) < _CONTROL_PLANE_ZONES:
        raise ValueError(
            f"--eks needs two Availability Zones in which EKS has control planes, got {', '.join(zones)}"
        )
    return zones[0], zones[1]


def _names(client: Client, stack: str) -> Mapping[str, str]:
    (found,) = (
        each["PhysicalResourceId"]
        for each in stack_resources(client, stack)
        if each["ResourceType"] == "AWS::EKS::Nodegroup"
    )
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-eks-nodegroup.html
    cluster, _, group = found.partition("/")
    return {"clusterName": cluster, "nodegroupName": group}
