"""Hypothesis strategies over whole legal clusters."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from cdk_training_cluster import (
    UNTIL_CANCELLED,
    InstanceTypeInfo,
    InterfaceLayout,
    OnIdle,
    Placement,
    WarmPool,
)
from cdk_training_cluster.capacity.limits import LINUX_PLATFORMS
from cdk_training_cluster.instance_types import all_instance_types
from cdk_training_cluster.nodes.images import public_image
from cluster_plans import ClusterPlan, Settings, reservation_id
from node_group_cases import IMAGE_AT_DEPLOYMENT, IMAGE_AT_LAUNCH, OWN_IMAGE
from synthesis import ZONE

CLASSES: Mapping[str, str] = {
    "on_demand": "on-demand",
    "reservation": "on-demand",
    "from_reservation": "on-demand",
    "capacity_block": "capacity-block",
    "spot": "spot",
    "spot_fleet": "spot",
    "prioritized": "on-demand",
}
"""The calls, and what each buys; `prioritized` also blocks."""

OF_ONE_TYPE = ("on_demand", "reservation", "from_reservation", "capacity_block")
WITH_WARM_POOL = ("on_demand", "reservation", "from_reservation")

TYPES = all_instance_types()
_APART = ("p4d.", "p4de.", "dl1.")
_MOST_TYPES = 4


def sold(call: str, classes: Sequence[str] = ()) -> list[InstanceTypeInfo]:
    """The types that a call sells."""
    return [info for info in TYPES if set(classes or (CLASSES[call],)) & set(info.usage_classes)]


def _maker(info: InstanceTypeInfo) -> str:
    if info.has_neuron_devices:
        return "AWS"
    return info.accelerators[0].manufacturer if info.accelerators else "none"


def _kind(info: InstanceTypeInfo) -> tuple[str, bool]:
    """What types of one group have in common: the maker of their accelerators, and with whom EFA works."""
    return _maker(info), info.name.startswith(_APART)


@st.composite
def _types(draw: DrawFn, call: str, classes: Sequence[str]) -> list[InstanceTypeInfo]:
    pool = sold(call, classes)
    # Each of what is bought in turn needs a type: the first suits all of it.
    first = draw(st.sampled_from([info for info in pool if set(classes) <= set(info.usage_classes)]))
    if call in OF_ONE_TYPE:
        return [first]
    alike = [info for info in pool if _kind(info) == _kind(first) and info != first]
    others = draw(st.lists(st.sampled_from(alike), max_size=_MOST_TYPES - 1, unique=True)) if alike else []
    return [first, *others]


def _images(call: str, infos: Sequence[InstanceTypeInfo]) -> list[Any]:
    of_one_architecture = len({info.architectures[-1] for info in infos}) == 1
    images: list[Any] = [None] if all(public_image(info) for info in infos) else []
    if of_one_architecture:
        images += [OWN_IMAGE, IMAGE_AT_DEPLOYMENT]
        images += [IMAGE_AT_LAUNCH] if call != "spot_fleet" else []
    return images


def _placements(call: str, buy: Settings, infos: Sequence[InstanceTypeInfo]) -> list[Placement | None]:
    together = all(info.allows_placement("cluster") for info in infos)
    by_itself = call in {"on_demand", "reservation"} or buy.get("placement_group") is not None
    has_block = call == "capacity_block" or bool(buy.get("capacity_blocks"))
    return [
        Placement.NONE,
        *([None] if together or not by_itself else []),
        *([Placement.CLUSTER] if together and not has_block else []),
    ]


_PRICES = st.one_of(st.none(), st.integers(1, 500), st.floats(0.001, 500))
_ENDS = st.one_of(
    st.just(UNTIL_CANCELLED),
    st.datetimes(
        min_value=datetime(2026, 1, 1),  # noqa: DTZ001  # the zone comes with the next argument
        max_value=datetime(2099, 1, 1),  # noqa: DTZ001
        timezones=st.sampled_from([UTC, timezone(timedelta(hours=-8)), timezone(timedelta(hours=5, minutes=30))]),
    ),
)


@st.composite
def _buy(draw: DrawFn, call: str, number: int) -> dict[str, Any]:
    """The settings of a call that depend on nothing else."""
    one = reservation_id(16 * number)
    if call == "reservation":
        return {"end": draw(_ENDS)}
    if call in {"spot", "spot_fleet"}:
        return {"max_price": draw(_PRICES)}
    if call == "from_reservation":
        return {
            "capacity_reservation_id": one,
            "placement_group": draw(st.sampled_from([None, f"rack-{number}"])),
            "availability_zone": draw(st.sampled_from([None, ZONE])),
        }
    if call == "capacity_block":
        return {"capacity_reservation_id": one, "availability_zone": draw(st.sampled_from([None, ZONE]))}
    if call == "prioritized":
        reservations, blocks = draw(st.sampled_from([(1, 0), (2, 0), (0, 1), (1, 1), (2, 2)]))
        return {
            "reservations": [reservation_id(16 * number + at) for at in range(reservations)],
            "capacity_blocks": [reservation_id(16 * number + 8 + at) for at in range(blocks)],
            "on_demand": draw(st.booleans()),
        }
    return {}


def _classes(call: str, buy: Settings) -> tuple[str, ...]:
    if call != "prioritized":
        return (CLASSES[call],)
    on_demand = ("on-demand",) if buy["reservations"] or buy["on_demand"] else ()
    return (*on_demand, *(("capacity-block",) if buy["capacity_blocks"] else ()))


@st.composite
def legal_groups(draw: DrawFn, *, name: str = "g0", number: int = 0, call: str | None = None) -> dict[str, Any]:
    """The settings of a legal node group, bought in a given way or in any."""
    call = draw(st.sampled_from(sorted(CLASSES))) if call is None else call
    buy = draw(_buy(call, number))
    infos = draw(_types(call, _classes(call, buy)).filter(lambda infos: _images(call, infos)))
    image = draw(st.sampled_from(_images(call, infos)))
    sizes = infos[0].ultraserver_sizes if call == "capacity_block" else ()
    count = draw(st.integers(1, max(sizes, default=64)))
    if call in {"from_reservation", "capacity_block"}:
        fitting = [size for size in sizes if size >= count] or ([] if sizes else [count, 64])
        buy["instance_count"] = draw(st.sampled_from([None, *(size for size in fitting if size >= count)]))
    if call == "reservation":
        buy["on_idle"] = draw(st.sampled_from(OnIdle)) if count > 1 else OnIdle.KEEP
    if call in {"reservation", "from_reservation"} and image is not None:
        buy["instance_platform"] = draw(st.sampled_from(LINUX_PLATFORMS))
    settings = {
        "name": name,
        "instance_types": [info.name for info in infos],
        "count": count,
        "call": call,
        "buy": buy,
        "placement": draw(st.sampled_from(_placements(call, buy, infos))),
        "efa": draw(st.sampled_from([None, False, *([True] if all(info.supports_efa for info in infos) else [])])),
        "interface_layout": draw(st.sampled_from(InterfaceLayout)),
        "machine_image": image,
    }
    if call in WITH_WARM_POOL and draw(st.booleans()):
        settings["warm_pool"] = WarmPool(size=draw(st.integers(1, count)))
    return settings


@st.composite
def _twins(draw: DrawFn) -> tuple[Settings, ...]:
    """Two node groups that share what is reserved."""
    call = draw(st.sampled_from(["from_reservation", "capacity_block"]))
    first = draw(legal_groups(name="twin-a", number=200, call=call))
    first = {**first, "buy": {**first["buy"], "instance_count": None}}
    return first, {**first, "name": "twin-b"}


@st.composite
def legal_clusters(draw: DrawFn, *, most: int = 4) -> ClusterPlan:
    """Any legal cluster of up to `most` node groups."""
    number = draw(st.integers(1, most))
    groups: list[Settings] = [draw(legal_groups(name=f"g{at}", number=at)) for at in range(number)]
    if number <= most - 2 and draw(st.booleans()):
        groups.extend(draw(_twins()))
    return ClusterPlan(groups=tuple(groups), dataset=draw(st.booleans()), existing_network=draw(st.booleans()))
