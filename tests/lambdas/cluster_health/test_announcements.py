"""What reaches the function, and what it makes of it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cluster_common.errors import InvalidEventError, PartialFailureError
from cluster_contract.health import ReportKind
from fake_auto_scaling import FakeGroup
from health_scene import FAILED, HEALTH_PART, OBSERVE, REPLACE, HealthScene, aws_event, ids, shown

RETIREMENT = "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED"


def health_event(node: str, scene: HealthScene, **changes: Any) -> dict[str, Any]:
    detail = {
        "service": "EC2",
        "eventTypeCode": RETIREMENT,
        "eventTypeCategory": "scheduledChange",
        "startTime": "Sat, 14 Nov 2026 15:10:09 GMT",
        "affectedEntities": [{"entityValue": node}, {"entityValue": "i-0f"}],
        **changes,
    }
    return aws_event("AWS Health Event", scene.now, **detail)


def test_maintenance_is_announced_once_and_kept_with_its_time(scene: HealthScene, group: FakeGroup) -> None:
    node = ids(group)[0]
    for _ in range(2):
        scene.bring(health_event(node, scene))
    notice = scene.node_record(node).notice
    assert notice is not None
    assert notice.deadline == datetime(2026, 11, 14, 15, 10, 9, tzinfo=UTC)
    assert scene.subjects() == [f"base-pod: AWS announces {RETIREMENT} for {node}"[:99]]
    assert scene.both(3) == {}


def test_events_that_ec2_has_scheduled_are_announced_once(scene: HealthScene, group: FakeGroup) -> None:
    one, two = ids(group)[:2]
    starts = scene.now + timedelta(days=2)
    scene.nodes_ec2.events = {
        one: [
            {
                "Code": "system-maintenance",
                "Description": "It has begun",
                "NotBefore": scene.now - timedelta(hours=1),
            },
            {"Code": "instance-stop", "Description": "The host is degraded", "NotBefore": starts},
            {"Code": "instance-retirement", "Description": "Later", "NotBefore": starts + timedelta(days=9)},
            {"Code": "system-reboot", "Description": "At no time yet"},
        ],
        two: [{"Code": "system-reboot", "Description": "[Completed] Done", "NotBefore": starts}],
        "i-0f": [{"Code": "instance-stop", "Description": "Another's", "NotBefore": starts}],
    }
    scene.both(3)
    assert scene.subjects() == [f"base-pod: AWS announces instance-stop for {one}"]
    begins = starts.strftime("%a, %d %b %Y %H:%M:%S GMT")
    scene.bring(health_event(one, scene, startTime=begins))
    assert len(scene.subjects()) == 1


def test_a_reboot_that_the_node_reports_too_keeps_no_broken_node_from_repair(
    scene: HealthScene, group: FakeGroup
) -> None:
    node, starts = ids(group)[0], scene.now + timedelta(minutes=40)
    scene.nodes_ec2.events = {node: [{"Code": "system-reboot", "Description": "Update", "NotBefore": starts}]}
    scene.both()
    scene.report(node, ReportKind.NOTICE, deadline=starts, sentence="EC2 has scheduled system-reboot")
    assert scene.fault(node)[node]["outcome"] == "cordon"


@pytest.mark.parametrize(
    "event",
    [
        {"detail-type": "Node report", "detail": {"kind": "fault"}},
        {"detail-type": "Node report", "detail": []},
        {"detail-type": "EC2 Instance State-change Notification", "detail": {}},
        {"detail-type": "AWS Health Event", "detail": {}, "time": "2026-11-02T08:00:00Z"},
        {"detail-type": "AWS Health Event", "detail": {"eventTypeCode": "X", "eventTypeCategory": "issue"}},
    ],
)
def test_what_is_no_report_and_no_announcement_is_left_alone(
    scene: HealthScene, group: FakeGroup, event: dict[str, Any]
) -> None:
    writes = scene.writes()
    assert scene.bring(event) == {}
    assert (writes, shown(group)) == ([], (8, 8, 0))


@pytest.mark.parametrize("changes", [{"node_group": "others"}, {"instance_id": "i-0f"}])
def test_reports_of_others_are_left_alone(scene: HealthScene, group: FakeGroup, changes: dict[str, str]) -> None:
    node = changes.pop("instance_id", ids(group)[0])
    writes = scene.writes()
    assert scene.fault(node, **changes) == {}
    assert (writes, shown(group)) == ([], (8, 8, 0))


def test_a_report_is_tried_again_whose_node_group_could_not_be_read(scene: HealthScene, group: FakeGroup) -> None:
    scene.auto_scaling.fail_next("DescribeAutoScalingGroups", "Throttling")
    with pytest.raises(PartialFailureError, match="Throttling"):
        scene.fault(ids(group)[0])


def test_an_operator_may_look_and_changes_nothing(scene: HealthScene, group: FakeGroup) -> None:
    node = ids(group)[0]
    scene.set_policy(act=False)
    scene.fault(node)
    scene.set_policy(act=True)
    writes = scene.writes()
    assert scene.health({"action": "status"})[node]["outcome"] == "cordon"
    assert (writes, shown(group)) == ([], (8, 8, 0))
    with pytest.raises(InvalidEventError, match="action must be one of tick, status"):
        scene.health({"action": "run"})


def test_what_a_node_reported_is_kept_while_it_is_there_and_for_a_week_after(
    scene: HealthScene, group: FakeGroup
) -> None:
    node = ids(group)[0]
    scene.verified(node, serials=("s-1",))

    def expires() -> Any:
        return scene.dynamodb.values(HEALTH_PART, f"node/{node}").get("expires")

    assert expires() is None
    group.terminate(node)
    scene.both()
    assert expires() == (scene.now + timedelta(days=7)).timestamp()
    group.standby = [node]
    scene.both()
    assert expires() is None


def test_a_late_report_of_a_drained_node_counts(scene: HealthScene, group: FakeGroup) -> None:
    node = ids(group)[0]
    scene.fault(node)
    drained = scene.now + timedelta(seconds=20)
    scene.now += timedelta(minutes=1)
    scene.fault(node, REPLACE)
    scene.report(node, ReportKind.DRAINED, at=drained)
    assert scene.node_record(node).drained == drained


def test_reports_that_come_twice_late_or_after_a_reboot_say_what_is_newest(
    scene: HealthScene, group: FakeGroup
) -> None:
    node = ids(group)[0]
    scene.set_policy(act=False)
    early = scene.now
    scene.now += timedelta(minutes=1)
    scene.fault(node, OBSERVE)
    scene.fault(node, at=early)
    assert [one.code for one in scene.node_record(node).faults] == ["63"]
    scene.now += timedelta(minutes=1)
    scene.report(node, ReportKind.VERIFIED)
    assert scene.node_record(node).verified is None
    scene.report(node, ReportKind.VERIFIED, checks=(FAILED,), provisional=True)
    assert scene.health() == {} or scene.summary[node]["outcome"] == "observed"
    scene.now += timedelta(seconds=1)
    scene.report(node, ReportKind.VERIFIED, checks=(FAILED,))
    assert scene.summary[node]["outcome"] == "held"
    assert "gpus: 7, at least 8" in scene.summary[node]["reason"]
    scene.now += timedelta(minutes=1)
    assert scene.verified(node) == {}
