"""What SageMaker refuses of a HyperPod cluster's template; CloudFormation's schema and linters have nothing of it.

The constructs make no such template: an escape hatch does, or a resource of a user's own.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from cdk_training_cluster.orchestrators.hyperpod.instance_types import is_sold
from cdk_training_cluster.template_reading import Resource, Template
from cdk_training_cluster.template_rules import template_rule
from cdk_training_cluster.validation.template_texts import Finding, is_intrinsic

CLUSTER: Final = "AWS::SageMaker::Cluster"

_GUIDE = "https://docs.aws.amazon.com/sagemaker/latest/dg"
_API = "https://docs.aws.amazon.com/sagemaker/latest/APIReference"
_SLURM = f"{_GUIDE}/sagemaker-hyperpod-ref.html"
_SCALING = f"{_GUIDE}/sagemaker-hyperpod-scaling-slurm.html"
_LIFE_CYCLE = f"{_GUIDE}/smcluster-getting-started-slurm-cli.html"
_GROUPS = "Properties.InstanceGroups"
_ACCELERATED: Final = ("p", "g", "trn", "inf")


def _groups(cluster: Resource) -> Sequence[Mapping[str, Any]]:
    """Return the instance groups, without those that only the deployment knows."""
    groups = cluster.get(_GROUPS)
    return [each for each in groups if isinstance(each, Mapping)] if isinstance(groups, list) else []


def _is_on_eks(cluster: Resource) -> bool:
    return cluster.get("Properties.Orchestrator.Eks") is not None


def _slurm(group: Mapping[str, Any]) -> Mapping[str, Any]:
    slurm = group.get("SlurmConfig")
    return slurm if isinstance(slurm, Mapping) else {}


def _continuous(cluster: Resource) -> bool:
    return cluster.get("Properties.NodeProvisioningMode") == "Continuous"


@template_rule(
    id="hyperpodController",
    source=_SLURM,
    description="InstanceGroups of a HyperPod cluster on Slurm must have exactly one of NodeType Controller and at "
    "most one of Login, and those of a cluster on EKS no SlurmConfig",
    fix="Leave the groups as the library makes them",
)
def _controller(template: Template) -> Iterator[Finding]:
    for cluster in template.of_type(CLUSTER):
        kinds = Counter(_slurm(group).get("NodeType") for group in _groups(cluster) if _slurm(group))
        wrong = bool(kinds) if _is_on_eks(cluster) else kinds["Controller"] != 1 or kinds["Login"] > 1
        if wrong:
            yield cluster.at(_GROUPS)


@template_rule(
    id="hyperpodPartition",
    source=f"{_API}/API_ClusterSlurmConfig.html",
    description="PartitionNames of an instance group must name one partition for NodeType Compute, and be absent for "
    "the others",
    fix="Name the partition in partitions of HyperPodSettings",
)
def _partition(template: Template) -> Iterator[Finding]:
    for cluster in template.of_type(CLUSTER):
        slurm = [_slurm(group) for group in _groups(cluster) if _slurm(group)]
        if any((each.get("NodeType") == "Compute") != (len(each.get("PartitionNames") or ()) == 1) for each in slurm):
            yield cluster.at(_GROUPS)


@template_rule(
    id="hyperpodStrategy",
    source=_SCALING,
    description="SlurmConfigStrategy of a HyperPod cluster must be absent where NodeProvisioningMode is Continuous, "
    "which merges Slurm's configuration",
    fix="Leave the strategy out",
)
def _strategy(template: Template) -> Iterator[Finding]:
    path = "Properties.Orchestrator.Slurm.SlurmConfigStrategy"
    for cluster in template.of_type(CLUSTER):
        if _continuous(cluster) and cluster.get(path) is not None:
            yield cluster.at(path)


@template_rule(
    id="hyperpodLifeCycle",
    source=_LIFE_CYCLE,
    description="LifeCycleConfig of an instance group must have SourceS3Uri and one of OnCreate and OnInitComplete; "
    "on EKS each group needs OnCreate",
    fix="Leave the life cycle as the library makes it; scripts of your own go into scripts_after",
)
def _life_cycle(template: Template) -> Iterator[Finding]:
    for cluster in template.of_type(CLUSTER):
        for group in _groups(cluster):
            config = group.get("LifeCycleConfig") or {}
            moments = {"OnCreate", "OnInitComplete"} & set(config)
            wrong = bool(config) and (len(moments) != 1 or "SourceS3Uri" not in config)
            if wrong or (_is_on_eks(cluster) and "OnCreate" not in config):
                yield cluster.at(_GROUPS)


@template_rule(
    id="hyperpodNetwork",
    source=_SLURM,
    description="A HyperPod cluster whose instance groups mount a file system must have VpcConfig: HyperPod's own "
    "network does not reach it",
    fix="Leave VpcConfig as the library makes it",
)
def _network(template: Template) -> Iterator[Finding]:
    for cluster in template.of_type(CLUSTER):
        mounts = any("FsxLustreConfig" in str(group.get("InstanceStorageConfigs")) for group in _groups(cluster))
        if mounts and cluster.get("Properties.VpcConfig") is None:
            yield cluster.at("Properties.VpcConfig")


@template_rule(
    id="hyperpodType",
    source=f"{_API}/API_ClusterInstanceGroupSpecification.html",
    description="InstanceType of an instance group must be one that SageMaker sells for HyperPod",
    fix="Take another type, such as ml.p5.48xlarge",
)
def _type(template: Template) -> Iterator[Finding]:
    for cluster in template.of_type(CLUSTER):
        for group in _groups(cluster):
            prefix, _, name = str(group.get("InstanceType", "ml.")).partition(".")
            is_known = is_intrinsic(group.get("InstanceType")) or not name.startswith(_ACCELERATED) or is_sold(name)
            if (prefix != "ml" and not is_intrinsic(group.get("InstanceType"))) or not is_known:
                yield cluster.at(_GROUPS)


@template_rule(
    id="hyperpodMinimum",
    source=_SCALING,
    description="MinInstanceCount of an instance group must not be above InstanceCount, and needs "
    "NodeProvisioningMode Continuous",
    fix="Leave it out: the power function reports nodes that are missing",
)
def _minimum(template: Template) -> Iterator[Finding]:
    for cluster in template.of_type(CLUSTER):
        for group in _groups(cluster):
            least, count = group.get("MinInstanceCount"), group.get("InstanceCount")
            if least is not None and (
                not _continuous(cluster) or (isinstance(least, int) and isinstance(count, int) and least > count)
            ):
                yield cluster.at(_GROUPS)


@template_rule(
    id="hyperpodNames",
    source=f"{_API}/API_ClusterInstanceGroupSpecification.html",
    description="InstanceGroupName must be unique in a HyperPod cluster",
    fix="Rename one",
)
def _names(template: Template) -> Iterator[Finding]:
    for cluster in template.of_type(CLUSTER):
        names = Counter(str(group.get("InstanceGroupName")) for group in _groups(cluster))
        if any(count > 1 for count in names.values()):
            yield cluster.at(_GROUPS)


@template_rule(
    id="hyperpodEksAlone",
    source=f"{_API}/API_CreateCluster.html",
    description="TieredStorageConfig and Spot Instances need a HyperPod cluster on EKS",
    fix="Set engine to EKS, or take them away",
)
def _eks_alone(template: Template) -> Iterator[Finding]:
    for cluster in template.of_type(CLUSTER):
        spot = any("Spot" in (group.get("CapacityRequirements") or {}) for group in _groups(cluster))
        if not _is_on_eks(cluster) and (spot or cluster.get("Properties.TieredStorageConfig.Mode") == "Enable"):
            yield cluster.at("Properties")


@template_rule(
    id="hyperpodRole",
    source=f"{_GUIDE}/sagemaker-hyperpod-prerequisites-iam.html",
    description="ExecutionRole of an instance group must be a role that sagemaker.amazonaws.com may take",
    fix="Leave the role as the library makes it",
)
def _role(template: Template) -> Iterator[Finding]:
    for cluster in template.of_type(CLUSTER):
        for group in _groups(cluster):
            for role in template.referred(group.get("ExecutionRole"), "AWS::IAM::Role"):
                if "sagemaker." not in str(role.get("Properties.AssumeRolePolicyDocument")):
                    yield cluster.at(_GROUPS)


@template_rule(
    id="hyperpodCount",
    source=_SCALING,
    description="InstanceCount of a HyperPod instance group of nodes must not be 0: every deployment that changes "
    "the cluster would terminate the nodes of a running training",
    fix="Leave it at the count of the node group: the power function stops the nodes of a stopped cluster again",
)
def _count(template: Template) -> Iterator[Finding]:
    for cluster in template.of_type(CLUSTER):
        if any(group.get("InstanceCount") in (0, "0") for group in _groups(cluster)):
            yield cluster.at(_GROUPS)


@template_rule(
    id="hyperpodProvisioning",
    source=_SCALING,
    description="NodeProvisioningMode of a HyperPod cluster must be Continuous: without it one node that cannot be "
    "had rolls a whole update back",
    fix="Leave it as the library makes it",
)
def _provisioning(template: Template) -> Iterator[Finding]:
    path = "Properties.NodeProvisioningMode"
    return (each.at(path) for each in template.of_type(CLUSTER) if not _continuous(each))
