"""A deployment changes the launch template, which reaches later launches only."""

from typing import Any

import pytest

from cluster_common.errors import PartialFailureError
from cluster_common.owners.groups import OwnedNode
from cluster_power.groups import Group
from cluster_power.versions import find_mixture
from fake_auto_scaling import FakeGroup
from power_scene import Scene


@pytest.fixture
def scene() -> Scene:
    return Scene(details={"workers": {"warm_pool": True}})


@pytest.fixture
def group(scene: Scene) -> FakeGroup:
    """Eight nodes of version 1, and a deployment of version 2 since."""
    group = scene.add(version=1)
    scene.minute(2)
    group.version, group.warm = 2, {"i-a1": 1, "i-a2": 2}
    scene.auto_scaling.calls.clear()
    return group


def test_nodes_of_one_group_that_run_different_versions_are_told_of_once_until_all_are_alike(
    scene: Scene, group: FakeGroup
) -> None:
    alike = scene.minute()["workers"]
    group.in_service = 7  # One is lost, and replaced.
    group.describe()
    mixed: dict[str, Any] = scene.minute(20)["workers"]
    scene.order("stop")
    scene.minute(2)
    scene.order("start")
    renewed = scene.minute(2)["workers"]

    assert alike["launch_template_versions"] == {"lt-1 1": 8}
    assert mixed["launch_template_versions"] == {"lt-1 1": 7, "lt-1 2": 1}
    assert (mixed["decision"], mixed["problem"], mixed["missing"]) == ("keep", "mixed-versions", 0)
    assert (
        "its nodes run different versions of their launch template (7 nodes lt-1 1, 1 node lt-1 2)" in mixed["reason"]
    )
    assert (renewed["launch_template_versions"], renewed["problem"]) == ({"lt-1 2": 8}, None)
    assert scene.subjects() == [
        "base-pod: nodes of workers run different launch template versions",
        "base-pod: all nodes of workers run one launch template version again",
    ]


@pytest.mark.parametrize(
    ("nodes", "current", "mixed"),
    [
        (["a 1", "a 1"], ["a 2"], False),
        (["a 1", "a 2"], ["a 2"], True),
        (["a 1", "b 4"], ["a 1", "b 4"], False),
        (["a 1", "b 4"], ["a 2", "b 5"], False),
        (["a 1", "b 4"], ["b 4", "c 1"], True),
        (["a 1", "a 2"], ["a $Latest"], True),
        (["a 1", ""], ["a 1"], False),
        ([], ["a 1"], False),
    ],
)
def test_versions_are_compared_template_by_template(nodes: list[str], current: list[str], mixed: bool) -> None:
    members = {f"i-{at}": OwnedNode(state="InService", template=template) for at, template in enumerate(nodes)}
    members["i-going"] = OwnedNode(state="Terminating", template="a 0")
    group = Group(
        name="asg",
        node_group="workers",
        desired=8,
        minimum=0,
        maximum=8,
        in_service=len(nodes),
        nodes=members,
        templates=frozenset(current),
    )
    assert bool(find_mixture(group)) is mixed


def test_a_start_ends_the_warm_nodes_of_an_old_version_before_the_group_takes_them(
    scene: Scene, group: FakeGroup
) -> None:
    scene.order("stop")
    scene.minute(2)
    assert scene.ec2.writes == []
    scene.auto_scaling.before_next("SetDesiredCapacity", group.name, lambda: seen.append(list(scene.ec2.requests)))
    seen: list[list[tuple[str, dict[str, Any]]]] = []
    scene.order("start")

    assert seen == [[("TerminateInstances", {"InstanceIds": ["i-a1"]})]]
    scene.minute(3)
    assert scene.ec2.writes == ["TerminateInstances"]


def test_a_warm_pool_that_cannot_be_renewed_keeps_no_group_from_its_start(scene: Scene, group: FakeGroup) -> None:
    scene.order("stop")
    scene.minute(2)
    scene.ec2.fail_next("TerminateInstances", "UnauthorizedOperation")
    with pytest.raises(PartialFailureError, match="could not renew its warm pool"):
        scene.order("start")
    assert group.desired == 8


def test_a_warm_node_that_has_gone_keeps_no_other_of_an_old_version(scene: Scene, group: FakeGroup) -> None:
    scene.order("stop")
    scene.minute(2)
    group.warm = {"i-a1": 1, "i-a3": 1}
    gone = "The instance ID 'i-a1' does not exist"
    scene.ec2.fail_next("TerminateInstances", "InvalidInstanceID.NotFound", message=gone)
    scene.order("start")
    assert scene.ec2.requests[-1] == ("TerminateInstances", {"InstanceIds": ["i-a3"]})


def test_a_raise_takes_no_warm_node_of_an_old_version_either(scene: Scene, group: FakeGroup) -> None:
    group.in_service = group.capacity = 5
    scene.minute(12)
    assert (group.desired, scene.ec2.writes) == (5, [])
    scene.minute(10)
    assert scene.ec2.writes == ["TerminateInstances"]


def test_a_group_without_a_warm_pool_of_the_clusters_is_not_asked_for_one(scene: Scene, group: FakeGroup) -> None:
    scene.details.clear()
    scene.order("stop")
    scene.minute(2)
    scene.order("start")
    assert (group.desired, "autoscaling:DescribeWarmPool" in {call.action for call in scene.calls}) == (8, False)
