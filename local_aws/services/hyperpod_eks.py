"""What SageMaker refuses of a HyperPod cluster because of its EKS cluster.

AWS documents these requirements, and not the words in which a request is refused. A cluster whose nodes could not
join is refused here when it is created.

Sources: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-prerequisites.html (VPC, versions and
authentication modes) and
https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-operate-console-ui-governance-setup.html
(the add-on of task governance)
"""

from collections.abc import Iterator, Mapping
from typing import Any

from moto.ec2.models import ec2_backends
from moto.eks.models import eks_backends

from local_aws.refusal import Refusal
from local_aws.services.eks_kept import EksCluster

TASK_GOVERNANCE = "amazon-sagemaker-hyperpod-taskgovernance"
"""The add-on that carries out a cluster policy."""

# What the page lists. EKS itself has ended the older ones:
# https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html
_VERSIONS = tuple(f"1.{minor}" for minor in range(28, 35))
_MODES = ("API", "API_AND_CONFIG_MAP")

_Place = tuple[str, str]


def check_eks(place: _Place, given: Mapping[str, Any]) -> None:
    """Refuse a HyperPod cluster that does not fit its EKS cluster.

    Args:
        place: The account and the Region.
        given: The request, or a cluster after an update.
    """
    arn = given.get("Orchestrator", {}).get("Eks", {}).get("ClusterArn")
    if arn is None:
        return
    for problem in _problems(place, _eks_cluster(place, arn).described, given):
        raise Refusal("ValidationException", problem)


def check_governance(place: _Place, spec: Mapping[str, Any]) -> None:
    """Refuse a cluster policy whose add-on is not active.

    Args:
        place: The account and the Region.
        spec: The HyperPod cluster.
    """
    arn = spec.get("Orchestrator", {}).get("Eks", {}).get("ClusterArn")
    if arn is None:
        raise Refusal("ValidationException", "Task governance is supported for clusters with Amazon EKS only")
    add_on = _eks_cluster(place, arn).addons.get(TASK_GOVERNANCE, {})
    if add_on.get("status") != "ACTIVE":
        raise Refusal("ValidationException", f"The EKS cluster {arn} has no active add-on {TASK_GOVERNANCE}")


def _eks_cluster(place: _Place, arn: str) -> EksCluster:
    account, region = place
    kept: Mapping[str, EksCluster] = vars(eks_backends[account][region]).get("kept_clusters", {})
    for cluster in kept.values():
        if cluster.described["arn"] == arn:
            return cluster
    raise Refusal("ResourceNotFound", f"The EKS cluster {arn} was not found")


def _problems(place: _Place, eks: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[str]:
    arn, network = eks["arn"], eks["resourcesVpcConfig"]
    if eks["status"] != "ACTIVE":
        yield f"The EKS cluster {arn} must be ACTIVE, it is {eks['status']}"
    mode = (eks.get("accessConfig") or {}).get("authenticationMode", "CONFIG_MAP")
    if mode not in _MODES:
        yield f"The authentication mode of the EKS cluster {arn} must be one of {', '.join(_MODES)}, it is {mode}"
    if eks["version"] not in _VERSIONS:
        yield f"Kubernetes version {eks['version']} of the EKS cluster {arn} is not supported"
    configs = [given.get("VpcConfig"), *(each.get("OverrideVpcConfig") for each in given["InstanceGroups"])]
    if not configs[0]:
        yield "VpcConfig is required with Amazon EKS"
    for config in (each for each in configs if each):
        for subnet in config["Subnets"]:
            yield from _subnet_problems(place, subnet, network["vpcId"])
        if network["clusterSecurityGroupId"] not in config["SecurityGroupIds"]:
            # The API server's interfaces, the kubelet's port and webhooks are open to members of this group alone:
            # https://docs.aws.amazon.com/eks/latest/userguide/sec-group-reqs.html
            yield (
                f"Nodes cannot join the EKS cluster {arn}: SecurityGroupIds has not its cluster security group "
                f"{network['clusterSecurityGroupId']}"
            )


def _subnet_problems(place: _Place, subnet_id: str, vpc_id: str) -> Iterator[str]:
    account, region = place
    ec2 = ec2_backends[account][region]
    subnet = ec2.get_subnet(subnet_id)
    if subnet.vpc_id != vpc_id:
        yield f"Subnet {subnet_id} is in {subnet.vpc_id}, and the EKS cluster in {vpc_id}"
    tables = [table for table in ec2.route_tables.values() if table.vpc_id == subnet.vpc_id]
    own = [table for table in tables if any(each.get("SubnetId") == subnet_id for each in table.associations)]
    for table in own or [table for table in tables if table.main_association_id]:
        if any(str(getattr(route.gateway, "id", "")).startswith("igw-") for route in table.routes):
            yield f"Subnet {subnet_id} must be private for HyperPod with Amazon EKS"
