"""What fails in a run, and how a later run makes it good."""

from collections.abc import Callable

import pytest

from cluster_common.errors import PartialFailureError
from cluster_contract.health import ReportKind
from fake_auto_scaling import FakeGroup
from health_scene import PASSED, HealthScene, ids, minutes, shown


class Ended(Exception):  # noqa: N818 (Lambda ends the function)
    pass


def tell(scene: HealthScene, node: str) -> list[str]:
    """Let a node tell its story; Lambda tries an event again whose run fails. Return how runs failed."""
    failed: list[str] = []
    steps: list[Callable[[], object]] = [
        lambda: scene.fault(node),
        lambda: scene.drained(node),
        lambda: scene.verified(node, boot_id="boot-1"),
    ]
    for step in steps:
        for _ in range(3):
            try:
                step()
                scene.both(2)
                break
            except PartialFailureError as error:
                failed.append(str(error))
                scene.now += minutes(2)
    return failed


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        ("EnterStandby", "Throttling"),
        ("EnterStandby", "ValidationError"),
        ("ExitStandby", "InternalFailure"),
        ("RebootInstances", "RequestLimitExceeded"),
        ("RebootInstances", "IncorrectInstanceState"),
        ("PutItem", "ProvisionedThroughputExceededException"),
        ("DescribeInstances", "RequestLimitExceeded"),
        ("DescribeInstanceStatus", "Unavailable"),
        ("DescribeAutoScalingGroups", "Throttling"),
        ("Query", "InternalServerError"),
    ],
)
def test_what_fails_is_raised_and_made_good_by_a_later_run(
    scene: HealthScene, group: FakeGroup, operation: str, code: str
) -> None:
    node = ids(group)[0]
    for service in (scene.auto_scaling, scene.nodes_ec2, scene.dynamodb):
        service.fail_next(operation, code, message="no")

    failed = tell(scene, node)

    assert any(code in one for one in failed), failed
    scene.both(10)
    assert shown(group) == (8, 8, 0)
    assert [one.end for one in scene.group_record().past] == ["returned"]


@pytest.mark.parametrize("code", ["ScalingActivityInProgress", "ResourceContention"])
def test_a_busy_group_is_asked_again(scene: HealthScene, group: FakeGroup, code: str) -> None:
    node = ids(group)[0]
    scene.auto_scaling.fail_next("EnterStandby", code)
    scene.fault(node)
    assert shown(group) == (8, 8, 0)
    scene.both(2)
    assert shown(group) == (7, 7, 1)


@pytest.mark.parametrize("operation", ["EnterStandby", "RebootInstances", "ExitStandby"])
@pytest.mark.parametrize("after", [False, True])
def test_a_run_that_ends_between_the_record_and_the_call_is_finished(
    scene: HealthScene, group: FakeGroup, operation: str, *, after: bool
) -> None:
    node, called = ids(group)[0], set[str]()

    def end(now: str) -> None:
        if now == ("PutItem" if after else operation) and (not after or operation in called):
            raise Ended
        called.add(now)

    services = (scene.auto_scaling, scene.nodes_ec2, scene.dynamodb)
    for service in services:
        service.on_call = end
    with pytest.raises(Ended):
        tell(scene, node)
    for service in services:
        service.on_call = lambda _: None
    scene.both(2)
    scene.drained(node)
    scene.both(3)
    scene.report(node, ReportKind.VERIFIED, checks=(PASSED,), boot_id="boot-1")
    scene.both(8)
    assert shown(group) == (8, 8, 0)
    assert len(scene.group_record().past) == 1
    about = f"base-pod: {node} of workers"
    assert scene.subjects() == [f"{about} is broken and is being repaired", f"{about} is repaired"]


def test_a_node_that_has_booted_is_not_rebooted_again_because_an_answer_was_not_recorded(
    scene: HealthScene, group: FakeGroup
) -> None:
    node = ids(group)[0]
    scene.fault(node)
    scene.dynamodb.fail_next("PutItem", "ProvisionedThroughputExceededException", after=2)
    with pytest.raises(PartialFailureError, match="could not be recorded"):
        scene.drained(node)
    scene.boots[node] = 1
    scene.report(node, ReportKind.NOTICE)
    scene.both(2)
    assert scene.nodes_ec2.rebooted == [node]


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("reads", ["refused", "none but reports"])
def test_failed_checks_take_a_node_out_only_while_they_can_be_read(
    scene: HealthScene, group: FakeGroup, reads: str, *, again: bool
) -> None:
    node, other = ids(group)[:2]
    scene.nodes_ec2.impaired[node] = scene.now
    scene.both()
    scene.nodes_ec2.impaired.clear()
    calls = scene.watch_repairs()
    for _ in range(45 if reads == "refused" else 0):
        scene.nodes_ec2.fail_next("DescribeInstanceStatus", "RequestLimitExceeded")
        with pytest.raises(PartialFailureError, match="status checks could not be read"):
            scene.both()
    scene.now += minutes(16)
    scene.report(other, ReportKind.NOTICE)
    if again:
        scene.nodes_ec2.impaired[node] = scene.now
    scene.both(10)
    assert calls == []


def test_of_two_runs_at_once_one_acts(scene: HealthScene, group: FakeGroup) -> None:
    node, calls = ids(group)[0], scene.watch_repairs()
    scene.dynamodb.before_next("PutItem", "group/workers", scene.health)
    scene.fault(node)
    assert (group.standby, calls) == ([node], ["EnterStandby"])


@pytest.mark.parametrize("act", [False, True])
def test_a_message_that_was_not_sent_is_sent_later_and_once(
    scene: HealthScene, group: FakeGroup, *, act: bool
) -> None:
    node = ids(group)[0]
    scene.set_policy(act=act)
    scene.sns.fails = True
    with pytest.raises(PartialFailureError, match="could not be sent"):
        scene.fault(node)
    scene.sns.fails = False
    scene.both(5)
    about = f"base-pod: {node} of workers"
    said = "is broken and is being repaired" if act else "is broken; repairs are off (health: act)"
    assert scene.subjects() == [f"{about} {said}"]
    if not act:
        return
    scene.drained(node)
    scene.verified(node)
    scene.sns.fails = True
    with pytest.raises(PartialFailureError, match="could not be sent"):
        scene.both(2)
    scene.sns.fails = False
    scene.both(5)
    assert scene.subjects()[1:] == [f"{about} is repaired"]


def test_an_item_that_cannot_be_read_stops_what_rests_on_it(scene: HealthScene, group: FakeGroup) -> None:
    node = ids(group)[0]
    scene.dynamodb.change("health#base-pod", "group/workers", repair="?", version=1)
    with pytest.raises(PartialFailureError, match="does not hold what the health function writes"):
        scene.fault(node)
    assert shown(group) == (8, 8, 0)
