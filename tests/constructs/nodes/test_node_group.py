"""The settings of a node group, and what EC2 refuses of them: exact texts."""

from typing import Any

import pytest
from aws_cdk import CfnParameter
from aws_cdk import aws_ec2 as ec2

from cdk_training_cluster import NodeGroup
from cdk_training_cluster.nodes.rules import NodeGroupContext, node_group_problems
from synthesis import new_stack

_OWN = ec2.MachineImage.generic_linux({"us-east-1": "ami-0a1b2c3d4e5f67890"})


def _group(**settings: Any) -> NodeGroup:
    return NodeGroup(**{"name": "workers", "instance_types": ["p5.48xlarge"], "count": 8, **settings})


def _said(group: NodeGroup) -> list[str]:
    return [str(problem) for problem in node_group_problems(NodeGroupContext.of(group))]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"count": 0},
            "count must be at least 1, got 0: to have no nodes for a while, stop the group; "
            "to have none at all, remove it",
        ),
        (
            {"name": "my workers"},
            "name must be up to 63 letters, digits and hyphens, a letter first, got 'my workers'",
        ),
        ({"name": ""}, "name must be up to 63 letters, digits and hyphens, a letter first, got ''"),
        (
            {"instance_types": "p5.48xlarge"},
            "instance_types must be a list of EC2 types, such as ['p5.48xlarge'], got 'p5.48xlarge'",
        ),
        (
            {"instance_types": []},
            "instance_types must be a list of EC2 types, such as ['p5.48xlarge'], got []",
        ),
        ({"root_volume_gib": 7}, "root_volume_gib must be at least 8, got 7"),
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


@pytest.mark.parametrize("settings", [{"count": 1}, {"name": "a"}, {"name": "A-1"}, {"root_volume_gib": 8}])
def test_the_boundaries_are_taken(settings: dict[str, Any]) -> None:
    assert _said(_group(**settings)) == []


def test_a_count_that_is_not_known_yet_is_not_checked() -> None:
    _group(count=CfnParameter(new_stack(), "Count", type="Number").value_as_number)


def test_a_type_that_is_not_known_yet_is_refused_since_the_interfaces_follow_from_it() -> None:
    stack = new_stack()
    name = CfnParameter(stack, "Type").value_as_string
    (problem,) = _said(_group(instance_types=[name]))
    assert "must be known when the template is made" in problem
