"""What an escape hatch can make of an EKS node group that EKS accepts, and then launches without a message.

What EKS refuses has no rule here: the deployment fails, and says why.
"""

from collections.abc import Iterator

from cdk_training_cluster.instance_types import instance_type_info
from cdk_training_cluster.instance_types.catalog import instance_type_names
from cdk_training_cluster.validation.templates.reading import Resource, Template, is_known
from cdk_training_cluster.validation.templates.rules import resource_rule, template_rule
from cdk_training_cluster.validation.templates.texts import Finding

CLUSTER, GROUP = "AWS::EKS::Cluster", "AWS::EKS::Nodegroup"

_API = "https://docs.aws.amazon.com/eks/latest/APIReference"


@resource_rule(
    GROUP,
    path="Properties.AmiType",
    id="eksDrivers",
    source=f"{_API}/API_Nodegroup.html",
    description="AmiType of an EKS node group with accelerators must be one with their driver: AL2023_x86_64_NVIDIA, "
    "AL2023_ARM_64_NVIDIA or AL2023_x86_64_NEURON",
    fix="Leave AmiType as the library makes it",
)
def _has_no_driver(group: Resource) -> bool:
    names = {each for each in group.items("Properties.InstanceTypes") if isinstance(each, str)}
    infos = [instance_type_info(name) for name in sorted(names.intersection(instance_type_names()))]
    return "STANDARD" in str(group.get("Properties.AmiType")) and any(info.is_accelerated for info in infos)


@template_rule(
    id="eksSizes",
    source=f"{_API}/API_NodegroupScalingConfig.html",
    description=(
        "MinSize and DesiredSize of an EKS node group of the library must be 0: the deployment would launch and bill "
        "nodes, even while the cluster is stopped"
    ),
    fix="Leave ScalingConfig as the library makes it: the power function brings the group to its size",
)
def _sizes(template: Template) -> Iterator[Finding]:
    for group in template.made(GROUP):
        sizes = (group.get(f"Properties.ScalingConfig.{name}") for name in ("MinSize", "DesiredSize"))
        if any(is_known(size) and size for size in sizes):
            yield group.at("Properties.ScalingConfig")
