"""Trainium, Inferentia and the types with cards of their own kind, through every way to buy that sells them."""

import re
from typing import Any

import pytest

from cdk_training_cluster import UNTIL_CANCELLED, Capacity, Placement, WarmPool
from fleet_scene import FLEET, GROUP, PLACEMENT, RESERVATION, RESERVATION_GROUP, TEMPLATE, bought, cards
from synthesis import warnings

_ID, _OTHER = "cr-0a1b2c3d4e5f67890", "cr-0123456789abcdef0"

_CALLS: dict[str, tuple[Capacity, list[str]]] = {
    "on_demand": (Capacity.on_demand(), [GROUP, PLACEMENT]),
    "reservation": (Capacity.reservation(end=UNTIL_CANCELLED), [GROUP, PLACEMENT, RESERVATION]),
    "from_reservation": (Capacity.from_reservation(_ID), [GROUP]),
    "capacity_block": (Capacity.capacity_block(_ID), [GROUP]),
    "spot": (Capacity.spot(), [GROUP]),
    "spot_fleet": (Capacity.spot_fleet(), [FLEET]),
    "prioritized": (Capacity.prioritized(reservations=[_ID]), [GROUP, RESERVATION_GROUP]),
    "prioritized, blocks": (
        Capacity.prioritized(capacity_blocks=[_OTHER], on_demand=False),
        [GROUP, RESERVATION_GROUP],
    ),
}

_PRIMARY = (0, 0, "interface")
_NEURON = "/aws/service/neuron/dlami/base/ubuntu-24.04/latest/image_id"
_NVIDIA_X86 = "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-amazon-linux-2023/latest/ami-id"
_NVIDIA_ARM = "/aws/service/deeplearning/ami/arm64/base-oss-nvidia-driver-gpu-amazon-linux-2023/latest/ami-id"


def _efa_everywhere(number: int) -> list[tuple[int, int, str]]:
    """The interfaces of a type all of whose cards take an EFA, the first beside the primary interface."""
    return [_PRIMARY, (0, 1, "efa-only"), *((card, 0, "efa-only") for card in range(1, number))]


_INTERFACES = {
    "trn1.32xlarge": _efa_everywhere(8),
    "trn2.48xlarge": _efa_everywhere(16),
    "inf2.48xlarge": [_PRIMARY],
    # 17 cards, of which the first takes no EFA.
    "p6-b300.48xlarge": [_PRIMARY, *((card, 0, "efa-only") for card in range(1, 17))],
    "p6e-gb200.36xlarge": [_PRIMARY, *((card, 0, "efa-only") for card in (1, 5, 9, 13))],
}
_IMAGES = {
    "trn1.32xlarge": _NEURON,
    "trn2.48xlarge": _NEURON,
    "inf2.48xlarge": _NEURON,
    "p6-b300.48xlarge": _NVIDIA_X86,
    "p6e-gb200.36xlarge": _NVIDIA_ARM,
}
_SOLD = {
    "trn1.32xlarge": list(_CALLS),
    "trn2.48xlarge": list(_CALLS),
    "inf2.48xlarge": [call for call in _CALLS if "block" not in call],
    "p6-b300.48xlarge": list(_CALLS),
    "p6e-gb200.36xlarge": ["capacity_block", "prioritized, blocks"],
}


@pytest.mark.parametrize(("name", "call"), [(name, call) for name, calls in _SOLD.items() for call in calls])
def test_each_type_is_bought_with_its_own_interfaces_and_image(name: str, call: str) -> None:
    capacity, kinds = _CALLS[call]
    scene = bought(instance_types=[name], capacity=capacity)
    assert scene.kinds == sorted([*kinds, TEMPLATE])
    data = scene.launch_data()
    assert data["InstanceType"] == name
    assert cards(data) == _INTERFACES[name]
    assert scene.fleet.efa_interfaces == len(_INTERFACES[name]) - 1
    assert f"the newest image of {_IMAGES[name]}:" in "".join(warnings(scene.stack))


@pytest.mark.parametrize(
    ("name", "call"),
    [(name, call) for name, calls in _SOLD.items() for call in _CALLS if call not in calls],
)
def test_what_is_not_sold_in_a_way_cannot_be_bought_in_it(name: str, call: str) -> None:
    capacity, _ = _CALLS[call]
    sold = re.escape(f"for {capacity.call}, got {name}, which is sold as ")
    with pytest.raises(ValueError, match=rf"^node group 'workers': instance_types must be sold as \S+ {sold}"):
        bought(instance_types=[name], capacity=capacity)


@pytest.mark.parametrize("size", [9, 18])
def test_an_ultraserver_s_block_is_used_whole_or_in_part(size: int) -> None:
    for count in (1, size):
        block = Capacity.capacity_block(_ID, instance_count=size)
        scene = bought(instance_types=["p6e-gb200.36xlarge"], capacity=block, count=count)
        assert scene.only(GROUP)[1]["MaxSize"] == str(count)
        assert scene.launch_data()["InstanceMarketOptions"] == {"MarketType": "capacity-block"}


@pytest.mark.parametrize("size", [8, 10, 36])
def test_no_ultraserver_is_of_another_size(size: int) -> None:
    with pytest.raises(
        ValueError, match=r"^node group 'workers': instance_count must be 9 or 18 for a Capacity Block"
    ):
        bought(
            instance_types=["p6e-gb200.36xlarge"], capacity=Capacity.capacity_block(_ID, instance_count=size), count=8
        )


def test_trainium_and_inferentia_share_a_spot_group_with_a_template_each() -> None:
    scene = bought(
        instance_types=["trn2.48xlarge", "trn1.32xlarge", "inf2.48xlarge", "inf2.24xlarge"], capacity=Capacity.spot()
    )
    types = [scene.launch_data(name)["InstanceType"] for name in scene.all(TEMPLATE)]
    assert types == ["trn2.48xlarge", "trn1.32xlarge", "inf2.48xlarge"]
    overrides = scene.only(GROUP)[1]["MixedInstancesPolicy"]["LaunchTemplate"]["Overrides"]
    assert ["LaunchTemplateSpecification" in one for one in overrides] == [False, True, True, True]
    assert overrides[2]["LaunchTemplateSpecification"] == overrides[3]["LaunchTemplateSpecification"]


@pytest.mark.parametrize("name", ["trn1.32xlarge", "trn2.48xlarge", "inf2.48xlarge", "p6-b300.48xlarge"])
def test_each_of_them_can_be_kept_warm(name: str) -> None:
    settings: dict[str, Any] = {"placement": Placement.NONE, "warm_pool": WarmPool(size=1)}
    scene = bought(instance_types=[name], **settings)
    assert len(scene.kinds) == 4
