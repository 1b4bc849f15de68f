"""HyperPod on EKS of the local AWS: what does not fit the EKS cluster is refused, and so is who may not touch it."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from hyperpod_scene import TASK_GOVERNANCE, eks_cluster
from local_aws import LocalAws
from local_aws.defaults import access_key_of
from local_aws_scene import Stacks
from wrong_hyperpod import EKS_GROUP, EKS_NAME, eks_template, governed_template

ARN = f"arn:aws:eks:us-east-1:123456789012:cluster/{EKS_NAME}"


def _reason(stacks: Stacks, template: Any) -> str:
    stack = stacks.create(template)
    assert stacks.status(stack) == "ROLLBACK_COMPLETE"
    return " ".join(stacks.reasons(stack).values())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"status": "CREATING"}, f"The EKS cluster {ARN} must be ACTIVE, it is CREATING"),
        ({"authentication_mode": "CONFIG_MAP"}, "must be one of API, API_AND_CONFIG_MAP, it is CONFIG_MAP"),
        ({"version": "1.36"}, f"Kubernetes version 1.36 of the EKS cluster {ARN} is not supported"),
    ],
)
def test_an_eks_cluster_that_hyperpod_does_not_take(
    aws: LocalAws, stacks: Stacks, settings: dict[str, str], said: str
) -> None:
    with eks_cluster(aws, stacks, **settings):
        assert said in _reason(stacks, eks_template())


def test_an_eks_cluster_that_is_not_there(stacks: Stacks) -> None:
    assert f"The EKS cluster {ARN} was not found" in _reason(stacks, eks_template())


@pytest.fixture
def eks(aws: LocalAws, stacks: Stacks) -> Iterator[None]:
    """An EKS cluster that HyperPod takes, without add-ons."""
    with eks_cluster(aws, stacks):
        yield


@pytest.fixture
def another_network(aws: LocalAws) -> Iterator[str]:
    """A subnet of another VPC."""
    ec2 = aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.0.0/20", AvailabilityZone="us-east-1b")["Subnet"][
        "SubnetId"
    ]
    yield subnet
    ec2.delete_subnet(SubnetId=subnet)
    ec2.delete_vpc(VpcId=vpc)


@pytest.mark.usefixtures("eks")
def test_a_cluster_in_another_vpc(stacks: Stacks, another_network: str) -> None:
    template = eks_template()
    template["Resources"]["HyperPod"]["Properties"]["VpcConfig"]["Subnets"] = [another_network]
    assert f"Subnet {another_network} is in vpc-" in _reason(stacks, template)


@pytest.mark.usefixtures("eks")
def test_nodes_outside_the_cluster_security_group(stacks: Stacks) -> None:
    template = eks_template()
    template["Resources"]["HyperPod"]["Properties"]["VpcConfig"]["SecurityGroupIds"].remove(EKS_GROUP)
    assert f"SecurityGroupIds has not its cluster security group {EKS_GROUP}" in _reason(stacks, template)


@pytest.mark.usefixtures("eks")
def test_a_public_subnet(aws: LocalAws, stacks: Stacks) -> None:
    own, ec2 = stacks.physical_ids("network"), aws.client("ec2")
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=own["Vpc"])
    table = ec2.create_route_table(VpcId=own["Vpc"])["RouteTable"]["RouteTableId"]
    ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
    link = ec2.associate_route_table(RouteTableId=table, SubnetId=own["Subnet"])["AssociationId"]
    assert "must be private for HyperPod with Amazon EKS" in _reason(stacks, eks_template())
    ec2.disassociate_route_table(AssociationId=link)
    ec2.delete_route_table(RouteTableId=table)
    ec2.detach_internet_gateway(InternetGatewayId=gateway, VpcId=own["Vpc"])
    ec2.delete_internet_gateway(InternetGatewayId=gateway)


@pytest.mark.usefixtures("eks")
def test_task_governance_without_its_add_on(stacks: Stacks) -> None:
    assert f"has no active add-on {TASK_GOVERNANCE}" in _reason(stacks, governed_template())


_NEEDED = {
    "eks:DescribeCluster": ARN,
    "eks:CreateAccessEntry": ARN,
    "eks:DescribeAccessEntry": f"{ARN.replace(':cluster/', ':access-entry/')}/*",
    "eks:DeleteAccessEntry": f"{ARN.replace(':cluster/', ':access-entry/')}/*",
    "eks:AssociateAccessPolicy": f"{ARN.replace(':cluster/', ':access-entry/')}/*",
}


@pytest.fixture
def as_role(aws: LocalAws) -> Iterator[Callable[[dict[str, str]], Any]]:
    """Returns a client of SageMaker with the credentials of a function that may do some actions on some resources."""
    iam = aws.client("iam")
    trust = json.dumps({"Version": "2012-10-17", "Statement": []})
    role = iam.create_role(RoleName="scaler", AssumeRolePolicyDocument=trust)["Role"]["Arn"]

    def client(allowed: dict[str, str]) -> Any:
        statements = [{"Effect": "Allow", "Action": each, "Resource": arn} for each, arn in allowed.items()]
        document = json.dumps({"Version": "2012-10-17", "Statement": statements})
        iam.put_role_policy(RoleName="scaler", PolicyName="scales", PolicyDocument=document)
        return boto3.client(
            "sagemaker",
            endpoint_url=aws.endpoint_url,
            region_name=aws.region,
            aws_access_key_id=access_key_of(role),
            aws_secret_access_key="rehearsal-only",  # noqa: S106 - opens nothing
        )

    yield client
    iam.delete_role_policy(RoleName="scaler", PolicyName="scales")
    iam.delete_role(RoleName="scaler")


@pytest.mark.usefixtures("eks")
@pytest.mark.parametrize("missing", [*_NEEDED, None])
def test_who_sets_a_size_needs_the_permissions_of_eks(
    stacks: Stacks, as_role: Callable[[dict[str, str]], Any], missing: str | None
) -> None:
    stack = stacks.create(eks_template())
    assert stacks.status(stack) == "CREATE_COMPLETE", stacks.reasons(stack)
    sagemaker = as_role({action: arn for action, arn in _NEEDED.items() if action != missing})
    (described,) = sagemaker.describe_cluster(ClusterName="llama")["InstanceGroups"]
    group = {key: value for key, value in described.items() if key not in ("CurrentCount", "TargetCount", "Status")}
    request = {"ClusterName": "llama", "InstanceGroups": [{**group, "InstanceCount": 1}]}
    if missing is None:
        sagemaker.update_cluster(**request)
        return
    with pytest.raises(ClientError, match=f"is not authorized to perform: {missing}"):
        sagemaker.update_cluster(**request)
