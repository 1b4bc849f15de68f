"""Repairs in which a report says less than it seems to, a step is refused, or an operator or a setting steps in."""

import pytest

from cluster_contract.health import ReportKind
from fake_auto_scaling import FakeGroup
from health_scene import FAILED, REPLACE, HealthScene, ids, minutes


@pytest.fixture
def scene() -> HealthScene:
    return HealthScene()


@pytest.fixture
def group(scene: HealthScene) -> FakeGroup:
    return scene.start()


def test_what_is_over_does_not_end_the_faults_that_a_node_still_has(scene: HealthScene, group: FakeGroup) -> None:
    node, failed = ids(group)[:2]
    scene.fault(node, REPLACE)
    scene.verified(failed, FAILED)
    for one, faults in ((node, (REPLACE,)), (failed, ())):
        scene.report(one, ReportKind.RECOVERED, faults=faults, sentence="over: maintenance")
        assert scene.node_record(one).draining_faults


@pytest.mark.parametrize("ends", [ReportKind.RECOVERED, ReportKind.VERIFIED])
def test_a_node_that_was_drained_long_ago_has_its_time(
    scene: HealthScene, group: FakeGroup, ends: ReportKind
) -> None:
    node = ids(group)[0]
    scene.report(node, ReportKind.DRAINED)
    if ends is ReportKind.VERIFIED:
        scene.report(node, ends)
    scene.minute(60)
    scene.fault(node)
    assert scene.both(14)[node]["outcome"] == "wait"
    assert scene.drained(node)[node]["outcome"] == "reboot"


def test_a_node_whose_clock_was_ahead_returns_once_it_is_verified(scene: HealthScene, group: FakeGroup) -> None:
    node = ids(group)[0]
    scene.fault(node, at=scene.now + minutes(40))
    scene.drained(node)
    scene.both(3)
    assert scene.verified(node)[node]["outcome"] == "return"
