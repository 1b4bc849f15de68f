"""Trainium, Inferentia and the types with cards of their own kind, through every way to buy that sells them."""

import pytest

from cdk_training_cluster import UNTIL_CANCELLED, Capacity, NodeGroup
from cdk_training_cluster.nodes.rules import NodeGroupContext, node_group_problems
from fleet_scene import (
    FLEET,
    GROUP,
    HOOK,
    PLACED_RESERVATION,
    PLACEMENT,
    RESERVATION_GROUP,
    TEMPLATE,
    bought_each,
    cards,
)
from synthesis import warnings

_ID, _OTHER = "cr-0a1b2c3d4e5f67890", "cr-0123456789abcdef0"

# Each way to buy, and what it makes beside the launch template.
_CALLS: dict[str, tuple[Capacity, list[str]]] = {
    "on_demand": (Capacity.on_demand(), [GROUP, PLACEMENT]),
    "reservation": (Capacity.reservation(end=UNTIL_CANCELLED), [GROUP, PLACED_RESERVATION, PLACEMENT]),
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


# Of each type the calls that sell it, its interfaces and its image.
_TYPES = {
    "trn1.32xlarge": (list(_CALLS), _efa_everywhere(8), _NEURON),
    "trn2.48xlarge": (list(_CALLS), _efa_everywhere(16), _NEURON),
    "inf2.48xlarge": ([call for call in _CALLS if "block" not in call], [_PRIMARY], _NEURON),
    # 17 cards, of which the first takes no EFA.
    "p6-b300.48xlarge": (
        list(_CALLS),
        [_PRIMARY, *((card, 0, "efa-only") for card in range(1, 17))],
        _NVIDIA_X86,
    ),
    "p6e-gb200.36xlarge": (
        ["capacity_block", "prioritized, blocks"],
        [_PRIMARY, *((card, 0, "efa-only") for card in (1, 5, 9, 13))],
        _NVIDIA_ARM,
    ),
}


@pytest.mark.parametrize("name", _TYPES)
def test_each_type_is_bought_with_its_own_interfaces_and_image_and_only_as_it_is_sold(name: str) -> None:
    sold, interfaces, image = _TYPES[name]
    found = {
        call: node_group_problems(
            NodeGroupContext.of(NodeGroup("workers", instance_types=[name], count=8, capacity=capacity))
        )
        for call, (capacity, _) in _CALLS.items()
    }
    assert [call for call, problems in found.items() if not problems] == sold
    scenes = bought_each([{"instance_types": [name], "capacity": _CALLS[call][0]} for call in sold])
    for call, scene in zip(sold, scenes, strict=True):
        kinds = _CALLS[call][1]
        assert scene.kinds == sorted([*kinds, TEMPLATE, *([HOOK] if GROUP in kinds else [])])
        assert scene.launch_data()["InstanceType"] == name
        assert cards(scene.launch_data()) == interfaces
        assert scene.fleet.efa_interfaces == len(interfaces) - 1
    assert all(f"the newest image of {image}:" in text for text in warnings(scenes[0].stack) if "newest" in text)
