"""What AWS says about the instance types of a node group, and about several in one."""

from collections.abc import Iterator

from aws_cdk import aws_ec2 as ec2

from cdk_training_cluster.instance_types import AcceleratorKind, InstanceTypeInfo
from cdk_training_cluster.network import network_interfaces
from cdk_training_cluster.nodes.images import public_image
from cdk_training_cluster.nodes.layouts import launch_layouts, wants_efa
from cdk_training_cluster.nodes.rules.context import NodeGroupContext
from cdk_training_cluster.validation.checks import is_unknown
from cdk_training_cluster.validation.rule import Level, Rule, Rules

MAX_TYPES, _MAX_TEMPLATES = 40, 20

# "EFA traffic between P4d/P4de/DL1 instances and other instance types is currently not supported."
_EFA_APART = frozenset({"p4d", "p4de", "dl1"})

IMAGE_AT_LAUNCH = (
    "machine_image must be an AMI's id for Capacity.spot_fleet(), got a parameter that is resolved at launch "
    "(resolve:ssm:…): a Spot Fleet does not resolve it; use ec2.MachineImage.from_ssm_parameter(), which the "
    "deployment resolves, or Capacity.spot()"
)
"""What is wrong with an image whose id only a launch would find, in a Spot Fleet."""

# Families that the Spot market seldom has.
_RARE_ON_SPOT = ("p5", "p6")

_USER_GUIDE = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide"
_AUTO_SCALING = "https://docs.aws.amazon.com/autoscaling/ec2/userguide"
_OVERRIDES = "https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_LaunchTemplateOverrides.html"
_BASE_IMAGES = "https://docs.aws.amazon.com/dlami/latest/devguide/overview-base.html"

TYPE_RULES: Rules[NodeGroupContext] = Rules()


UNKNOWN_TYPE: Rule[NodeGroupContext] = Rule(
    id="unknownType",
    source="https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceTypes.html",
    find=lambda context: iter(context.unknown),
)
"""The rules that come before those that use the facts about types."""


@TYPE_RULES.rule("oneType", f"{_AUTO_SCALING}/create-launch-template.html", "instance_types")
def _one_type(context: NodeGroupContext) -> Iterator[str]:
    capacity = context.group.capacity
    if not capacity.takes_several_types and len(context.infos) != 1:
        yield (
            f"instance_types must name exactly one type for {context.call}, got {_names(context)}: make a node "
            "group for each type"
        )


@TYPE_RULES.rule("mostTypes", _OVERRIDES, "instance_types")
def _not_too_many_types(context: NodeGroupContext) -> Iterator[str]:
    number = len(context.infos)
    if context.group.capacity.is_mixed and number > MAX_TYPES:
        yield f"instance_types must name at most {MAX_TYPES} types, got {number}: leave the least useful out"


@TYPE_RULES.rule("mostTemplates", _OVERRIDES, "instance_types")
def _not_too_many_templates(context: NodeGroupContext) -> Iterator[str]:
    if not context.group.capacity.is_mixed:
        return
    try:
        number = len(launch_layouts(context.group, context.infos, context.orchestrator))
    except ValueError:  # a rule of its own says why
        return
    if number > _MAX_TEMPLATES:
        yield (
            f"instance_types must need at most {_MAX_TEMPLATES} launch templates, one for each layout of network "
            f"interfaces and each image, got {number}: choose types that are more alike"
        )


@TYPE_RULES.rule(
    "typeOnce",
    f"{_AUTO_SCALING}/ec2-auto-scaling-mixed-instances-groups-launch-template-overrides.html",
    "instance_types",
)
def _no_type_twice(context: NodeGroupContext) -> Iterator[str]:
    names = [info.name for info in context.infos]
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            yield f"instance_types must name each type once, got {name} {names.count(name)} times"


# The plainest way to buy what is sold so.
_BOUGHT_WITH = {
    "on-demand": "Capacity.on_demand()",
    "spot": "Capacity.spot()",
    "capacity-block": "Capacity.capacity_block()",
}


@TYPE_RULES.rule(
    "usageClass", "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceTypeInfo.html", "instance_types"
)
def _usage_class(context: NodeGroupContext) -> Iterator[str]:
    capacity = context.group.capacity
    for info in context.infos:
        if info.usage_classes and not set(capacity.usage_classes) & set(info.usage_classes):
            calls = [_BOUGHT_WITH[usage] for usage in info.usage_classes if usage in _BOUGHT_WITH]
            fitting = " or ".join(map(context.words.call, calls))
            yield (
                f"instance_types must be sold as {' or '.join(capacity.usage_classes)} for {context.call}, got "
                f"{info.name}, which is sold as {', '.join(info.usage_classes)}: choose another type"
                f"{f', or buy it with {fitting}' if fitting else ''}"
            )


# What asks for a usage class in Capacity.prioritized(), and what to do where no type is sold so.
_LEGS = {
    "on-demand": ("reservations or on_demand", "leave reservations out and set on_demand to {false}"),
    "capacity-block": ("capacity_blocks", "leave capacity_blocks out"),
}


@TYPE_RULES.rule("prioritizedTypes", f"{_AUTO_SCALING}/use-distribution-segments.html", "instance_types")
def _every_leg_has_a_type(context: NodeGroupContext) -> Iterator[str]:
    """Refuse a part of the segment that none of the types suits; where only some do, EC2 goes on to the next."""
    capacity = context.group.capacity
    if not capacity.is_prioritized or not all(info.usage_classes for info in context.infos):
        return
    sold = {usage for info in context.infos for usage in info.usage_classes}
    if not sold & set(capacity.usage_classes):
        return  # a rule of its own says so of each type
    for usage in capacity.usage_classes:
        if usage not in sold:
            setting, mend = _LEGS[usage]
            yield (
                f"{context.call} with {setting} needs a type that is sold as {usage}, got "
                f"{_names(context)}: {mend.format(false=context.words.value(False))}, or add such a type"
            )


@TYPE_RULES.rule("severalArchitectures", f"{_USER_GUIDE}/ComponentsAMIs.html", level=Level.WARNING)
def _several_architectures(context: NodeGroupContext) -> Iterator[str]:
    by_architecture: dict[str, str] = {}
    for info in context.infos:
        by_architecture.setdefault(" or ".join(info.architectures), info.name)
    if len(by_architecture) > 1 and context.group.machine_image is None:
        found = " and ".join(f"{architecture} ({name})" for architecture, name in by_architecture.items())
        yield (
            f"its nodes may be of {found}, and no program or container runs on both: choose types of one "
            "architecture for nodes that work together"
        )


@TYPE_RULES.rule("rareOnSpot", f"{_USER_GUIDE}/spot-best-practices.html", level=Level.WARNING)
def _rare_on_spot(context: NodeGroupContext) -> Iterator[str]:
    if not context.group.capacity.uses_spot:
        return
    rare = [info.name for info in context.infos if info.name.startswith(_RARE_ON_SPOT)]
    if rare:
        yield (
            f"EC2 seldom has {' and '.join(rare)} to spare as Spot Instances, and takes them back at two minutes' "
            "notice: add types that are not so scarce, or buy a Capacity Block"
        )


@TYPE_RULES.rule("efaFamilies", f"{_USER_GUIDE}/efa.html#efa-limits", "instance_types")
def _efa_families(context: NodeGroupContext) -> Iterator[str]:
    with_efa = [info for info in context.infos if info.supports_efa and wants_efa(context.group, info)]
    apart = [info.name for info in with_efa if _family(info) in _EFA_APART]
    others = [info.name for info in with_efa if _family(info) not in _EFA_APART]
    if apart and others:
        yield (
            f"instance_types must not mix {' and '.join(apart)} with {' and '.join(others)}: EFA does not work "
            f"between them; make a node group for each, or set efa to {context.words.value(False)}"
        )


@TYPE_RULES.rule("acceleratorsAlike", _BASE_IMAGES, "instance_types")
def _accelerators_alike(context: NodeGroupContext) -> Iterator[str]:
    makers: dict[str, str] = {}
    for info in context.infos:
        makers.setdefault(_maker(info), info.name)
    if len(makers) > 1:
        found = " and ".join(f"{maker} ({name})" for maker, name in makers.items())
        yield (
            f"instance_types must have accelerators of one maker, got {found}: they need other images and other "
            "programs; make a node group for each"
        )


@TYPE_RULES.rule("oneArchitecture", f"{_USER_GUIDE}/ComponentsAMIs.html", "instance_types")
def _one_architecture_for_an_image(context: NodeGroupContext) -> Iterator[str]:
    if context.group.machine_image is None:
        return
    common = set.intersection(*(set(info.architectures) for info in context.infos)) if context.infos else set()
    if context.infos and not common:
        found = ", ".join(f"{info.name} ({' or '.join(info.architectures)})" for info in context.infos)
        yield (
            f"instance_types must have one architecture to share {context.words.image}, got {found}: make a node "
            f"group for each, or {context.words.without_image}"
        )


@TYPE_RULES.rule("interfaces", f"{_USER_GUIDE}/efa-acc-inst-types.html", "efa")
def _interfaces(context: NodeGroupContext) -> Iterator[str]:
    group = context.group
    for info in context.infos:
        try:
            network_interfaces(info, efa=wants_efa(group, info), layout=group.interface_layout)
        except ValueError as error:
            yield str(error)


@TYPE_RULES.rule("efaUnused", f"{_USER_GUIDE}/efa.html", level=Level.WARNING)
def _efa_unused(context: NodeGroupContext) -> Iterator[str]:
    group = context.group
    idle = [info.name for info in context.infos if info.supports_efa]
    if group.efa is False and idle and group.count > 1:
        yield (
            f"efa is {context.words.value(False)} for {' and '.join(idle)} with Elastic Fabric Adapters: the nodes "
            "would talk over TCP, many times slower; leave efa out unless they work alone"
        )


@TYPE_RULES.rule(
    "imex", "https://docs.aws.amazon.com/pcs/latest/userguide/capacity-blocks-nvidia-imex.html", level=Level.WARNING
)
def _imex(context: NodeGroupContext) -> Iterator[str]:
    linked = [info.name for info in context.infos if info.has_nvidia_gpus and info.ultraserver_sizes]
    mend = context.orchestrator.traits.imex
    if linked and context.group.count > 1 and mend:
        yield (
            f"NVLink between nodes of {' and '.join(linked)} needs NVIDIA IMEX with the addresses of each job's "
            "nodes, which this library does not set up: without it jobs use NVLink within a node and EFA between "
            f"nodes; {mend}"
        )


@TYPE_RULES.rule("image", _BASE_IMAGES, "machine_image")
def _image(context: NodeGroupContext) -> Iterator[str]:
    for info in context.infos:
        if context.group.machine_image is None and public_image(info, context.orchestrator) is None:
            # AWS may have an image for the type, without what its orchestrator needs.
            elsewhere = public_image(info) is not None
            what = (
                f"image for {info.name} on {context.orchestrator.value}"
                if elsewhere
                else f"Deep Learning image for {info.name}"
            )
            yield (f"AWS publishes no {what}: give {context.words.own_image} for {' or '.join(info.architectures)}")


@TYPE_RULES.rule(
    "rootVolume",
    "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_EbsBlockDevice.html",
    level=Level.WARNING,
)
def _root_volume(context: NodeGroupContext) -> Iterator[str]:
    size = context.group.root_volume_gib
    if size is None or is_unknown(size) or context.group.machine_image is not None:
        return
    images = filter(None, (public_image(info, context.orchestrator) for info in context.infos))
    wanted = context.orchestrator.traits.image_gib or max((image.root_gib for image in images), default=0)
    if size < wanted:
        yield (
            f"root_volume_gib is {size}, less than the {wanted} that AWS suggests for its image: EC2 launches no "
            "node whose root volume is smaller than the image's snapshot; training-cluster preflight compares them"
        )


@TYPE_RULES.rule(
    "imageAtLaunch",
    "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RequestLaunchTemplateData.html",
    "machine_image",
)
def _image_at_launch(context: NodeGroupContext) -> Iterator[str]:
    group = context.group
    if group.capacity.owned_by_spot_fleet and isinstance(group.machine_image, ec2.ResolveSsmParameterAtLaunchImage):
        yield IMAGE_AT_LAUNCH


def _names(context: NodeGroupContext) -> str:
    return ", ".join(info.name for info in context.infos)


def _family(info: InstanceTypeInfo) -> str:
    return info.name.partition(".")[0]


def _maker(info: InstanceTypeInfo) -> str:
    kinds = {accelerator.kind for accelerator in info.accelerators}
    if AcceleratorKind.NEURON in kinds:
        return "AWS"
    return next((accelerator.manufacturer for accelerator in info.accelerators), "none")
