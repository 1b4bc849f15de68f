"""Stops that are applied at once or not at all."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from cluster_common.errors import AWS_ERRORS
from cluster_common.failures import Failures
from cluster_common.owners.node_owner import OwnerBusyError
from cluster_power.commands import Expected
from cluster_power.groups import Group
from cluster_power.records import Record
from cluster_power.state_store import StateStore
from cluster_power.verdicts import Decision, Verdict

# How many seconds a new size may take to show.
_PAUSES = (1, 2)

# A sentence that people read names no more nodes.
_MAX_NAMED = 3


class ImmediateStops:
    """Take groups to zero now, or leave them as they are: no tick finishes what was not done.

    Who orders such a stop knows only of this moment that nothing is lost by it; a minute later a job may run. So
    the size is set first, and a group is recorded as stopped once it has it. Wherever a run is interrupted, a
    tick finds what was never stopped, or a group at zero as an operator leaves one: it holds that, and tells people.
    Only where somebody sets another size at the same
    moment, what was recorded before is written back.

    An order may say what its node group was when somebody judged that it may stop. It is taken back where the size
    is another by now, or a node lives that was not judged.

    While a deploy replaces what owns a node group's nodes, neither owner is touched if one is seen to take no stop.
    The one with more nodes goes first, and the other follows only if that worked: an empty successor that was
    stopped would stay so for good, beside nodes that run.
    """

    def __init__(self, store: StateStore, failures: Failures, pause: Callable[[float], None]) -> None:
        self._owners = store.owners
        self._store = store
        self._failures = failures
        self._pause = pause
        self.recorded: dict[str, Record] = {}
        """What was written on groups to be recorded, by the owner's name."""

    def apply(
        self,
        decisions: Sequence[Decision],
        records: Mapping[str, Record],
        *,
        before: Mapping[str, Group],
        unordered: Sequence[Decision],
        expected: Expected | None = None,
    ) -> list[Decision]:
        """Apply what follows from an order, and return it with what came of it.

        Args:
            decisions: What was decided about the groups that it was ordered of, sorted by node group.
            records: What is to be recorded of those that it changes, by the owner's name.
            before: The groups as they were read, by the owner's name.
            unordered: What would be decided without the order: that holds where it is taken back.
            expected: What the one node group that was ordered has to be still. Default: - whatever it is.
        """
        without = {one.group.name: one for one in unordered if one.group is not None}
        outcomes: list[Decision] = []
        for name, every in groupby(decisions, key=lambda decision: decision.node_group):
            owners = sorted(every, key=lambda decision: decision.group.desired if decision.group else 0, reverse=True)
            why = next((why for decision in owners if (why := _obstacle(decision, records))), "")
            known = [one.group for one in owners if one.group and one.verdict is not Verdict.UNCONFIGURED]
            why = why or _why_unexpected(name, known, expected)
            for decision in owners:
                group = decision.group
                if group is None or group.name not in records:
                    outcomes.append(_untouched(decision))
                    continue
                size = group.desired
                if not why:
                    size, why = self._stop(before[group.name], decision.wanted, records[group.name], expected)
                record = self.recorded.get(group.name, before[group.name].record)
                group = replace(group, desired=size, record=record)
                if why:
                    blocked = replace(without[group.name], verdict=Verdict.BLOCKED, group=group)
                    outcomes.append(_taken_back(blocked, why))
                else:
                    outcomes.append(replace(decision, group=group, taken_back=False))
        return outcomes

    def _stop(self, group: Group, size: int, record: Record, expected: Expected | None) -> tuple[int, str]:
        """Bring a group to a size, and record that.

        Returns:
            The size that it has then, and why the order is to be taken back. Empty: it was applied.
        """
        name = group.node_group
        try:
            fresh = self._store.describe(group)
            if fresh is None or not _is_still(group, fresh):
                return group.desired, f"{name} changed while the function looked"
            why = _why_unjudged(name, fresh.live_ids, expected)
            if why:
                return group.desired, why
            self._owners.of(group).set_size(group, size)
        except OwnerBusyError:
            return group.desired, f"{name} is busy with another scaling activity"
        except AWS_ERRORS as error:
            if not self._has(group, size):
                self._failures.add(name, f"could not bring it to {size}: the stop was taken back", error)
                return group.desired, f"{name} could not be brought to {size}"
        record = replace(record, size=size)
        try:
            self._store.save_record(group, record)
        except AWS_ERRORS as error:
            self._failures.add(name, f"was brought to {size}, and that could not be recorded", error)
            return size, ""
        self.recorded[group.name] = record
        return self._look_again(group, size, record)

    def _has(self, group: Group, size: int) -> bool:
        """Say whether a group has a size although AWS did not say so: its answer may be lost, or show late."""
        for seconds in (*_PAUSES, 0):
            try:
                fresh = self._store.describe(group)
            except AWS_ERRORS:
                return False  # It is told in any case that the size could not be set.
            if fresh is None or fresh.desired == size:
                return fresh is not None
            self._pause(seconds)
        return False

    def _look_again(self, group: Group, size: int, record: Record) -> tuple[int, str]:
        """Return the size that a group has, and why the order is to be taken back, if it is not the one ordered."""
        name = group.node_group
        try:
            fresh = self._store.describe(group)
        except AWS_ERRORS as error:
            self._failures.add(name, "could not be read again", error)
            return size, ""
        if fresh is None or fresh.busy or fresh.desired == size:
            return size, ""
        if (fresh.record.ordered, fresh.desired) == (group.record.ordered, group.desired):
            return size, ""  # It does not show yet what was written: what was read before says nothing.
        del self.recorded[group.name]
        # A tick may have written a size of its own on it by now; what another order wrote is not undone.
        if _is_of_order(fresh.record, record):
            try:
                self._store.save_record(group, group.record)
            except AWS_ERRORS as error:
                what = "what was recorded before could not be written back: a tick may stop it"
                self._failures.add(name, f"was given another size at the same moment, and {what}", error)
        return fresh.desired, f"{name} was given another size at the same moment"


def _obstacle(decision: Decision, records: Mapping[str, Record]) -> str:
    """Say why a group takes no stop at the moment. Empty: it does, or needs none."""
    name, group = decision.node_group, decision.group
    if group is None:
        return decision.reason
    if decision.verdict is Verdict.UNCLEAR:
        return f"{name}: {group.record.unreadable}, which could not be written back"
    if group.name not in records or decision.verdict is Verdict.SIZE:
        return ""
    if group.busy:
        return f"{name}: the {group.owner.noun} {group.name} is being modified"
    return decision.reason


def _untouched(decision: Decision) -> Decision:
    """Return what came of a stop that changes nothing: the group is stopped, or takes no orders."""
    group = decision.group
    if group is not None and not group.desired and decision.verdict is not Verdict.UNCLEAR:
        return replace(decision, taken_back=False)
    return _taken_back(decision, _obstacle(decision, {}) or decision.reason)


def _taken_back(decision: Decision, why: str) -> Decision:
    return replace(decision, reason=f"{why.removesuffix('.')}. The stop was taken back", taken_back=True)


def _is_still(group: Group, fresh: Group) -> bool:
    """Say whether a group is as it was read; what ticks note and tell may have changed."""
    now, before = fresh.record.ordered, group.record.ordered
    return (now, fresh.desired, fresh.busy) == (before, group.desired, group.busy)


def _why_unexpected(name: str, owners: Collection[Group], expected: Expected | None) -> str:
    """Say why a node group is not what was judged. Empty: it is, or nothing is expected of it."""
    size = sum(group.desired for group in owners)
    if expected is not None and size != expected.size:
        return f"{name} has the desired size {size}, and the stop was ordered for {expected.size}"
    return _why_unjudged(name, frozenset[str]().union(*(group.live_ids for group in owners)), expected)


def _why_unjudged(name: str, live_ids: Collection[str], expected: Expected | None) -> str:
    """Say which nodes nobody judged. Empty: none."""
    unjudged = sorted(set(live_ids) - expected.instance_ids) if expected is not None else []
    more = f" and {len(unjudged) - _MAX_NAMED} more" if len(unjudged) > _MAX_NAMED else ""
    return (
        f"{name} has {', '.join(unjudged[:_MAX_NAMED])}{more}, for which the stop was not ordered" if unjudged else ""
    )


def _is_of_order(found: Record, written: Record) -> bool:
    """Say whether what is recorded of a group is what an order wrote, whatever size a tick wrote after it."""
    return (found.state, found.by, found.reason) == (written.state, written.by, written.reason)
