"""What should happen to the broken nodes of one node group: a pure function of what is known and the time."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

from cluster_common.owners.groups import OwnedNode
from cluster_common.times import time_text
from cluster_contract.faults import FaultAction
from cluster_health.commands import by_hand, keep_it, put_back, replace_or_put_back, verify_again
from cluster_health.needs import Need, bad_serial, find_need
from cluster_health.node_records import NodeRecord, Notice
from cluster_health.outcomes import (
    GOING,
    GONE,
    IN_SERVICE,
    PLACE_WITHIN,
    TERMINATED,
    UNCONFIRMED,
    Context,
    Finding,
    GroupView,
    Outcome,
    finding_about,
)
from cluster_health.progress import Progress
from cluster_health.records import PastRepair, Repair, Step

_GOES_WITHIN = timedelta(hours=1)
"""How long before AWS takes a node away no repair of it begins."""


@dataclass(frozen=True, kw_only=True)
class _Broken:
    """A node that is broken, and not under repair."""

    instance_id: str
    node: NodeRecord
    need: Need


def decide(view: GroupView, context: Context) -> list[Finding]:
    """Decide about the nodes of one node group: about the one under repair, and about each that is broken.

    One repair begins in a run at most, and none while another is under way.
    """
    findings: list[Finding] = []
    repair = view.record.repair
    if repair is not None:
        findings.append(Progress(repair, view, context).decide())
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
    if view.group is not None and (owned is None or owned.state.startswith(GOING)):
        return None
    need = find_need(instance_id, node, view, context)
    last = view.record.held(instance_id)
    waits = last is not None and last.waits and not node.has_reported_since(last.reported or last.ended)
    is_out = owned is not None and owned.in_standby
    # Auto Scaling refuses ExitStandby of one that is only EnteringStandby: "The instance i-... is not in Standby".
    may_return = owned is not None and owned.state == "Standby"
    if last is not None and waits and last.refused and (is_out or need is not None):
        return _refused(last, view, context)
    if last is not None and may_return and not under_repair:
        finding = _resume(last, need, view, context)
        if finding is not None:
            return finding
    if need is None:
        return _without_need(instance_id, node, last, view, context)
    if last is not None and waits:
        text = f"{need.reason}. Its repair ended at {time_text(last.ended)}, and it has reported nothing newer"
        undo = by_hand(view, instance_id, need.action, context.region)
        return finding_about(view, instance_id, Outcome.HELD, text, key=time_text(last.began), undo=undo)
    broken = _Broken(instance_id=instance_id, node=node, need=need)
    return _begin(broken, view, context, under_repair)


def _refused(last: PastRepair, view: GroupView, context: Context) -> Finding:
    """Leave a node to an operator whose last step AWS refused."""
    one, region = last.instance_id, context.region
    text = f"is left as it is: AWS refused the next step of its repair until {time_text(last.ended)}"
    key, undo = f"{time_text(last.began)} refused", replace_or_put_back(view, one, region)
    return finding_about(view, one, Outcome.HELD, text, key=key, undo=undo)


def _without_need(
    instance_id: str, node: NodeRecord, last: PastRepair | None, view: GroupView, context: Context
) -> Finding | None:
    """Decide about a node that neither a reboot nor another node would help."""
    failed = node.failed_verification
    if failed is not None:
        text = f"failed its verification at {time_text(failed.at)}, and takes no job until it passes: {failed.failed}"
        key = time_text(last.began if last is not None and last.ended >= failed.at else failed.at)
        owned = view.group.nodes.get(instance_id) if view.group is not None else None
        joins = owned is not None and owned.state.startswith("Pending")
        undo = verify_again(instance_id, context.region, joins=joins)
        return finding_about(view, instance_id, Outcome.HELD, text, key=key, undo=undo)
    said = "; ".join(map(str, node.all_faults))
    text = f"reports what needs no repair: {said}" if said else bad_serial(instance_id, node.serials, context)
    return finding_about(view, instance_id, Outcome.OBSERVED, text, key=text) if text else None


def _resume(held: PastRepair, need: Need | None, view: GroupView, context: Context) -> Finding | None:
    """Let a node go on that an earlier repair left out of service. None: it stays there, or is repaired anew."""
    wanted, one, why = view.wanted, held.instance_id, view.why_out(held.instance_id, held.desired)
    if wanted is not None and wanted.stopped:
        outcome, step, text = Outcome.RELEASE, Step.REPLACE, "is out of service, and its node group is stopped"
    elif wanted is None or (view.kept.get(one) != "" and one not in view.terminated):
        return None
    elif view.surplus > 0:
        outcome, step, text = Outcome.RELEASE, Step.REPLACE, "is out of service, and its node group has enough nodes"
    elif one in view.terminated:
        outcome, step, text = Outcome.RETURN, Step.RETURN, TERMINATED
        if why:
            outcome, step, text = Outcome.RELEASE, Step.REPLACE, GONE
    elif need is not None or view.nodes[one].failed_verification is not None or view.nodes[one].down_since:
        return None
    elif why:
        undo = put_back(view, one, context.region)
        text = f"has recovered, and stays out of service: {why}"
        return finding_about(view, one, Outcome.HELD, text, key=f"{time_text(held.began)} out", undo=undo)
    else:
        outcome, step, text = Outcome.RETURN, Step.RETURN, "has recovered, and comes back into service"
    record = view.record.resume(held, step, text, context.now)
    return finding_about(view, one, outcome, text, key=time_text(context.now)).with_record(record)


def _begin(broken: _Broken, view: GroupView, context: Context, under_repair: str) -> Finding:
    """Let a repair begin, or say why none does."""
    instance_id, need = broken.instance_id, broken.need
    obstacle = next(_obstacles(broken, view, context, under_repair), None)
    if obstacle is not None:
        outcome, why = obstacle
        undo = by_hand(view, instance_id, need.action, context.region) if outcome.waits else ""
        key = time_text(need.since)
        drains = "takes no new job, its job is asked to end, and it " if broken.node.draining_faults else ""
        text = f"{need.reason}. It {drains}is not repaired: {why}"
        return finding_about(view, instance_id, outcome, text, key=key, undo=undo)
    group, held = view.group, view.record.held(instance_id)
    record, began, desired = view.record, context.now, group.desired if group is not None else None
    if held is not None and not held.rebooted and context.is_recent(held.began, context.policy.window):
        # The repair that ended before it rebooted the node goes on: a node that an operator keeps now and then spends
        # one of the budget.
        record, began = record.without(held), held.began
    if held is not None and group is not None and group.nodes[instance_id].in_standby:
        desired = held.desired
    repair = Repair(
        instance_id=instance_id,
        action=need.action,
        reason=need.reason,
        step=Step.CORDON,
        began=began,
        since=context.now,
        asked=context.now,
        boot_id=broken.node.boot_id,
        desired=desired,
    )
    reboots = need.action is FaultAction.REBOOT and view.traits.reboots
    until = time_text(context.now + context.policy.drain_timeout)
    then = f"It takes no new job, and is {'rebooted' if reboots else 'replaced'} when its job has ended"
    ways = [keep_it(instance_id, context.region)]
    if view.traits.reboots:
        ways.append(put_back(view, instance_id, context.region))
    finding = finding_about(
        view,
        instance_id,
        Outcome.CORDON,
        f"{need.reason}. {then}, at {until} at the latest",
        key=time_text(context.now),
        undo="\n".join(ways),
    )
    return finding.with_record(replace(record, repair=repair))


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
    yield from _lacks_consent(broken, view, context)
    if wanted is None:
        yield Outcome.UNKNOWN, f"the power function's record of {view.name} could not be read"
        return
    owned = group.nodes[instance_id]
    if view.traits.reboots and not (owned.state == IN_SERVICE or owned.in_standby):
        yield Outcome.UNKNOWN, f"its state is {owned.state}"
    if view.surplus > 0:
        yield Outcome.GOING, f"{view.name} has {wanted.size + view.surplus} nodes and should have {wanted.size}"
    if instance_id not in view.kept:
        yield Outcome.UNKNOWN, "its tags could not be read"
        return
    if under_repair:
        yield Outcome.TURN, f"{under_repair} of its node group is under repair"
    yield from _operators_choice(broken, owned, view)
    if view.lacks and (broken.need.action is FaultAction.REPLACE or not view.traits.reboots):
        waited = max([broken.need.since, *(one.ended for one in view.record.past)])
        yield (Outcome.TURN if context.is_recent(waited, PLACE_WITHIN) else Outcome.PLACE), view.lacks
    spent = view.record.repairs_since(context.now - policy.window)
    if spent >= policy.max_repairs:
        hours = policy.window.total_seconds() / 3600
        yield (
            Outcome.BUDGET,
            f"{spent} of {view.name} were repaired within {hours:g} hours, and max_repairs is {policy.max_repairs}",
        )


def _lacks_consent(broken: _Broken, view: GroupView, context: Context) -> Iterator[tuple[Outcome, str]]:
    if not context.policy.act:
        yield Outcome.REPORT, "the cluster's health policy only reports"
    if broken.instance_id in view.unconfirmed:
        waits = context.is_recent(broken.need.since, PLACE_WITHIN)
        yield (Outcome.UNKNOWN if waits else Outcome.HELD), UNCONFIRMED


def _operators_choice(broken: _Broken, owned: OwnedNode, view: GroupView) -> Iterator[tuple[Outcome, str]]:
    kept, instance_id = view.kept[broken.instance_id], broken.instance_id
    if kept and (owned.in_standby or not view.traits.reboots):
        yield Outcome.KEPT, f"it {kept}"
    if owned.in_standby and view.record.held(instance_id) is None:
        yield Outcome.KEPT, "an operator or another tool has put it into Standby"
    if broken.need.action is FaultAction.REPLACE and not view.is_place_kept(instance_id):
        yield Outcome.KEPT, view.lost_place


def _is_soon(notice: Notice, context: Context) -> bool:
    """Say whether AWS takes a node away soon; one that it reboots or maintains stays."""
    stays = any(word in notice.code.lower() for word in ("reboot", "maintenance"))
    soon = notice.deadline is not None and timedelta(0) <= notice.deadline - context.now <= _GOES_WITHIN
    return soon and not stays
