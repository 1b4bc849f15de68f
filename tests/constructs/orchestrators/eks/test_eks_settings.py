"""What EKS refuses, and the sentence that says so before anything is made."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from aws_cdk import aws_ec2 as ec2

from cdk_training_cluster import (
    Capacity,
    ClusterNetwork,
    EksSettings,
    EksTrainingCluster,
    NodeGroup,
    SystemNodes,
    WarmPool,
)
from cdk_training_cluster.instance_types import instance_type_info
from cdk_training_cluster.orchestrators.eks.images import ami_type
from cdk_training_cluster.orchestrators.eks.rules import EKS_RULES
from synthesis import ZONE, new_stack

_SECOND = "us-east-1a"
_IMAGE = ec2.MachineImage.generic_linux({"us-east-1": "ami-0a1b2c3d4e5f67890"})


def _settings(**given: Any) -> Callable[[], object]:
    return lambda: EksSettings(**{"control_plane_zone": _SECOND, **given})


def _cluster(
    group: dict[str, Any] | None = None, *, zone: str = ZONE, cluster_name: str = "pod", **eks: Any
) -> Callable[[], object]:
    settings = {"control_plane_zone": _SECOND, **eks}
    nodes = {"name": "workers", "instance_types": ["p4de.24xlarge"], "count": 2, **(group or {})}
    return lambda: EksTrainingCluster(
        new_stack(),
        "Pod",
        cluster_name=cluster_name,
        availability_zone=zone,
        eks=EksSettings(**settings),
        node_groups=[NodeGroup(**nodes)],
    )


def _in_a_vpc_that_exists() -> object:
    stack = new_stack()
    vpc = ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id="vpc-0a1b2c3d", availability_zones=[ZONE])
    subnet = ec2.Subnet.from_subnet_attributes(stack, "Subnet", subnet_id="subnet-0a1b2c3d", availability_zone=ZONE)
    network = ClusterNetwork.from_subnet(stack, "Network", vpc=vpc, subnet=subnet)
    return EksTrainingCluster(
        stack,
        "Pod",
        network=network,
        eks=EksSettings(control_plane_zone=_SECOND),
        node_groups=[NodeGroup("workers", instance_types=["p4de.24xlarge"], count=2)],
    )


# The beginning of the sentence, and what is refused with it.
REFUSED: dict[str, Callable[[], object]] = {
    "kubernetes_version must be a minor version of Kubernetes from 1.32 on, such as '1.36', because EKS makes no "
    "older cluster, got '1.31'": _settings(kubernetes_version="1.31"),
    "release_version must be the release of an EKS image, such as '1.36.0-20260818', got 'latest'": _settings(
        release_version="latest"
    ),
    "release_version must be one of Kubernetes 1.36, the cluster's kubernetes_version, got '1.34.2-20260304'": (
        _settings(release_version="1.34.2-20260304")
    ),
    "control_plane_zone is required, and goes without control_plane_subnet_id": _settings(control_plane_zone=None),
    "control_plane_zone must be the name of an Availability Zone, such as 'us-east-1a', got 'a'": _settings(
        control_plane_zone="a"
    ),
    "public_access_cidrs must hold IPv4 ranges, such as '203.0.113.0/24', got 'office' in it": _settings(
        public_access_cidrs=["office"]
    ),
    "private_access_cidrs must hold IPv4 ranges, such as '10.8.0.0/16', got '10.8.0.1/16' in it": _settings(
        private_access_cidrs=["10.8.0.1/16"]
    ),
    "admins must be the ARN of an IAM role or user, such as": _settings(admins=["alice"]),
    "add_ons must hold vpc-cni, kube-proxy,": _settings(add_ons=["nvidia-device-plugin"]),
    "add_ons must hold no add-on of HyperPod, got 'amazon-sagemaker-hyperpod-taskgovernance'": _settings(
        add_ons=["amazon-sagemaker-hyperpod-taskgovernance"]
    ),
    "add_on_policies['external-dns'] must be the ARN of an IAM policy, such as": _settings(
        add_ons=["external-dns"], add_on_policies={"external-dns": ["route-53"]}
    ),
    "add_on_policies must hold add-ons of the cluster that call AWS, got 'kube-proxy': ": _settings(
        add_on_policies={"kube-proxy": []}
    ),
    "add_on_policies must hold add-ons of the cluster that call AWS, got 'external-dns': ": _settings(
        add_on_policies={"external-dns": []}
    ),
    "logs must hold api, audit, authenticator, controllerManager, scheduler, got 'kubelet' in it": _settings(
        logs=["kubelet"]
    ),
    "instance_type must be a type without accelerators, such as 'm7i.large', got 'p5.48xlarge'": lambda: SystemNodes(
        instance_type="p5.48xlarge"
    ),
    "control_plane_zone must be another zone of us-east-1 than the nodes' us-east-1b, got 'us-east-1b'": _cluster(
        control_plane_zone=ZONE
    ),
    "control_plane_zone must be another zone of us-east-1 than the nodes' us-east-1b, got 'us-west-2a'": _cluster(
        control_plane_zone="us-west-2a"
    ),
    "availability_zone must be an Availability Zone of the region, got 'us-east-1-dfw-2a'": _cluster(
        zone="us-east-1-dfw-2a"
    ),
    "cluster_name must be letters, digits, '-' and '_' and start with a letter or digit on EKS, got 'a.b'": _cluster(
        cluster_name="a.b"
    ),
    "control_plane_subnet_id is required in a VPC that exists": _in_a_vpc_that_exists,
    "node group 'workers': instance_types must have the same network interfaces and processor architecture": _cluster(
        {"instance_types": ["p5.48xlarge", "p5en.48xlarge"], "capacity": Capacity.spot()}
    ),
    "node group 'workers': max_price must be left out on EKS, got 3": _cluster(
        {"instance_types": ["g5.48xlarge"], "capacity": Capacity.spot(max_price=3)}
    ),
    "node group 'workers': count must be at most 450 on EKS, got 451": _cluster({"count": 451}),
    "node group 'workers': machine_image is required for g7.48xlarge: no image of EKS has its driver": _cluster(
        {"instance_types": ["g7.48xlarge"]}
    ),
    "kubernetes_version must be 1.33 or newer for p6e-gb200.36xlarge, got '1.32'": _cluster(
        {
            "instance_types": ["p6e-gb200.36xlarge"],
            "count": 9,
            "capacity": Capacity.capacity_block("cr-0a1b2c3d4e5f67890"),
        },
        kubernetes_version="1.32",
    ),
    "node group 'workers': warm_pool must be left out beside machine_image on EKS, got both": _cluster(
        {"machine_image": _IMAGE, "warm_pool": WarmPool(size=1)}
    ),
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_what_eks_refuses_is_said_in_one_sentence(sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)) as refusal:
        REFUSED[sentence]()
    assert str(refusal.value).count("\n") == 0


def test_every_rule_names_a_page_of_eks_s() -> None:
    assert all(rule.source.startswith("https://docs.aws.amazon.com/eks/") for rule in EKS_RULES)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("p5.48xlarge", "AL2023_x86_64_NVIDIA"),
        ("g5g.16xlarge", "AL2023_ARM_64_NVIDIA"),
        ("trn2.48xlarge", "AL2023_x86_64_NEURON"),
        ("c7gn.16xlarge", "AL2023_ARM_64_STANDARD"),
        ("g7e.48xlarge", "AL2023_x86_64_NVIDIA"),
        ("g7.48xlarge", None),
        ("dl1.24xlarge", None),
    ],
)
def test_the_image_follows_from_accelerators_and_architecture(name: str, expected: str | None) -> None:
    assert ami_type(instance_type_info(name)) == expected
