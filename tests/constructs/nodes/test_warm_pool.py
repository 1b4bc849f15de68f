"""Nodes that are kept stopped: the pool, the hook that lets them be set up first, and what is refused."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from aws_cdk import CfnParameter
from aws_cdk import aws_ec2 as ec2

from cdk_training_cluster import Capacity, NodeGroup, WarmPool
from fleet_scene import GROUP, HOOK, PLACEMENT, TEMPLATE, WARM_POOL, bought
from synthesis import new_stack, resources


def test_a_warm_pool_is_bounded_and_stops_what_the_group_gives_back() -> None:
    scene = bought(warm_pool=WarmPool(size=3))
    assert scene.kinds == sorted([GROUP, HOOK, PLACEMENT, TEMPLATE, WARM_POOL])
    (group,) = scene.all(GROUP)
    assert scene.only(WARM_POOL)[1] == {
        "AutoScalingGroupName": {"Ref": group},
        "MaxGroupPreparedCapacity": 3,
        "MinSize": 0,
        "PoolState": "Stopped",
        "InstanceReusePolicy": {"ReuseOnScaleIn": True},
    }


def test_no_node_enters_the_pool_before_it_is_set_up() -> None:
    scene = bought(warm_pool=WarmPool(size=3))
    (group,) = scene.all(GROUP)
    hook, properties = scene.only(HOOK)
    assert properties == {
        "AutoScalingGroupName": {"Ref": group},
        "LifecycleHookName": "ready",
        "LifecycleTransition": "autoscaling:EC2_INSTANCE_LAUNCHING",
        "DefaultResult": "CONTINUE",
        "HeartbeatTimeout": 1800,
    }
    (pool,) = scene.all(WARM_POOL).values()
    assert pool["DependsOn"] == [hook]
    assert "\nLAUNCH_HOOK='ready'\n" in scene.user_data()


def test_without_a_pool_groups_wait_for_nodes_that_are_verified_only() -> None:
    scene = bought(capacity=Capacity.spot(), instance_types=["g6.12xlarge", "g6e.12xlarge"], efa=False)
    assert len(scene.all(HOOK)) == 1
    assert not scene.all(WARM_POOL)
    assert "\nLAUNCH_HOOK='ready'\n" in scene.user_data()
    expected = next(line for line in scene.user_data().splitlines() if line.startswith("EXPECTED="))
    assert json.loads(expected.removeprefix("EXPECTED=").strip("'")) == {
        "g6.12xlarge": {"gpus": 4, "gpu": "L4", "disks": 4},
        "g6e.12xlarge": {"gpus": 4, "gpu": "L40S", "disks": 2},
    }
    image = ec2.MachineImage.generic_linux({"us-east-1": "ami-0a1b2c3d4e5f67890"})
    scene = bought(instance_types=["m7i.48xlarge"], efa=False, machine_image=image)
    assert not scene.all(HOOK)
    assert "\nLAUNCH_HOOK=''\n" in scene.user_data()
    assert "EXPECTED=" not in scene.user_data()


@pytest.mark.parametrize(
    "capacity",
    [
        Capacity.reservation(end=datetime(2026, 12, 24, tzinfo=UTC)),
        Capacity.from_reservation("cr-0a1b2c3d4e5f67890"),
    ],
    ids=lambda capacity: capacity.call,
)
def test_reserved_nodes_may_be_kept_stopped_too(capacity: Capacity) -> None:
    scene = bought(capacity=capacity, warm_pool=WarmPool(size=8))
    assert scene.only(WARM_POOL)[1]["MaxGroupPreparedCapacity"] == 8
    assert "CapacityReservationSpecification" in scene.only(GROUP)[1]


def test_a_size_that_is_not_known_yet_follows_its_parameter() -> None:
    stack = new_stack()
    size: Any = CfnParameter(stack, "Size", type="Number").value_as_number
    bought(stack, warm_pool=WarmPool(size=size))
    (pool,) = resources(stack, WARM_POOL).values()
    assert pool["Properties"]["MaxGroupPreparedCapacity"] == {"Ref": "Size"}


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (0, "size must be at least 1, got 0: leave warm_pool out"),
        (-1, "size must be at least 1, got -1: leave warm_pool out"),
        (1.5, "size must be a whole number of at least 1, got 1.5: leave warm_pool out"),
        (float("nan"), "size must be a whole number of at least 1, got nan: leave warm_pool out"),
        ("3", "size must be a whole number of at least 1, got '3': leave warm_pool out"),
        (True, "size must be a whole number of at least 1, got True: leave warm_pool out"),
        (None, "size must be a whole number of at least 1, got None: leave warm_pool out"),
    ],
)
def test_a_pool_of_no_size_is_refused(size: Any, message: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        WarmPool(size=size)
    assert str(refused.value) == message


def test_what_is_no_pool_is_refused() -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        NodeGroup("workers", instance_types=["p5.48xlarge"], count=8, warm_pool=3)  # type: ignore[arg-type]
    assert str(refused.value) == "warm_pool must be a WarmPool, such as WarmPool(size=2), got 3"
