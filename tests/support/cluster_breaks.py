"""What makes a legal cluster illegal: a strategy for every rule that refuses something."""

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from cdk_training_cluster import InstanceTypeInfo, NetworkCard, OnIdle, Placement, WarmPool
from cluster_plans import Settings, reservation_id
from cluster_strategies import (
    CLASSES,
    OF_ONE_TYPE,
    OF_SEVERAL_TYPES,
    TYPES,
    WITH_WARM_POOL,
    Broken,
    broken,
    legal_clusters,
    legal_groups,
    likenesses,
    sold,
)
from node_group_cases import IMAGE_AT_LAUNCH, OWN_IMAGE

_ALONE: dict[str, Any] = {"placement": Placement.NONE, "efa": None, "machine_image": None}
_SHARED = reservation_id(0xBAD)
_ELSEWHERE = f"arn:aws:ec2:us-west-2:111122223333:capacity-reservation/{_SHARED}"


def _buying(group: Settings, **changes: Any) -> dict[str, Any]:
    return {"buy": {**group["buy"], **changes}}


def _of(names: Sequence[str], **more: Any) -> dict[str, Any]:
    return {**_ALONE, "instance_types": list(names), **more}


def _of_facts(facts: Sequence[InstanceTypeInfo]) -> dict[str, Any]:
    return _of([info.name for info in facts], facts=facts)


def _card(index: int) -> NetworkCard:
    return NetworkCard(
        index=index, maximum_interfaces=2, interface_types=("interface", "efa-only"), baseline_gbps=100
    )


_MANY_TYPES = likenesses("g5.xlarge", 45)
_MANY_LAYOUTS = likenesses(
    "g5.xlarge",
    24,
    network_cards=[tuple(map(_card, range(number))) for number in range(1, 25)],
    maximum_efa_interfaces=range(1, 25),
)
_NO_VOLUME = likenesses("g5.xlarge", 1, supported_root_device_types=[("instance-store",)])


def _another(draw: DrawFn, group: Settings) -> list[str]:
    others = [info.name for info in sold(group["call"]) if info.name not in group["instance_types"]]
    return [*group["instance_types"], draw(st.sampled_from(others))]


def _unsold(draw: DrawFn, group: Settings) -> dict[str, Any]:
    call = group["call"]
    unsold = [info.name for info in TYPES if CLASSES[call] not in info.usage_classes]
    return _of([draw(st.sampled_from(unsold))], machine_image=OWN_IMAGE, efa=False)


def _more_than_a_block(draw: DrawFn, group: Settings) -> dict[str, Any]:
    more = draw(st.integers(65, 500))
    if draw(st.booleans()):
        return {"count": more, **_buying(group, instance_count=None)}
    return _buying(group, instance_count=more)


def _no_ultraserver(draw: DrawFn, group: Settings) -> dict[str, Any]:
    size = draw(st.integers(1, 64).filter(lambda size: size not in {9, 18}))
    return {**_of(["p6e-gb200.36xlarge"], count=1), **_buying(group, instance_count=size)}


def _more_than_reserved(draw: DrawFn, group: Settings) -> dict[str, Any]:
    reserved = draw(st.integers(1, 63))
    return {"count": draw(st.integers(reserved + 1, 64)), **_buying(group, instance_count=reserved)}


_OTHER_PLATFORMS = ["Red Hat Enterprise Linux", "SUSE Linux", "Ubuntu Pro"]

OF_ONE_GROUP: Mapping[str, Sequence[SearchStrategy[Broken]]] = {
    "oneType": [
        broken(
            OF_ONE_TYPE,
            "instance_types must name exactly one type for",
            lambda draw, group: {"instance_types": _another(draw, group)},
        )
    ],
    "mostTypes": [
        broken(
            ("spot", "prioritized"),
            "instance_types must name at most 40 types",
            lambda draw, _: _of_facts(_MANY_TYPES[: draw(st.integers(41, 45))]),
        )
    ],
    "mostTemplates": [
        broken(
            ("spot", "prioritized"),
            "instance_types must need at most 20 launch templates",
            lambda draw, _: _of_facts(_MANY_LAYOUTS[: draw(st.integers(21, 24))]),
        )
    ],
    "typeOnce": [
        broken(
            OF_SEVERAL_TYPES,
            "instance_types must name each type once",
            lambda draw, group: {
                "instance_types": [*group["instance_types"], draw(st.sampled_from(group["instance_types"]))]
            },
        )
    ],
    "usageClass": [
        broken(call, rf"instance_types must be sold as {CLASSES[call]} for Capacity\.{call}\(\), got", _unsold)
        for call in ("on_demand", "reservation", "from_reservation", "capacity_block", "spot", "spot_fleet")
    ],
    "prioritizedTypes": [
        broken(
            "prioritized",
            r"Capacity\.prioritized\(\) with capacity_blocks needs a type that is sold as capacity-block",
            lambda draw, group: {
                **_of([draw(st.sampled_from(["g5.48xlarge", "inf2.xlarge"]))]),
                **_buying(group, capacity_blocks=[_SHARED], on_demand=True),
            },
        )
    ],
    "efaFamilies": [
        broken(
            ("spot", "spot_fleet"),
            "instance_types must not mix p4d",
            lambda draw, _: _of(["p4d.24xlarge", draw(st.sampled_from(["g5.48xlarge", "p5.48xlarge"]))]),
        )
    ],
    "acceleratorsAlike": [
        broken(
            ("spot", "spot_fleet"),
            "instance_types must have accelerators of one maker",
            lambda draw, _: _of(["g5.48xlarge", draw(st.sampled_from(["trn1.32xlarge", "inf2.xlarge"]))]),
        )
    ],
    "oneArchitecture": [
        broken(
            ("spot", "spot_fleet"),
            "instance_types must have one architecture to share a machine_image",
            lambda draw, _: _of(["g5.xlarge", draw(st.sampled_from(["g5g.xlarge"]))], machine_image=OWN_IMAGE),
        )
    ],
    "interfaces": [
        broken(
            ("on_demand", "reservation", "spot", "spot_fleet"),
            "has no EFA: leave efa out",
            lambda draw, _: _of([draw(st.sampled_from(["g5.xlarge", "inf2.48xlarge"]))], efa=True),
        )
    ],
    "image": [
        broken(
            ("on_demand", "spot", "spot_fleet"),
            "AWS publishes no Deep Learning image for .*: give your own machine_image",
            lambda draw, _: _of([draw(st.sampled_from(["inf1.xlarge", "c7gn.16xlarge", "g4ad.xlarge"]))]),
        )
    ],
    "imageAtLaunch": [
        broken("spot_fleet", "machine_image must be an AMI's id", lambda _, __: {"machine_image": IMAGE_AT_LAUNCH})
    ],
    "blockPlacement": [
        broken("capacity_block", "placement must be left out", lambda _, __: {"placement": Placement.CLUSTER}),
        broken(
            "prioritized",
            "placement must be left out",
            lambda _, group: {
                "placement": Placement.CLUSTER,
                **_buying(group, capacity_blocks=[*group["buy"]["capacity_blocks"], _SHARED]),
            },
        ),
    ],
    "placementStrategy": [
        broken(
            ("on_demand", "reservation", "spot", "spot_fleet"),
            "cannot be launched into a cluster placement group: set placement to Placement.NONE",
            lambda draw, _: _of(
                [draw(st.sampled_from(["vt1.3xlarge", "vt1.24xlarge"]))],
                machine_image=OWN_IMAGE,
                placement=Placement.CLUSTER,
            ),
        )
    ],
    "blockSize": [
        broken(
            "capacity_block", "(count|instance_count) must be at most 64", _more_than_a_block, **_of(["p5.48xlarge"])
        ),
        broken("capacity_block", "instance_count must be 9 or 18", _no_ultraserver),
    ],
    "reservedCount": [
        broken(
            ("from_reservation", "capacity_block"),
            "count must be at most .*, as many instances as cr-",
            _more_than_reserved,
            **_of(["p5.48xlarge"]),
        )
    ],
    "reservationSize": [
        broken(
            "reservation",
            r"count must be at most 1000 for Capacity\.reservation\(\)",
            lambda draw, _: {"count": draw(st.integers(1001, 5000))},
        )
    ],
    "release": [
        broken(
            "reservation",
            "on_idle must be OnIdle.KEEP for a node group of 1 node",
            lambda _, group: {"count": 1, "warm_pool": None, **_buying(group, on_idle=OnIdle.RELEASE)},
        )
    ],
    "zone": [
        broken(
            ("from_reservation", "capacity_block"),
            r"availability_zone of Capacity\.\w+\(\) must be the cluster's",
            lambda draw, group: _buying(group, availability_zone=draw(st.sampled_from(["us-east-1a", "us-west-2b"]))),
        )
    ],
    "reservedRegion": [
        broken(
            "prioritized",
            r"reservations of Capacity\.prioritized\(\) must be in the cluster's region, us-east-1, got arn:",
            lambda _, group: _buying(group, reservations=[_ELSEWHERE], on_demand=True),
            **_of(["p5.48xlarge"]),
        )
    ],
    "platform": [
        broken(
            ("reservation", "from_reservation"),
            "instance_platform must be 'Linux/UNIX'",
            lambda draw, group: _buying(group, instance_platform=draw(st.sampled_from(_OTHER_PLATFORMS))),
            **_of(["trn1.32xlarge"]),
        )
    ],
    "warmPool": [
        broken(
            ("capacity_block", "spot", "spot_fleet", "prioritized"),
            r"warm_pool must be left out with Capacity\.",
            lambda _, __: {"warm_pool": WarmPool(size=1)},
        )
    ],
    "warmPoolSize": [
        broken(
            WITH_WARM_POOL,
            "size of warm_pool must be at most the group's count",
            lambda draw, group: {"warm_pool": WarmPool(size=group["count"] + draw(st.integers(1, 9)))},
        )
    ],
    "warmPoolRoot": [
        broken(
            WITH_WARM_POOL,
            "warm_pool must be left out for g5.0xlarge-like: a node without an EBS root volume",
            lambda _, __: {**_of_facts(_NO_VOLUME), "warm_pool": WarmPool(size=1)},
        )
    ],
}
"""Ways to break one node group, by the rule that refuses it."""


@st.composite
def _together(
    draw: DrawFn, says: str, first: Settings, second: Settings, *, calls: Sequence[str] = ("from_reservation",) * 2
) -> Broken:
    """Two legal groups that share a reservation in a way that cannot be; each is legal without the other."""
    needed = {**_of(["p5.48xlarge"]), "count": 1}
    groups = []
    for name, call, changes in zip(("broken", "other"), calls, (first, second), strict=True):
        group = {**draw(legal_groups(name=name, number=100, call=call)), **needed, "warm_pool": None}
        shared = (
            {"reservations": [_SHARED]} if "reservations" in group["buy"] else {"capacity_reservation_id": _SHARED}
        )
        buy = {**shared, **changes.get("buy", {})}
        groups.append({**group, **changes, "buy": buy})
    return Broken(plan=draw(legal_clusters(most=2, also=groups)), says=says, of=("broken", "other"))


_BOTH = ("from_reservation", "capacity_block")

OF_GROUPS_TOGETHER: Mapping[str, Sequence[SearchStrategy[Broken]]] = {
    "sharedCount": [
        _together(
            "must have at most 8 nodes together",
            {"count": 8, "buy": {"instance_count": 8}},
            {"count": 1},
            calls=(call, call),
        )
        for call in _BOTH
    ],
    "sharedPlacementGroup": [
        _together(
            "must name one placement_group for",
            {"placement": None, "buy": {"placement_group": "rack"}},
            {"placement": None, "buy": {"placement_group": "pod"}},
        ),
        _together(
            "must name one placement_group for",
            {"placement": Placement.CLUSTER},
            {"placement": None, "buy": {"placement_group": "pod"}},
        ),
    ],
    "sharedType": [
        _together("must have one type for", {}, {"instance_types": ["p5e.48xlarge"]}, calls=(call, call))
        for call in _BOTH
    ]
    + [
        _together(
            "must have a type in common for",
            {},
            {"instance_types": ["p5e.48xlarge", "p5en.48xlarge"]},
            calls=("from_reservation", "prioritized"),
        )
    ],
    "reservationOrBlock": [
        _together("must agree on what cr-.* is", {}, {}, calls=_BOTH),
        _together("must agree on what cr-.* is", {}, {}, calls=("capacity_block", "from_reservation")),
    ],
}
"""Ways to break two node groups together, by the rule that refuses it."""
