"""What EKS refuses of a template; CloudFormation's schema and linters have nothing of it.

The constructs make no such template: an escape hatch does, or a resource of a user's own.
"""

from collections.abc import Callable, Iterator

from cdk_training_cluster.instance_types import instance_type_info
from cdk_training_cluster.instance_types.catalog import instance_type_names
from cdk_training_cluster.template_reading import LAUNCH, Resource, Template, is_known, is_plain_user_data
from cdk_training_cluster.template_rules import resource_rule, template_rule
from cdk_training_cluster.validation.template_texts import Finding

CLUSTER, GROUP = "AWS::EKS::Cluster", "AWS::EKS::Nodegroup"

_GUIDE = "https://docs.aws.amazon.com/eks/latest/userguide"
_TEMPLATES = f"{_GUIDE}/launch-templates.html"
_API = "https://docs.aws.amazon.com/eks/latest/APIReference"
_SCHEDULER = "Properties.KubeSchedulerConfig.NodeResourcesFit.ScoringStrategy.Resources"
_OVERRIDES = "Properties.NodeRepairConfig.NodeRepairConfigOverrides"

# https://docs.aws.amazon.com/eks/latest/userguide/control-plane-configuration.html
_WEIGHED = frozenset({"cpu", "memory", "nvidia.com/gpu", "aws.amazon.com/neuron", "aws.amazon.com/neuroncore"})
_OVERRIDE = frozenset({"NodeMonitoringCondition", "NodeUnhealthyReason", "MinRepairWaitTimeMins", "RepairAction"})
_OWN_IMAGE_EXCLUDES = ("AmiType", "ReleaseVersion", "Version")

_Broken = Callable[[Resource, Resource], bool]


def _launching(template: Template) -> Iterator[tuple[Resource, Resource]]:
    """Yield each node group with its launch template."""
    return template.launching(GROUP, "Properties.LaunchTemplate")


def _of_the_template(id: str, path: str, description: str, fix: str, broken: _Broken) -> None:
    """Add a rule about the launch templates of node groups."""

    def find(template: Template) -> Iterator[Finding]:
        return (launch.at(f"{LAUNCH}.{path}") for group, launch in _launching(template) if broken(group, launch))

    template_rule(id=id, source=_TEMPLATES, description=description, fix=fix)(find)


def _of_the_group(
    id: str, path: str, description: str, fix: str, broken: _Broken, *, source: str = _TEMPLATES
) -> None:
    """Add a rule about node groups that have a launch template."""

    def find(template: Template) -> Iterator[Finding]:
        return (group.at(f"Properties.{path}") for group, launch in _launching(template) if broken(group, launch))

    template_rule(id=id, source=source, description=description, fix=fix)(find)


def _has(path: str) -> _Broken:
    return lambda _, launch: launch.get(f"{LAUNCH}.{path}") is not None


def _says(path: str) -> _Broken:
    return lambda group, _: group.get(f"Properties.{path}") is not None


def _in_a_subnet(_: Resource, launch: Resource) -> bool:
    return any("SubnetId" in each for each in launch.mappings(f"{LAUNCH}.NetworkInterfaces"))


def _is_no_archive(_: Resource, launch: Resource) -> bool:
    return launch.get(f"{LAUNCH}.ImageId") is None and is_plain_user_data(launch)


def _has_own_image(launch: Resource) -> bool:
    return launch.get(f"{LAUNCH}.ImageId") is not None


def _is_block(group: Resource) -> bool:
    return group.get("Properties.CapacityType") == "CAPACITY_BLOCK"


def _is_no_block(group: Resource, launch: Resource) -> bool:
    target = f"{LAUNCH}.CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId"
    wanted = [launch.get(path) for path in (target, f"{LAUNCH}.InstanceType")]
    market = launch.get(f"{LAUNCH}.InstanceMarketOptions.MarketType")
    return _is_block(group) and (market != "capacity-block" or None in wanted)


def _has_no_driver(group: Resource, _: Resource) -> bool:
    names = {each for each in group.items("Properties.InstanceTypes") if isinstance(each, str)}
    infos = [instance_type_info(name) for name in sorted(names.intersection(instance_type_names()))]
    return "STANDARD" in str(group.get("Properties.AmiType")) and any(info.is_accelerated for info in infos)


_LEAVE = "Leave the launch template as the library makes it"

_of_the_template(
    "eksTemplateProfile",
    "IamInstanceProfile",
    "The launch template of an EKS node group must not name an instance profile: EKS makes one of NodeRole",
    f"{_LEAVE}, and set NodeRole of the node group",
    _has("IamInstanceProfile"),
)
_of_the_template(
    "eksTemplateSubnet",
    "NetworkInterfaces",
    "Network interfaces in the launch template of an EKS node group must not name a subnet",
    f"{_LEAVE}, and set Subnets of the node group",
    _in_a_subnet,
)
_of_the_template(
    "eksTemplateShutdown",
    "InstanceInitiatedShutdownBehavior",
    "The launch template of an EKS node group must not name a shutdown behavior, nor hibernation",
    _LEAVE,
    lambda group, launch: (
        _has("InstanceInitiatedShutdownBehavior")(group, launch) or _has("HibernationOptions")(group, launch)
    ),
)
_of_the_template(
    "eksTypesTwice",
    "InstanceType",
    "An EKS node group must have its instance types in one place, the node group or the launch template",
    "Take InstanceType out of the launch template",
    lambda group, launch: _has("InstanceType")(group, launch) and _says("InstanceTypes")(group, launch),
)
_of_the_template(
    "eksUserData",
    "UserData",
    "UserData in the launch template of an EKS node group without an image must be a MIME multi-part archive, to "
    "which EKS adds its own parts",
    _LEAVE,
    _is_no_archive,
)
_of_the_template(
    "eksMarket",
    "InstanceMarketOptions",
    "The launch template of an EKS node group must name a market for a Capacity Block alone: CapacityType says the "
    "others",
    "Take InstanceMarketOptions away, and use Capacity.spot() for Spot",
    lambda group, launch: not _is_block(group) and _has("InstanceMarketOptions")(group, launch),
)
_of_the_template(
    "eksCapacityBlock",
    "InstanceMarketOptions",
    "The launch template of an EKS node group on a Capacity Block must name the market capacity-block, the block and "
    "the instance type",
    "Use Capacity.capacity_block()",
    _is_no_block,
)
_of_the_group(
    "eksDiskSize",
    "DiskSize",
    "DiskSize must be left out of an EKS node group with a launch template",
    "Set root_volume_gib of the node group",
    _says("DiskSize"),
)
_of_the_group(
    "eksRemoteAccess",
    "RemoteAccess",
    "RemoteAccess must be left out of an EKS node group with a launch template",
    "Use Session Manager",
    _says("RemoteAccess"),
)
_of_the_group(
    "eksImageTwice",
    "AmiType",
    "AmiType, ReleaseVersion and Version must be left out of an EKS node group whose launch template names an image",
    "Take them away, or the image",
    lambda group, launch: _has_own_image(launch) and any(_says(name)(group, launch) for name in _OWN_IMAGE_EXCLUDES),
)
_of_the_group(
    "eksWarmImage",
    "WarmPoolConfig",
    "WarmPoolConfig must be left out of an EKS node group whose launch template names an image: EKS keeps only its "
    "own images warm",
    "Take the warm pool away, or the image",
    lambda group, launch: _has_own_image(launch) and group.get("Properties.WarmPoolConfig.Enabled") is True,
    source=f"{_GUIDE}/warm-pools-managed-node-groups.html",
)
_of_the_group(
    "eksDrivers",
    "AmiType",
    "AmiType of an EKS node group with accelerators must be one with their driver: AL2023_x86_64_NVIDIA, "
    "AL2023_ARM_64_NVIDIA or AL2023_x86_64_NEURON",
    "Leave AmiType as the library makes it",
    _has_no_driver,
    source=f"{_API}/API_Nodegroup.html",
)


@template_rule(
    id="eksSizes",
    source=f"{_API}/API_NodegroupScalingConfig.html",
    description=(
        "MinSize of an EKS node group must not be above DesiredSize, nor that above MaxSize; and both must be 0 in a "
        "group of the library: the deployment would launch and bill nodes, even while the cluster is stopped"
    ),
    fix="Leave ScalingConfig as the library makes it: the power function brings the group to its size",
)
def _sizes(template: Template) -> Iterator[Finding]:
    ours = template.made(GROUP)
    for group in template.of_type(GROUP):
        least, wanted, most = (
            group.get(f"Properties.ScalingConfig.{name}") for name in ("MinSize", "DesiredSize", "MaxSize")
        )
        sizes = [size for size in (least, wanted, most) if isinstance(size, int)]
        if sizes != sorted(sizes) or (group in ours and any(is_known(size) and size for size in (least, wanted))):
            yield group.at("Properties.ScalingConfig")


@resource_rule(
    GROUP,
    path=_OVERRIDES,
    id="eksRepair",
    source=f"{_GUIDE}/node-repair.html",
    description="Each of NodeRepairConfigOverrides of an EKS node group must have all four values",
    fix="Leave NodeRepairConfig as the library makes it",
)
def _repair(group: Resource) -> bool:
    return any(set(each) != _OVERRIDE for each in group.mappings(_OVERRIDES))


@resource_rule(
    CLUSTER,
    path="Properties.ResourcesVpcConfig",
    id="eksEndpoint",
    source=f"{_GUIDE}/cluster-endpoint.html",
    description="EndpointPrivateAccess or EndpointPublicAccess of an EKS cluster must be true",
    fix="Leave EndpointPrivateAccess true: nodes reach the API by it",
)
def _endpoint(cluster: Resource) -> bool:
    path = "Properties.ResourcesVpcConfig"
    private, public = (cluster.get(f"{path}.Endpoint{kind}Access") for kind in ("Private", "Public"))
    return public is False and private in (None, False)


@resource_rule(
    CLUSTER,
    path=_SCHEDULER,
    id="eksWeights",
    source=f"{_GUIDE}/control-plane-configuration.html",
    description=f"KubeSchedulerConfig of an EKS cluster must weigh {', '.join(sorted(_WEIGHED))} alone",
    fix="Take the other resources away",
)
def _weights(cluster: Resource) -> bool:
    names = [each.get("Name") for each in cluster.mappings(_SCHEDULER)]
    return any(is_known(name) and name not in _WEIGHED for name in names)


@template_rule(
    id="eksAuthentication",
    source=f"{_GUIDE}/setting-up-access-entries.html",
    description="AuthenticationMode of an EKS cluster with access entries must be API or API_AND_CONFIG_MAP",
    fix="Set it to API",
)
def _authentication(template: Template) -> Iterator[Finding]:
    named = [entry.get("Properties.ClusterName") for entry in template.of_type("AWS::EKS::AccessEntry")]
    for cluster in template.referred(named, CLUSTER):
        mode = cluster.get("Properties.AccessConfig.AuthenticationMode")
        if mode in (None, "CONFIG_MAP"):
            yield cluster.at("Properties.AccessConfig.AuthenticationMode")


@template_rule(
    id="eksOneZone",
    source=f"{_GUIDE}/network-reqs.html",
    description="SubnetIds of an EKS cluster must be subnets in two Availability Zones",
    fix="Name a second zone with control_plane_zone",
)
def _one_zone(template: Template) -> Iterator[Finding]:
    path = "Properties.ResourcesVpcConfig.SubnetIds"
    for cluster in template.of_type(CLUSTER):
        ids = cluster.items(path)
        zones = [each.get("Properties.AvailabilityZone") for each in template.referred(ids, "AWS::EC2::Subnet")]
        if len(ids) == 1 or (len(zones) == len(ids) > 0 and len({str(zone) for zone in zones}) == 1):
            yield cluster.at(path)
