"""Which network interfaces a node gets: from the facts about its type, never from the type's name.

The layouts are AWS's own:
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html
Other AWS pages still show older ones, with EFAs at device 1 of every further card; this page is the current
one.
"""

from dataclasses import dataclass
from enum import Enum

from cdk_training_cluster.instance_types import InstanceTypeInfo, NetworkCard

_PRIMARY_WITH_EFA_BESIDE_IT = 2


class InterfaceLayout(Enum):
    """How many of a node's interfaces have an IP address; the EFA bandwidth is the same in both."""

    IP_OPTIMISED = "ip-optimised"
    """One IP address a node: the primary interface is the only one that is not EFA-only."""

    BANDWIDTH_OPTIMISED = "bandwidth-optimised"
    """All the IP bandwidth the type has: an ENA interface, with an IP address, on further cards too."""


@dataclass(frozen=True, order=True)
class NetworkInterface:
    """Describes one interface, as a launch template's NetworkInterfaces take it.

    Attributes:
        card: NetworkCardIndex.
        device: DeviceIndex, counted from 0 on each card.
        interface_type: InterfaceType: `interface` (ENA), `efa` (both in one) or `efa-only`.
    """

    card: int
    device: int
    interface_type: str


def network_interfaces(
    info: InstanceTypeInfo,
    *,
    efa: bool = True,
    layout: InterfaceLayout = InterfaceLayout.IP_OPTIMISED,
    free_interface: bool = False,
) -> tuple[NetworkInterface, ...]:
    """Return the interfaces that give a type all its EFA bandwidth, sorted by card and device.

    Args:
        info: The facts about the type.
        efa: Whether to attach EFAs: as many as the type takes, or none and the primary interface alone.
            Default: True
        layout: How many interfaces have an IP address. A type without room for more has the same interfaces
            in both layouts. Default: InterfaceLayout.IP_OPTIMISED
        free_interface: Whether card 0 keeps room for one more interface: the primary interface is then an EFA too
            where both would fill the card. Default: False

    Raises:
        ValueError: If efa is True and the type has no EFA, or its facts leave no room for a primary
            interface.
    """
    primary = NetworkInterface(0, 0, "interface")
    if not efa:
        return (primary,)
    if not info.supports_efa:
        raise ValueError(f"instance type {info.name} has no EFA: leave efa out, or choose a type with EFA")
    cards = {card.index: card for card in info.network_cards}
    carrying = set(info.efa_cards)
    interfaces = [NetworkInterface(index, 0, "efa-only") for index in carrying - {0}]
    if 0 not in carrying:
        interfaces += [primary]
    elif cards[0].has_room_for(_PRIMARY_WITH_EFA_BESIDE_IT + free_interface):
        interfaces += [primary, NetworkInterface(0, 1, "efa-only")]
    else:
        interfaces += [_primary_that_is_efa_too(info, cards[0])]
    if layout is InterfaceLayout.BANDWIDTH_OPTIMISED:
        interfaces += [NetworkInterface(index, 1, "interface") for index in _ena_cards(info, carrying)]
    return tuple(sorted(interfaces))


def _primary_that_is_efa_too(info: InstanceTypeInfo, card: NetworkCard) -> NetworkInterface:
    # EFA-only cannot be primary, so where one interface fits it has to be both (hpc6id.32xlarge).
    if "efa" not in card.interface_types:
        raise ValueError(
            f"instance type {info.name}: network card 0 has room for one interface and takes no 'efa', so "
            "its EFA would leave no primary interface: correct network_cards, or leave card 0 out of "
            "efa_placements"
        )
    return NetworkInterface(0, 0, "efa")


def _ena_cards(info: InstanceTypeInfo, carrying: set[int]) -> list[int]:
    """Return the further cards that get an ENA interface at device 1.

    Where AWS lists them, those. Else its general statement holds: "for each additional network interface, use
    the next unused network card index, device index 0 for EFA-only […] and/or device index 1 for ENA". Auto Scaling
    groups take one device index on several network cards: https://github.com/eksctl-io/eksctl/pull/7643 and, tried
    with P4, P5 and Trn1, https://github.com/aws/aws-k8s-tester/pull/531.
    """
    if info.ena_cards is not None:
        return list(info.ena_cards)
    return [card.index for card in info.network_cards if card.index != 0 and _takes_ena(card, card.index in carrying)]


def _takes_ena(card: NetworkCard, carries_efa: bool) -> bool:
    return "interface" in card.interface_types and card.has_room_for(1 + carries_efa)
