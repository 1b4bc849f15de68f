"""The rules by which EC2 refuses a launch: pure functions over launch data, facts about the type, and context.

Facts about instance types are DescribeInstanceTypes' own, so these rules know nothing of the library's
catalog. Codes are EC2's (https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html);
messages are EC2's where a public report of one exists, and say the same in plain words elsewhere.
"""

import base64
import binascii
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rehearsal.local_aws.refusal import Refusal

_USER_DATA_LIMIT = 16384
_EFA_TYPES = ("efa", "efa-only")


class Ec2Refusal(Refusal):
    """A launch that EC2 refuses: its error code and message."""


@dataclass(frozen=True, kw_only=True)
class LaunchContext:
    """What exists around a launch, as far as a rule asks for it.

    Attributes:
        image_architectures: Architecture by image id.
        security_group_vpcs: VPC id by security group id.
        placement_groups: Strategy by placement group name.
        instance_profiles: Names and ARNs of instance profiles.
        subnet_id: The subnet that the launch goes to, if it is known already.
        subnet_vpc: The VPC of that subnet.
        free_addresses: The addresses that the subnet has left; None if there is no subnet.
    """

    image_architectures: Mapping[str, str]
    security_group_vpcs: Mapping[str, str]
    placement_groups: Mapping[str, str]
    instance_profiles: frozenset[str] = frozenset()
    subnet_id: str | None = None
    subnet_vpc: str | None = None
    free_addresses: int | None = None


@dataclass(frozen=True)
class Launch:
    """One launch under examination.

    Attributes:
        data: The launch data, in the words of RunInstances and of a launch template.
        type_facts: DescribeInstanceTypes' entry; None if EC2 knows no such type.
        context: What exists around the launch.
    """

    data: Mapping[str, Any]
    type_facts: Mapping[str, Any] | None
    context: LaunchContext
    interfaces: Sequence[Mapping[str, Any]] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "interfaces", self.data.get("NetworkInterfaces") or [])

    @property
    def instance_type(self) -> str:
        """The type's name."""
        return str(self.data.get("InstanceType", ""))

    @property
    def facts(self) -> Mapping[str, Any]:
        """The type's facts; the first rule refuses a launch without them."""
        return self.type_facts or {}

    @property
    def cards(self) -> Mapping[int, Mapping[str, Any]]:
        """The type's network cards by index."""
        return {card["NetworkCardIndex"]: card for card in self.facts["NetworkInfo"]["NetworkCards"]}


def card_of(interface: Mapping[str, Any]) -> int:
    """Return the network card of an interface. EC2's default is card 0."""
    return int(interface.get("NetworkCardIndex", 0))


def device_of(interface: Mapping[str, Any]) -> int:
    """Return the device index of an interface."""
    return int(interface.get("DeviceIndex", 0))


def type_of(interface: Mapping[str, Any]) -> str:
    """Return the type of an interface. EC2's default is "interface"."""
    return str(interface.get("InterfaceType", "interface"))


def check_launch(data: Mapping[str, Any], type_facts: Mapping[str, Any] | None, context: LaunchContext) -> None:
    """Raise what EC2 answers to a launch that it would refuse; return if it would launch.

    Raises:
        Ec2Refusal: with EC2's error code and message, for the first rule that is broken.
    """
    launch = Launch(data, type_facts, context)
    for rule in RULES:
        rule(launch)


def the_type_exists(launch: Launch) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html (InvalidParameterValue)."""
    if not launch.instance_type:
        raise Ec2Refusal("MissingParameter", "The request must contain the parameter InstanceType")
    if launch.type_facts is None:
        raise Ec2Refusal("InvalidParameterValue", f"Invalid value '{launch.instance_type}' for InstanceType.")


def the_image_exists(launch: Launch) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html (InvalidAMIID)."""
    image = launch.data.get("ImageId")
    if not image:
        raise Ec2Refusal("MissingParameter", "The request must contain the parameter ImageId")
    if not re.fullmatch(r"ami-[0-9a-z]+", image):
        raise Ec2Refusal("InvalidAMIID.Malformed", f'Invalid id: "{image}" (expecting "ami-...")')
    if image not in launch.context.image_architectures:
        raise Ec2Refusal("InvalidAMIID.NotFound", f"The image id '[{image}]' does not exist")


def the_image_fits_the_type(launch: Launch) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ComponentsAMIs.html (architecture)."""
    image = launch.context.image_architectures[launch.data["ImageId"]]
    supported = launch.facts["ProcessorInfo"]["SupportedArchitectures"]
    if image not in supported:
        raise Ec2Refusal(
            "InvalidParameterValue",
            f"The architecture '{','.join(supported)}' of the specified instance type does not match the "
            f"architecture '{image}' of the specified AMI. Specify an instance type and an AMI that have "
            "matching architectures, and try again.",
        )


def user_data_is_small(launch: Launch) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-add-user-data.html: 16 KB, raw."""
    encoded = launch.data.get("UserData")
    if not encoded:
        return
    try:
        raw = base64.b64decode(str(encoded), validate=True)
    except (binascii.Error, ValueError) as error:
        raise Ec2Refusal("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.") from error
    if len(raw) > _USER_DATA_LIMIT:
        raise Ec2Refusal("InvalidParameterValue", f"User data is limited to {_USER_DATA_LIMIT} bytes")


def groups_and_subnet_are_said_once(launch: Launch) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RunInstances.html (SecurityGroupId, SubnetId)."""
    if not launch.interfaces:
        return
    if launch.data.get("SecurityGroupIds") or launch.data.get("SecurityGroups"):
        raise Ec2Refusal(
            "InvalidParameterCombination",
            "Network interfaces and an instance-level security groups may not be specified on the same request",
        )
    if launch.data.get("SubnetId"):
        raise Ec2Refusal(
            "InvalidParameterCombination",
            "Network interfaces and an instance-level subnet ID may not be specified on the same request",
        )


def the_primary_interface_is_there(launch: Launch) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-eni.html#network-cards."""
    if launch.interfaces and not any(card_of(i) == 0 and device_of(i) == 0 for i in launch.interfaces):
        raise Ec2Refusal(
            "InvalidParameterValue",
            "When specifying network interfaces, you must include a device at index 0 and network card at index 0.",
        )


def the_primary_interface_has_an_address(launch: Launch) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html#efa-only-interfaces: not as the primary."""
    for interface in launch.interfaces:
        if card_of(interface) == 0 and device_of(interface) == 0 and type_of(interface) == "efa-only":
            raise Ec2Refusal(
                "InvalidParameterCombination",
                "The primary network interface (network card index 0, device index 0) cannot be of type "
                "'efa-only'. Specify 'interface' or 'efa', and try again.",
            )


def every_device_index_is_unique(launch: Launch) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-eni.html#network-cards: unique on its card."""
    places = Counter((card_of(interface), device_of(interface)) for interface in launch.interfaces)
    if any(count > 1 for count in places.values()):
        raise Ec2Refusal("InvalidParameterValue", "Each network interface requires a unique device index.")


def every_network_card_exists(launch: Launch) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-eni.html#network-cards."""
    for interface in launch.interfaces:
        if card_of(interface) not in launch.cards:
            raise Ec2Refusal(
                "InvalidParameterValue",
                f"The specified number '{card_of(interface)}' for the network card index exceeds the maximum number "
                f"of network cards of the instance type '{launch.instance_type}'. Specify a number from 0 to "
                f"{max(launch.cards)}, and try again.",
            )


def no_card_has_too_many_interfaces(launch: Launch) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/AvailableIpPerENI.html: the maximum of a card."""
    for card_index, count in Counter(card_of(interface) for interface in launch.interfaces).items():
        maximum = launch.cards[card_index]["MaximumNetworkInterfaces"]
        if count > maximum:
            raise Ec2Refusal(
                "AttachmentLimitExceeded",
                f"Interface count {count} exceeds the limit for {launch.instance_type} at network card index "
                f"{card_index}: {maximum}",
            )
    for interface in launch.interfaces:
        maximum = launch.cards[card_of(interface)]["MaximumNetworkInterfaces"]
        if device_of(interface) >= maximum:
            raise Ec2Refusal(
                "InvalidParameterValue",
                f"The specified number '{device_of(interface)}' for the device index exceeds the maximum number of "
                f"network interfaces supported by the network card at network card index {card_of(interface)}. The "
                f"maximum devices for this network card is {maximum}. Specify a number from 0 to {maximum - 1}, and "
                "try again.",
            )


def efa_fits_the_type(launch: Launch) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html: EfaSupported, EfaInfo.MaximumEfaInterfaces."""
    count = sum(type_of(interface) in _EFA_TYPES for interface in launch.interfaces)
    if count and not launch.facts["NetworkInfo"].get("EfaSupported"):
        raise Ec2Refusal(
            "InvalidParameterCombination",
            f"{launch.instance_type} instances do not support Elastic Fabric Adapters.",
        )
    maximum = launch.facts["NetworkInfo"].get("EfaInfo", {}).get("MaximumEfaInterfaces", 0)
    if count > maximum:
        raise Ec2Refusal(
            "AttachmentLimitExceeded",
            f"EFA interfaces count {count} exceeds allowed limit for {launch.instance_type}: {maximum}",
        )


def every_card_takes_its_interface(launch: Launch) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html: NetworkCards[].InterfaceTypes."""
    for interface in launch.interfaces:
        supported = launch.cards[card_of(interface)].get("InterfaceTypes", ["interface"])
        if type_of(interface) not in supported:
            raise Ec2Refusal(
                "AttachmentLimitExceeded",
                f"The network card at network card index {card_of(interface)} of {launch.instance_type} does not "
                f"support interfaces of type '{type_of(interface)}'; it supports {', '.join(supported)}.",
            )


def several_interfaces_get_no_public_address(launch: Launch) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceNetworkInterfaceSpecification.html."""
    asked = [i for i in launch.interfaces if i.get("AssociatePublicIpAddress") is not None]
    if asked and len(launch.interfaces) > 1:
        raise Ec2Refusal(
            "InvalidParameterCombination",
            "The associatePublicIPAddress parameter cannot be specified when launching with multiple network "
            "interfaces.",
        )


def every_security_group_exists(launch: Launch) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html (InvalidGroup.NotFound)."""
    groups = list(launch.data.get("SecurityGroupIds") or [])
    for interface in launch.interfaces:
        groups += interface.get("Groups") or []
    for group in groups:
        vpc = launch.context.security_group_vpcs.get(group)
        if vpc is None:
            raise Ec2Refusal("InvalidGroup.NotFound", f"The security group '{group}' does not exist")
        if launch.context.subnet_vpc is not None and vpc != launch.context.subnet_vpc:
            raise Ec2Refusal(
                "InvalidParameter",
                f"Security group {group} and subnet {launch.context.subnet_id} belong to different networks.",
            )


def the_placement_group_exists_and_fits(launch: Launch) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/placement-strategies.html."""
    name = (launch.data.get("Placement") or {}).get("GroupName")
    if not name:
        return
    strategy = launch.context.placement_groups.get(name)
    if strategy is None:
        raise Ec2Refusal("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
    if strategy not in launch.facts["PlacementGroupInfo"]["SupportedStrategies"]:
        raise Ec2Refusal(
            "InvalidParameterCombination",
            f"{strategy.capitalize()} placement groups are not supported by the '{launch.instance_type}' instance "
            "type. Specify a supported instance type or change the placement group strategy, and try again.",
        )


def the_instance_profile_exists(launch: Launch) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/iam-roles-for-amazon-ec2.html."""
    profile = launch.data.get("IamInstanceProfile") or {}
    for kind in ("Name", "Arn"):
        wanted = profile.get(kind)
        if wanted and wanted not in launch.context.instance_profiles:
            raise Ec2Refusal(
                "InvalidParameterValue",
                f"Value ({wanted}) for parameter iamInstanceProfile.{kind.lower()} is invalid. "
                f"Invalid IAM Instance Profile {'name' if kind == 'Name' else 'ARN'}",
            )


def the_market_is_sold_for_the_type(launch: Launch) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceTypeInfo.html: SupportedUsageClasses."""
    market = (launch.data.get("InstanceMarketOptions") or {}).get("MarketType", "on-demand")
    if market not in launch.facts["SupportedUsageClasses"]:
        raise Ec2Refusal(
            "UnsupportedOperation",
            f"The instance type '{launch.instance_type}' does not support the market type '{market}'; it supports "
            f"{', '.join(sorted(launch.facts['SupportedUsageClasses']))}.",
        )


def the_subnet_has_room(launch: Launch) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html: one address a non-efa-only."""
    needed = sum(type_of(interface) != "efa-only" for interface in launch.interfaces) or 1
    free = launch.context.free_addresses
    if free is not None and needed > free:
        raise insufficient_addresses(str(launch.context.subnet_id))


def insufficient_addresses(subnet_id: str) -> Ec2Refusal:
    """Return EC2's answer when a subnet has too few free addresses."""
    return Ec2Refusal(
        "InsufficientFreeAddressesInSubnet",
        f"There are not enough free addresses in subnet '{subnet_id}' to satisfy the requested number of instances.",
    )


RULES: tuple[Callable[[Launch], None], ...] = (
    the_type_exists,
    the_image_exists,
    the_image_fits_the_type,
    user_data_is_small,
    groups_and_subnet_are_said_once,
    the_primary_interface_is_there,
    the_primary_interface_has_an_address,
    every_device_index_is_unique,
    every_network_card_exists,
    no_card_has_too_many_interfaces,
    efa_fits_the_type,
    every_card_takes_its_interface,
    several_interfaces_get_no_public_address,
    every_security_group_exists,
    the_placement_group_exists_and_fits,
    the_instance_profile_exists,
    the_market_is_sold_for_the_type,
    the_subnet_has_room,
)
