"""The settings of a node group, and what EC2 refuses of them: exact texts."""

from typing import Any

import pytest
from aws_cdk import CfnParameter
from aws_cdk import aws_ec2 as ec2

from cdk_training_cluster import NodeGroup
from cdk_training_cluster.nodes.rules import Situation, node_group_problems
from synthesis import new_stack

_OWN = ec2.MachineImage.generic_linux({"us-east-1": "ami-0a1b2c3d4e5f67890"})


def _group(**settings: Any) -> NodeGroup:
    return NodeGroup(**{"name": "workers", "instance_types": ["p5.48xlarge"], "count": 8, **settings})


def _said(group: NodeGroup) -> list[str]:
    return [str(problem) for problem in node_group_problems(Situation.of(group))]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"count": 0},
            "count of node group 'workers' must be at least 1, got 0: to have no nodes for a while, stop the group; "
            "to have none at all, remove it",
        ),
        (
            {"count": -1},
            "count of node group 'workers' must be at least 1, got -1: to have no nodes for a while, stop the "
            "group; to have none at all, remove it",
        ),
        (
            {"name": "my workers"},
            "name must start with a letter and hold up to 63 letters, digits and hyphens, got 'my workers'",
        ),
        ({"name": ""}, "name must start with a letter and hold up to 63 letters, digits and hyphens, got ''"),
        (
            {"instance_types": "p5.48xlarge"},
            "instance_types must be a list of EC2 types, such as ['p5.48xlarge'], got 'p5.48xlarge'",
        ),
        (
            {"instance_types": []},
            "instance_types must be a list of EC2 types, such as ['p5.48xlarge'], got []",
        ),
        ({"root_volume_gib": 0}, "root_volume_gib must be at least 1, got 0"),
        (
            {"count": "8"},
            "count of node group 'workers' must be a whole number of at least 1, got '8': to have no nodes for a "
            "while, stop the group; to have none at all, remove it",
        ),
        (
            {"count": True},
            "count of node group 'workers' must be a whole number of at least 1, got True: to have no nodes for a "
            "while, stop the group; to have none at all, remove it",
        ),
        ({"placement": "none"}, "placement must be Placement.CLUSTER or Placement.NONE, got 'none'"),
        (
            {"interface_layout": "bandwidth-optimised"},
            "interface_layout must be InterfaceLayout.IP_OPTIMISED or InterfaceLayout.BANDWIDTH_OPTIMISED, got "
            "'bandwidth-optimised'",
        ),
        ({"efa": "yes"}, "efa must be True or False, got 'yes'"),
        ({"efa": 1}, "efa must be True or False, got 1"),
        (
            {"count": float("nan")},
            "count of node group 'workers' must be a whole number of at least 1, got nan: to have no nodes for a "
            "while, stop the group; to have none at all, remove it",
        ),
        ({"capacity": "spot"}, "capacity must be a Capacity, such as Capacity.on_demand(), got 'spot'"),
        ({"environment": {"A": 1}}, "environment values must be text, got 1 for A"),
        ({"environment": {5: "1"}}, "environment names must be text, got 5"),
        *(
            (
                {"environment": wrong},
                f"environment must be a mapping of names to text, such as {{'NCCL_DEBUG': 'WARN'}}, got {wrong!r}",
            )
            for wrong in (None, ["NCCL_DEBUG=WARN"], "NCCL_DEBUG=WARN")
        ),
        *(
            (
                {"machine_image": wrong},
                "machine_image must be an image of ec2.MachineImage, such as ec2.MachineImage.generic_linux("
                f"{{'us-east-1': 'ami-0a1b2c3d4e5f67890'}}), got {wrong!r}",
            )
            for wrong in ("ami-0a1b2c3d", 5, {"us-east-1": "ami-0a1b2c3d"})
        ),
        *(
            ({setting: wrong}, f"{setting} must be a list of files, such as ['setup.sh'], got {wrong!r}")
            for setting in ("scripts_before", "scripts_after")
            for wrong in (None, "setup.sh", [5])
        ),
        (
            {"root_device_name": 5, "machine_image": _OWN},
            "root_device_name must be a device's name, such as '/dev/xvda', got 5",
        ),
        (
            {"root_device_name": "/dev/sda1"},
            "root_device_name must be left out for AWS's images, got '/dev/sda1': leave it out, or give an image "
            "of your own",
        ),
    ],
)
def test_a_setting_that_is_wrong_by_itself_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        _group(**settings)
    assert str(refused.value) == message


@pytest.mark.parametrize("settings", [{"count": 1}, {"name": "a"}, {"name": "A-1"}, {"root_volume_gib": 1}])
def test_the_boundaries_are_taken(settings: dict[str, Any]) -> None:
    assert _said(_group(**settings)) == []


def test_a_count_that_is_not_known_yet_is_not_checked() -> None:
    _group(count=CfnParameter(new_stack(), "Count", type="Number").value_as_number)


def test_a_type_that_is_not_known_yet_is_refused_since_the_interfaces_follow_from_it() -> None:
    stack = new_stack()
    name = CfnParameter(stack, "Type").value_as_string
    (problem,) = _said(_group(instance_types=[name]))
    assert "must be known when the template is made" in problem
