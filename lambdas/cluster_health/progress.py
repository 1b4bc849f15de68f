"""What is next in a repair that is under way: a pure function of what is known and the time."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from cluster_common.owners.groups import OwnedGroup, OwnedNode
from cluster_common.times import format_minutes, time_text
from cluster_contract.faults import FaultAction
from cluster_health.commands import end_activity, give_place, put_back, replace_or_put_back, verify_again
from cluster_health.needs import find_need, is_down
from cluster_health.node_records import NodeRecord
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
from cluster_health.records import End, Repair, Step

_ASK_AGAIN = timedelta(minutes=1)
"""How long after an owner was asked for a step it is asked again, where its answer is not known."""

_BUSY_FOR = timedelta(minutes=30)
"""How long an owner may be busy before a message asks an operator to look, and it is asked less often."""

_SHOWS_WITHIN = timedelta(minutes=5)
"""How long after an owner has agreed to a step its description may not show it."""


class Progress:
    """Decide what is next in a repair that is under way."""

    def __init__(self, repair: Repair, view: GroupView, context: Context) -> None:
        self._repair = repair
        self._view = view
        self._context = context
        self._node = view.nodes.get(repair.instance_id, NodeRecord(node_group=view.name))
        self._owned = view.group.nodes.get(repair.instance_id) if view.group is not None else None
        self._is_terminated = repair.instance_id in view.terminated
        self._need = find_need(repair.instance_id, self._node, view, context)

    def decide(self) -> Finding:
        """Return what is next."""
        view, group = self._view, self._view.group
        if group is None or group.busy or group.deleting:
            return self._finding(
                Outcome.UNKNOWN, f"waits: its {view.traits.noun} could not be read, or is being changed"
            )
        owned = self._owned
        if owned is None or owned.state.startswith(GOING):
            return self._after_leaving()
        if owned.state == "EnteringStandby":
            return self._finding(Outcome.WAIT, "is leaving the service")
        return self._go_on(group, owned)

    def _go_on(self, group: OwnedGroup, owned: OwnedNode) -> Finding:
        wanted, name = self._view.wanted, self._view.name
        if wanted is None:
            return self._finding(Outcome.UNKNOWN, f"waits: the power function's record of {name} could not be read")
        if wanted.stopped:
            return self._release(owned)
        if owned.in_standby and self._is_terminated:
            return self._ask(Step.RETURN, TERMINATED)
        if self._repair.step is Step.CORDON and not self._context.policy.act:
            return self._stop_repairing()
        steps: dict[Step, Callable[[], Finding]] = {
            Step.CORDON: lambda: self._after_cordon(group, owned),
            Step.REBOOT: lambda: self._after_reboot(owned),
            Step.REPLACE: lambda: self._before_replacement(owned),
            Step.RETURN: lambda: self._after_return(owned),
        }
        return steps[self._repair.step]()

    def _stop_repairing(self) -> Finding:
        """End a repair that the policy no longer allows: the node comes back as it is, and drains itself."""
        owned, text = self._owned, "is not repaired: the cluster's health policy only reports now"
        if owned is not None and owned.in_standby:
            return self._ask(Step.RETURN, f"{text}, and it comes back into service")
        if self._context.is_recent(self._repair.asked, _SHOWS_WITHIN) and self._view.traits.reboots:
            return self._finding(Outcome.WAIT, "may be leaving the service")
        return self._end(End.LEFT, text)

    def _after_leaving(self) -> Finding:
        repair, view, region = self._repair, self._view, self._context.region
        group, wanted = view.group, view.wanted
        if wanted is not None and wanted.stopped:
            return self._end(End.LEFT, "went with its node group, which is stopped")
        if repair.step is Step.REPLACE or (repair.step is Step.RETURN and self._is_terminated):
            return self._end(End.REPLACED, "is terminated, and its group keeps its size")
        finding = self._end(End.LEFT, "went before its repair was done")
        if group is None or wanted is None or repair.instance_id in wanted.standby or not view.traits.reboots:
            return finding
        if repair.desired is None or group.desired + 1 != repair.desired:
            return finding
        # Who detaches a node in Standby, or terminates it, does not know that its place left with it.
        return replace(finding, undo=give_place(group, region))

    def _before_replacement(self, owned: OwnedNode) -> Finding:
        """Ask again for a node to be terminated, unless it was never asked for and is no longer broken."""
        if not self._repair.answered and self._need is None:
            return self._give_back("has recovered before it was replaced", owned)
        text = "is terminated, and its group keeps its size"
        return self._ask(Step.REPLACE, text) if self._repair.answered else self._repair_with(Step.REPLACE, text)

    def _release(self, owned: OwnedNode) -> Finding:
        """Let a node go whose group is stopped: Auto Scaling terminates none in Standby."""
        if not owned.in_standby:
            return self._end(End.LEFT, "goes with its node group, which is stopped")
        return self._terminate("is terminated in Standby, since its node group is stopped")

    def _let_go(self) -> Finding:
        """Let a node go that is repaired, and whose node group has enough nodes without it."""
        kept = self._view.kept.get(self._repair.instance_id)
        if kept is None:
            return self._finding(Outcome.UNKNOWN, "is left as it is: its tags could not be read")
        if kept:
            return self._end(End.HELD, f"stays out of service: its node group has enough nodes, and it {kept}")
        return self._terminate("is terminated in Standby, since its node group has enough nodes without it")

    def _terminate(self, text: str) -> Finding:
        finding = self._ask(Step.REPLACE, text)
        return replace(finding, outcome=Outcome.RELEASE) if finding.outcome is Outcome.REPLACE else finding

    def _after_cordon(self, group: OwnedGroup, owned: OwnedNode) -> Finding:
        repair, node, policy = self._repair, self._node, self._context.policy
        cordoned = owned.in_standby or not group.owner.reboots
        if owned.state == IN_SERVICE and repair.answered and not self._context.is_recent(repair.asked, _SHOWS_WITHIN):
            return self._leave_to_operator()
        if not cordoned or not repair.answered:
            # Of one that is out of service already only the answer is missing, and the message about it.
            return self._ask(Step.CORDON, "is taken out of service")
        need = self._need
        if need is None:
            return self._give_back("has recovered without a repair", owned)
        has_drained = node.has_drained(repair.began)
        if not has_drained and self._context.is_recent(repair.since, policy.drain_timeout):
            until = time_text(repair.since + policy.drain_timeout)
            return self._finding(Outcome.WAIT, f"lets its job end, until {until} at the latest")
        late = f"did not end its job within {format_minutes(policy.drain_timeout)}"
        ended = "reports that its job has ended" if has_drained else late
        reboots = group.owner.reboots and need.action is FaultAction.REBOOT
        then = "rebooted" if reboots else "terminated"
        return self._repair_with(Step.REBOOT if reboots else Step.REPLACE, f"{ended}, and is {then}")

    def _after_reboot(self, owned: OwnedNode) -> Finding:
        if owned.state == IN_SERVICE:
            return self._leave_to_operator()
        node = self._node
        has_booted = node.boot_id != self._repair.boot_id
        if has_booted and node.new_faults:
            said = "; ".join(map(str, node.new_faults))
            return self._repair_with(Step.REPLACE, f"has rebooted and is still broken ({said}): it is terminated")
        if has_booted and node.is_verified:
            return self._give_back("has rebooted and passed its verification", owned)
        return self._while_booting(has_booted=has_booted)

    def _while_booting(self, *, has_booted: bool) -> Finding:
        """Wait for a node that boots; only what EC2 says of it replaces one that says nothing."""
        repair, node, context = self._repair, self._node, self._context
        stopped = repair.instance_id in self._view.stopped
        is_over = not context.is_recent(repair.since, context.policy.verify_timeout)
        if is_over and (stopped or is_down(node, context)):
            why = "is stopped in EC2" if stopped else "still fails the health checks of EC2 or of its owner"
            return self._repair_with(Step.REPLACE, f"{why}: it is terminated")
        if not repair.answered and not has_booted:
            return self._repair_with(Step.REBOOT, "is rebooted")
        if not is_over or node.down_since is not None:
            return self._finding(Outcome.WAIT, "boots, and is verified")
        text = "has rebooted and was not verified" if has_booted else "has not reported since its reboot"
        finding, one, region = self._end(End.HELD, text, waits=True), repair.instance_id, context.region
        ways = (verify_again(one, region), replace_or_put_back(self._view, one, region))
        return replace(finding, undo="\n".join(ways))

    def _leave_to_operator(self) -> Finding:
        text = "was put back into service by an operator or another tool, and its repair ends"
        return self._end(End.HELD, text, waits=True)

    def _after_return(self, owned: OwnedNode) -> Finding:
        if owned.state == IN_SERVICE:
            if self._is_terminated:
                return self._end(End.REPLACED, "was terminated in EC2, and its group keeps its size")
            if self._need is not None:
                return self._end(End.LEFT, "is back in service, and is not repaired")
            return self._end(End.RETURNED, "is back in service")
        if not owned.in_standby:
            return self._finding(Outcome.WAIT, f"comes back into service, and is {owned.state}")
        return self._ask(Step.RETURN, "comes back into service")

    def _give_back(self, why: str, owned: OwnedNode) -> Finding:
        """Put a node back into service that has no fault left, unless it has failed its verification."""
        failed = self._node.failed_verification
        if self._repair.instance_id not in self._view.kept:
            return self._finding(Outcome.UNKNOWN, "is left as it is: its tags could not be read")
        if failed is not None:
            finding = self._end(End.HELD, f"is used again once it passes its verification: {failed.failed}")
            return replace(finding, undo=verify_again(self._repair.instance_id, self._context.region))
        if is_down(self._node, self._context):
            return self._repair_with(
                Step.REPLACE, f"{why}, but still fails the health checks of EC2 or of its owner: it is terminated"
            )
        if self._node.down_since is not None:
            return self._finding(Outcome.WAIT, f"{why}, and comes back once it passes the health checks of EC2")
        if owned.in_standby:
            return self._ask(Step.RETURN, f"{why}, and comes back into service")
        return self._end(End.RETURNED, why)

    def _repair_with(self, step: Step, text: str) -> Finding:
        """Return what reboots or replaces the node, unless an operator keeps it."""
        if not self._context.policy.act:
            return self._stop_repairing()
        kept = self._view.kept.get(self._repair.instance_id)
        if kept is None:
            return self._finding(Outcome.UNKNOWN, "is left as it is: its tags could not be read")
        if kept:
            return self._end(End.HELD, f"stays out of service, and is neither rebooted nor replaced: it {kept}")
        one = self._repair.instance_id
        if one in self._view.unconfirmed and one not in self._view.stopped and not is_down(self._node, self._context):
            return self._finding(Outcome.UNKNOWN, f"is left as it is: {UNCONFIRMED}")
        return self._ask(step, text) if step is Step.REBOOT else self._replace(text)

    def _replace(self, text: str) -> Finding:
        """Return what replaces the node, unless its group would lose its place or lacks nodes already."""
        view = self._view
        why = view.lacks if view.is_place_kept(self._repair.instance_id) else view.lost_place
        if not why:
            return self._ask(Step.REPLACE, text)
        if view.surplus > 0:
            return self._let_go()
        if self._context.is_recent(self._repair.since, PLACE_WITHIN):
            return self._finding(Outcome.WAIT, f"is terminated later: {why}")
        finding = self._end(End.HELD, f"is not replaced: {why}")
        return replace(finding, undo=replace_or_put_back(view, self._repair.instance_id, self._context.region))

    def _ask(self, step: Step, text: str) -> Finding:
        """Return what asks the owner for a step, unless it was asked just now."""
        repair, now = self._repair, self._context.now
        if step is Step.RETURN and (other := self._instead_of_return()) is not None:
            return other
        is_new = step is not repair.step
        if not is_new and self._is_refused():
            return self._give_up(step)
        is_busy = repair.busy_since is not None and not self._context.is_recent(repair.busy_since, _BUSY_FOR)
        patience = _SHOWS_WITHIN if repair.answered or is_busy else _ASK_AGAIN
        if not is_new and self._context.is_recent(repair.asked, patience):
            if is_busy:
                return self._wait_for_owner(step)
            return self._finding(Outcome.WAIT, text)
        since = now if is_new else repair.since
        rebooted = repair.rebooted or step is Step.REBOOT
        asked = replace(
            repair,
            step=step,
            since=since,
            asked=now,
            answered=False,
            error="" if is_new else repair.error,
            busy_since=None if is_new else repair.busy_since,
            rebooted=rebooted,
            boot_id=self._node.boot_id if is_new and step is Step.REBOOT else repair.boot_id,
        )
        finding = self._finding(Outcome(step), text)
        return finding.with_record(replace(self._view.record, repair=asked))

    def _instead_of_return(self) -> Finding | None:
        """Return what becomes of a node whose group has no place for it. None: it has one."""
        if self._view.surplus > 0:
            return self._let_go()
        why = self._view.why_out(self._repair.instance_id, self._repair.desired)
        if not why:
            return None
        return self._terminate(GONE) if self._is_terminated else self._end(End.HELD, f"stays out of service: {why}")

    def _is_refused(self) -> bool:
        # A function that did not run for a while has not been refused anything in that time.
        repair, bound = self._repair, self._context.policy.verify_timeout
        return not repair.answered and repair.asked - repair.since >= bound

    def _wait_for_owner(self, step: Step) -> Finding:
        """Ask an operator to look at what keeps the owner busy for long."""
        noun, since = self._view.traits.noun, time_text(self._repair.busy_since or self._repair.asked)
        again = f"is asked again every {format_minutes(_SHOWS_WITHIN)}"
        text = f"waits for its {step}: its {noun} has been busy since {since}, and {again}"
        return replace(self._finding(Outcome.BUSY, text), undo=end_activity(self._view, self._context.region))

    def _give_up(self, step: Step) -> Finding:
        """Leave a node to an operator whose next step AWS keeps refusing."""
        view, one, region, now = self._view, self._repair.instance_id, self._context.region, self._context.now
        error = f" ({self._repair.error})" if self._repair.error else ""
        text = f"is left as it is: AWS has refused its {step} since {time_text(self._repair.since)}{error}"
        finding = self._finding(Outcome.HELD, text)
        undo, record = replace_or_put_back(view, one, region), view.record.with_end(End.HELD, now, refused=True)
        return replace(finding, key=f"{finding.key} refused", undo=undo).with_record(record)

    def _end(self, end: End, text: str, *, waits: bool = False) -> Finding:
        finding = self._finding(Outcome(end), text)
        record = self._view.record.with_end(
            end, self._context.now, waits=waits, reported=self._node.reported if waits else None
        )
        return finding.with_record(record)

    def _finding(self, outcome: Outcome, text: str) -> Finding:
        view, repair, region = self._view, self._repair, self._context.region
        held = outcome.waits and view.traits.reboots
        undo = put_back(view, repair.instance_id, region) if held else ""
        reason = f"{text}. Its repair began at {time_text(repair.began)}: it {repair.reason}"
        return finding_about(view, repair.instance_id, outcome, reason, key=time_text(repair.began), undo=undo)
