"""Single nodes that a command terminates; their group gets smaller by as many."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from cluster_common.errors import AWS_ERRORS
from cluster_common.failures import Failures
from cluster_common.power_records import Termination
from cluster_common.state_table import StateChangedError
from cluster_power.commands import Command
from cluster_power.decisions import held_until
from cluster_power.groups import Group
from cluster_power.shortages import settle
from cluster_power.state_store import StateStore
from cluster_power.verdicts import Decision, Verdict

# The lifecycle states of nodes that go, and of those that a group's size counts.
# https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-lifecycle.html
_GOING = ("Terminating", "Terminated")
_COUNTED = ("InService", "Pending")

_SHOWS_WITHIN = timedelta(minutes=1)
"""How long after the termination of a node a description may not show it."""


class Terminations:
    """Terminate the nodes that a command names, and give their group a size that is smaller by as many.

    The function keeps that size as if an operator had set it: wherever a run is interrupted, the next one launches no
    node and terminates none. A group that is about to get another size loses no single nodes.

    No working node must be terminated in an idle one's place. Auto Scaling terminates nodes of its own choice where a
    group has more than its size, so the group is read again before each node: none is terminated while there are too
    many, or after another command, and none twice. An old description may hide that, so the nodes are recorded before
    they are terminated: none of them is terminated again for a minute.
    """

    def __init__(
        self,
        store: StateStore,
        failures: Failures,
        logger: Logger,
        now: datetime,
    ) -> None:
        self._owners = store.owners
        self._store = store
        self._failures = failures
        self._logger = logger
        self._now = now

    def apply(self, command: Command, decisions: Sequence[Decision]) -> list[Decision]:
        """Apply a command, and return what was decided about its node group with what came of it.

        Args:
            command: The command.
            decisions: What was decided about the owners of the node group's nodes; while a deploy replaces one,
                there are two.
        """
        return [
            self._of_group(command, decision, ids) if ids else decision
            for decision, ids in zip(decisions, _shares(command.instance_ids, decisions), strict=True)
        ]

    def _of_group(self, command: Command, decision: Decision, ids: Sequence[str]) -> Decision:
        group, name = decision.group, decision.node_group
        if group is not None and _goes_anyway(decision, group):
            reason = (
                f"{decision.reason.removesuffix('.')}. All of its nodes are terminated, with or without this command"
            )
            return replace(decision, reason=reason, terminated=_going(group, ids))
        if group is None or group.record.size != decision.wanted:
            self._failures.add_sentence(name, f"none of its nodes was terminated: {decision.reason}")
            return replace(decision, terminated=())
        going, recent = _going(group, ids), _asked_before(group, self._now)
        due = [one for one in ids if one not in going and not self._is_kept(group, one, recent)]
        if not due:
            return _outcome(command, decision, group, going)
        mark = Termination.new(self._now, command.by, command.reason, ids=[*recent, *due])
        if not self._write(group, mark):
            return replace(decision, terminated=())
        asked, unsure = self._ask_in_turn(command, group, due, recent, mark)
        fresh = self._look(group) or group
        if len(asked | unsure) < len(due) and fresh.record.terminated == mark:
            left = replace(mark, ids=(*recent, *(one for one in due if one in asked | unsure)))
            self._write(fresh, left if asked | unsure else group.record.terminated)
        done = tuple(one for one in ids if one in asked or one in _going(fresh, ids))
        return _outcome(command, decision, settle(fresh, self._now), done)

    def _ask_in_turn(
        self, command: Command, group: Group, ids: Sequence[str], before: Collection[str], mark: Termination
    ) -> tuple[set[str], set[str]]:
        """Terminate one node after the other; return those that are, and those of which no answer came."""
        asked, unsure = set[str](), set[str]()
        for position, one in enumerate(ids):
            fresh = self._look(group)
            why = _why_stop(group, fresh, mark, {*before, *asked, *unsure})
            if fresh is None or why:
                what = f"{', '.join(ids[position:])} not terminated: {why}"
                self._failures.add_sentence(group.node_group, what)
                break
            if one in _going(fresh, ids) or self._is_kept(fresh, one):
                continue
            try:
                asked |= self._ask(command, fresh, one)
            except BotoCoreError as error:
                unsure.add(one)
                self._failures.add(group.node_group, f"{one} may not have been terminated", error, instance_id=one)
        return asked, unsure

    def _is_kept(self, group: Group, instance_id: str, asked_before: Collection[str] = ()) -> bool:
        """Say whether one node is not to be terminated, and report why."""
        obstacle, terminated = _obstacle(group, instance_id), group.record.terminated
        if not obstacle and terminated and instance_id in asked_before:
            again = "if it still runs in a minute, send the command again"
            obstacle = f"is being terminated already ({terminated.text}): {again}"
        if obstacle:
            self._failures.add_sentence(group.node_group, f"{instance_id} {obstacle}", instance_id=instance_id)
        return bool(obstacle)

    def _ask(self, command: Command, group: Group, instance_id: str) -> set[str]:
        node_group = group.node_group
        try:
            self._owners.of(group).terminate(group, instance_id)
        except ClientError as error:
            what = f"{instance_id} could not be terminated"
            self._failures.add(node_group, what, error, instance_id=instance_id)
            return set()
        self._logger.info(
            f"{instance_id} of {node_group} is terminated, by {command.by}: {command.reason}",
            extra={"node_group": node_group, "instance_id": instance_id},
        )
        return {instance_id}

    def _look(self, group: Group) -> Group | None:
        try:
            return self._store.describe(group)
        except AWS_ERRORS as error:
            self._failures.add(group.node_group, "could not be read again", error)
            return None

    def _write(self, group: Group, mark: Termination | None) -> bool:
        given = group.record.desired  # The next run counts from it how many were terminated.
        try:
            self._store.save(group, terminated=mark, **({"desired": given} if given else {}))
        except (*AWS_ERRORS, StateChangedError) as error:
            self._failures.add(group.node_group, "could not record which of its nodes are terminated", error)
            return False
        return True


def _shares(ids: Sequence[str], decisions: Sequence[Decision]) -> list[list[str]]:
    """Return which nodes each owner is asked for: its own, and the first one those that no owner has."""
    owned = [decision.group.nodes if decision.group else {} for decision in decisions]
    homeless = [one for one in ids if not any(one in nodes for nodes in owned)]
    return [
        [one for one in ids if one in nodes or (not number and one in homeless)] for number, nodes in enumerate(owned)
    ]


def _goes_anyway(decision: Decision, group: Group) -> bool:
    """Say whether all of a group's nodes are terminated without this command."""
    settled = not group.desired and group.record.size == decision.wanted
    return group.deleting or settled or (not decision.wanted and decision.verdict is Verdict.SIZE)


def _why_stop(group: Group, fresh: Group | None, mark: Termination, asked: Collection[str]) -> str:
    """Say why no node of a group may be terminated at the moment. Empty: nodes may.

    Args:
        group: The group as it was when its size was found settled.
        fresh: The group as it is now. None: it is gone, or could not be read.
        mark: What this run has written on it.
        asked: The nodes that this run has terminated, which may not show it yet.
    """
    if fresh is None:
        return "it is gone, or could not be read"
    if fresh.record.terminated != mark or fresh.record.ordered != group.record.ordered:
        return "it was given another command meanwhile"
    if fresh.terminating_suspended is not None:
        return (
            f"the process Terminate of the Auto Scaling group {group.auto_scaling_group or group.name} is suspended"
        )
    if len(fresh.zones) > 1:
        # https://docs.aws.amazon.com/autoscaling/ec2/userguide/auto-scaling-benefits.html#AutoScalingBehavior.InstanceUsage
        return f"Auto Scaling would replace other nodes to balance {', '.join(fresh.zones)}"
    counted = sum(node.state.startswith(_COUNTED) and one not in asked for one, node in fresh.nodes.items())
    if counted > fresh.desired:
        return f"{counted} of its nodes run where {fresh.desired} should, and Auto Scaling terminates some itself"
    return ""


def _obstacle(group: Group, instance_id: str) -> str:
    """Say why a node that still runs cannot be terminated. Empty: it can."""
    node = group.nodes.get(instance_id)
    if not group.owner.terminates_nodes:
        return f"is left alone, because {group.owner.service} chooses itself which of its nodes it terminates"
    if node is None:
        return "is none of its nodes"
    if not node.state.startswith(_COUNTED):
        return f"is left alone, because its state is {node.state}"
    return "is left alone, because it is protected from scale-in" if node.protected else ""


def _asked_before(group: Group, now: datetime) -> tuple[str, ...]:
    """Return the nodes that were terminated so lately that a description may not show it."""
    terminated = group.record.terminated
    return terminated.ids if terminated and now - terminated.at <= _SHOWS_WITHIN else ()


def _going(group: Group, ids: Sequence[str]) -> tuple[str, ...]:
    return tuple(one for one in ids if one in group.nodes and group.nodes[one].state.startswith(_GOING))


def _outcome(command: Command, decision: Decision, group: Group, done: tuple[str, ...]) -> Decision:
    decision = replace(decision, group=group, terminated=done)
    if not done:
        return decision
    were = "1 of its nodes was" if len(done) == 1 else f"{len(done)} of its nodes were"
    reason = f"{decision.node_group}: {were} terminated, by {command.by}: {command.reason}"
    if group.goal == decision.wanted:
        return replace(decision, reason=reason)
    return replace(
        decision,
        verdict=Verdict.HELD,
        reason=f"{reason.removesuffix('.')}. Its size is {group.goal} {held_until(decision.window)}",
        missing=group.count_missing(group.goal),
        surplus=max(0, group.alive - group.goal),
    )
