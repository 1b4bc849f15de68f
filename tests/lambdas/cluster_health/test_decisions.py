"""Which broken nodes are left alone, and why."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from cluster_common.owners.groups import OwnedGroup, OwnedNode
from cluster_common.owners.kinds import (
    AUTO_SCALING_GROUP,
    BATCH_COMPUTE_ENVIRONMENT,
    EKS_NODEGROUP,
    HYPERPOD_INSTANCE_GROUP,
    PCS_COMPUTE_NODE_GROUP,
    SPOT_FLEET,
    OwnerTraits,
)
from cluster_contract.faults import FaultAction, FaultKind
from cluster_contract.health_settings import HealthPolicySettings
from cluster_health.decisions import decide
from cluster_health.node_records import Fault, NodeRecord, Notice, Verified
from cluster_health.outcomes import Context, Finding, GroupView, Outcome, PlannedSize
from cluster_health.records import BadSerial, End, GroupRecord, PastRepair
from power_scene import START

NODE = "i-1"
POLICY = HealthPolicySettings(act=True)
REBOOT = Fault(
    code="95", kind=FaultKind.XID, action=FaultAction.REBOOT, sentence="Uncontained memory error", serial="s-1"
)
BROKEN = NodeRecord(
    node_group="workers", boot_id="b", reported=START, faults=(REBOOT,), faults_at=START, faulty_since=START
)


def past(instance_id: str, began: datetime = START, end: End = End.RETURNED, *, rebooted: bool = True) -> PastRepair:
    return PastRepair(instance_id=instance_id, began=began, ended=began, end=end, rebooted=rebooted)


def owned(
    traits: OwnerTraits = AUTO_SCALING_GROUP, state: str = "InService", *, in_service: int = 2, **more: Any
) -> OwnedGroup:
    return OwnedGroup(
        name="asg",
        node_group="workers",
        owner=traits,
        desired=2,
        minimum=0,
        maximum=2,
        in_service=in_service,
        nodes={NODE: OwnedNode(state=state), "i-2": OwnedNode(state="InService")},
        **more,
    )


def look(node: NodeRecord = BROKEN, policy: HealthPolicySettings = POLICY, **changes: Any) -> Finding | None:
    traits = changes.pop("traits", AUTO_SCALING_GROUP)
    bad, read = changes.pop("bad", {}), changes.pop("statuses_read", True)
    view = GroupView(
        name="workers",
        traits=traits,
        **{
            "group": owned(traits),
            "nodes": {NODE: node},
            "wanted": PlannedSize(size=2),
            "kept": {NODE: ""},
            **changes,
        },
    )
    now = START + timedelta(minutes=30)
    found = decide(view, Context(policy=policy, now=now, region="us-east-1", bad_serials=bad, statuses_read=read))
    return next((one for one in found if one.instance_id == NODE), None)


def outcome(node: NodeRecord = BROKEN, policy: HealthPolicySettings = POLICY, **changes: Any) -> Outcome | None:
    found = look(node, policy, **changes)
    return found.outcome if found is not None else None


NOW = START + timedelta(minutes=30)
REPORT_ONLY = replace(POLICY, act=False)


@pytest.mark.parametrize(
    ("expected", "changes"),
    [
        (Outcome.CORDON, {}),
        (Outcome.UNKNOWN, {"group": None}),
        (Outcome.UNKNOWN, {"group": owned(busy=True)}),
        (Outcome.UNKNOWN, {"group": owned(deleting=True)}),
        (Outcome.UNKNOWN, {"group": owned(state="Pending:Wait")}),
        (None, {"group": owned(state="Terminating:Wait")}),
        (Outcome.UNKNOWN, {"wanted": None}),
        (Outcome.UNKNOWN, {"kept": {}}),
        (Outcome.GOING, {"wanted": PlannedSize(size=0)}),
        (Outcome.GOING, {"wanted": PlannedSize(size=2, stopped=True)}),
        (Outcome.GOING, {"wanted": PlannedSize(size=1)}),
        (Outcome.REPORT, {"policy": REPORT_ONLY}),
        (Outcome.REPORT, {"policy": REPORT_ONLY, "wanted": None}),
        (Outcome.GOING, {"policy": REPORT_ONLY, "wanted": PlannedSize(size=0)}),
        (Outcome.CORDON, {"kept": {NODE: "has the tag keep"}}),
        (Outcome.KEPT, {"kept": {NODE: "has the tag keep"}, "traits": SPOT_FLEET}),
        (Outcome.KEPT, {"group": owned(state="Standby", in_service=1)}),
        (Outcome.BUDGET, {"record": GroupRecord(past=tuple(map(past, ("i-7", "i-8", "i-9"))))}),
        (Outcome.CORDON, {"record": GroupRecord(past=tuple(map(past, ("i-8", "i-9"))))}),
        (
            Outcome.CORDON,
            {"record": GroupRecord(past=(past("i-7", NOW - timedelta(hours=24)), past("i-8"), past("i-9")))},
        ),
        (Outcome.OWNER, {"traits": EKS_NODEGROUP}),
        (Outcome.OWNER, {"traits": HYPERPOD_INSTANCE_GROUP}),
        (Outcome.OWNER, {"traits": BATCH_COMPUTE_ENVIRONMENT, "wanted": None}),
        (Outcome.CORDON, {"traits": PCS_COMPUTE_NODE_GROUP}),
    ],
)
def test_a_broken_node(expected: Outcome | None, changes: dict[str, Any]) -> None:
    assert outcome(**changes) is expected


def notice(minutes: int, code: str = "instance-stop") -> NodeRecord:
    soon = Notice(code=code, at=START, deadline=NOW + timedelta(minutes=minutes), sentence="EC2 stops it")
    return replace(BROKEN, notice=soon)


def with_faults(*actions: FaultAction) -> NodeRecord:
    faults = tuple(replace(REBOOT, action=action) for action in actions)
    drains = any(action.drains for action in actions)
    return replace(BROKEN, faults=faults, faulty_since=START if drains else None)


QUIET = NodeRecord(node_group="workers")


@pytest.mark.parametrize(
    ("expected", "node"),
    [
        (None, QUIET),
        (Outcome.OBSERVED, with_faults(FaultAction.OBSERVE, FaultAction.APPLICATION)),
        (Outcome.CORDON, with_faults(FaultAction.OBSERVE, FaultAction.REBOOT)),
        (Outcome.GOING, notice(0)),
        (Outcome.GOING, notice(60)),
        (Outcome.CORDON, notice(61)),
        (Outcome.CORDON, notice(30, "system-reboot")),
        (Outcome.CORDON, notice(30, "AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED")),
        (Outcome.CORDON, notice(-1)),
        (None, replace(QUIET, down_since=NOW - timedelta(minutes=14))),
        (Outcome.CORDON, replace(QUIET, down_since=NOW - timedelta(minutes=15))),
        (Outcome.CORDON, replace(QUIET, down_since=START, reported=NOW)),
        (None, replace(QUIET, serials=("s-2",))),
        (Outcome.OBSERVED, replace(QUIET, serials=("s-2", "s-1"))),
    ],
)
def test_what_is_known_of_a_node_says_whether_it_is_broken(expected: Outcome | None, node: NodeRecord) -> None:
    assert outcome(node, bad={"s-1": BadSerial(instance_id="i-0", at=START, reason="broken")}) is expected


@pytest.mark.parametrize(
    ("expected", "action", "traits", "goal"),
    [
        (Outcome.CORDON, FaultAction.REBOOT, AUTO_SCALING_GROUP, None),
        (Outcome.PLACE, FaultAction.REPLACE, AUTO_SCALING_GROUP, None),
        (Outcome.CORDON, FaultAction.REPLACE, AUTO_SCALING_GROUP, 1),
        (Outcome.PLACE, FaultAction.REBOOT, SPOT_FLEET, None),
    ],
)
def test_no_node_is_replaced_while_its_group_lacks_another(
    expected: Outcome, action: FaultAction, traits: OwnerTraits, goal: int | None
) -> None:
    group, wanted = owned(traits, in_service=1), PlannedSize(size=2, goal=goal)
    assert outcome(with_faults(action), traits=traits, group=group, wanted=wanted) is expected


@pytest.mark.parametrize(
    "bad",
    [
        BadSerial(instance_id=NODE, at=START, reason="its own"),
        BadSerial(instance_id="i-0", at=NOW - timedelta(days=30), reason="long ago"),
    ],
)
def test_a_serial_of_its_own_or_of_long_ago_is_no_reason(bad: BadSerial) -> None:
    assert outcome(replace(QUIET, serials=("s-1",)), bad={"s-1": bad}) is None


@pytest.mark.parametrize(
    ("faults", "changes", "then"),
    [
        ((FaultAction.REBOOT,), {}, "is rebooted"),
        ((FaultAction.REBOOT, FaultAction.REPLACE), {}, "is replaced"),
        ((FaultAction.REBOOT,), {"record": GroupRecord(past=(past(NODE),))}, "is replaced"),
        ((FaultAction.REBOOT,), {"record": GroupRecord(past=(past(NODE, rebooted=False),))}, "is rebooted"),
        (
            (FaultAction.REBOOT,),
            {"bad": {"s-1": BadSerial(instance_id="i-0", at=START, reason="broken")}},
            "is replaced",
        ),
        (
            (FaultAction.REBOOT,),
            {"bad": {"s-2": BadSerial(instance_id="i-0", at=START, reason="broken")}},
            "is rebooted",
        ),
    ],
)
def test_the_gravest_fault_and_what_was_before_say_what_ends_it(
    faults: tuple[FaultAction, ...], changes: dict[str, Any], then: str
) -> None:
    found = look(with_faults(*faults), **changes)
    assert found is not None
    assert then in found.reason


@pytest.mark.parametrize(
    ("state", "command"),
    [("InService", "cluster-node verify"), ("Pending:Wait", "systemctl restart cdk-training-cluster-boot")],
)
def test_a_node_whose_launch_waits_is_set_up_again(state: str, command: str) -> None:
    failed = Verified(at=START, passed=False, boot_id="b", failed="clock: 9 s")
    found = look(replace(QUIET, boot_id="b", verified=failed), group=owned(state=state))
    assert found is not None
    assert command in found.undo


@pytest.mark.parametrize("changes", [{"policy": REPORT_ONLY}, {"wanted": PlannedSize(size=0)}])
def test_a_node_that_enters_standby_is_waited_for(changes: dict[str, Any]) -> None:
    began = look()
    assert began is not None
    assert outcome(record=began.record, group=owned(state="EnteringStandby"), **changes) is Outcome.WAIT


@pytest.mark.parametrize(("state", "expected"), [("Standby", Outcome.RETURN), ("EnteringStandby", None)])
def test_a_node_that_an_operator_has_taken_out_again_comes_back_once_it_is_there(
    state: str, expected: Outcome | None
) -> None:
    record = GroupRecord(past=(replace(past(NODE, end=End.HELD), desired=3),))
    assert outcome(QUIET, record=record, group=owned(state=state, in_service=1)) is expected


@pytest.mark.parametrize("traits", [SPOT_FLEET, PCS_COMPUTE_NODE_GROUP])
def test_nodes_that_cannot_be_rebooted_are_replaced_once_they_are_drained(traits: OwnerTraits) -> None:
    began = look(traits=traits)
    assert began is not None
    assert began.record is not None
    assert began.record.repair is not None
    record = replace(began.record, repair=replace(began.record.repair, answered=True))
    assert outcome(traits=traits, record=record) is Outcome.WAIT
    assert outcome(replace(BROKEN, drained=START), traits=traits, record=record) is Outcome.REPLACE


@pytest.mark.parametrize(
    ("traits", "command"),
    [
        (AUTO_SCALING_GROUP, "aws autoscaling enter-standby --region us-east-1 --auto-scaling-group-name asg"),
        (SPOT_FLEET, f"aws ec2 terminate-instances --region us-east-1 --instance-ids {NODE}"),
    ],
)
def test_one_that_is_only_reported_says_what_an_operator_can_do(traits: OwnerTraits, command: str) -> None:
    found = look(policy=REPORT_ONLY, traits=traits)
    assert found is not None
    assert found.outcome is Outcome.REPORT
    assert command in found.undo
    assert found.reason == (
        "i-1 of workers reports what a reboot clears (Xid 95: Uncontained memory error). It takes no new job, its "
        "job is asked to end, and it is not repaired: the cluster's health policy only reports"
    )
