"""What EC2 asks of a Spot Fleet and its launch templates."""

from collections.abc import Iterator, Mapping

from cdk_training_cluster.template_rules.rule import CLOUDFORMATION, EC2_API, EC2_GUIDE, TemplateRule
from cdk_training_cluster.template_rules.template import ROLE, Finding, Fleet, LaunchTemplate, Template
from cdk_training_cluster.template_rules.values import is_intrinsic, items, number, text

_STRATEGIES = (
    "capacityOptimized",
    "capacityOptimizedPrioritized",
    "diversified",
    "lowestPrice",
    "priceCapacityOptimized",
)


def _strategy(template: Template) -> Iterator[Finding]:
    yield from _other_than(template, "AllocationStrategy", _STRATEGIES)


def _type(template: Template) -> Iterator[Finding]:
    # Where nothing is said, maintain is the default.
    yield from _other_than(template, "Type", ("maintain",))


def _other_than(template: Template, name: str, allowed: tuple[str, ...]) -> Iterator[Finding]:
    for fleet in template.fleets:
        value = text(fleet.get(f"{fleet.CONFIG}.{name}"))
        if value is not None and value not in allowed:
            yield fleet.at(f"{fleet.CONFIG}.{name}")


def _target(template: Template) -> Iterator[Finding]:
    path = f"{Fleet.CONFIG}.TargetCapacity"
    for fleet in template.fleets:
        if number(fleet.get(path)) not in {None, 0}:
            yield fleet.at(path)


def _tags(template: Template) -> Iterator[Finding]:
    specifications = f"{Fleet.CONFIG}.TagSpecifications"
    for fleet in template.fleets:
        for place in range(len(items(fleet.get(specifications)))):
            path = f"{specifications}.{place}.ResourceType"
            if text(fleet.get(path)) not in {None, "spot-fleet-request"}:
                yield fleet.at(path)


def _interruption(template: Template) -> Iterator[Finding]:
    path = f"{Fleet.CONFIG}.InstanceInterruptionBehavior"
    for fleet in template.fleets:
        placed = any(
            launch.has(f"LaunchTemplateData.Placement.{name}")
            for launch in fleet.launch_templates
            for name in ("GroupName", "GroupId")
        )
        if placed and text(fleet.get(path)) not in {None, "terminate"}:
            yield fleet.at(path)


def _role(template: Template) -> Iterator[Finding]:
    for fleet in template.fleets:
        role = template.find(fleet.get(f"{fleet.CONFIG}.IamFleetRole"), ROLE)
        trust = None if role is None else role.get("AssumeRolePolicyDocument")
        if role is not None and isinstance(trust, Mapping) and not _may_name(trust, "spotfleet.amazonaws.com"):
            yield role.at("AssumeRolePolicyDocument")


def _may_name(value: object, service: str) -> bool:
    if is_intrinsic(value):
        return True  # not known before the deployment
    if isinstance(value, Mapping):
        return any(_may_name(each, service) for each in value.values())
    return value == service or any(_may_name(each, service) for each in items(value))


def _launches(template: Template) -> Iterator[LaunchTemplate]:
    return (launch for fleet in template.fleets for launch in fleet.launch_templates)


def _image(template: Template) -> Iterator[Finding]:
    path = "LaunchTemplateData.ImageId"
    for launch in _launches(template):
        if (text(launch.get(path)) or "").startswith("resolve:ssm:"):
            yield launch.at(path)


def _market_options(template: Template) -> Iterator[Finding]:
    path = "LaunchTemplateData.InstanceMarketOptions"
    for launch in _launches(template):
        if launch.has(path):
            yield launch.at(path)


def _interface_id(template: Template) -> Iterator[Finding]:
    for launch in _launches(template):
        interfaces = "LaunchTemplateData.NetworkInterfaces"
        for place in range(len(items(launch.get(interfaces)))):
            path = f"{interfaces}.{place}.NetworkInterfaceId"
            if launch.has(path):
                yield launch.at(path)


_CONFIG = f"{EC2_API}/API_SpotFleetRequestConfigData.html"

FLEET_RULES = (
    TemplateRule(
        id="fleetAllocationStrategy",
        source=_CONFIG,
        description=(
            f"AllocationStrategy of a Spot Fleet must be one of {', '.join(_STRATEGIES)}: without hyphens, unlike an "
            "Auto Scaling group's"
        ),
        fix="Write priceCapacityOptimized",
        find=_strategy,
    ),
    TemplateRule(
        id="fleetType",
        source=f"{EC2_API}/API_ModifySpotFleetRequest.html",
        description="Type of a Spot Fleet must be maintain: no other can be modified, so its size could not be set",
        fix="Leave Type at maintain",
        find=_type,
    ),
    TemplateRule(
        id="fleetTarget",
        source=f"{CLOUDFORMATION}/TemplateReference/aws-resource-ec2-spotfleet.html",
        description=(
            "TargetCapacity of a Spot Fleet must be 0: a deployment would launch that many, and every later one that "
            "changes the fleet would do so again, even while the cluster is stopped"
        ),
        fix="Leave TargetCapacity at 0: the power function sets it to the node group's count",
        find=_target,
    ),
    TemplateRule(
        id="fleetTags",
        source=_CONFIG,
        description="ResourceType in TagSpecifications of a Spot Fleet must be spot-fleet-request",
        fix="Tag instances in the launch template",
        find=_tags,
    ),
    TemplateRule(
        id="fleetRole",
        source=f"{EC2_GUIDE}/work-with-spot-fleets.html",
        description="The role of a Spot Fleet (IamFleetRole) must be one that spotfleet.amazonaws.com may assume",
        fix="Leave the role as the library makes it",
        find=_role,
    ),
    TemplateRule(
        id="fleetInterruption",
        source=f"{EC2_GUIDE}/limitations-placement-groups.html",
        description=(
            "InstanceInterruptionBehavior of a Spot Fleet must be terminate where its launch template names a "
            "placement group: EC2 launches no Spot Instance there that is to stop or hibernate"
        ),
        fix="Leave InstanceInterruptionBehavior at terminate",
        find=_interruption,
    ),
    TemplateRule(
        id="fleetImage",
        source=f"{EC2_API}/API_RequestLaunchTemplateData.html",
        description=(
            "ImageId in a Spot Fleet's launch template must be an image's id: a Spot Fleet does not resolve "
            "resolve:ssm: parameters"
        ),
        fix="Use ec2.MachineImage.from_ssm_parameter(), which CloudFormation resolves",
        find=_image,
    ),
    TemplateRule(
        id="fleetMarketOptions",
        source=_CONFIG,
        description=(
            "A Spot Fleet's launch template must have no InstanceMarketOptions: the fleet itself requests Spot "
            "Instances, with its own price and interruption behavior"
        ),
        fix="Take InstanceMarketOptions away",
        find=_market_options,
    ),
    TemplateRule(
        id="fleetInterface",
        source=f"{EC2_GUIDE}/spot-fleet-examples.html",
        description="A Spot Fleet's launch template must have no NetworkInterfaceId: each instance needs its own",
        fix="Take NetworkInterfaceId away",
        find=_interface_id,
    ),
)
