"""Stops that are applied at once or not at all."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from cluster_common.errors import AWS_ERRORS
from cluster_common.failures import Failures
from cluster_common.owners.node_owner import OwnerBusyError
from cluster_common.state_table import StateChangedError
from cluster_power.commands import Expected
from cluster_power.groups import Group
from cluster_power.records import Order
from cluster_power.state_store import StateStore
from cluster_power.verdicts import Decision, Verdict

# How many seconds a new size may take to show.
_PAUSES = (1, 2)

# A sentence that people read names no more nodes.
_MAX_NAMED = 3

_NEXT_TICK = "the next tick gives it what was ordered"

_LEFT_ALONE = frozenset({Verdict.DELETING, Verdict.UNCONFIGURED})


class ImmediateStops:
    """Take groups to zero now, or leave them as they are: no tick finishes what was not done.

    Who orders such a stop knows only of this moment that nothing is lost by it; a minute later a job may run. So
    the size is set first, and a node group is recorded as stopped once all its owners have it. Wherever a run is
    interrupted, a tick finds what was never stopped, or a group at zero as an operator leaves one: it holds that, and
    tells people.

    An order may say what its node group was when it was judged that it may stop. It is taken back where the size
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

    def apply(
        self,
        decisions: Sequence[Decision],
        orders: Mapping[str, Order],
        *,
        before: Sequence[Group],
        unordered: Sequence[Decision],
        expected: Expected | None = None,
    ) -> list[Decision]:
        """Apply what follows from an order, and return it with what came of it.

        Args:
            decisions: What was decided about the groups that it was ordered of, sorted by node group.
            orders: What is to be recorded of those that it changes, by node group.
            before: The groups as they were read.
            unordered: What would be decided without the order: that holds where it is taken back.
            expected: What the one node group that was ordered has to be still. Default: - whatever it is.
        """
        read = {group.name: group for group in before}
        without = {one.group.name: one for one in unordered if one.group is not None}
        outcomes: list[Decision] = []
        for name, every in groupby(decisions, key=lambda decision: decision.node_group):
            owners = sorted(every, key=lambda decision: decision.group.desired if decision.group else 0, reverse=True)
            if name not in orders:
                outcomes += [_untouched(decision) for decision in owners]
                continue
            known = [one.group for one in owners if one.group and one.verdict is not Verdict.UNCONFIGURED]
            why = next(filter(None, map(_obstacle, owners)), "") or _why_unexpected(name, known, expected)
            due = [read[one.group.name] for one in owners if one.group and one.verdict not in _LEFT_ALONE]
            sizes, why = ({}, why) if why or not due else self._stop(due, orders[name], expected)
            # One of two owners may have been stopped before it showed that the other one takes no stop.
            is_part = why and any(sizes.get(group.name) for group in due)
            for decision in owners:
                group = decision.group
                if group is None or decision.verdict in _LEFT_ALONE:
                    outcomes.append(_untouched(decision))
                elif sizes.get(group.name) == 0 and (is_part or not why):
                    record = group.record if why else replace(group.record, size=0, since=orders[name].since)
                    group = replace(group, desired=0, record=record)
                    outcomes.append(replace(decision, group=group, taken_back=False))
                else:
                    group = replace(read[group.name], desired=sizes.get(group.name, group.desired))
                    blocked = replace(without[group.name], verdict=Verdict.BLOCKED, group=group)
                    outcomes.append(_taken_back(blocked, why))
        return outcomes

    def _stop(self, due: Sequence[Group], order: Order, expected: Expected | None) -> tuple[dict[str, int], str]:
        """Bring the owners of a node group's nodes to zero, and record that.

        Returns:
            The sizes of those that were touched, and why the order is to be taken back. Empty: it was applied.
        """
        sizes: dict[str, int] = {}
        for group in due:
            sizes[group.name], why = self._set_zero(group, expected)
            if why:
                return sizes, why
        name = due[0].node_group
        try:
            self._store.save_stop(due, order)
        except StateChangedError:
            self._forget_sizes(due)
            return sizes, f"{name} was brought to 0 and given another order at the same moment: {_NEXT_TICK}"
        except AWS_ERRORS as error:
            self._failures.add(name, "was brought to 0, and that could not be recorded", error)
            return sizes, ""
        return sizes, ""

    def _forget_sizes(self, groups: Sequence[Group]) -> None:
        for group in groups:
            try:
                self._store.forget_size(group)
            except (*AWS_ERRORS, StateChangedError) as error:
                self._failures.add(group.node_group, "could not record that its size has to be set again", error)

    def _set_zero(self, group: Group, expected: Expected | None) -> tuple[int, str]:
        """Bring a group to zero.

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
            self._owners.of(group).set_size(group, 0)
        except OwnerBusyError:
            return group.desired, f"{name} is busy with another scaling activity"
        except AWS_ERRORS as error:
            if not self._has(group, 0):
                self._failures.add(name, "could not bring it to 0: the stop was taken back", error)
                return group.desired, f"{name} could not be brought to 0"
        return self._look_again(group)

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

    def _look_again(self, group: Group) -> tuple[int, str]:
        """Return the size that a group has, and why the order is to be taken back, if that is not zero."""
        size = group.desired
        for seconds in (*_PAUSES, 0):
            try:
                fresh = self._store.describe(group)
            except AWS_ERRORS as error:
                self._failures.add(group.node_group, "could not be read again", error)
                return 0, ""
            if fresh is None or fresh.busy or not fresh.desired:
                return 0, ""
            if fresh.desired != size:
                size = fresh.desired
                break
            self._pause(seconds)  # It may be an old description.
        return size, f"{group.node_group} was given another size at the same moment"


def _obstacle(decision: Decision) -> str:
    """Say why a group takes no stop at the moment. Empty: it does, or needs none."""
    name, group = decision.node_group, decision.group
    if group is None:
        return decision.reason
    if decision.verdict is Verdict.SIZE or decision.verdict in _LEFT_ALONE:
        return ""
    return f"{name}: the {group.owner.noun} {group.name} is being modified" if group.busy else decision.reason


def _untouched(decision: Decision) -> Decision:
    """Return what came of a stop that changes nothing: the group is stopped, or takes no orders."""
    group = decision.group
    if group is not None and not group.desired:
        return replace(decision, taken_back=False)
    return _taken_back(decision, _obstacle(decision) or decision.reason)


def _taken_back(decision: Decision, why: str) -> Decision:
    ends = "" if why.endswith(_NEXT_TICK) else ". The stop was taken back"
    return replace(decision, reason=f"{why.removesuffix('.')}{ends}", taken_back=True)


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
