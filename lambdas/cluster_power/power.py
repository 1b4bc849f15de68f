"""One command to a cluster: read, decide, apply, notify."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from aws_lambda_powertools import Logger

from cluster_common.clients import Clients
from cluster_common.errors import AWS_ERRORS
from cluster_common.failures import Failures
from cluster_common.owners.groups import OwnedGroup
from cluster_common.owners.making import make_owners
from cluster_common.power_records import GroupState
from cluster_common.reservations import NO_RESERVATIONS, Reservations, read_reservations
from cluster_common.state_table import StateChangedError, StateTable
from cluster_contract.events import EVENT_FIELD, Event
from cluster_contract.owners import OwnerKind
from cluster_contract.power import PowerFunctionSettings
from cluster_contract.state import StatePart
from cluster_power.callers import Action
from cluster_power.commands import Command
from cluster_power.context import Context
from cluster_power.decisions import decide, unrecorded
from cluster_power.desired_state import judge_schedules, new_notices, new_orders, with_orders
from cluster_power.executor import Executor
from cluster_power.groups import Group
from cluster_power.immediate_stops import ImmediateStops
from cluster_power.notifications import Notifications
from cluster_power.reports import emit_metrics, emit_running_nodes, summarize
from cluster_power.schedules import Judgment
from cluster_power.shortages import settle
from cluster_power.state_store import StateStore, UnreadableStateError, ordered
from cluster_power.terminations import Terminations
from cluster_power.verdicts import Decision, Verdict

_UNREAD = "its nodes could not be read, so its size stays, and the next run reads them again"

_QUIET = frozenset(
    {Verdict.KEEP, Verdict.PENDING, Verdict.SIZE, Verdict.WAITING, Verdict.CLOSING, Verdict.OVER, Verdict.DELETING}
)


class Power:
    """Apply one command to a cluster.

    What fails for one group does not keep the others waiting; it is raised when all of them were tried.
    """

    def __init__(self, settings: PowerFunctionSettings, clients: Clients, logger: Logger, now: datetime) -> None:
        self._settings = settings
        self._ec2 = clients.ec2
        self._logger = logger
        self._now = now.replace(microsecond=0)
        self._failures = Failures(logger, subject_key="node_group")
        self._reservations = NO_RESERVATIONS
        self._owners = make_owners(
            settings.groups,
            clients,
            settings.cluster,
            self._now,
            stack_id=settings.stack_id,
            counts={name: group.count for name, group in settings.groups.items()},
            # Those that no node group has any longer are found by the cluster's tag.
            also=[OwnerKind.AUTO_SCALING_GROUP],
        )
        table = StateTable(clients.dynamodb(), settings.state_table, StatePart.POWER.key(settings.cluster))
        self._store = store = StateStore(self._owners, table, settings.stack_id, logger)
        self._executor = Executor(settings, store, clients.ec2, self._failures, self._now)
        self._immediate_stops = ImmediateStops(store, self._failures, clients.pause)
        self._terminations = Terminations(store, self._failures, logger, self._now)
        self._schedules: Mapping[str, Judgment] = {}
        self._notifications = Notifications(store, settings.topic_arn, clients.sns, self._failures)

    def apply(self, command: Command) -> dict[str, object]:
        """Apply the command and return a summary for operators.

        Raises:
            PartialFailureError: Something failed, after everything was tried. A status says that in its summary.
            UnreadableStateError: What is recorded could not be read, and the command was not applied.
        """
        # First, so that a command that comes while the groups are read shows when an item is read again.
        is_read = self._read_state(command)
        owned, unread = self._read_groups()
        decisions = self._apply(command, owned, unread) if is_read else self._report_sizes(command, owned)
        for decision in decisions:
            self._log(decision, _event(command, decision))
        if command.action is not Action.STATUS:
            self._failures.raise_all()
        failures = self._failures.sentences
        return summarize(self._settings, command, decisions, self._reservations, failures, schedules=self._schedules)

    def _apply(self, command: Command, owned: Sequence[OwnedGroup], unread: Collection[str]) -> list[Decision]:
        read, unread = self._load(command, owned, unread)
        self._reservations = self._read_reservations()
        context = Context(
            settings=self._settings,
            now=self._now,
            reservations=self._reservations,
            unread=unread,
            orders=self._store.orders,
            notices=self._store.notices,
            unconfirmed=self._store.unconfirmed,
        )
        settled = [settle(group, self._now) for group in read]
        groups = [self._with_activities(group) if context.is_configured(group) else group for group in settled]
        orders, ticks = new_orders(groups, context, command), command.action is Action.TICK
        every = decide(ordered(groups, orders), with_orders(context, orders))
        decisions = [one for one in every if ticks or one.node_group in command.node_groups]
        match command.action:
            case Action.TICK:
                before = {group.name: group for group in ordered(read, orders)}
                refused = self._executor.record(orders, unless_changed=True)
                decisions = [self._executor.apply(decision, before, refused) for decision in decisions]
            case Action.TERMINATE:
                decisions = self._terminations.apply(command, decisions)
            case Action.STOP if command.all_or_nothing:
                decisions = self._immediate_stops.apply(
                    decisions, orders, before=read, without_stop=decide(groups, context), expected=command.expected
                )
            case Action.START | Action.STOP | Action.LIMIT:
                decisions = self._executor.apply_command(decisions, self._executor.record(orders))
        context = with_orders(context, orders)
        if ticks:
            self._report(decisions, read, self._give_notices(groups, context))
        self._schedules = judge_schedules(groups, context)
        return decisions

    def _give_notices(self, groups: Sequence[Group], context: Context) -> Context:
        """Record which stops by schedules are near, and return the context with them."""
        notices = dict(context.notices)
        for name, notice in new_notices(groups, context).items():
            try:
                self._store.save_notice(name, notice)
            except StateChangedError:
                continue  # The next run judges what was recorded meanwhile.
            except AWS_ERRORS as error:
                self._failures.add(name, "could not record that its schedule stops it", error)
            else:
                notices[name] = notice
        return replace(context, notices=notices)

    def _read_state(self, command: Command) -> bool:
        """Read what is recorded. Where that fails, a command is refused; other runs can still say what is there."""
        try:
            self._store.read()
        except UnreadableStateError as error:
            if command.action not in (Action.TICK, Action.STATUS):
                raise
            self._failures.add_sentence(self._settings.cluster, str(error))
            return False
        return True

    def _report_sizes(self, command: Command, owned: Sequence[OwnedGroup]) -> list[Decision]:
        """Return what can be said of groups of which nothing recorded could be read, and measure it."""
        decisions = [
            unrecorded(Group.recorded(group, GroupState()))
            for group in owned
            if group.node_group in command.node_groups
        ]
        if command.action is Action.TICK:
            emit_running_nodes(self._settings, decisions)
        return decisions

    def _report(self, decisions: Sequence[Decision], read: Sequence[Group], context: Context) -> None:
        """Record what a run of the schedule found, send alerts, and write metrics."""
        before = {group.name: group for group in read}
        for decision in decisions:
            self._executor.note(decision, before.get(decision.group.name if decision.group else ""))
            self._notifications.notify(decision, context)
        for group in filter(context.is_configured, read):
            self._store.annotate(group)
        if not self._failures:
            self._prune(read)
        emit_metrics(context, decisions, complete=not self._failures)

    def _prune(self, groups: Sequence[Group]) -> None:
        try:
            self._store.prune(groups, self._settings.groups, self._now)
        except StateChangedError:
            return  # The next run does it.
        except AWS_ERRORS as error:
            self._failures.add("the state table", "could not record which node groups and owners are gone", error)

    def _read_groups(self) -> tuple[list[OwnedGroup], set[str]]:
        """Read all groups, and return the names of the node groups that could not be read."""
        owned: list[OwnedGroup] = []
        unread: set[str] = set()
        for owner in self._owners:
            try:
                reading = owner.read()
            except AWS_ERRORS as error:
                names = ", ".join(owner.node_groups) or "what a deployment left behind"
                self._failures.add(names, _UNREAD, error)
                unread |= set(owner.node_groups)
                continue
            for name, why in reading.unread.items():
                self._failures.add(name, _UNREAD, why)
            owned += reading.groups
            unread |= set(reading.unread)
        return owned, unread

    def _load(
        self, command: Command, owned: Sequence[OwnedGroup], unread: Collection[str]
    ) -> tuple[list[Group], frozenset[str]]:
        """Return groups with their records, and which node groups, or their records, could not be read."""
        groups = self._store.load(owned)
        orders = command.action in (Action.START, Action.STOP, Action.LIMIT) and not command.all_or_nothing
        rewritten = command.node_groups if orders else ()
        unreadable = self._store.unreadable
        spoiled = frozenset(self._settings.groups) & unreadable.keys() - set(rewritten)
        for name in sorted(spoiled):
            self._failures.add_sentence(name, unreadable[name])
        return [group for group in groups if group.node_group not in spoiled], spoiled.union(unread)

    def _read_reservations(self) -> Reservations:
        ids = self._settings.reservations
        every = frozenset(one for some in ids.values() for one in some)
        if not every:
            return NO_RESERVATIONS
        try:
            return read_reservations(self._ec2(), every)
        except AWS_ERRORS as error:
            what = "the Capacity Blocks and reservations could not be read, and the next run tries again"
            self._failures.add(", ".join(ids), what, error)
            return Reservations(unread=every)

    def _with_activities(self, group: Group) -> Group:
        """Read the scaling activities of a group that lacks nodes, or may, which say why."""
        if not group.may_launch(group.goal) or group.deleting:
            return group
        try:
            return replace(group, activities=self._owners.of(group).read_activities(group, group.record.since))
        except AWS_ERRORS as error:
            what = "the scaling activities could not be read, and the next run tries again"
            self._failures.add(group.node_group, what, error)
            return replace(group, activities=None)

    def _log(self, decision: Decision, event: Mapping[str, str]) -> None:
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
                "missing": decision.missing,
                "surplus": decision.surplus,
                **({group.owner.key: group.name} if group else {}),
                **({"capacity_block": window.block} if window else {}),
                **event,
            },
        )


def _event(command: Command, decision: Decision) -> dict[str, str]:
    """Return what makes a log record an event: a command, or a size that a run of the schedule has set."""
    group = decision.group
    match command.action:
        case Action.STATUS:
            return {}
        case Action.TICK:
            is_sized = decision.verdict is Verdict.SIZE and group is not None and group.desired == decision.wanted
            who = {"by": group.record.by, "why": group.record.reason} if group is not None else {}
            return {EVENT_FIELD: Event.ACT, **who} if is_sized else {}
        case action:
            nodes = {"instance_ids": ", ".join(command.instance_ids)} if command.instance_ids else {}
            who = {"by": command.by, "why": command.reason}
            return {EVENT_FIELD: Event.COMMAND, "action": action, **who, **nodes}
