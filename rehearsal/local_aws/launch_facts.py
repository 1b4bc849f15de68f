"""What a launch is judged by: its data, DescribeInstanceTypes' facts about the type, and what exists around it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rehearsal.local_aws.refusal import Refusal


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


def insufficient_addresses(subnet_id: str) -> Ec2Refusal:
    """Return EC2's answer when a subnet has too few free addresses."""
    return Ec2Refusal(
        "InsufficientFreeAddressesInSubnet",
        f"There are not enough free addresses in subnet '{subnet_id}' to satisfy the requested number of instances.",
    )
