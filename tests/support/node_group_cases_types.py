"""Cases of the rules about instance types, by the rule's id."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cdk_training_cluster import (
    Capacity,
    InstanceTypeInfo,
    InterfaceLayout,
    NetworkCard,
    Placement,
    instance_type_info,
)
from cdk_training_cluster.nodes.orchestrator_kind import OrchestratorKind
from cdk_training_cluster.nodes.rules.type_rules import IMAGE_AT_LAUNCH as AT_LAUNCH
from node_group_cases import (
    IMAGE_AT_DEPLOYMENT,
    IMAGE_AT_LAUNCH,
    IMEX_WARNING,
    OTHER,
    OWN_IMAGE,
    RESERVED,
    Case,
    case,
    unknown_number,
)

_ON_DEMAND, _SPOT, _FLEET = Capacity.on_demand(), Capacity.spot(), Capacity.spot_fleet()
_HELD, _BLOCK = Capacity.from_reservation(RESERVED), Capacity.capacity_block(RESERVED)
_IN_TURN = Capacity.prioritized(reservations=[RESERVED], capacity_blocks=[OTHER], on_demand=False)
_RESERVATIONS_IN_TURN = Capacity.prioritized(reservations=[RESERVED])

FLEET_WARNING = {
    "spotFleet": "AWS strongly discourages Spot Fleet, a legacy API with no planned investment, and several network "
    "cards through it are not proven: Capacity.spot() buys the same instances with an Auto Scaling group"
}

_G5 = instance_type_info("g5.xlarge")
_MANY = [replace(_G5, name=f"g5.{number}xlarge-like") for number in range(41)]


def _cards(number: int) -> InstanceTypeInfo:
    """A GPU type with as many network cards, each of which takes an EFA: a layout of its own."""
    cards = [
        NetworkCard(index=index, maximum_interfaces=2, interface_types=("interface", "efa-only"), baseline_gbps=100)
        for index in range(number)
    ]
    return replace(_G5, name=f"g5.{number}-cards", network_cards=tuple(cards), maximum_efa_interfaces=number)


_LAYOUTS = [_cards(number) for number in range(1, 22)]

_ONE_INTERFACE = replace(
    _G5,
    name="g5.narrow",
    network_cards=(
        NetworkCard(index=0, maximum_interfaces=1, interface_types=("interface", "efa-only"), baseline_gbps=100),
    ),
    maximum_efa_interfaces=1,
)


def _names(infos: Sequence[InstanceTypeInfo]) -> list[str]:
    return [info.name for info in infos]


def _one_type(call: str, *names: str) -> str:
    return (
        f"instance_types must name exactly one type for {call}, got {', '.join(names)}: make a node group for each "
        "type"
    )


def _architectures(found: str) -> Mapping[str, str]:
    return {
        "severalArchitectures": f"its nodes may be of {found}, and no program or container runs on both: choose "
        "types of one architecture for nodes that work together"
    }


def _unused(names: str) -> Mapping[str, str]:
    return {
        "efaUnused": f"efa is False for {names} with Elastic Fabric Adapters: the nodes would talk over TCP, many "
        "times slower; leave efa out unless they work alone"
    }


def _small_root(given: int, wanted: int) -> Mapping[str, str]:
    return {
        "rootVolume": f"root_volume_gib is {given}, less than the {wanted} that AWS suggests for its image: EC2 "
        "launches no node whose root volume is smaller than the image's snapshot; training-cluster preflight "
        "compares them"
    }


def _apart(those: str, others: str) -> str:
    return (
        f"instance_types must not mix {those} with {others}: EFA does not work between them; make a node group for "
        "each, or set efa to False"
    )


def _makers(found: str) -> str:
    return (
        f"instance_types must have accelerators of one maker, got {found}: they need other images and other "
        "programs; make a node group for each"
    )


def _no_image(name: str, architecture: str) -> str:
    return f"AWS publishes no Deep Learning image for {name}: give your own machine_image for {architecture}"


_P4D_P5 = ["p4d.24xlarge", "p5.48xlarge"]
_G5_G6 = ["g5.48xlarge", "g6.48xlarge"]

TYPE_CASES: Mapping[str, Sequence[Case]] = {
    "oneType": (
        case(),
        case(_one_type("Capacity.on_demand()", *_G5_G6), instance_types=_G5_G6),
        case(
            _one_type("Capacity.from_reservation()", *_G5_G6, "g4dn.metal"),
            instance_types=[*_G5_G6, "g4dn.metal"],
            capacity=_HELD,
        ),
        case(
            _one_type("Capacity.capacity_block()", "p5e.48xlarge", "p5en.48xlarge"),
            instance_types=["p5e.48xlarge", "p5en.48xlarge"],
            capacity=_BLOCK,
        ),
        case(instance_types=_G5_G6, capacity=_SPOT),
        case(instance_types=_G5_G6, capacity=_FLEET, warnings=FLEET_WARNING),
        case(instance_types=_G5_G6, capacity=_RESERVATIONS_IN_TURN),
        case(instance_types=["g5.48xlarge"], capacity=_SPOT),
    ),
    "mostTypes": (
        case(instance_types=_names(_MANY[:40]), facts=_MANY, capacity=_SPOT),
        case(
            "instance_types must name at most 40 types, got 41: leave the least useful out",
            instance_types=_names(_MANY),
            facts=_MANY,
            capacity=_SPOT,
        ),
        case(
            "instance_types must name at most 40 types, got 41: leave the least useful out",
            instance_types=_names(_MANY),
            facts=_MANY,
            capacity=_RESERVATIONS_IN_TURN,
        ),
        # A Spot Fleet is no Auto Scaling group, whose limit this is.
        case(instance_types=_names(_MANY), facts=_MANY, capacity=_FLEET, warnings=FLEET_WARNING),
    ),
    "mostTemplates": (
        case(instance_types=_names(_LAYOUTS[:20]), facts=_LAYOUTS, capacity=_SPOT),
        case(
            "instance_types must need at most 20 launch templates, one for each layout of network interfaces and "
            "each image, got 21: choose types that are more alike",
            instance_types=_names(_LAYOUTS),
            facts=_LAYOUTS,
            capacity=_SPOT,
        ),
        case(
            instance_types=_names(_LAYOUTS),
            facts=_LAYOUTS,
            capacity=_SPOT,
            efa=False,
            warnings=_unused(" and ".join(_names(_LAYOUTS))),
        ),
        case(instance_types=_names(_LAYOUTS), facts=_LAYOUTS, capacity=_FLEET, warnings=FLEET_WARNING),
    ),
    "typeOnce": (
        case(instance_types=_G5_G6, capacity=_SPOT),
        case(
            "instance_types must name each type once, got g5.48xlarge 2 times",
            instance_types=[*_G5_G6, "g5.48xlarge"],
            capacity=_SPOT,
        ),
        case(
            "instance_types must name each type once, got g5.48xlarge 2 times",
            "instance_types must name each type once, got g6.48xlarge 3 times",
            instance_types=[*_G5_G6, *_G5_G6, "g6.48xlarge"],
            capacity=_FLEET,
        ),
    ),
    "severalArchitectures": (
        case(
            instance_types=["g5.xlarge", "g5g.xlarge", "g6.xlarge"],
            capacity=_SPOT,
            warnings=_architectures("x86_64 (g5.xlarge) and arm64 (g5g.xlarge)"),
        ),
        case(
            instance_types=["g5g.xlarge", "g5.xlarge"],
            capacity=_RESERVATIONS_IN_TURN,
            warnings=_architectures("arm64 (g5g.xlarge) and x86_64 (g5.xlarge)"),
        ),
        case(instance_types=_G5_G6, capacity=_SPOT),
        case(instance_types=["g5g.xlarge"]),
        case(instance_types=["g5g.xlarge", "g5g.2xlarge"], capacity=_SPOT),
        # One of the types with each, in the order of preference.
        case(
            instance_types=["g5g.2xlarge", "g5g.xlarge", "g6.xlarge", "g5.xlarge"],
            capacity=_FLEET,
            warnings={**_architectures("arm64 (g5g.2xlarge) and x86_64 (g6.xlarge)"), **FLEET_WARNING},
        ),
    ),
    "efaFamilies": (
        case(
            _apart("p4d.24xlarge", "p5.48xlarge"),
            instance_types=_P4D_P5,
            capacity=_SPOT,
        ),
        case(
            _apart("p4d.24xlarge and p4de.24xlarge", "g5.48xlarge and g6.48xlarge"),
            instance_types=["p4d.24xlarge", *_G5_G6, "p4de.24xlarge"],
            capacity=_SPOT,
        ),
        case(
            _apart("dl1.24xlarge", "g5.48xlarge"),
            _makers("Habana (dl1.24xlarge) and NVIDIA (g5.48xlarge)"),
            instance_types=["dl1.24xlarge", "g5.48xlarge"],
            capacity=_SPOT,
            machine_image=OWN_IMAGE,
        ),
        case(instance_types=["p4d.24xlarge", "p4de.24xlarge"], capacity=_SPOT),
        case(instance_types=["p4d.24xlarge", "g5.xlarge"], capacity=_SPOT),
        case(instance_types=["p5.48xlarge", "p5e.48xlarge"], capacity=_IN_TURN),
        case(
            instance_types=_P4D_P5,
            capacity=_IN_TURN,
            efa=False,
            warnings=_unused("p4d.24xlarge and p5.48xlarge"),
        ),
    ),
    "acceleratorsAlike": (
        case(
            _makers("NVIDIA (g5.48xlarge) and AWS (trn1.32xlarge)"),
            instance_types=["g5.48xlarge", "trn1.32xlarge", "g6.48xlarge"],
            capacity=_SPOT,
        ),
        case(
            _makers("NVIDIA (g5.xlarge) and AMD (g4ad.xlarge)"),
            instance_types=["g5.xlarge", "g4ad.xlarge"],
            capacity=_SPOT,
            machine_image=OWN_IMAGE,
        ),
        case(
            _makers("none (c7i.48xlarge-like) and NVIDIA (g5.xlarge)"),
            instance_types=["c7i.48xlarge-like", "g5.xlarge"],
            facts=[replace(_G5, name="c7i.48xlarge-like", accelerators=())],
            capacity=_SPOT,
            machine_image=OWN_IMAGE,
        ),
        case(instance_types=_G5_G6, capacity=_SPOT),
        case(instance_types=["trn1.32xlarge", "inf2.48xlarge"], capacity=_SPOT),
        case(
            instance_types=["hpc7a.96xlarge", "hpc6a.48xlarge"],
            capacity=Capacity.prioritized(reservations=[RESERVED]),
            machine_image=OWN_IMAGE,
        ),
    ),
    "oneArchitecture": (
        case(
            "instance_types must have one architecture to share a machine_image, got g5.xlarge (x86_64), g5g.xlarge "
            "(arm64): make a node group for each, or leave machine_image out",
            instance_types=["g5.xlarge", "g5g.xlarge"],
            capacity=_SPOT,
            machine_image=OWN_IMAGE,
        ),
        case(instance_types=["g5.xlarge", "g6.xlarge"], capacity=_SPOT, machine_image=OWN_IMAGE),
        case(
            instance_types=["g5.xlarge", "g5g.xlarge"],
            capacity=_SPOT,
            warnings=_architectures("x86_64 (g5.xlarge) and arm64 (g5g.xlarge)"),
        ),
    ),
    "interfaces": (
        case(
            "instance type g5.xlarge has no EFA: leave efa out, or choose a type with EFA",
            instance_types=["g5.xlarge"],
            efa=True,
        ),
        case(
            "instance type g5.xlarge has no EFA: leave efa out, or choose a type with EFA",
            "instance type g6.xlarge has no EFA: leave efa out, or choose a type with EFA",
            instance_types=["g5.xlarge", "g5.48xlarge", "g6.xlarge"],
            capacity=_SPOT,
            efa=True,
        ),
        case(
            "instance type g5.narrow: network card 0 has room for one interface and takes no 'efa', so its EFA would "
            "leave no primary interface: correct network_cards, or leave card 0 out of efa_placements",
            instance_types=["g5.narrow"],
            facts=[_ONE_INTERFACE],
        ),
        case(instance_types=["g5.narrow"], facts=[_ONE_INTERFACE], efa=False, count=1),
        case(instance_types=["g5.48xlarge"], efa=True),
        case(instance_types=["g5.xlarge"]),
        case(interface_layout=InterfaceLayout.BANDWIDTH_OPTIMISED),
    ),
    "imex": (
        case(instance_types=["p6e-gb200.36xlarge"], capacity=_BLOCK, count=9, warnings=IMEX_WARNING),
        case(instance_types=["p6e-gb200.36xlarge"], capacity=_BLOCK, count=1),
        case(instance_types=["p6-b200.48xlarge"], capacity=_BLOCK, count=9),
        case(instance_types=["trn2u.48xlarge"], capacity=_BLOCK, count=4),
        case(
            instance_types=["p6e-gb200.36xlarge"],
            capacity=_BLOCK,
            count=9,
            orchestrator=OrchestratorKind.EKS,
            warnings={"imex": IMEX_WARNING["imex"].partition("; ")[0] + "; install NVIDIA's DRA driver"},
        ),
    ),
    "efaUnused": (
        case(efa=False, count=2, warnings=_unused("p5.48xlarge")),
        case(
            instance_types=["g5.xlarge", "g5.48xlarge", "g6.48xlarge"],
            capacity=_SPOT,
            efa=False,
            warnings=_unused("g5.48xlarge and g6.48xlarge"),
        ),
        case(efa=False, count=1),
        case(efa=False, count=unknown_number()),
        case(efa=True),
        case(instance_types=["g5.xlarge"], efa=False),
    ),
    "rootVolume": (
        case(root_volume_gib=99, warnings=_small_root(99, 100)),
        case(root_volume_gib=100),
        case(root_volume_gib=unknown_number()),
        case(root_volume_gib=99, machine_image=OWN_IMAGE),
    ),
    "image": (
        *(
            case(_no_image(name, architecture), instance_types=[name], placement=Placement.NONE)
            for name, architecture in (
                ("c7gn.16xlarge", "arm64"),
                ("inf1.24xlarge", "x86_64"),
                ("g4ad.xlarge", "x86_64"),
                ("p3.16xlarge", "x86_64"),
                ("dl1.24xlarge", "x86_64"),
                ("g6f.xlarge", "x86_64"),
            )
        ),
        case(
            _no_image("inf1.24xlarge", "x86_64"),
            instance_types=["inf1.24xlarge", "inf2.48xlarge"],
            capacity=_SPOT,
        ),
        case(instance_types=["inf1.24xlarge"], machine_image=OWN_IMAGE),
        case(instance_types=["inf2.48xlarge"]),
    ),
    "imageAtLaunch": (
        case(AT_LAUNCH, instance_types=["g5.48xlarge"], capacity=_FLEET, machine_image=IMAGE_AT_LAUNCH),
        case(
            instance_types=["g5.48xlarge"],
            capacity=_FLEET,
            machine_image=IMAGE_AT_DEPLOYMENT,
            warnings=FLEET_WARNING,
        ),
        case(instance_types=["g5.48xlarge"], capacity=_FLEET, machine_image=OWN_IMAGE, warnings=FLEET_WARNING),
        case(instance_types=_G5_G6, capacity=_SPOT, machine_image=IMAGE_AT_LAUNCH),
        case(machine_image=IMAGE_AT_LAUNCH),
        case(capacity=_BLOCK, machine_image=IMAGE_AT_LAUNCH),
        case(capacity=_IN_TURN, machine_image=IMAGE_AT_LAUNCH),
    ),
}
