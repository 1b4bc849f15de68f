"""The rules about a HyperPod cluster beside its node groups.

What HyperPod excludes of ways to buy, of placement and of warm pools stands in the legality table.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from aws_cdk import aws_ec2 as ec2

from cdk_training_cluster.nodes.rules.context import ClusterContext
from cdk_training_cluster.orchestrators.hyperpod.instance_types import is_sold
from cdk_training_cluster.orchestrators.hyperpod.settings import (
    TASK_GOVERNANCE,
    DeepHealthCheck,
    HyperPodOrchestration,
    HyperPodSettings,
)
from cdk_training_cluster.validation.checks import is_unknown
from cdk_training_cluster.validation.rule import Found, Level, Rules

CONTROLLER: Final = "controller"
LOGIN: Final = "login"
"""The names of the instance groups beside the node groups, on Slurm."""

_API = "https://docs.aws.amazon.com/sagemaker/latest/APIReference"
_GUIDE = "https://docs.aws.amazon.com/sagemaker/latest/dg"
_GROUP = f"{_API}/API_ClusterInstanceGroupSpecification.html"
_GOVERNANCE = f"{_GUIDE}/sagemaker-hyperpod-eks-operate-console-ui-governance-setup.html"
_SLURM = f"{_GUIDE}/sagemaker-hyperpod-ref.html"

_ALL_NODES = "dev"
_MAX_GROUPS = 100
_NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
_PRIORITY = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9]){0,39}?")
_MAX_PRIORITIES = 10


@dataclass(frozen=True, kw_only=True)
class HyperPodContext:
    """What the rules about HyperPod use.

    Attributes:
        hyperpod: The settings of HyperPod.
        cluster: The node groups, with what holds for them.
    """

    hyperpod: HyperPodSettings
    cluster: ClusterContext

    @property
    def on_slurm(self) -> bool:
        """Whether Slurm runs jobs."""
        return self.hyperpod.orchestrator is HyperPodOrchestration.SLURM


HYPERPOD_RULES: Rules[HyperPodContext] = Rules()


_EKS_SETTINGS: Mapping[str, str] = {
    "eks_cluster_arn": "HyperPod joins nodes to an EKS cluster that exists, with HyperPod's Helm chart installed; "
    "give its ARN",
    "eks_security_group_id": "nodes must be in the EKS cluster's own security group to join it; give the id that aws "
    "eks describe-cluster shows as clusterSecurityGroupId",
}


@HYPERPOD_RULES.rule("hyperpodEksCluster", f"{_GUIDE}/sagemaker-hyperpod-eks-prerequisites.html", "hyperpod")
def _eks_cluster(of: HyperPodContext) -> Iterator[Found]:
    for setting, reason in _EKS_SETTINGS.items():
        given = getattr(of.hyperpod, setting) is not None
        if of.on_slurm and given:
            yield f"{setting} must be left out on Slurm: leave it out, or set orchestrator to EKS"
        if not of.on_slurm and not given:
            yield f"{setting} is required on EKS: {reason}"


# The nodes' subnet must be one of the EKS cluster's VPC: AWS's own scripts pass that VPC.
# https://github.com/aws-samples/awsome-distributed-training/tree/main/1.architectures/7.sagemaker-hyperpod-eks
@HYPERPOD_RULES.rule("hyperpodEksNetwork", f"{_GUIDE}/sagemaker-hyperpod-eks-prerequisites.html", "network")
def _eks_network(of: HyperPodContext) -> Iterator[Found]:
    """Find a VPC that is made here, where an EKS cluster that exists cannot be."""
    arn = of.hyperpod.eks_cluster_arn
    if arn is not None and not is_unknown(arn) and not of.on_slurm and not of.cluster.existing_network:
        yield (
            "network must name the VPC of the EKS cluster and a private subnet of it for HyperPod on EKS, got a VPC "
            f"that is made: aws eks describe-cluster --name {arn.rpartition('/')[2]} shows its resourcesVpcConfig"
        )


@HYPERPOD_RULES.rule("hyperpodPrivateSubnets", f"{_GUIDE}/sagemaker-hyperpod-eks-prerequisites.html", "network")
def _private_subnets(of: HyperPodContext) -> Iterator[Found]:
    if of.cluster.public_subnet:
        yield (
            "network must have a private subnet for HyperPod, whose nodes get no public address, got a public one: "
            "give a subnet with a way out through a NAT gateway"
        )


@HYPERPOD_RULES.rule("hyperpodEksOnly", f"{_API}/API_CreateCluster.html")
def _eks_only(of: HyperPodContext) -> Iterator[Found]:
    """Find what only clusters on EKS have."""
    given = {
        "tiered_storage_percent": of.hyperpod.tiered_storage_percent is not None,
        "priority_classes": bool(of.hyperpod.priority_classes),
    }
    if of.on_slurm:
        for setting in (name for name, is_given in given.items() if is_given):
            yield ("hyperpod", setting), f"{setting} needs HyperPod on EKS: leave it out, or set orchestrator to EKS"


@HYPERPOD_RULES.rule("hyperpodSlurmOnly", _SLURM)
def _slurm_only(of: HyperPodContext) -> Iterator[Found]:
    given = {"login_type": of.hyperpod.login_type is not None, "partitions": bool(of.hyperpod.partitions)}
    if not of.on_slurm:
        for setting in (name for name, is_given in given.items() if is_given):
            yield (
                ("hyperpod", setting),
                f"{setting} needs HyperPod on Slurm: leave it out, or set orchestrator to SLURM",
            )


@HYPERPOD_RULES.rule("hyperpodGroupName", _GROUP)
def _group_name(of: HyperPodContext) -> Iterator[Found]:
    for place, group in enumerate(of.cluster.groups):
        at = ("node_groups", place, "name")
        if of.on_slurm and group.name in (CONTROLLER, LOGIN):
            yield at, f"the name of a node group must not be {group.name!r}, Slurm's own instance group: rename it"
        elif not _NAME.fullmatch(group.name):
            yield (
                at,
                "the name of a node group on HyperPod must be 1 to 63 letters, digits and single hyphens between "
                f"them, got {group.name!r}",
            )


@HYPERPOD_RULES.rule("hyperpodGroups", f"{_API}/API_CreateCluster.html", "node_groups")
def _groups(of: HyperPodContext) -> Iterator[Found]:
    own = (2 if of.hyperpod.login_type else 1) if of.on_slurm else 0
    if len(of.cluster.groups) + own > _MAX_GROUPS:
        yield (
            f"node_groups on HyperPod must be at most {_MAX_GROUPS - own}, got {len(of.cluster.groups)}: make a "
            "second cluster"
        )


@HYPERPOD_RULES.rule("hyperpodTypes", _GROUP)
def _types(of: HyperPodContext) -> Iterator[Found]:
    for place, group in enumerate(of.cluster.groups):
        for number, name in enumerate(group.instance_types):
            if not is_sold(name):
                yield (
                    ("node_groups", place, "instance_types", number),
                    f"node group {group.name!r}: instance_types on HyperPod must be accelerated types that SageMaker "
                    f"sells as ml.<type>, got {name}; take another, such as p5.48xlarge",
                )


@HYPERPOD_RULES.rule("hyperpodRootVolume", f"{_API}/API_ClusterEbsVolumeConfig.html")
def _root_volume(of: HyperPodContext) -> Iterator[Found]:
    for place, group in enumerate(of.cluster.groups):
        for setting in ("root_device_name", "root_volume_gib"):
            if getattr(group, setting) is not None:
                yield (
                    ("node_groups", place, setting),
                    f"node group {group.name!r}: {setting} must be left out on HyperPod, which determines the root "
                    "volume itself",
                )


@HYPERPOD_RULES.rule("hyperpodImage", f"{_GUIDE}/hyperpod-custom-ami-support.html")
def _image(of: HyperPodContext) -> Iterator[Found]:
    """Find images that HyperPod does not look up; one of a user's own is built on one of HyperPod's."""
    for place, group in enumerate(of.cluster.groups):
        if isinstance(group.machine_image, ec2.ResolveSsmParameterAtLaunchImage):
            yield (
                ("node_groups", place, "machine_image"),
                f"node group {group.name!r}: machine_image must be an AMI's id on HyperPod, got a parameter that is "
                "resolved at launch; give the id",
            )


@HYPERPOD_RULES.rule("hyperpodTaskGovernance", _GOVERNANCE, "hyperpod", "priority_classes", level=Level.WARNING)
def _task_governance(of: HyperPodContext) -> Iterator[Found]:
    if of.hyperpod.priority_classes and not of.on_slurm:
        yield (
            f"priority_classes needs the EKS add-on {TASK_GOVERNANCE} in the state ACTIVE before this deployment, "
            "which fails and is rolled back without it: deploy once without priority_classes, install the add-on, "
            "and look with training-cluster preflight"
        )


@HYPERPOD_RULES.rule("hyperpodPartitions", f"{_API}/API_ClusterSlurmConfig.html", "hyperpod", "partitions")
def _partitions(of: HyperPodContext) -> Iterator[Found]:
    """Find partitions of groups that do not exist, and a group called as the partition of all nodes."""
    names = [group.name for group in of.cluster.groups]
    for name in of.hyperpod.partitions:
        if name not in names:
            yield f"partitions must name node groups of the cluster, which are {', '.join(names)}, got {name!r}"
    for place, name in enumerate(names):
        if of.on_slurm and name not in of.hyperpod.partitions and name == _ALL_NODES:
            yield (
                ("node_groups", place, "name"),
                f"node group {name!r}: its Slurm partition must not be called so, which is that of all nodes; give "
                "it another in partitions",
            )


@HYPERPOD_RULES.rule(
    "hyperpodHealthChecks",
    f"{_GUIDE}/sagemaker-hyperpod-eks-resiliency-deep-health-checks.html",
    "hyperpod",
    "deep_health_checks",
)
def _health_checks(of: HyperPodContext) -> Iterator[Found]:
    checks = of.hyperpod.deep_health_checks
    if len(set(checks)) < len(checks):
        yield f"deep_health_checks must name each check once, got {', '.join(each.name for each in checks)}"
    if DeepHealthCheck.CONNECTIVITY in checks:
        for nodes in of.cluster.nodes:
            if any(not info.supports_efa for info in nodes.infos):
                yield (
                    f"deep_health_checks must leave out CONNECTIVITY, which tests EFA, where node group "
                    f"{nodes.group.name!r} has none: leave it out, or take a type with EFA"
                )


@HYPERPOD_RULES.rule("hyperpodHostActivity", f"{_GUIDE}/sagemaker-hyperpod.html")
def _host_activity(of: HyperPodContext) -> Iterator[Found]:
    for nodes in of.cluster.nodes:
        if nodes.policy is not None and (nodes.policy.host_activity or nodes.policy.has_signal("host")):
            yield (
                ("idle_policy",),
                f"idle_policy of node group {nodes.group.name!r} must leave host_activity out on HyperPod, "
                "whose nodes' network traffic EC2 writes into SageMaker's account: idle nodes would never be stopped",
            )


# Whether DescribeSessions names such a node as start-session does is not documented.
@HYPERPOD_RULES.rule("hyperpodSessions", f"{_GUIDE}/sagemaker-hyperpod-run-jobs-slurm-access-nodes.html")
def _sessions(of: HyperPodContext) -> Iterator[Found]:
    for nodes in of.cluster.nodes:
        if nodes.policy is not None and nodes.policy.has_signal("session"):
            yield (
                ("idle_policy",),
                f"idle_policy of node group {nodes.group.name!r} must leave the signal session out on HyperPod, "
                "whose sessions name no instance: a node with an open session would be stopped. Use a heartbeat",
            )


@HYPERPOD_RULES.rule("hyperpodPriorities", f"{_API}/API_PriorityClass.html", "hyperpod", "priority_classes")
def _priorities(of: HyperPodContext) -> Iterator[Found]:
    classes = of.hyperpod.priority_classes
    if len(classes) > _MAX_PRIORITIES:
        yield f"priority_classes must be at most {_MAX_PRIORITIES}, got {len(classes)}: merge some"
    for name in classes:
        if not _PRIORITY.fullmatch(name):
            yield (
                "the names of priority_classes must be lower-case letters, digits and hyphens, a letter or digit at "
                f"both ends, got {name!r}"
            )
