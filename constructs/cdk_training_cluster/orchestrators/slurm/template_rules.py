"""What AWS PCS refuses of a template; CloudFormation's schema and linters have nothing of it.

The constructs make no such template: an escape hatch does, or a resource of a user's own.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from cdk_training_cluster.instance_types import instance_type_info
from cdk_training_cluster.orchestrators.slurm.allowed import CLUSTER_SETTINGS, NODE_GROUP_SETTINGS, QUEUE_SETTINGS
from cdk_training_cluster.orchestrators.slurm.settings import QUEUE_NAME, SlurmVersion
from cdk_training_cluster.template_reading import LAUNCH, Resource, Template, is_plain_user_data
from cdk_training_cluster.template_rules import resource_rule, template_rule
from cdk_training_cluster.validation.template_texts import Finding, is_intrinsic

CLUSTER, GROUP, QUEUE = "AWS::PCS::Cluster", "AWS::PCS::ComputeNodeGroup", "AWS::PCS::Queue"

_GUIDE = "https://docs.aws.amazon.com/pcs/latest/userguide"
_SETTINGS = "Properties.SlurmConfiguration.SlurmCustomSettings"
_PURGE = "Properties.SlurmConfiguration.Accounting.DefaultPurgeTimeInDays"
_SIZES = "Properties.ScalingConfiguration"
_TYPES = "Properties.InstanceConfigs"
_ALLOWED: Final[Mapping[str, Collection[str]]] = {
    CLUSTER: CLUSTER_SETTINGS,
    GROUP: NODE_GROUP_SETTINGS,
    QUEUE: QUEUE_SETTINGS,
}


def _named(resource: Resource) -> list[tuple[object, object]]:
    return [(each.get("ParameterName"), each.get("ParameterValue")) for each in resource.mappings(_SETTINGS)]


def _launching(template: Template) -> Iterator[tuple[Resource, Resource]]:
    """Yield each compute node group with its launch template."""
    return template.launching(GROUP, "Properties.CustomLaunchTemplate")


@resource_rule(
    *_ALLOWED,
    path=_SETTINGS,
    id="pcsSettings",
    source=f"{_GUIDE}/slurm-custom-settings.html",
    description="SlurmCustomSettings must name settings that AWS PCS takes for a cluster, a compute node group or a "
    "queue, once each",
    fix="Take the setting away, or move it to the resource that has it",
)
def _settings(resource: Resource) -> bool:
    allowed = _ALLOWED[str(resource.definition["Type"])]
    names = [name for name, _ in _named(resource) if isinstance(name, str)]
    return not set(names) <= set(allowed) or len(set(names)) < len(names)


@resource_rule(
    CLUSTER,
    path="Properties.Scheduler.Version",
    id="pcsVersion",
    source=f"{_GUIDE}/slurm-versions.html",
    description="Scheduler.Version of a cluster must be 25.11 or 26.05: an older Slurm starts the job of a failed "
    "node again after minutes only, and AWS PCS does not have others",
    fix="Set Scheduler.Version to 25.11",
)
def _version(cluster: Resource) -> bool:
    version = cluster.get("Properties.Scheduler.Version")
    return isinstance(version, str) and version not in {each.value for each in SlurmVersion}


@resource_rule(
    CLUSTER,
    path=_PURGE,
    id="pcsPurge",
    source="https://docs.aws.amazon.com/pcs/latest/APIReference/API_Accounting.html",
    description="DefaultPurgeTimeInDays must not be 0, which AWS PCS refuses",
    fix="Leave it out to keep records, or give the number of days",
)
def _purge(cluster: Resource) -> bool:
    return cluster.get(_PURGE) == 0


@resource_rule(
    GROUP,
    QUEUE,
    path="Properties.Name",
    id="pcsName",
    source="https://docs.aws.amazon.com/pcs/latest/APIReference/API_CreateComputeNodeGroup.html",
    description=f"Name of a compute node group or a queue must be {QUEUE_NAME.wanted}",
    fix="Shorten it",
)
def _name(resource: Resource) -> bool:
    name = resource.get("Properties.Name")
    return isinstance(name, str) and not QUEUE_NAME.pattern.fullmatch(name)


@resource_rule(
    GROUP,
    path=_SIZES,
    id="pcsSizes",
    source=f"{_GUIDE}/working-with_cng_create.html",
    description="MinInstanceCount of a compute node group must be 0 or equal to MaxInstanceCount",
    fix="Set it to 0, and let the power function set sizes",
)
def _sizes(group: Resource) -> bool:
    least, most = (group.get(f"{_SIZES}.{name}") for name in ("MinInstanceCount", "MaxInstanceCount"))
    return isinstance(least, int) and isinstance(most, int) and least not in {0, most}


@resource_rule(
    GROUP,
    path=_TYPES,
    id="pcsTypes",
    source=f"{_GUIDE}/working-with_cng_create.html",
    description="InstanceConfigs of a compute node group must have types of the same architecture, vCPUs and GPUs",
    fix="Make a compute node group of each and list them in one queue",
)
def _types(group: Resource) -> bool:
    kinds = set()
    for each in group.mappings(_TYPES):
        try:
            info = instance_type_info(str(each.get("InstanceType")))
        except ValueError:  # it is in no catalog: nothing is known of it
            continue
        kinds.add((info.architectures, info.vcpus, info.nvidia_gpu_count))
    return len(kinds) > 1


@resource_rule(
    GROUP,
    path=_SETTINGS,
    id="pcsGres",
    source=f"{_GUIDE}/gres-custom-settings.html",
    description="Gres of a compute node group must name resources that a record of GresCustomSettings declares",
    fix="Add a record with the Name, or with AutoDetect for GPUs",
)
def _gres(group: Resource) -> bool:
    records = group.mappings("Properties.SlurmConfiguration.GresCustomSettings")
    declared = {str(each.get("Name")) for each in records}
    if any(each.get("AutoDetect", "off") != "off" for each in records):
        declared.add("gpu")
    gres = next((value for name, value in _named(group) if name == "Gres"), "")
    return isinstance(gres, str) and not {each.partition(":")[0] for each in gres.split(",") if each} <= declared


@template_rule(
    id="pcsUserData",
    source=f"{_GUIDE}/working-with_ec2-user-data.html",
    description="UserData of a launch template for AWS PCS must be a MIME multi-part archive",
    fix="Leave the user data as the library makes it",
)
def _user_data(template: Template) -> Iterator[Finding]:
    for _, launch in _launching(template):
        if is_plain_user_data(launch):
            yield launch.at(f"{LAUNCH}.UserData")


@template_rule(
    id="pcsInterfaceGroups",
    source=f"{_GUIDE}/working-with_launch-templates_overview.html",
    description="Each network interface of a launch template for AWS PCS must have Groups",
    fix="Give the ids of security groups on each interface, and none by name",
)
def _interface_groups(template: Template) -> Iterator[Finding]:
    path = f"{LAUNCH}.NetworkInterfaces"
    for _, launch in _launching(template):
        if any(not each.get("Groups") for each in launch.mappings(path)):
            yield launch.at(path)
        if launch.get(f"{LAUNCH}.SecurityGroups"):
            yield launch.at(f"{LAUNCH}.SecurityGroups")


@template_rule(
    id="pcsTenancy",
    source=f"{_GUIDE}/working-with_launch-templates_parameters.html",
    description="Tenancy of a launch template for AWS PCS must be default",
    fix="Leave Tenancy out",
)
def _tenancy(template: Template) -> Iterator[Finding]:
    path = f"{LAUNCH}.Placement.Tenancy"
    for _, launch in _launching(template):
        if launch.get(path) not in (None, "default") and not is_intrinsic(launch.get(path)):
            yield launch.at(path)


@template_rule(
    id="pcsBlock",
    source=f"{_GUIDE}/capacity-blocks-configure-cng.html",
    description="The launch template of a compute node group that buys a CAPACITY_BLOCK must have the MarketType "
    "capacity-block, a CapacityReservationId and an InstanceType",
    fix="Use Capacity.capacity_block(), which sets all three",
)
def _block(template: Template) -> Iterator[Finding]:
    wanted = ("InstanceMarketOptions", "InstanceType", "CapacityReservationSpecification.CapacityReservationTarget")
    for group, launch in _launching(template):
        is_block = group.get("Properties.PurchaseOption") == "CAPACITY_BLOCK"
        if is_block and any(launch.get(f"{LAUNCH}.{path}") is None for path in wanted):
            yield launch.at(LAUNCH)


@template_rule(
    id="pcsRole",
    source=f"{_GUIDE}/security-instance-profiles.html",
    description="The role of a compute node group must have /aws-pcs/ in its path or a name that starts with AWSPCS, "
    "and a policy with pcs:RegisterComputeNodeGroupInstance: otherwise no node joins",
    fix="Use the role that the cluster makes",
)
def _role(template: Template) -> Iterator[Finding]:
    policies = template.of_type("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")
    for group in template.of_type(GROUP):
        for profile in template.referred(group.get("Properties.IamInstanceProfileArn"), "AWS::IAM::InstanceProfile"):
            for role in template.referred(profile.get("Properties.Roles"), "AWS::IAM::Role"):
                path, name = (role.get(f"Properties.{each}") for each in ("Path", "RoleName"))
                attached = [each for each in policies if role in template.referred(each.definition, "AWS::IAM::Role")]
                texts = [str(role.definition), *(str(each.definition) for each in attached)]
                joins = any("pcs:RegisterComputeNodeGroupInstance" in text for text in texts)
                is_named = "/aws-pcs/" in str(path) or str(name).startswith("AWSPCS")
                if not joins or not (is_named or is_intrinsic(path) or is_intrinsic(name)):
                    yield role.at("Properties.Path")
