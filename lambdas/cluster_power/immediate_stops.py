"""Stops that are applied at once or not at all."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from cluster_common.errors import AWS_ERRORS
from cluster_common.failures import Failures
from cluster_common.owners.node_owner import OwnerBusyError
from cluster_common.power_records import Order
from cluster_common.state_table import StateChangedError
from cluster_power.commands import Expected
from cluster_power.groups import Group
from cluster_power.state_store import StateStore
from cluster_power.verdicts import Decision, Verdict

# How many seconds a new size may take to show.
_PAUSES = (1, 2)

# A message names no more nodes.
_MAX_NAMED = 3

_NEXT_RUN = "the next run applies that"
_LOOKS_AGAIN = "the next run looks again"

_LEFT_ALONE = frozenset({Verdict.DELETING, Verdict.UNCONFIGURED})


class ImmediateStops:
    """Stop node groups now, or leave them as they are: no later run finishes what was not done.

    Only at this moment does the caller know that nothing is lost by such a stop: a minute later a job may run. So the
    size is set first, and a node group is recorded as stopped once all its owners have the size 0. Where a run is
    interrupted, the next one finds a group that was never stopped, or a desired capacity of 0 that no command
    explains: it keeps that, and an alert says so.

    The caller may say which size and which nodes it has seen. The stop is not applied where the size is another by
    now, or where another node runs.

    While a deployment replaces what owns a node group's nodes, neither owner is stopped if one is seen to take no
    stop. The one with more nodes is stopped first, and the other one only if that worked.
    """

    def __init__(self, store: StateStore, failures: Failures, pause: Callable[[float], None]) -> None:
        self._owners = store.owners
        self._store = store
        self._failures = failures
        self._pause = pause
        self._unconfirmed = set[str]()

    def apply(
        self,
        decisions: Sequence[Decision],
        orders: Mapping[str, Order],
        *,
        before: Sequence[Group],
        without_stop: Sequence[Decision],
        expected: Expected | None = None,
    ) -> list[Decision]:
        """Apply a stop, and return what was decided with what came of it.

        Args:
            decisions: What was decided about the groups that are to be stopped, sorted by node group.
            orders: What is to be recorded of those that the stop changes, by node group.
            before: The groups as they were read.
            without_stop: What would be decided without the stop: that holds where it is not applied.
            expected: What the caller has seen of the one node group. Default: - anything.
        """
        read = {group.name: group for group in before}
        otherwise = {one.group.name: one for one in without_stop if one.group is not None}
        outcomes: list[Decision] = []
        for name, of_node_group in groupby(decisions, key=lambda decision: decision.node_group):
            every = sorted(of_node_group, key=lambda one: one.group.desired if one.group else 0, reverse=True)
            sizes, why_not = dict[str, int](), ""
            if name in orders:
                sizes, why_not = self._stop_owners(name, every, orders[name], read, expected)
            # One of two owners may have been stopped before the other one turned out to take no stop.
            is_half_stopped = bool(why_not) and any(sizes.values())
            for one in every:
                group = one.group
                if name not in orders or group is None or one.verdict in _LEFT_ALONE:
                    outcomes.append(_untouched(one))
                elif sizes.get(group.name) == 0 and (is_half_stopped or not why_not):
                    record = group.record if why_not else replace(group.record, size=0, since=orders[name].since)
                    outcomes.append(replace(one, group=replace(group, desired=0, record=record), taken_back=False))
                else:
                    group = replace(read[group.name], desired=sizes.get(group.name, group.desired))
                    blocked = replace(otherwise[group.name], verdict=Verdict.BLOCKED, group=group)
                    taken_back = None if name in self._unconfirmed else True
                    outcomes.append(_not_applied(blocked, why_not, taken_back=taken_back))
        return outcomes

    def _stop_owners(
        self,
        name: str,
        decisions: Sequence[Decision],
        order: Order,
        read: Mapping[str, Group],
        expected: Expected | None,
    ) -> tuple[dict[str, int], str]:
        """Stop the owners of a node group's nodes, unless one of them takes no stop; return as `_stop` does."""
        present = [one.group for one in decisions if one.group and one.verdict is not Verdict.UNCONFIGURED]
        to_stop = [read[one.group.name] for one in decisions if one.group and one.verdict not in _LEFT_ALONE]
        why_not = next(filter(None, map(_obstacle, decisions)), "") or _why_unexpected(name, present, expected)
        return ({}, why_not) if why_not or not to_stop else self._stop(to_stop, order, expected)

    def _stop(self, due: Sequence[Group], order: Order, expected: Expected | None) -> tuple[dict[str, int], str]:
        """Set the size 0 of the owners of a node group's nodes, and record that.

        Returns:
            The sizes that they have then, and why the stop is not applied. Empty: it is.
        """
        sizes: dict[str, int] = {}
        for group in due:
            sizes[group.name], why = self._set_zero(group, expected)
            if why and due[0].node_group not in self._unconfirmed:
                return sizes, why
            if why:
                return sizes, self._record(due, order, self._store.save_unconfirmed) or why
        return sizes, self._record(due, order, self._store.save_stop)

    def _record(self, due: Sequence[Group], order: Order, save: Callable[[Sequence[Group], Order], None]) -> str:
        """Record a stop whose sizes were set, and say why it is not applied. Empty: it is."""
        name = due[0].node_group
        try:
            save(due, order)
        except StateChangedError:
            self._forget_sizes(due)
            self._unconfirmed.discard(name)
            return f"{name} was stopped and given another command at the same moment: {_NEXT_RUN}"
        except AWS_ERRORS as error:
            self._failures.add(name, "was stopped, and that could not be recorded", error)
        return ""

    def _forget_sizes(self, groups: Sequence[Group]) -> None:
        for group in groups:
            try:
                self._store.forget_size(group)
            except (*AWS_ERRORS, StateChangedError) as error:
                self._failures.add(group.node_group, "could not record that its size has to be set again", error)

    def _set_zero(self, group: Group, expected: Expected | None) -> tuple[int, str]:
        """Set the size 0 of one group.

        Returns:
            The size that it has then, and why the stop is not applied. Empty: it is.
        """
        name = group.node_group
        try:
            fresh = self._store.describe(group)
            if fresh is None or not _is_still(group, fresh):
                return group.desired, f"{name} changed while the function looked"
            why = _why_unseen(name, fresh.live_ids, expected)
            if why:
                return group.desired, why
            self._owners.of(group).set_size(group, 0)
        except OwnerBusyError:
            return group.desired, f"{name} is busy with another scaling activity"
        except AWS_ERRORS as error:
            if not self._has(group, 0):
                self._failures.add(name, "could not be stopped", error)
                return group.desired, f"{name} could not be stopped"
        return self._look_again(group)

    def _has(self, group: Group, size: int) -> bool:
        """Say whether a group has a size although AWS did not say so: its answer may be lost, or show late."""
        for seconds in (*_PAUSES, 0):
            try:
                fresh = self._store.describe(group)
            except AWS_ERRORS:
                return False  # That the size could not be set is reported in any case.
            if fresh is None or fresh.desired == size:
                return fresh is not None
            self._pause(seconds)
        return False

    def _look_again(self, group: Group) -> tuple[int, str]:
        """Return the size that a group has, and why the stop is not applied, if that is not 0.

        A description that shows the size before the stop may be old: then a later run says which of the two holds.
        """
        size, name = group.desired, group.node_group
        for seconds in (*_PAUSES, 0):
            try:
                fresh = self._store.describe(group)
            except AWS_ERRORS as error:
                self._failures.add(group.node_group, "could not be read again", error)
                return 0, ""
            if fresh is None or fresh.busy or not fresh.desired:
                return 0, ""
            if fresh.desired != size:
                return fresh.desired, f"{name} was given another size at the same moment"
            self._pause(seconds)
        self._unconfirmed.add(name)
        return size, f"{name} was given the size 0 and its {group.owner.noun} shows {size} still: {_LOOKS_AGAIN}"


def _obstacle(decision: Decision) -> str:
    """Say why a group takes no stop at the moment. Empty: it does, or needs none."""
    name, group = decision.node_group, decision.group
    if group is None:
        return decision.reason
    if decision.verdict is Verdict.SIZE or decision.verdict in _LEFT_ALONE:
        return ""
    return f"{name}: the {group.owner.noun} {group.name} is being modified" if group.busy else decision.reason


def _untouched(decision: Decision) -> Decision:
    """Return what came of a stop that changes nothing: the group is stopped already, or takes no stop."""
    group = decision.group
    if group is not None and not group.desired:
        return replace(decision, taken_back=False)
    return _not_applied(decision, _obstacle(decision) or decision.reason)


def _not_applied(decision: Decision, why: str, *, taken_back: bool | None = True) -> Decision:
    ends = "" if why.endswith((_NEXT_RUN, _LOOKS_AGAIN)) else ". The stop was not applied"
    return replace(decision, reason=f"{why.removesuffix('.')}{ends}", taken_back=taken_back)


def _is_still(group: Group, fresh: Group) -> bool:
    """Say whether a group is as it was read; what is recorded of alerts may have changed."""
    now, before = fresh.record.ordered, group.record.ordered
    return (now, fresh.desired, fresh.busy) == (before, group.desired, group.busy)


def _why_unexpected(name: str, owners: Collection[Group], expected: Expected | None) -> str:
    """Say why a node group is not what the caller has seen. Empty: it is, or the caller did not say."""
    size = sum(group.desired for group in owners)
    if expected is not None and size != expected.size:
        return f"{name} has the desired size {size}, and the stop was sent for {expected.size}"
    return _why_unseen(name, frozenset[str]().union(*(group.live_ids for group in owners)), expected)


def _why_unseen(name: str, live_ids: Collection[str], expected: Expected | None) -> str:
    """Say which nodes the caller has not seen. Empty: none."""
    unseen = sorted(set(live_ids) - expected.instance_ids) if expected is not None else []
    more = f" and {len(unseen) - _MAX_NAMED} more" if len(unseen) > _MAX_NAMED else ""
    return f"{name} has {', '.join(unseen[:_MAX_NAMED])}{more}, for which the stop was not sent" if unseen else ""
