"""What AWS PCS refuses of a template; CloudFormation's schema and linters have nothing of it.

The constructs make no such template: an escape hatch does, or a resource of a user's own.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from cdk_training_cluster.instance_types import instance_type_info
from cdk_training_cluster.orchestrators.slurm.allowed import CLUSTER_SETTINGS, NODE_GROUP_SETTINGS, QUEUE_SETTINGS
from cdk_training_cluster.orchestrators.slurm.settings import QUEUE_NAME, SlurmVersion
from cdk_training_cluster.template_reading import LAUNCH, Resource, Template
from cdk_training_cluster.template_rules import template_rule
from cdk_training_cluster.validation.template_texts import Finding, is_intrinsic

CLUSTER, GROUP, QUEUE = "AWS::PCS::Cluster", "AWS::PCS::ComputeNodeGroup", "AWS::PCS::Queue"

_GUIDE = "https://docs.aws.amazon.com/pcs/latest/userguide"
_SETTINGS = "Properties.SlurmConfiguration.SlurmCustomSettings"
_ALLOWED: Final[Mapping[str, Collection[str]]] = {
    CLUSTER: CLUSTER_SETTINGS,
    GROUP: NODE_GROUP_SETTINGS,
    QUEUE: QUEUE_SETTINGS,
}


def _list(resource: Resource, path: str) -> list[object]:
    value = resource.get(path)
    return value if isinstance(value, list) else []


def _named(resource: Resource) -> Iterator[tuple[object, object]]:
    for each in _list(resource, _SETTINGS):
        if isinstance(each, Mapping):
            yield each.get("ParameterName"), each.get("ParameterValue")


def _templates(template: Template, group: Resource) -> Iterator[Resource]:
    yield from template.referred(group.get("Properties.CustomLaunchTemplate"), "AWS::EC2::LaunchTemplate")


@template_rule(
    id="pcsSettings",
    source=f"{_GUIDE}/slurm-custom-settings.html",
    description="SlurmCustomSettings must name settings that AWS PCS takes for a cluster, a compute node group or a "
    "queue, once each",
    fix="Take the setting away, or move it to the resource that has it",
)
def _settings(template: Template) -> Iterator[Finding]:
    for resource in template.of_type(*_ALLOWED):
        allowed = _ALLOWED[str(resource.definition["Type"])]
        names = [name for name, _ in _named(resource) if isinstance(name, str)]
        if not set(names) <= set(allowed) or len(set(names)) < len(names):
            yield resource.at(_SETTINGS)


@template_rule(
    id="pcsVersion",
    source=f"{_GUIDE}/slurm-versions.html",
    description="Scheduler.Version of a cluster must be 25.11 or 26.05: an older Slurm starts the job of a failed "
    "node again after minutes only, and AWS PCS does not have others",
    fix="Set Scheduler.Version to 25.11",
)
def _version(template: Template) -> Iterator[Finding]:
    path, known = "Properties.Scheduler.Version", {each.value for each in SlurmVersion}
    for cluster in template.of_type(CLUSTER):
        if isinstance(cluster.get(path), str) and cluster.get(path) not in known:
            yield cluster.at(path)


@template_rule(
    id="pcsPurge",
    source="https://docs.aws.amazon.com/pcs/latest/APIReference/API_Accounting.html",
    description="DefaultPurgeTimeInDays must not be 0, which AWS PCS refuses",
    fix="Leave it out to keep records, or give the number of days",
)
def _purge(template: Template) -> Iterator[Finding]:
    path = "Properties.SlurmConfiguration.Accounting.DefaultPurgeTimeInDays"
    return (each.at(path) for each in template.of_type(CLUSTER) if each.get(path) == 0)


@template_rule(
    id="pcsName",
    source="https://docs.aws.amazon.com/pcs/latest/APIReference/API_CreateComputeNodeGroup.html",
    description=f"Name of a compute node group or a queue must be {QUEUE_NAME.wanted}",
    fix="Shorten it",
)
def _name(template: Template) -> Iterator[Finding]:
    for resource in template.of_type(GROUP, QUEUE):
        name = resource.get("Properties.Name")
        if isinstance(name, str) and not QUEUE_NAME.pattern.fullmatch(name):
            yield resource.at("Properties.Name")


@template_rule(
    id="pcsSizes",
    source=f"{_GUIDE}/working-with_cng_create.html",
    description="MinInstanceCount of a compute node group must be 0 or equal to MaxInstanceCount",
    fix="Set it to 0, and let the power function set sizes",
)
def _sizes(template: Template) -> Iterator[Finding]:
    path = "Properties.ScalingConfiguration"
    for group in template.of_type(GROUP):
        least, most = (group.get(f"{path}.{name}") for name in ("MinInstanceCount", "MaxInstanceCount"))
        if isinstance(least, int) and isinstance(most, int) and least not in {0, most}:
            yield group.at(path)


@template_rule(
    id="pcsTypes",
    source=f"{_GUIDE}/working-with_cng_create.html",
    description="InstanceConfigs of a compute node group must have types of the same architecture, vCPUs and GPUs",
    fix="Make a compute node group of each and list them in one queue",
)
def _types(template: Template) -> Iterator[Finding]:
    path = "Properties.InstanceConfigs"
    for group in template.of_type(GROUP):
        kinds = set()
        for each in _list(group, path):
            try:
                info = instance_type_info(str(each.get("InstanceType"))) if isinstance(each, Mapping) else None
            except ValueError:  # it is in no catalog: nothing is known of it
                continue
            if info is not None:
                kinds.add((info.architectures, info.vcpus, info.nvidia_gpu_count))
        if len(kinds) > 1:
            yield group.at(path)


@template_rule(
    id="pcsGres",
    source=f"{_GUIDE}/gres-custom-settings.html",
    description="Gres of a compute node group must name resources that a record of GresCustomSettings declares",
    fix="Add a record with the Name, or with AutoDetect for GPUs",
)
def _gres(template: Template) -> Iterator[Finding]:
    for group in template.of_type(GROUP):
        records = _list(group, "Properties.SlurmConfiguration.GresCustomSettings")
        declared = {str(each.get("Name")) for each in records if isinstance(each, Mapping)}
        if any(isinstance(each, Mapping) and each.get("AutoDetect", "off") != "off" for each in records):
            declared.add("gpu")
        gres = next((value for name, value in _named(group) if name == "Gres"), "")
        if isinstance(gres, str) and {each.partition(":")[0] for each in gres.split(",") if each} - declared:
            yield group.at(_SETTINGS)


@template_rule(
    id="pcsUserData",
    source=f"{_GUIDE}/working-with_ec2-user-data.html",
    description="UserData of a launch template for AWS PCS must be a MIME multi-part archive",
    fix="Leave the user data as the library makes it",
)
def _user_data(template: Template) -> Iterator[Finding]:
    path = f"{LAUNCH}.UserData"
    for group in template.of_type(GROUP):
        for launch in _templates(template, group):
            # As text it is encoded, and not read.
            if isinstance(launch.get(path), Mapping) and "multipart/mixed" not in str(launch.get(path)):
                yield launch.at(path)


@template_rule(
    id="pcsInterfaceGroups",
    source=f"{_GUIDE}/working-with_launch-templates_overview.html",
    description="Each network interface of a launch template for AWS PCS must have Groups",
    fix="Give the ids of security groups on each interface, and none by name",
)
def _interface_groups(template: Template) -> Iterator[Finding]:
    path = f"{LAUNCH}.NetworkInterfaces"
    for group in template.of_type(GROUP):
        for launch in _templates(template, group):
            if any(isinstance(each, Mapping) and not each.get("Groups") for each in _list(launch, path)):
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
    for group in template.of_type(GROUP):
        for launch in _templates(template, group):
            if launch.get(path) not in {None, "default"} and not is_intrinsic(launch.get(path)):
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
    for group in template.of_type(GROUP):
        for launch in (
            _templates(template, group) if group.get("Properties.PurchaseOption") == "CAPACITY_BLOCK" else ()
        ):
            if any(launch.get(f"{LAUNCH}.{path}") is None for path in wanted):
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
                path, name = (str(role.get(f"Properties.{each}")) for each in ("Path", "RoleName"))
                attached = [each for each in policies if role in template.referred(each.definition, "AWS::IAM::Role")]
                texts = [str(role.definition), *(str(each.definition) for each in attached)]
                joins = any("pcs:RegisterComputeNodeGroupInstance" in text for text in texts)
                if not ("/aws-pcs/" in path or name.startswith("AWSPCS")) or not joins:
                    yield role.at("Properties.Path")
