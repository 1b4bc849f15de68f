"""What EC2 and Auto Scaling ask of the network interfaces in a launch template."""

from collections.abc import Iterator, Sequence

from cdk_training_cluster.template_rules.rule import AUTO_SCALING_GUIDE, EC2_GUIDE, TemplateRule
from cdk_training_cluster.template_rules.template import Finding, LaunchTemplate, Template
from cdk_training_cluster.template_rules.values import items, number, text

_INTERFACES = "LaunchTemplateData.NetworkInterfaces"
# Its network card and its device index.
_PRIMARY = (0, 0)


def _launches(template: Template) -> Iterator[LaunchTemplate]:
    return (launch for owner in template.owners for launch in owner.launch_templates)


def _interfaces_with(launch: LaunchTemplate, name: str) -> Iterator[Finding]:
    for place in range(len(items(launch.get(_INTERFACES)))):
        if launch.has(f"{_INTERFACES}.{place}.{name}"):
            yield launch.at(f"{_INTERFACES}.{place}.{name}")


def _places(launch: LaunchTemplate) -> Sequence[tuple[int, int]]:
    """Return the network card and the device index of each interface, or nothing if one of them is not known."""
    paths = [f"{_INTERFACES}.{place}" for place in range(len(items(launch.get(_INTERFACES))))]
    found = [(_index(launch, f"{path}.NetworkCardIndex"), _index(launch, f"{path}.DeviceIndex")) for path in paths]
    known = [(card, device) for card, device in found if card is not None and device is not None]
    return known if len(known) == len(found) else ()


def _index(launch: LaunchTemplate, path: str) -> int | None:
    value = launch.get(path)
    return 0 if value is None else number(value)


def _primary(template: Template) -> Iterator[Finding]:
    for launch in _launches(template):
        places = _places(launch)
        if places and _PRIMARY not in places:
            yield launch.at(_INTERFACES)
        elif places:
            kind = f"{_INTERFACES}.{places.index(_PRIMARY)}.InterfaceType"
            if text(launch.get(kind)) == "efa-only":
                yield launch.at(kind)


def _device(template: Template) -> Iterator[Finding]:
    for launch in _launches(template):
        places = _places(launch)
        for place, where in enumerate(places):
            if where in places[:place]:
                yield launch.at(f"{_INTERFACES}.{place}.DeviceIndex")


def _security_groups(template: Template) -> Iterator[Finding]:
    for launch in _launches(template):
        for name in ("SecurityGroupIds", "SecurityGroups"):
            path = f"LaunchTemplateData.{name}"
            if items(launch.get(_INTERFACES)) and launch.has(path) and launch.get(path) != []:
                yield launch.at(path)


def _public_address(template: Template) -> Iterator[Finding]:
    for launch in _launches(template):
        if len(items(launch.get(_INTERFACES))) > 1:
            yield from _interfaces_with(launch, "AssociatePublicIpAddress")


def _subnet(template: Template) -> Iterator[Finding]:
    for group in template.groups:
        for launch in group.launch_templates if group.has("VPCZoneIdentifier") else ():
            yield from _interfaces_with(launch, "SubnetId")


INTERFACE_RULES = (
    TemplateRule(
        id="interfacePrimary",
        source=f"{EC2_GUIDE}/efa-acc-inst-types.html",
        description=(
            "NetworkInterfaces of a launch template must have the primary one, with NetworkCardIndex 0 and "
            "DeviceIndex 0, and its InterfaceType must not be efa-only"
        ),
        fix="Leave the first interface as the library makes it",
        find=_primary,
    ),
    TemplateRule(
        id="interfaceDevice",
        source=f"{EC2_GUIDE}/using-eni.html",
        description=(
            "NetworkInterfaces of a launch template must each have a DeviceIndex of its own on their network card"
        ),
        fix="Leave NetworkCardIndex and DeviceIndex as the library makes them",
        find=_device,
    ),
    TemplateRule(
        id="interfaceSecurityGroups",
        source=f"{AUTO_SCALING_GUIDE}/create-launch-template.html",
        description=(
            "SecurityGroupIds of a launch template must be left out beside NetworkInterfaces: security groups cannot "
            "be in both places"
        ),
        fix="Name security groups in Groups of each interface",
        find=_security_groups,
    ),
    TemplateRule(
        id="interfacePublicAddress",
        source=f"{EC2_GUIDE}/using-instance-addressing.html",
        description=(
            "AssociatePublicIpAddress must be left out where a launch template has more than one of "
            "NetworkInterfaces: EC2 refuses it, whether true or false"
        ),
        fix="Take it away, and give the nodes a NAT gateway",
        find=_public_address,
    ),
    TemplateRule(
        id="interfaceSubnet",
        source=f"{AUTO_SCALING_GUIDE}/asg-in-vpc.html",
        description=(
            "SubnetId of an interface must be left out in a launch template of an Auto Scaling group: "
            "VPCZoneIdentifier of the group decides"
        ),
        fix="Take SubnetId away, and set VPCZoneIdentifier",
        find=_subnet,
    ),
)
