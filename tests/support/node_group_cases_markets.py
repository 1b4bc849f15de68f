"""Cases of the rules about how instance types are sold, by the rule's id."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cdk_training_cluster import Capacity, instance_type_info
from node_group_cases import IMEX_WARNING, OTHER, RESERVED, Case, case, unknown_text
from node_group_cases_types import FLEET_WARNING

_SPOT, _FLEET = Capacity.spot(), Capacity.spot_fleet()
_HELD, _BLOCK = Capacity.from_reservation(RESERVED), Capacity.capacity_block(RESERVED)
_IN_TURN = Capacity.prioritized(reservations=[RESERVED], capacity_blocks=[OTHER], on_demand=False)
_RESERVATIONS_IN_TURN = Capacity.prioritized(reservations=[RESERVED])
_BLOCKS_IN_TURN = Capacity.prioritized(capacity_blocks=[OTHER], on_demand=False)

_UNKNOWN_CLASSES = replace(instance_type_info("g5.xlarge"), name="g9.xlarge", usage_classes=())
_G5_G6 = ["g5.48xlarge", "g6.48xlarge"]


_WITH = {
    "on-demand": "Capacity.on_demand()",
    "spot": "Capacity.spot()",
    "capacity-block": "Capacity.capacity_block()",
}


def _usage(name: str, call: str, bought: str, classes: str) -> str:
    fitting = " or ".join(_WITH[one] for one in classes.split(", "))
    return (
        f"instance_types must be sold as {bought} for {call}, got {name}, which is sold as {classes}: choose another "
        f"type, or buy it with {fitting}"
    )


def _no_type_for(settings: str, usage: str, names: str, mend: str) -> str:
    return (
        f"Capacity.prioritized() with {settings} needs a type that is sold as {usage}, got {names}: {mend}, or add "
        "such a type"
    )


def _rare(names: str) -> Mapping[str, str]:
    return {
        "rareOnSpot": f"EC2 seldom has {names} to spare as Spot Instances, and takes them back at two minutes' "
        "notice: add types that are not so scarce, or buy a Capacity Block"
    }


MARKET_CASES: Mapping[str, Sequence[Case]] = {
    "usageClass": (
        case(instance_types=["p6e-gb200.36xlarge"], capacity=_BLOCK, warnings=IMEX_WARNING),
        case(
            _usage("p6e-gb200.36xlarge", "Capacity.on_demand()", "on-demand", "capacity-block"),
            instance_types=["p6e-gb200.36xlarge"],
        ),
        case(
            _usage("p6e-gb200.36xlarge", "Capacity.from_reservation()", "on-demand", "capacity-block"),
            instance_types=["p6e-gb200.36xlarge"],
            capacity=_HELD,
        ),
        case(
            _usage("trn2u.48xlarge", "Capacity.spot()", "spot", "capacity-block, on-demand"),
            instance_types=["trn2u.48xlarge", "trn2.48xlarge"],
            capacity=_SPOT,
        ),
        case(
            _usage("trn2u.48xlarge", "Capacity.spot_fleet()", "spot", "capacity-block, on-demand"),
            instance_types=["trn2u.48xlarge"],
            capacity=_FLEET,
        ),
        case(
            _usage("g5.48xlarge", "Capacity.capacity_block()", "capacity-block", "on-demand, spot"),
            instance_types=["g5.48xlarge"],
            capacity=_BLOCK,
        ),
        case(
            _usage("g5.48xlarge", "Capacity.prioritized()", "capacity-block", "on-demand, spot"),
            instance_types=["p5.48xlarge", "g5.48xlarge"],
            capacity=_BLOCKS_IN_TURN,
        ),
        case(
            _usage("p6e-gb200.36xlarge", "Capacity.prioritized()", "on-demand", "capacity-block"),
            instance_types=["p6e-gb200.36xlarge"],
            capacity=_RESERVATIONS_IN_TURN,
        ),
        case(instance_types=["p6e-gb200.36xlarge"], capacity=_BLOCKS_IN_TURN, warnings=IMEX_WARNING),
        # What is not known is not refused.
        case(instance_types=["g9.xlarge"], facts=[_UNKNOWN_CLASSES], capacity=_BLOCK),
    ),
    "prioritizedTypes": (
        case(
            _no_type_for(
                "capacity_blocks", "capacity-block", "g5.48xlarge, g6.48xlarge", "leave capacity_blocks out"
            ),
            instance_types=_G5_G6,
            capacity=_IN_TURN,
        ),
        *(
            case(
                _no_type_for("capacity_blocks", "capacity-block", "g5.48xlarge", "leave capacity_blocks out"),
                instance_types=["g5.48xlarge"],
                capacity=Capacity.prioritized(capacity_blocks=[block]),
            )
            for block in (OTHER, unknown_text())
        ),
        *(
            case(
                _no_type_for(
                    "reservations or on_demand",
                    "on-demand",
                    "p6e-gb200.36xlarge",
                    "leave reservations out and set on_demand to False",
                ),
                instance_types=["p6e-gb200.36xlarge"],
                capacity=capacity,
            )
            for capacity in (_IN_TURN, Capacity.prioritized(capacity_blocks=[OTHER]))
        ),
        # One type for each is enough.
        case(instance_types=["g5.48xlarge", "p5.48xlarge"], capacity=_IN_TURN),
        case(instance_types=["p6e-gb200.36xlarge", "g5g.16xlarge"], capacity=_IN_TURN, warnings=IMEX_WARNING),
        case(instance_types=["g5.48xlarge"], capacity=_RESERVATIONS_IN_TURN),
        case(instance_types=["p6e-gb200.36xlarge"], capacity=_BLOCKS_IN_TURN, warnings=IMEX_WARNING),
        case(
            instance_types=["g9.xlarge"],
            facts=[_UNKNOWN_CLASSES],
            capacity=_IN_TURN,
        ),
        case(
            instance_types=["g5.48xlarge", "g9.xlarge"],
            facts=[_UNKNOWN_CLASSES],
            capacity=_IN_TURN,
        ),
        # Where no type is sold in any of the ways, the rule about usage classes says so.
        case(
            _usage("p6e-gb200.36xlarge", "Capacity.prioritized()", "on-demand", "capacity-block"),
            instance_types=["p6e-gb200.36xlarge"],
            capacity=_RESERVATIONS_IN_TURN,
        ),
    ),
    "rareOnSpot": (
        case(capacity=_SPOT, warnings=_rare("p5.48xlarge")),
        case(
            instance_types=["p5en.48xlarge", "g6e.48xlarge", "p6-b300.48xlarge"],
            capacity=_SPOT,
            warnings=_rare("p5en.48xlarge and p6-b300.48xlarge"),
        ),
        case(capacity=_FLEET, warnings={**_rare("p5.48xlarge"), **FLEET_WARNING}),
        case(instance_types=["p4d.24xlarge"], capacity=_SPOT),
        case(instance_types=["trn1.32xlarge"], capacity=_SPOT),
        case(capacity=_IN_TURN),
    ),
}
