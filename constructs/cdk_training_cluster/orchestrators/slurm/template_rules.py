"""What an escape hatch can make of a Slurm cluster that AWS PCS accepts, and whose nodes then never join or run jobs.

What AWS PCS refuses has no rule here: the deployment fails, and says why.
"""

from collections.abc import Iterator

from cdk_training_cluster.orchestrators.slurm.settings import SlurmVersion
from cdk_training_cluster.validation.templates.reading import LAUNCH, Resource, Template, is_plain_user_data
from cdk_training_cluster.validation.templates.rules import resource_rule, template_rule
from cdk_training_cluster.validation.templates.texts import Finding, is_intrinsic

CLUSTER, GROUP = "AWS::PCS::Cluster", "AWS::PCS::ComputeNodeGroup"

_GUIDE = "https://docs.aws.amazon.com/pcs/latest/userguide"
_SETTINGS = "Properties.SlurmConfiguration.SlurmCustomSettings"


def _named(resource: Resource) -> list[tuple[object, object]]:
    return [(each.get("ParameterName"), each.get("ParameterValue")) for each in resource.mappings(_SETTINGS)]


def _launching(template: Template) -> Iterator[tuple[Resource, Resource]]:
    """Yield each compute node group with its launch template."""
    return template.launching(GROUP, "Properties.CustomLaunchTemplate")


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
