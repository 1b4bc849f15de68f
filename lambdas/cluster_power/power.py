"""One command to a cluster: read, decide, apply, notify."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from aws_lambda_powertools import Logger

from cluster_common.errors import AWS_ERRORS
from cluster_common.failures import Failures
from cluster_common.owners.auto_scaling_groups import AutoScalingGroups
from cluster_common.owners.node_owner import NodeOwner, Owners
from cluster_common.owners.spot_fleets import SpotFleets
from cluster_power.callers import Action
from cluster_power.commands import Command
from cluster_power.context import Context
from cluster_power.decisions import decide
from cluster_power.desired_state import new_records, with_records
from cluster_power.executor import Executor
from cluster_power.groups import Group
from cluster_power.immediate_stops import ImmediateStops
from cluster_power.notifications import Notifications
from cluster_power.reports import emit_metrics, summarize
from cluster_power.reservations import NO_RESERVATIONS, Reservations, read_reservations
from cluster_power.settings import Settings
from cluster_power.shortages import settle
from cluster_power.state_store import StateStore
from cluster_power.stops import Stops
from cluster_power.terminations import Terminations
from cluster_power.verdicts import Decision, Verdict

if TYPE_CHECKING:
    from mypy_boto3_autoscaling.client import AutoScalingClient
    from mypy_boto3_ec2.client import EC2Client
    from mypy_boto3_sns.client import SNSClient
    from mypy_boto3_ssm.client import SSMClient

_QUIET = frozenset(
    {Verdict.KEEP, Verdict.PENDING, Verdict.SIZE, Verdict.WAITING, Verdict.CLOSING, Verdict.OVER, Verdict.DELETING}
)


@dataclass(frozen=True, kw_only=True)
class Clients:
    """What the function talks to. Each client is made when it is needed: most ticks do with two.

    Attributes:
        auto_scaling: Makes the client of EC2 Auto Scaling.
        auto_scaling_once: Makes another that sends a request once.
        ec2: Makes the client of EC2.
        sns: Makes the client of SNS.
        ssm: Makes the client of Systems Manager.
        pause: Waits for some seconds.
    """

    auto_scaling: "Callable[[], AutoScalingClient]"
    auto_scaling_once: "Callable[[], AutoScalingClient]"
    ec2: "Callable[[], EC2Client]"
    sns: "Callable[[], SNSClient]"
    ssm: "Callable[[], SSMClient]"
    pause: Callable[[float], None] = time.sleep


class Power:
    """Apply one command to a cluster.

    What fails for one group does not keep the others waiting; it is raised when all of them were tried.
    """

    def __init__(self, settings: Settings, clients: Clients, logger: Logger, now: datetime) -> None:
        self._settings = settings
        self._ec2 = clients.ec2
        self._logger = logger
        self._now = now.replace(microsecond=0)
        self._failures = Failures(logger, subject_key="node_group")
        self._owners = _owners(settings, clients, self._now)
        self._store = store = StateStore(self._owners)
        self._stops = Stops(clients.ssm, settings.stopped_parameter or None, self._failures)
        self._executor = Executor(settings, store, clients.ec2, self._failures, self._now)
        self._immediate_stops = ImmediateStops(store, self._failures, clients.pause)
        self._terminations = Terminations(store, self._failures, logger, self._now, clients.pause)
        self._notifications = Notifications(store, settings.topic_arn, clients.sns, self._failures)

    def apply(self, command: Command) -> dict[str, object]:
        """Do what was ordered and return a summary that people read.

        Raises:
            PartialFailureError: Something failed, after everything was tried.
        """
        context = Context(settings=self._settings, now=self._now)
        read, unread = self._read_groups()
        before = {group.name: group for group in read}
        settled = [settle(group, self._now) for group in read]
        groups = [self._with_activities(group) if context.is_configured(group) else group for group in settled]
        stopped, unsure = self._read_stops(groups, command)
        context = replace(context, reservations=self._read_reservations(), unread=unread | unsure, stopped=stopped)
        records = new_records(groups, context, command)
        ticks = command.action is Action.TICK
        every = decide(with_records(groups, records), context)
        decisions = [one for one in every if ticks or one.node_group in command.node_groups]
        if ticks:
            decisions = [self._executor.apply(decision, records, before) for decision in decisions]
        elif command.action is Action.TERMINATE:
            decisions = self._terminations.apply(command, decisions)
        elif command.all_or_nothing:
            unordered = decide(groups, context)
            decisions = self._immediate_stops.apply(
                decisions, records, before=before, unordered=unordered, expected=command.expected
            )
        elif command.action is not Action.STATUS:
            decisions = self._executor.apply_command(decisions, records)
        for decision in decisions:
            self._log(decision)
        if ticks:
            for decision in decisions:
                self._executor.note(decision, before.get(decision.group.name if decision.group else ""))
                self._notifications.notify(decision, context)
        if command.action not in (Action.STATUS, Action.TERMINATE):
            self._write_stops(command, groups, context)
        if ticks:
            emit_metrics(context, decisions, complete=not self._failures)
        self._failures.raise_all()
        return summarize(self._settings, command, decisions)

    def _read_groups(self) -> tuple[list[Group], frozenset[str]]:
        """Read all groups, and say which node groups could not be read."""
        groups: list[Group] = []
        unread: set[str] = set()
        for owner in self._owners:
            try:
                reading = owner.read()
            except AWS_ERRORS as error:
                names = ", ".join(owner.node_groups) or "what a deploy left behind"
                self._failures.add(names, "could not be read", error)
                unread |= set(owner.node_groups)
                continue
            for name, why in reading.unread.items():
                self._failures.add(name, "could not be read", why)
            groups += self._store.load(reading.groups)
            unread |= set(reading.unread)
        return groups, frozenset(unread)

    def _read_stops(self, groups: Sequence[Group], command: Command) -> tuple[frozenset[str], frozenset[str]]:
        """Return the node groups that were stopped, and the new ones of which nobody knows."""
        new = frozenset(group.node_group for group in groups if group.is_new)
        if command.action is not Action.TICK or not new:
            return frozenset(), frozenset()
        stopped = self._stops.read(new)
        return (frozenset(), new) if stopped is None else (stopped, frozenset())

    def _write_stops(self, command: Command, groups: Sequence[Group], context: Context) -> None:
        """Write down which node groups are stopped: as their tags say by now, or as was ordered of absent ones.

        Of those nothing is done at once: they are not stopped by an order that is applied at once or not at all.
        """
        waits = command.action is Action.STOP and not command.all_or_nothing
        owners: dict[str, list[Group]] = {}
        for group in with_records(groups, self._executor.recorded | self._immediate_stops.recorded):
            if group.record.state is not None and not group.deleting and context.is_configured(group):
                owners.setdefault(group.node_group, []).append(group)
        self._stops.update(
            {name: {group.record.state for group in every} for name, every in owners.items()},
            is_still=lambda name: all(self._has_its_state(group) for group in owners[name]),
            stopped=command.node_groups if waits else (),
            started=command.node_groups if command.action is Action.START else (),
            known=self._settings.groups,
        )

    def _has_its_state(self, group: Group) -> bool:
        """Say whether a group's state is still what was read or written: an order may have come in between."""
        try:
            fresh = self._store.describe(group)
        except AWS_ERRORS as error:
            self._failures.add(group.node_group, "could not be read again", error)
            return False
        return fresh is not None and fresh.record.state is group.record.state

    def _read_reservations(self) -> Reservations:
        ids = self._settings.reservations
        every = frozenset(one for some in ids.values() for one in some)
        if not every:
            return NO_RESERVATIONS
        try:
            return read_reservations(self._ec2(), every)
        except AWS_ERRORS as error:
            self._failures.add(", ".join(ids), "could not read the Capacity Blocks and reservations", error)
            return Reservations(unread=every)

    def _with_activities(self, group: Group) -> Group:
        """Ask why nodes are missing, where they are."""
        if group.in_service >= group.goal or group.deleting:
            return group
        try:
            return replace(group, activities=self._owners.of(group).read_activities(group, group.record.since))
        except AWS_ERRORS as error:
            self._failures.add(group.node_group, "could not read the scaling activities", error)
            return replace(group, activities=None)

    def _log(self, decision: Decision) -> None:
        log = self._logger.info if decision.verdict in _QUIET else self._logger.warning
        group, window = decision.group, decision.window
        log(
            decision.reason,
            extra={
                "node_group": decision.node_group,
                "verdict": decision.verdict.value,
                "wanted": decision.wanted,
                "desired": group.desired if group else None,
                "in_service": group.in_service if group else None,
                "alive": group.alive if group else None,
                **({group.owner.key: group.name} if group else {}),
                **({"capacity_block": window.block} if window else {}),
            },
        )


def _owners(settings: Settings, clients: Clients, now: datetime) -> Owners:
    """Return what owns the cluster's nodes, or has owned them: Auto Scaling groups are found by the cluster's tag."""
    owners: list[NodeOwner] = [
        AutoScalingGroups(
            clients.auto_scaling(),
            clients.auto_scaling_once,
            clients.ec2,
            settings.cluster,
            settings.auto_scaling_groups,
        )
    ]
    fleets = settings.spot_fleets
    if fleets:
        counts = {name: settings.groups[name].count for name in fleets}
        owners.append(SpotFleets(clients.ec2(), settings.cluster, fleets, counts, now))
    return Owners(owners)


__all__: Sequence[str] = ("Clients", "Power")
