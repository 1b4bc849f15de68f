"""What a launch is judged by: its data, DescribeInstanceTypes' facts about the type, and what exists around it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from local_aws.refusal import Refusal


class Ec2Refusal(Refusal):
    """A launch that EC2 refuses: its error code and message."""


@dataclass(frozen=True, kw_only=True)
class ReservationFacts:
    """A Capacity Reservation or a Capacity Block, as it is at the time of a launch.

    Attributes:
        reservation_id: Its id.
        instance_type: The type that it reserves.
        availability_zone: The zone that it is in.
        platform: The platform of the images that may run in it.
        tenancy: "default" or "dedicated".
        placement_group: The name of the placement group that it was made in, if any.
        is_block: Whether it is a Capacity Block.
        targeted: Whether only launches that name it run in it.
        state: As DescribeCapacityReservations says it.
        is_ending: Whether AWS clears it already, as it does with a block before its end.
        available: How many more instances it takes.
    """

    reservation_id: str
    instance_type: str
    availability_zone: str
    platform: str = "Linux/UNIX"
    tenancy: str = "default"
    placement_group: str | None = None
    is_block: bool = False
    targeted: bool = True
    state: str = "active"
    is_ending: bool = False
    available: int = 1


@dataclass(frozen=True, kw_only=True)
class LaunchContext:
    """What exists around a launch, as far as a rule asks for it.

    Attributes:
        image_architectures: Architecture by image id.
        image_platforms: Platform by image id, as a Capacity Reservation spells it; Linux/UNIX if not listed.
        image_volumes: Device name and snapshot size in GiB of the root volume, by image id.
        security_group_vpcs: VPC id by security group id.
        placement_groups: Strategy by placement group name.
        instance_profiles: Names and ARNs of instance profiles.
        subnet_id: The subnet that the launch goes to, if it is known already.
        subnet_vpc: The VPC of that subnet.
        availability_zone: The zone of that subnet.
        free_addresses: The addresses that the subnet has left; None if there is no subnet.
        reservations: The account's Capacity Reservations by id.
        reservation_groups: The ARNs of the resource groups that a launch can target.
        is_trial: Whether the launch is only tried out, so that what changes with time does not count.
    """

    image_architectures: Mapping[str, str]
    image_platforms: Mapping[str, str] = field(default_factory=dict)
    image_volumes: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    security_group_vpcs: Mapping[str, str]
    placement_groups: Mapping[str, str]
    instance_profiles: frozenset[str] = frozenset()
    subnet_id: str | None = None
    subnet_vpc: str | None = None
    availability_zone: str | None = None
    free_addresses: int | None = None
    reservations: Mapping[str, ReservationFacts] = field(default_factory=dict)
    reservation_groups: frozenset[str] = frozenset()
    is_trial: bool = False


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
    def market(self) -> str | None:
        """The market type that the launch asks for."""
        market: str | None = (self.data.get("InstanceMarketOptions") or {}).get("MarketType")
        return market

    @property
    def placement(self) -> Mapping[str, Any]:
        """Where the instance shall be placed."""
        return self.data.get("Placement") or {}

    @property
    def preference(self) -> str | None:
        """The Capacity Reservation preference."""
        preference: str | None = self._specification.get("CapacityReservationPreference")
        return preference

    @property
    def target(self) -> Mapping[str, str]:
        """The Capacity Reservation, or the group of them, that the launch targets."""
        return self._specification.get("CapacityReservationTarget") or {}

    @property
    def target_id(self) -> str | None:
        """The id of the Capacity Reservation that the launch targets."""
        return self.target.get("CapacityReservationId")

    @property
    def reservation(self) -> ReservationFacts | None:
        """The Capacity Reservation that the launch targets by its id, if there is such a one."""
        return self.context.reservations.get(self.target_id or "")

    @property
    def _specification(self) -> Mapping[str, Any]:
        return self.data.get("CapacityReservationSpecification") or {}

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
