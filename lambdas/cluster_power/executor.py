"""The executor: it applies what was decided about one group."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from cluster_common.errors import AWS_ERRORS, error_text
from cluster_common.failures import Failures
from cluster_common.owners.node_owner import OwnerBusyError
from cluster_common.power_records import Desired, Order
from cluster_common.reservations import set_instances
from cluster_common.state_table import StateChangedError
from cluster_contract.power import PowerFunctionSettings
from cluster_power.groups import Group
from cluster_power.reserved import explain_refusal
from cluster_power.state_store import StateStore
from cluster_power.verdicts import Decision, Verdict

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client


class Executor:
    """Record the command, raise the reservation, set the size, record that it was set.

    In this order a crash anywhere leaves a group so that the next run does the rest. A command is recorded for all
    of its node groups before the first is sized, so that this holds for all of them. An operator may act at any time:
    a run of the schedule reads a group again before it writes. Where a record of a size is refused, because the item
    was written since, the next run sets the size.
    """

    def __init__(
        self,
        settings: PowerFunctionSettings,
        store: StateStore,
        ec2: "Callable[[], EC2Client]",
        failures: Failures,
        now: datetime,
    ) -> None:
        self._settings = settings
        self._owners = store.owners
        self._store = store
        self._ec2 = ec2
        self._failures = failures
        self._now = now

    def record(self, orders: Mapping[str, Order], *, unless_changed: bool = False) -> frozenset[str]:
        """Record orders, and return the node groups of which one could not be recorded.

        Args:
            orders: What is ordered, by node group.
            unless_changed: Whether to give way to what another run has recorded meanwhile.
        """
        refused = set[str]()
        for name, order in orders.items():
            try:
                self._store.order(name, order, unless_changed=unless_changed)
            except (*AWS_ERRORS, StateChangedError) as error:
                # DynamoDB may have written it though its answer was lost.
                is_recorded = self._store.has_order(name, order)
                if is_recorded:
                    continue
                refused.add(name)
                if not (unless_changed and isinstance(error, StateChangedError)):
                    came_of_it = (
                        "nothing was changed, send the command again"
                        if is_recorded is False
                        else "it may have been recorded, and is then applied within a minute: send the command status"
                    )
                    what = f"the state {order.state} could not be recorded: {came_of_it}"
                    self._failures.add(name, what, error)
        return frozenset(refused)

    def apply_command(self, decisions: Sequence[Decision], refused: Collection[str]) -> list[Decision]:
        """Apply what follows from an order that is recorded, and return it with what came of it.

        Args:
            decisions: What was decided about the groups that it was ordered of.
            refused: The node groups of which it could not be recorded.
        """
        return [
            _wait(one, "was not sized: the command could not be recorded")
            if one.node_group in refused
            else self._try(one, self._act)
            for one in decisions
        ]

    def apply(self, decision: Decision, before: Mapping[str, Group], refused: Collection[str]) -> Decision:
        """Apply what a run of the schedule decided about one group, and return it with what came of it.

        Args:
            decision: What was decided.
            before: The groups as they were read, with what was recorded since.
            refused: The node groups of which it could not be recorded that they were seen.
        """
        group = decision.group
        if group is None or not _is_action(decision):
            return decision

        def act(decision: Decision) -> Decision:
            if decision.node_group in refused or not self._is_still(before[group.name]):
                why = "changed during the run: the next run decides"
                return _wait(decision, why, group=before[group.name])
            return self._act(decision)

        return self._try(decision, act)

    def _try(self, decision: Decision, act: Callable[[Decision], Decision]) -> Decision:
        """Return what came of it; what was decided, if it failed."""
        try:
            return act(decision)
        except AWS_ERRORS as error:
            self._failures.add(decision.node_group, f"could not be sized to {decision.wanted}", error)
            return decision
        except StateChangedError:
            return _wait(decision, "was given another command at the same moment: the next run decides")

    def _act(self, decision: Decision) -> Decision:
        group = decision.group
        if group is None:
            return decision
        if decision.resumes:
            decision = self._resume(decision, group)
        if decision.reserve is not None:
            decision = self._reserve(decision, decision.reserve)
        if decision.verdict is Verdict.SIZE:
            return self._size(decision, group)
        if _is_first_seen(decision):
            self._store.save(group, size=decision.wanted)
        return decision if decision.desired is None else self._set_desired(decision, group, decision.desired)

    def _resume(self, decision: Decision, group: Group) -> Decision:
        try:
            self._owners.of(group).resume_launching(group)
        except AWS_ERRORS as error:
            self._failures.add(decision.node_group, "launching could not be resumed", error)
            if decision.problem:
                sentence = f"{decision.problem.sentence} It could not be resumed: {error_text(error)}"
                return replace(decision, problem=replace(decision.problem, sentence=sentence))
        return decision

    def _is_still(self, group: Group) -> bool:
        """Whether the group is as it was read: an operator's order may have come in between."""
        fresh = self._store.describe(group)
        seen = fresh and (fresh.record, fresh.desired, fresh.busy)
        return seen == (group.record, group.desired, group.busy)

    def _reserve(self, decision: Decision, instances: int) -> Decision:
        """Raise or lower a reservation; capacity that EC2 does not have is a problem, and no failure."""
        own = self._settings.groups[decision.node_group]
        try:
            set_instances(self._ec2(), own.reservation_id or "", instances)
        except AWS_ERRORS as error:
            problem = explain_refusal(decision, own, error_text(error))
            if problem is None:
                raise
            return replace(
                decision, verdict=Verdict.SHORT, reason=problem.sentence, problem=problem, problem_known=True
            )
        return decision

    def _size(self, decision: Decision, group: Group) -> Decision:
        owner, desired = self._owners.of(group), group.capacity_for(decision.wanted)
        self._retire_warm_nodes(group, desired)
        try:
            owner.set_size(group, desired)
        except OwnerBusyError:
            return _wait(decision, "is busy with another scaling activity: the next run tries again")
        is_lower = desired < decision.wanted
        given = (
            Desired(sizes=(desired,), at=self._now, standby=tuple(sorted(group.standby_ids))) if is_lower else None
        )
        record = replace(group.record, size=decision.wanted, since=self._now, desired=given)
        try:
            self._store.save(group, size=record.size, since=record.since, desired=given)
        except StateChangedError:
            # What is recorded and what is there must not stay apart: it would look like an operator's size.
            self._store.forget_size(group)
            raise
        return replace(decision, group=replace(group, desired=desired, record=record))

    def _retire_warm_nodes(self, group: Group, size: int) -> None:
        """Let a group that grows take no node of an old launch template version from its warm pool."""
        if size <= group.desired or not self._settings.groups[group.node_group].warm_pool:
            return
        try:
            self._owners.of(group).retire_warm_nodes(group)
        except AWS_ERRORS as error:
            what = "could not renew its warm pool: nodes of an old launch template version may join it"
            self._failures.add(group.node_group, what, error)

    def _set_desired(self, decision: Decision, group: Group, desired: int) -> Decision:
        """Lower a group to the nodes that it has, or raise it to its size again.

        What is set is recorded before, so that it never looks like an operator's size. Auto Scaling ends nodes of
        its own choice where there are more than the desired capacity: a node that comes meanwhile must not cost one
        that works, so the nodes are counted right before it is lowered, and right after.
        """
        owner, lowers, before = self._owners.of(group), desired < group.desired, group.record.desired
        goal = before.goal if before else None
        given = Desired(sizes=(desired,), at=self._now, goal=goal, standby=tuple(sorted(group.standby_ids)))
        self._explain(group, replace(given, sizes=(desired, group.desired)))
        fresh = self._store.describe(group)
        is_still = fresh and (fresh.record.ordered, fresh.desired) == (group.record.ordered, group.desired)
        if fresh is None or not is_still or (lowers and self._grows(fresh, desired)):
            self._explain(group, before)
            return _wait(decision, "changed while its desired capacity was to be set: the next run decides")
        self._retire_warm_nodes(group, desired)
        try:
            owner.set_size(group, desired)
            fresh = self._store.describe(group) if lowers else None
            if fresh is not None and fresh.desired == desired < fresh.counted:
                owner.set_size(replace(group, desired=desired), group.desired)
                desired = group.desired
        except OwnerBusyError:
            self._explain(group, before)
            return _wait(decision, "is busy with another scaling activity: the next run tries again")
        record = replace(group.record, desired=replace(given, sizes=(desired,)))
        try:
            self._explain(group, record.desired)
        except StateChangedError:
            self._store.forget_size(group)  # An order that came meanwhile was undone.
            raise
        return replace(decision, group=replace(group, desired=desired, record=record))

    def _grows(self, group: Group, desired: int) -> bool:
        """Whether more nodes than desired are there, or one is about to be."""
        activities = self._owners.of(group).read_activities(group, group.record.since)
        return group.counted > desired or any(one.launch and not one.finished for one in activities)

    def _explain(self, group: Group, given: Desired | None) -> None:
        self._store.save(group, desired=given)

    def note(self, decision: Decision, before: Group | None) -> None:
        """Record why the desired capacity is what it is, where that has changed."""
        group = decision.group
        if group is None or before is None or group.deleting or group.record.desired == before.record.desired:
            return
        try:
            self._explain(group, group.record.desired)
        except StateChangedError:
            return  # Another command was recorded, which explains it.
        except AWS_ERRORS as error:
            self._failures.add(
                group.node_group, "could not record why its desired capacity differs from its size", error
            )


def _is_action(decision: Decision) -> bool:
    acts = decision.reserve is not None or decision.desired is not None or decision.resumes
    return acts or decision.verdict is Verdict.SIZE or _is_first_seen(decision)


def _is_first_seen(decision: Decision) -> bool:
    """Whether a group keeps a size of which nothing is recorded: that is recorded as if an operator had set it."""
    group = decision.group
    return decision.verdict is Verdict.HELD and group is not None and group.record.size is None


def _wait(decision: Decision, why: str, group: Group | None = None) -> Decision:
    return replace(
        decision,
        group=group or decision.group,
        verdict=Verdict.BLOCKED,
        reason=f"{decision.node_group} {why}",
        # Nothing is known of it that an alert may say.
        problem_known=False,
        window=None,
    )
