"""Whether HyperPod's nodes can join their EKS cluster: its state, its network and the add-ons that it needs."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from cdk_training_cluster.orchestrators.eks.add_ons import POD_IDENTITY
from cdk_training_cluster.orchestrators.hyperpod.settings import (
    AUTHENTICATION_MODES,
    KUBERNETES_VERSIONS,
    TASK_GOVERNANCE,
)
from cdk_training_cluster_cli.prepare.preflight.checks import Aws, Check, Verdict, failed, found, passed, unknown
from cdk_training_cluster_cli.prepare.preflight.needs import Needs
from cdk_training_cluster_file.model import NetworkSettings
from cdk_training_cluster_file.orchestrators.hyperpod import HyperPodSettings

_REQUIREMENTS = "https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-prerequisites.html"


def judge_eks_cluster(
    wanted: HyperPodSettings, network: NetworkSettings, region: str, cluster: Mapping[str, Any] | None
) -> Verdict:
    """Say whether HyperPod's nodes can join an EKS cluster.

    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-prerequisites.html

    Args:
        wanted: What the cluster file says of HyperPod.
        network: What it says of the network.
        region: The cluster's region.
        cluster: What EKS says of the cluster. None: there is none.
    """
    name = str(wanted.eks_cluster_arn).rpartition("/")[2]
    if cluster is None:
        return failed(f"there is no EKS cluster {name} in {region}", "correct eks_cluster_arn, or check AWS_PROFILE")
    problems = [*_state_problems(name, region, cluster), *_place_problems(wanted, network, cluster)]
    if problems:
        return failed("; ".join(said for said, _ in problems), "; ".join(mend for _, mend in problems))
    version = str(cluster["version"])
    if _parts(version) > _parts(KUBERNETES_VERSIONS[1]):
        said = f"{name} has Kubernetes {version}, newer than the {KUBERNETES_VERSIONS[1]} that this version knows"
        return unknown(said, f"look whether HyperPod supports it: {_REQUIREMENTS}")
    return passed(f"{name} is ACTIVE with Kubernetes {version}, in {network.vpc_id}")


# What does not work without an add-on, and what can be done before it is there.
# https://docs.aws.amazon.com/eks/latest/userguide/pod-id-agent-setup.html
_NEEDS: Mapping[str, tuple[str, str]] = {
    POD_IDENTITY: ("pods of jobs get no credentials of the job role", ""),
    TASK_GOVERNANCE: (
        "priority_classes cannot be deployed",
        "leave priority_classes out of the first deployment, then: ",
    ),
}


def judge_add_on(name: str, cluster: str, region: str, add_on: Mapping[str, Any] | None) -> Verdict:
    """Say whether an add-on is there that HyperPod's nodes or their jobs need.

    https://docs.aws.amazon.com/eks/latest/APIReference/API_Addon.html

    Args:
        name: The add-on.
        cluster: The EKS cluster.
        region: Its region.
        add_on: What EKS says of the add-on. None: it is not installed.
    """
    names = f"--region {region} --cluster-name {cluster} --addon-name {name}"
    lacks, first = _NEEDS[name]
    if add_on is None:
        return failed(
            f"{cluster} has no add-on {name}, without which {lacks}", f"{first}aws eks create-addon {names}"
        )
    if add_on["status"] == "ACTIVE":
        return passed(f"the add-on {name} of {cluster} is ACTIVE")
    return failed(
        f"the add-on {name} of {cluster} is {add_on['status']}: until it is ACTIVE, {lacks}",
        f"look at it: aws eks describe-addon {names}",
    )


def judge_private(subnet: str, tables: Sequence[Mapping[str, Any]]) -> Verdict:
    """Say whether a subnet is private, as HyperPod demands.

    https://docs.aws.amazon.com/vpc/latest/userguide/configure-subnets.html#subnet-types

    Args:
        subnet: The subnet's id.
        tables: What EC2 says of the route tables of its VPC.
    """
    table = table_of(subnet, tables)
    if table is None:
        return unknown(f"EC2 shows no route table of {subnet}", "check network.vpc_id and AWS_PROFILE")
    if any(str(route.get("GatewayId", "")).startswith("igw-") for route in table["Routes"]):
        return failed(
            f"{subnet} is public: {table['RouteTableId']} leads to an internet gateway",
            "name a private subnet, with a route to a NAT gateway",
        )
    return passed(f"{subnet} is private")


def table_of(subnet: str, tables: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the route table of a subnet: its own, or else the main one of the VPC. None: EC2 shows neither.

    Args:
        subnet: The subnet's id.
        tables: What EC2 says of the route tables of its VPC.
    """
    links = [(table, link) for table in tables for link in table["Associations"]]
    own = [table for table, link in links if link.get("SubnetId") == subnet]
    return next(iter(own or [table for table, link in links if link.get("Main")]), None)


def hyperpod_checks(needs: Needs) -> Iterator[Check]:
    """Yield the checks of a HyperPod cluster in a network that exists.

    Args:
        needs: What the cluster needs.
    """
    hyperpod, network = needs.cluster.orchestrator.hyperpod, needs.cluster.network
    if hyperpod is None or network is None:
        return
    yield Check(
        name=f"private subnet {network.subnet_id}",
        ask=partial(route_tables, network.vpc_id),
        judge=partial(judge_private, network.subnet_id),
    )
    if hyperpod.eks_cluster_arn is None:
        return
    name = hyperpod.eks_cluster_arn.rpartition("/")[2]
    yield Check(
        name=f"EKS cluster {name}",
        ask=partial(_eks_cluster, name),
        judge=partial(judge_eks_cluster, hyperpod, network, needs.region),
    )
    for add_on in (POD_IDENTITY, *([TASK_GOVERNANCE] if hyperpod.priority_classes else [])):
        yield Check(
            name=f"add-on {add_on}",
            ask=partial(_add_on, name, add_on),
            judge=partial(judge_add_on, add_on, name, needs.region),
        )


def _state_problems(name: str, region: str, cluster: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if cluster["status"] != "ACTIVE":
        yield (
            f"{name} is {cluster['status']}, not ACTIVE",
            f"wait: aws eks wait cluster-active --region {region} --name {name}",
        )
    mode = cluster.get("accessConfig", {}).get("authenticationMode", "CONFIG_MAP")
    if mode not in AUTHENTICATION_MODES:
        yield (
            f"{name} has the authentication mode {mode}, and HyperPod takes {' or '.join(AUTHENTICATION_MODES)}",
            f"aws eks update-cluster-config --region {region} --name {name} --access-config "
            f"authenticationMode={AUTHENTICATION_MODES[-1]}",
        )
    oldest, newest = KUBERNETES_VERSIONS
    if _parts(cluster["version"]) < _parts(oldest):
        yield (
            f"{name} has Kubernetes {cluster['version']}, and HyperPod takes {oldest} to {newest}",
            f"aws eks update-cluster-version --region {region} --name {name}, one minor version at a time",
        )


def _place_problems(
    wanted: HyperPodSettings, network: NetworkSettings, cluster: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    own = cluster["resourcesVpcConfig"]
    if cluster["arn"] != wanted.eks_cluster_arn:
        yield f"its ARN is {cluster['arn']}, not {wanted.eks_cluster_arn}", f"write eks_cluster_arn: {cluster['arn']}"
    if own["vpcId"] != network.vpc_id:
        yield (
            f"it is in {own['vpcId']}, and the nodes are in {network.vpc_id}",
            f"write vpc_id: {own['vpcId']}, with a private subnet of it",
        )
    group = own["clusterSecurityGroupId"]
    if group != wanted.eks_security_group_id:
        yield (
            f"its cluster security group is {group}, not {wanted.eks_security_group_id}",
            f"write eks_security_group_id: {group}",
        )


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _eks_cluster(name: str, aws: Aws) -> Mapping[str, Any] | None:
    # https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeCluster.html
    said = found(partial(aws.client("eks").describe_cluster, name=name), "ResourceNotFoundException")
    return None if said is None else said["cluster"]


def _add_on(cluster: str, name: str, aws: Aws) -> Mapping[str, Any] | None:
    # https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeAddon.html
    ask = partial(aws.client("eks").describe_addon, clusterName=cluster, addonName=name)
    said = found(ask, "ResourceNotFoundException")
    return None if said is None else said["addon"]


def route_tables(vpc: str, aws: Aws) -> Sequence[Mapping[str, Any]]:
    """Return what EC2 says of the route tables of a VPC.

    Args:
        vpc: The VPC's id.
        aws: The account.
    """
    # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeRouteTables.html
    pages = aws.client("ec2").get_paginator("describe_route_tables")
    return list(pages.paginate(Filters=[{"Name": "vpc-id", "Values": [vpc]}]).search("RouteTables[]"))
