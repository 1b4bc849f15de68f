"""The rules by which EC2 refuses network interfaces: pure functions, each over one launch.

Codes and messages are as `launch_rules` says.
"""

from collections import Counter

from local_aws.launch_facts import Ec2Refusal, Launch, card_of, device_of, type_of

_EFA_TYPES = ("efa", "efa-only")


def groups_and_subnet_are_said_once(launch: Launch) -> None:
    """Refuse security groups or a subnet beside interfaces that have their own.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RunInstances.html
    """
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
    """Refuse interfaces of which none is card 0, device 0.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-eni.html
    """
    if launch.interfaces and not any(card_of(i) == 0 and device_of(i) == 0 for i in launch.interfaces):
        raise Ec2Refusal(
            "InvalidParameterValue",
            "When specifying network interfaces, you must include a device at index 0 and network card at index 0.",
        )


def the_primary_interface_has_an_address(launch: Launch) -> None:
    """Refuse `efa-only` as the primary interface.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html
    """
    for interface in launch.interfaces:
        if card_of(interface) == 0 and device_of(interface) == 0 and type_of(interface) == "efa-only":
            raise Ec2Refusal(
                "InvalidParameterCombination",
                "The primary network interface (network card index 0, device index 0) cannot be of type "
                "'efa-only'. Specify 'interface' or 'efa', and try again.",
            )


def every_device_index_is_unique(launch: Launch) -> None:
    """Refuse two interfaces with one device index on a card.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-eni.html
    """
    places = Counter((card_of(interface), device_of(interface)) for interface in launch.interfaces)
    if any(count > 1 for count in places.values()):
        raise Ec2Refusal("InvalidParameterValue", "Each network interface requires a unique device index.")


def every_network_card_exists(launch: Launch) -> None:
    """Refuse a network card that the type lacks.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-eni.html
    """
    for interface in launch.interfaces:
        if card_of(interface) not in launch.cards:
            raise Ec2Refusal(
                "InvalidParameterValue",
                f"The specified number '{card_of(interface)}' for the network card index exceeds the maximum number "
                f"of network cards of the instance type '{launch.instance_type}'. Specify a number from 0 to "
                f"{max(launch.cards)}, and try again.",
            )


def no_card_has_too_many_interfaces(launch: Launch) -> None:
    """Refuse more interfaces, or a higher device index, than a card takes.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/AvailableIpPerENI.html
    """
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
    """Refuse EFA on a type without it, and more of it than the type takes.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html
    """
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
    """Refuse an interface type that its card does not list.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html
    """
    for interface in launch.interfaces:
        supported = launch.cards[card_of(interface)].get("InterfaceTypes", ["interface"])
        if type_of(interface) not in supported:
            raise Ec2Refusal(
                "AttachmentLimitExceeded",
                f"The network card at network card index {card_of(interface)} of {launch.instance_type} does not "
                f"support interfaces of type '{type_of(interface)}'; it supports {', '.join(supported)}.",
            )


def several_interfaces_get_no_public_address(launch: Launch) -> None:
    """Refuse a word about public addresses when there are several interfaces.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceNetworkInterfaceSpecification.html
    """
    asked = [i for i in launch.interfaces if i.get("AssociatePublicIpAddress") is not None]
    if asked and len(launch.interfaces) > 1:
        raise Ec2Refusal(
            "InvalidParameterCombination",
            "The associatePublicIPAddress parameter cannot be specified when launching with multiple network "
            "interfaces.",
        )
