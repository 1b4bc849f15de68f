"""What SageMaker refuses of a HyperPod cluster's template; CloudFormation's schema and linters have nothing of it.

The constructs make no such template: an escape hatch does, or a resource of a user's own.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from cdk_training_cluster.orchestrators.hyperpod.instance_types import is_sold
from cdk_training_cluster.template_reading import Resource, Template, is_known
from cdk_training_cluster.template_rules import resource_rule, template_rule
from cdk_training_cluster.validation.template_texts import Finding, is_intrinsic

CLUSTER: Final = "AWS::SageMaker::Cluster"

_GUIDE = "https://docs.aws.amazon.com/sagemaker/latest/dg"
_API = "https://docs.aws.amazon.com/sagemaker/latest/APIReference"
_SLURM = f"{_GUIDE}/sagemaker-hyperpod-ref.html"
_SCALING = f"{_GUIDE}/sagemaker-hyperpod-scaling-slurm.html"
_LIFE_CYCLE = f"{_GUIDE}/smcluster-getting-started-slurm-cli.html"
_GROUPS = "Properties.InstanceGroups"
_STRATEGY = "Properties.Orchestrator.Slurm.SlurmConfigStrategy"
_MODE = "Properties.NodeProvisioningMode"
_ACCELERATED: Final = ("p", "g", "trn", "inf")


def _groups(cluster: Resource) -> list[Mapping[str, Any]]:
    return cluster.mappings(_GROUPS)


def _is_on_eks(cluster: Resource) -> bool:
    return cluster.get("Properties.Orchestrator.Eks") is not None


def _slurm(group: Mapping[str, Any]) -> Mapping[str, Any]:
    slurm = group.get("SlurmConfig")
    return slurm if isinstance(slurm, Mapping) else {}


def _continuous(cluster: Resource) -> bool:
    return cluster.get(_MODE) == "Continuous"


@resource_rule(
    CLUSTER,
    path=_GROUPS,
    id="hyperpodController",
    source=_SLURM,
    description="InstanceGroups of a HyperPod cluster on Slurm must have exactly one of NodeType Controller and at "
    "most one of Login, and those of a cluster on EKS no SlurmConfig",
    fix="Leave the groups as the library makes them",
)
def _controller(cluster: Resource) -> bool:
    configs = [_slurm(group) for group in _groups(cluster) if _slurm(group)]
    kinds = [config.get("NodeType", config) for config in configs]
    if not is_known(kinds) or len(_groups(cluster)) < len(cluster.items(_GROUPS) or [None]):
        return False
    return bool(kinds) if _is_on_eks(cluster) else kinds.count("Controller") != 1 or kinds.count("Login") > 1


@resource_rule(
    CLUSTER,
    path=_GROUPS,
    id="hyperpodPartition",
    source=f"{_API}/API_ClusterSlurmConfig.html",
    description="PartitionNames of an instance group must name one partition for NodeType Compute, and be absent for "
    "the others",
    fix="Name the partition in partitions of HyperPodSettings",
)
def _partition(cluster: Resource) -> bool:
    slurm = [_slurm(group) for group in _groups(cluster) if is_known(_slurm(group)) and _slurm(group)]
    return any((each.get("NodeType") == "Compute") != (len(each.get("PartitionNames") or ()) == 1) for each in slurm)


@resource_rule(
    CLUSTER,
    path=_STRATEGY,
    id="hyperpodStrategy",
    source=_SCALING,
    description="SlurmConfigStrategy of a HyperPod cluster must be absent where NodeProvisioningMode is Continuous, "
    "which merges Slurm's configuration",
    fix="Leave the strategy out",
)
def _strategy(cluster: Resource) -> bool:
    return _continuous(cluster) and isinstance(cluster.get(_STRATEGY), str)


@resource_rule(
    CLUSTER,
    path=_GROUPS,
    id="hyperpodLifeCycle",
    source=_LIFE_CYCLE,
    description="LifeCycleConfig of an instance group must have SourceS3Uri and one of OnCreate and OnInitComplete; "
    "on EKS each group needs OnCreate",
    fix="Leave the life cycle as the library makes it; scripts of your own go into scripts_after",
)
def _life_cycle(cluster: Resource) -> bool:
    given = [group.get("LifeCycleConfig") or {} for group in _groups(cluster)]
    configs = [config for config in given if not is_intrinsic(config)]
    return any(
        (config and (len({"OnCreate", "OnInitComplete"} & set(config)) != 1 or "SourceS3Uri" not in config))
        or (_is_on_eks(cluster) and "OnCreate" not in config)
        for config in configs
    )


@resource_rule(
    CLUSTER,
    path="Properties.VpcConfig",
    id="hyperpodNetwork",
    source=_SLURM,
    description="A HyperPod cluster whose instance groups mount a file system must have VpcConfig: the "
    "network of HyperPod itself does not reach it",
    fix="Leave VpcConfig as the library makes it",
)
def _network(cluster: Resource) -> bool:
    mounts = any("FsxLustreConfig" in str(group.get("InstanceStorageConfigs")) for group in _groups(cluster))
    return mounts and cluster.get("Properties.VpcConfig") is None


@resource_rule(
    CLUSTER,
    path=_GROUPS,
    id="hyperpodType",
    source=f"{_API}/API_ClusterInstanceGroupSpecification.html",
    description="InstanceType of an instance group must be one that SageMaker sells for HyperPod",
    fix="Take another type, such as ml.p5.48xlarge",
)
def _type(cluster: Resource) -> bool:
    for given in (group.get("InstanceType", "ml.") for group in _groups(cluster)):
        prefix, _, name = str(given).partition(".")
        if not is_intrinsic(given) and (prefix != "ml" or (name.startswith(_ACCELERATED) and not is_sold(name))):
            return True
    return False


@resource_rule(
    CLUSTER,
    path=_GROUPS,
    id="hyperpodMinimum",
    source=_SCALING,
    description="MinInstanceCount of an instance group must not be above InstanceCount, and needs "
    "NodeProvisioningMode Continuous",
    fix="Leave it out: the power function reports nodes that are missing",
)
def _minimum(cluster: Resource) -> bool:
    for least, count in ((group.get("MinInstanceCount"), group.get("InstanceCount")) for group in _groups(cluster)):
        is_above = isinstance(least, int) and isinstance(count, int) and least > count
        if is_above or (least is not None and not _continuous(cluster)):
            return True
    return False


@resource_rule(
    CLUSTER,
    path=_GROUPS,
    id="hyperpodNames",
    source=f"{_API}/API_ClusterInstanceGroupSpecification.html",
    description="InstanceGroupName must be unique in a HyperPod cluster",
    fix="Rename one",
)
def _names(cluster: Resource) -> bool:
    names = [str(group.get("InstanceGroupName")) for group in _groups(cluster)]
    return len(set(names)) < len(names)


@resource_rule(
    CLUSTER,
    path="Properties",
    id="hyperpodEksAlone",
    source=f"{_API}/API_CreateCluster.html",
    description="TieredStorageConfig and Spot Instances need a HyperPod cluster on EKS",
    fix="Set engine to EKS, or take them away",
)
def _eks_alone(cluster: Resource) -> bool:
    spot = any("Spot" in (group.get("CapacityRequirements") or {}) for group in _groups(cluster))
    return not _is_on_eks(cluster) and (spot or cluster.get("Properties.TieredStorageConfig.Mode") == "Enable")


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
                trust = role.get("Properties.AssumeRolePolicyDocument")
                if is_known(trust) and "sagemaker." not in str(trust):
                    yield cluster.at(_GROUPS)


@resource_rule(
    CLUSTER,
    path=_GROUPS,
    id="hyperpodCount",
    source=_SCALING,
    description="InstanceCount of a HyperPod instance group of nodes must not be 0: every deployment that changes "
    "the cluster would terminate the nodes of a running training",
    fix="Leave it at the count of the node group: the power function stops the nodes of a stopped cluster again",
)
def _count(cluster: Resource) -> bool:
    return any(group.get("InstanceCount") in (0, "0") for group in _groups(cluster))


@resource_rule(
    CLUSTER,
    path=_MODE,
    id="hyperpodProvisioning",
    source=_SCALING,
    description="NodeProvisioningMode of a HyperPod cluster must be Continuous: without it one node that cannot be "
    "had rolls a whole update back",
    fix="Leave it as the library makes it",
)
def _provisioning(cluster: Resource) -> bool:
    return is_known(cluster.get(_MODE)) and not _continuous(cluster)
