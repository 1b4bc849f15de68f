"""What should happen to the broken nodes of one node group: a pure function of what is known and the time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from cluster_common.owners.groups import Node, OwnedGroup
from cluster_common.times import time_text
from cluster_contract.faults import FaultAction
from cluster_contract.health_settings import SERIALS_REMEMBERED
from cluster_health.commands import by_hand, keep_it, put_back
from cluster_health.outcomes import Context, Finding, GroupView, Outcome
from cluster_health.records import End, NodeRecord, Notice, PastRepair, Repair, Step, strongest

_ASK_AGAIN = timedelta(minutes=1)
"""How long after an owner was asked for a step it is asked again, where its answer is not known."""

_SHOWS_WITHIN = timedelta(minutes=5)
"""How long after an owner has agreed to a step its description may not show it."""

_PLACE_WITHIN = timedelta(minutes=10)
"""For how long the power function is waited for, which gives the place of a node in Standby back."""

_WOULD_SHRINK = "its node group has a size that an operator set, and would get smaller without it"

# A node in another lifecycle state is about to be there, or about to go.
# https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-lifecycle.html
_IN_SERVICE = "InService"
_GOING = ("Terminat", "Detach", "Warmed")

_STEPS = {
    Step.CORDON: Outcome.CORDON,
    Step.REBOOT: Outcome.REBOOT,
    Step.REPLACE: Outcome.REPLACE,
    Step.RETURN: Outcome.RETURN,
}
_ENDS = {
    End.RETURNED: Outcome.RETURNED,
    End.REPLACED: Outcome.REPLACED,
    End.LEFT: Outcome.LEFT,
    End.HELD: Outcome.HELD,
}


@dataclass(frozen=True, kw_only=True)
class _Need:
    """What ends what is wrong with a node.

    Attributes:
        action: What ends it.
        reason: What is wrong: the end of a sentence that begins with the node.
        since: Since when.
        is_silent: Whether the node is unhealthy and says nothing: it cannot end its job.
    """

    action: FaultAction
    reason: str
    since: datetime
    is_silent: bool = False


@dataclass(frozen=True, kw_only=True)
class _Broken:
    """A node that is broken, and not under repair."""

    instance_id: str
    node: NodeRecord
    need: _Need


def decide(view: GroupView, context: Context) -> list[Finding]:
    """Decide about the nodes of one node group: about the one under repair, and about each that is broken.

    One repair begins in a run at most, and none while another is under way.
    """
    findings: list[Finding] = []
    repair = view.record.repair
    if repair is not None:
        findings.append(_Progress(repair, view, context).decide())
    under_repair = repair.instance_id if repair is not None else ""
    for instance_id, node in sorted(view.nodes.items(), key=_since):
        if instance_id == (repair.instance_id if repair is not None else ""):
            continue
        finding = _judge(instance_id, node, view, context, under_repair)
        if finding is not None:
            findings.append(finding)
            under_repair = instance_id if finding.record is not None else under_repair
    return findings


def _since(named: tuple[str, NodeRecord]) -> tuple[str, str]:
    instance_id, node = named
    since = node.faulty_since or node.down_since
    return (time_text(since) if since else "9"), instance_id


def _judge(
    instance_id: str, node: NodeRecord, view: GroupView, context: Context, under_repair: str
) -> Finding | None:
    """Decide about a node that is not under repair. None: there is nothing to say of it."""
    owned = view.group.nodes.get(instance_id) if view.group is not None else None
    if view.group is not None and (owned is None or owned.state.startswith(_GOING)):
        return None
    need = find_need(instance_id, node, view, context)
    held = view.record.held(instance_id) if owned is not None and owned.in_standby else None
    if held is not None and context.policy.act and not under_repair:
        finding = _resume(held, need, view, context)
        if finding is not None:
            return finding
    if need is None:
        if not node.faults:
            return None
        said = "; ".join(map(str, node.faults))
        return _finding(view, instance_id, Outcome.OBSERVED, f"reports what needs no repair: {said}", key=said)
    broken = _Broken(instance_id=instance_id, node=node, need=need)
    return _begin(broken, view, context, under_repair)


def _resume(held: PastRepair, need: _Need | None, view: GroupView, context: Context) -> Finding | None:
    """Let a node go on that an earlier repair left out of service. None: it stays there, or is repaired anew."""
    wanted, one = view.wanted, held.instance_id
    if wanted is not None and wanted.stopped:
        outcome, step, text = Outcome.RELEASE, Step.REPLACE, "is out of service, and its node group is stopped"
    elif wanted is not None and need is None and view.kept.get(one) == "":
        outcome, step, text = Outcome.RETURN, Step.RETURN, "has recovered, and comes back into service"
    else:
        return None
    record = view.record.resume(held, step, text, context.now)
    return _finding(view, one, outcome, text, key=time_text(context.now)).with_record(record)


def _begin(broken: _Broken, view: GroupView, context: Context, under_repair: str) -> Finding:
    """Let a repair begin, or say why none does."""
    instance_id, need = broken.instance_id, broken.need
    obstacle = next(_obstacles(broken, view, context, under_repair), None)
    if obstacle is not None:
        outcome, why = obstacle
        undo = by_hand(view, instance_id, need.action, context.region) if outcome.waits else ""
        key = time_text(need.since)
        return _finding(view, instance_id, outcome, f"{need.reason}. It is left alone: {why}", key=key, undo=undo)
    step = Step.REPLACE if need.is_silent else Step.CORDON
    repair = Repair(
        instance_id=instance_id,
        action=need.action,
        reason=need.reason,
        step=step,
        began=context.now,
        since=context.now,
        asked=context.now,
        boot_id=broken.node.boot_id,
    )
    then = {
        (Step.REPLACE, FaultAction.REPLACE): "It is terminated, and its group keeps its size",
        (Step.CORDON, FaultAction.REPLACE): "It takes no new job, and is replaced when its job has ended",
        (Step.CORDON, FaultAction.REBOOT): "It takes no new job, and is rebooted when its job has ended",
    }[step, need.action if view.traits.reboots else FaultAction.REPLACE]
    undo = keep_it(instance_id, context.region) if step is Step.CORDON else ""
    reason = f"{need.reason}. {then}"
    finding = _finding(view, instance_id, _STEPS[step], reason, key=time_text(context.now), undo=undo)
    return finding.with_record(replace(view.record, repair=repair))


def find_need(instance_id: str, node: NodeRecord, view: GroupView, context: Context) -> _Need | None:
    """Return what ends what is wrong with a node. None: nothing is known to be wrong with it."""
    faults = node.draining_faults
    if faults and node.faulty_since is not None:
        action, said = strongest(faults), "; ".join(map(str, faults))
        before = [one for one in view.record.past if one.instance_id == instance_id and one.rebooted]
        if action is FaultAction.REBOOT and before and context.is_recent(before[-1].began, context.policy.window):
            what = f"was rebooted at {time_text(before[-1].began)}, and is broken again ({said})"
            return _Need(action=FaultAction.REPLACE, reason=what, since=node.faulty_since)
        ends = "another node" if action is FaultAction.REPLACE else "a reboot"
        return _Need(action=action, reason=f"has what only {ends} ends ({said})", since=node.faulty_since)
    for serial in node.serials:
        bad = context.bad_serials.get(serial)
        if bad and bad.instance_id != instance_id and context.is_recent(bad.at, SERIALS_REMEMBERED):
            what = f"has the accelerator {serial} of {bad.instance_id}, which was replaced at {time_text(bad.at)}"
            said = f"{what} ({bad.reason})"
            return _Need(action=FaultAction.REPLACE, reason=said, since=node.reported or context.now)
    if _is_silent(node, context):
        since = node.down_since or context.now
        said = f"is called unhealthy since {time_text(since)}, and has reported nothing since then"
        return _Need(action=FaultAction.REPLACE, reason=said, since=since, is_silent=True)
    return None


def _is_silent(node: NodeRecord, context: Context) -> bool:
    down = node.down_since
    if down is None or context.is_recent(down, context.policy.impaired_for):
        return False
    return node.reported is None or node.reported <= down


def _obstacles(
    broken: _Broken, view: GroupView, context: Context, under_repair: str
) -> Iterator[tuple[Outcome, str]]:
    """Yield why no repair of a broken node begins, the gravest reason first."""
    group, wanted, policy, instance_id = view.group, view.wanted, context.policy, broken.instance_id
    if view.traits.own_repair:
        yield Outcome.OWNER, view.traits.own_repair
    if group is None or group.busy or group.deleting:
        yield Outcome.UNKNOWN, f"its {view.traits.noun} could not be read, or is being changed"
        return
    if wanted is not None and wanted.stopped:
        yield Outcome.GOING, "its node group is stopped"
    notice = broken.node.notice
    if notice is not None and _is_soon(notice, context):
        yield Outcome.GOING, f"AWS takes it away ({notice.sentence})"
    if not policy.act:
        yield Outcome.REPORT, "the cluster's health policy only reports"
    if wanted is None:
        yield Outcome.UNKNOWN, "what the power function wants of its node group could not be read"
        return
    owned = group.nodes[instance_id]
    if view.traits.reboots and not (owned.state == _IN_SERVICE or owned.in_standby):
        yield Outcome.UNKNOWN, f"its state is {owned.state}"
    present = group.counted + group.standby
    if present > wanted.size:
        yield Outcome.GOING, f"its node group has {present} nodes and is given {wanted.size}"
    if instance_id not in view.kept:
        yield Outcome.UNKNOWN, "its tags could not be read"
        return
    if under_repair:
        yield Outcome.TURN, f"{under_repair} of its node group is under repair"
    yield from _operators_choice(broken, owned, view)
    spent = view.record.repairs_since(context.now - policy.window)
    if spent >= policy.max_repairs:
        hours = policy.window.total_seconds() / 3600
        yield (
            Outcome.BUDGET,
            f"{spent} nodes of its node group were repaired within {hours:g} hours, as many as may be",
        )


def _operators_choice(broken: _Broken, owned: Node, view: GroupView) -> Iterator[tuple[Outcome, str]]:
    kept, wanted, instance_id = view.kept[broken.instance_id], view.wanted, broken.instance_id
    if kept and (owned.in_standby or broken.need.is_silent or not view.traits.reboots):
        yield Outcome.KEPT, f"it {kept}"
    if owned.in_standby and view.record.held(instance_id) is None:
        yield Outcome.KEPT, "it was put into Standby by another than this function"
    keeps_place = wanted is not None and instance_id in wanted.standby
    if owned.in_standby and broken.need.action is FaultAction.REPLACE and not keeps_place:
        yield Outcome.KEPT, _WOULD_SHRINK


def _is_soon(notice: Notice, context: Context) -> bool:
    soon = context.policy.drain_timeout + context.policy.verify_timeout
    return notice.deadline is not None and timedelta(0) <= notice.deadline - context.now <= soon


class _Progress:
    """Decide what is next in a repair that is under way."""

    def __init__(self, repair: Repair, view: GroupView, context: Context) -> None:
        self._repair = repair
        self._view = view
        self._context = context
        self._node = view.nodes.get(repair.instance_id, NodeRecord(node_group=view.name))
        self._need = find_need(repair.instance_id, self._node, view, context)

    def decide(self) -> Finding:
        """Return what is next."""
        view, group = self._view, self._view.group
        if group is None or group.busy or group.deleting:
            return self._wait(Outcome.UNKNOWN, f"its {view.traits.noun} could not be read, or is being changed")
        owned = group.nodes.get(self._repair.instance_id)
        if owned is None or owned.state.startswith(_GOING):
            return self._after_leaving()
        if view.wanted is None:
            return self._wait(Outcome.UNKNOWN, "what the power function wants of its node group could not be read")
        if not self._context.policy.act:
            return self._wait(Outcome.REPORT, "is left as it is: the cluster's health policy only reports now")
        if view.wanted.stopped:
            return self._release(owned)
        steps: dict[Step, Callable[[], Finding]] = {
            Step.CORDON: lambda: self._after_cordon(group, owned),
            Step.REBOOT: self._after_reboot,
            Step.REPLACE: lambda: self._before_replacement(owned),
            Step.RETURN: lambda: self._after_return(owned),
        }
        return steps[self._repair.step]()

    def _after_leaving(self) -> Finding:
        if self._repair.step is Step.REPLACE:
            return self._end(End.REPLACED, "is terminated, and its group keeps its size")
        return self._end(End.LEFT, "went before its repair was done")

    def _before_replacement(self, owned: Node) -> Finding:
        """Ask again for a node to be terminated, unless it was never asked for and is no longer broken."""
        if not self._repair.answered and self._need is None:
            return self._give_back("has recovered before it was replaced", owned)
        return self._ask(Step.REPLACE, "is terminated, and its group keeps its size")

    def _release(self, owned: Node) -> Finding:
        """Let a node go whose group is stopped: Auto Scaling terminates none in Standby."""
        if not owned.in_standby:
            return self._end(End.LEFT, "goes with its node group, which is stopped")
        finding = self._ask(Step.REPLACE, "is terminated in Standby, since its node group is stopped")
        return finding if finding.outcome is Outcome.WAIT else replace(finding, outcome=Outcome.RELEASE)

    def _after_cordon(self, group: OwnedGroup, owned: Node) -> Finding:
        repair, node, policy = self._repair, self._node, self._context.policy
        cordoned = owned.in_standby or not group.owner.reboots
        if not cordoned:
            return self._ask(Step.CORDON, "is taken out of service")
        if owned.state == "EnteringStandby":
            return self._wait(Outcome.WAIT, "is leaving the service")
        need = self._need
        if need is None:
            return self._give_back("has recovered without a repair", owned)
        if node.drained is None and self._context.is_recent(repair.since, policy.drain_timeout):
            until = time_text(repair.since + policy.drain_timeout)
            return self._wait(Outcome.WAIT, f"lets its job end, until {until} at the latest")
        ended = "reports that its job has ended" if node.drained else "had its time to end its job"
        reboots = group.owner.reboots and need.action is FaultAction.REBOOT
        then = "rebooted" if reboots else "terminated"
        return self._repair_with(Step.REBOOT if reboots else Step.REPLACE, f"{ended}, and is {then}")

    def _after_reboot(self) -> Finding:
        repair, node, now = self._repair, self._node, self._context.now
        has_booted = node.boot_id != repair.boot_id
        is_verified = node.verified is not None and node.verified.boot_id == node.boot_id
        is_broken = bool(node.draining_faults) and node.faults_boot == node.boot_id
        if has_booted and (is_verified or is_broken):
            if is_verified and not is_broken:
                return self._ask(Step.RETURN, "has rebooted and passed its verification, and comes back into service")
            said = "; ".join(map(str, node.draining_faults))
            return self._repair_with(Step.REPLACE, f"has rebooted and is still broken ({said}): it is terminated")
        return self._while_booting(has_booted=has_booted, now=now)

    def _while_booting(self, *, has_booted: bool, now: datetime) -> Finding:
        repair, node = self._repair, self._node
        if not repair.answered:
            return self._ask(Step.REBOOT, "is rebooted")
        if now - repair.since < self._context.policy.verify_timeout:
            return self._wait(Outcome.WAIT, "boots, and is verified")
        if has_booted and not _is_silent(node, self._context):
            return self._end(End.HELD, "has rebooted, reports, and was not verified: verify it, or replace it")
        return self._repair_with(Step.REPLACE, "has not reported since its reboot, and is terminated")

    def _after_return(self, owned: Node) -> Finding:
        if owned.state == _IN_SERVICE:
            return self._end(End.RETURNED, "is back in service")
        if not owned.in_standby:
            return self._wait(Outcome.WAIT, f"comes back into service, and is {owned.state}")
        return self._ask(Step.RETURN, "comes back into service")

    def _give_back(self, why: str, owned: Node) -> Finding:
        if owned.in_standby:
            return self._ask(Step.RETURN, f"{why}, and comes back into service")
        return self._end(End.RETURNED, why)

    def _repair_with(self, step: Step, text: str) -> Finding:
        """Return what reboots or replaces the node, unless an operator keeps it."""
        kept = self._view.kept.get(self._repair.instance_id)
        if kept is None:
            return self._wait(Outcome.UNKNOWN, "is left as it is: its tags could not be read")
        if kept:
            return self._end(End.HELD, f"stays out of service, and is neither rebooted nor replaced: it {kept}")
        if step is Step.REPLACE and not self._gives_place_back():
            if self._context.is_recent(self._repair.since, _PLACE_WITHIN):
                return self._wait(Outcome.WAIT, "is terminated when the power function knows that it is in Standby")
            return self._end(
                End.HELD,
                f"stays out of service: {_WOULD_SHRINK}",
            )
        return self._ask(step, text)

    def _gives_place_back(self) -> bool:
        """Whether the group keeps its size when the node is terminated."""
        group, wanted = self._view.group, self._view.wanted
        owned = group.nodes.get(self._repair.instance_id) if group is not None else None
        if group is None or wanted is None or owned is None:
            return False
        return not owned.in_standby or self._repair.instance_id in wanted.standby

    def _ask(self, step: Step, text: str) -> Finding:
        """Return what asks the owner for a step, unless it was asked just now."""
        repair, now = self._repair, self._context.now
        is_new = step is not repair.step
        patience = _SHOWS_WITHIN if repair.answered else _ASK_AGAIN
        if not is_new and self._context.is_recent(repair.asked, patience):
            return self._wait(Outcome.WAIT, text)
        since = now if is_new else repair.since
        rebooted = repair.rebooted or step is Step.REBOOT
        asked = replace(repair, step=step, since=since, asked=now, answered=False, rebooted=rebooted)
        finding = self._finding(_STEPS[step], text)
        return finding.with_record(replace(self._view.record, repair=asked))

    def _wait(self, outcome: Outcome, text: str) -> Finding:
        return self._finding(outcome, text)

    def _end(self, end: End, text: str) -> Finding:
        finding = self._finding(_ENDS[end], text)
        return finding.with_record(self._view.record.with_end(end, self._context.now, self._context.policy.window))

    def _finding(self, outcome: Outcome, text: str) -> Finding:
        view, repair, region = self._view, self._repair, self._context.region
        held = outcome.waits and view.traits.reboots
        undo = put_back(view, repair.instance_id, region) if held else ""
        reason = f"{text}. Its repair began at {time_text(repair.began)}: it {repair.reason}"
        return _finding(view, repair.instance_id, outcome, reason, key=time_text(repair.began), undo=undo)


def _finding(
    view: GroupView, instance_id: str, outcome: Outcome, reason: str, *, key: str, undo: str = ""
) -> Finding:
    return Finding(
        node_group=view.name,
        instance_id=instance_id,
        outcome=outcome,
        reason=f"{instance_id} of {view.name} {reason}",
        key=f"{outcome} {key}",
        undo=undo,
    )
