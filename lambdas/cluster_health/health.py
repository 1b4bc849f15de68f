"""One run: take in what came, read, decide, act, report."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from aws_lambda_powertools import Logger

from cluster_common.actions import Action
from cluster_common.clients import Clients
from cluster_common.errors import AWS_ERRORS, InvalidEventError
from cluster_common.failures import Failures
from cluster_common.messages import publish
from cluster_common.owners.groups import OwnedGroup
from cluster_common.owners.kinds import OWNER_KINDS
from cluster_common.state_table import StateChangedError, StateTable
from cluster_contract.events import EVENT_FIELD, Event
from cluster_contract.health import INSTANCE_ID, NodeReport
from cluster_contract.health_settings import HealthFunctionSettings
from cluster_contract.state import StatePart
from cluster_health.announcements import Announcement, Incoming, Received, parse_event
from cluster_health.claims import from_tags, with_claims
from cluster_health.decisions import decide
from cluster_health.executor import HealthExecutor, keys_of
from cluster_health.messages import notice_message
from cluster_health.needs import find_need
from cluster_health.node_records import NodeRecord, Notice
from cluster_health.outcomes import Context, Finding, GroupView
from cluster_health.reading import HealthReader, Statuses
from cluster_health.records import GroupRecord
from cluster_health.reports import emit_metrics, emit_repaired, summarize
from cluster_health.store import HealthStore


class Health:
    """Look at the broken nodes of a cluster once, and do what follows.

    What fails for one node group does not keep the others waiting; it is raised when all of them were tried.
    """

    def __init__(self, settings: HealthFunctionSettings, clients: Clients, logger: Logger, now: datetime) -> None:
        """Look at nothing yet.

        Args:
            settings: The function's settings.
            clients: What it talks to.
            logger: Where it writes what it finds.
            now: The time.
        """
        self._settings = settings
        self._clients = clients
        self._logger = logger
        self._now = now.replace(microsecond=0)
        self._failures = Failures(logger, subject_key="node_group")
        self._statuses_read = False
        self._reader = HealthReader(settings, clients, self._failures, self._now)
        table = StateTable(clients.dynamodb(), settings.state_table, StatePart.HEALTH.key(settings.cluster))
        self._store = HealthStore(table, self._now)
        self._executor = HealthExecutor(
            settings,
            self._reader.owners,
            self._store,
            sns=clients.sns,
            failures=self._failures,
            logger=logger,
        )

    def run(self, event: Mapping[str, Any], alias: str = "") -> dict[str, object]:
        """Do what an event asks for, and return a summary for operators.

        Args:
            event: The event.
            alias: The alias that it came through. Default: - none.

        Raises:
            PartialFailureError: Something failed, after everything was tried. Of a report of a node Lambda then
                tries again.
        """
        try:
            incoming = parse_event(event, alias)
        except InvalidEventError:
            raise
        except ValueError as error:
            self._logger.warning(f"an event was left alone: {error}")
            return summarize(self._settings, [], {})
        findings = self._look(incoming) if self._read_store() else []
        if incoming is Action.TICK:
            for finding in (one for one in findings if one.outcome.waits):
                self._logger.info(finding.reason, extra=keys_of(finding))
            emit_metrics(self._settings, findings, evaluated=not self._failures)
        self._failures.raise_all()
        return summarize(self._settings, findings, self._repairs_left())

    def _repairs_left(self) -> dict[str, int]:
        """Return how many repairs the window leaves, by node group; one whose repairs are not known is left out."""
        policy, left = self._settings.policy, dict[str, int]()
        for name in self._settings.groups:
            with suppress(ValueError):  # reading the node group has reported it
                spent = self._store.group(name).repairs_since(self._now - policy.window)
                left[name] = max(0, policy.max_repairs - spent)
        return left

    def _read_store(self) -> bool:
        try:
            self._store.read()
        except AWS_ERRORS as error:
            what = "the state table could not be read, and nothing was done"
            self._failures.add(self._settings.cluster, what, error)
            return False
        return True

    def _look(self, incoming: Incoming) -> list[Finding]:
        if not isinstance(incoming, Action):
            return self._take_in(incoming)
        groups = self._reader.read_groups()
        if incoming is Action.TICK:
            self._take_in_statuses(groups)
            self._take_in_tags(groups)
        findings = self._decide(groups, list(self._settings.groups), acts=incoming is Action.TICK)
        if incoming is Action.TICK and not self._failures:
            self._forget_gone(groups)
        return findings

    def _take_in(self, incoming: Received | Announcement) -> list[Finding]:
        """Record what came of nodes of this cluster, and decide about their node groups."""
        if isinstance(incoming, Received):
            report, why = incoming.report, self._why_refused(incoming)
            if why:
                self._logger.warning(f"a report of {report.instance_id} is left alone: {why}")
                return []
            groups = self._reader.read_groups(report.node_group)
            self._take_in_report(report, groups)
        else:
            groups = self._reader.read_groups()
            groups = self._take_in_announcement(incoming, groups)
        return self._decide(groups, list(groups), acts=True)

    def _why_refused(self, received: Received) -> str:
        """Say why a report does not count: a node speaks of itself alone. Empty: it does."""
        report, sender = received.report, received.sender
        group = self._settings.groups.get(report.node_group)
        if report.cluster != self._settings.cluster or group is None:
            return "it is of another cluster"
        # HyperPod's service launches its nodes, and AWS does not say what the sessions of their role are called. The
        # function never acts on these nodes.
        is_unknown = not OWNER_KINDS[group.owner_kind].is_on_ec2 and not INSTANCE_ID.fullmatch(sender)
        return "" if sender == report.instance_id or is_unknown else f"{sender} has sent it"

    def _take_in_report(self, report: NodeReport, groups: Mapping[str, OwnedGroup]) -> None:
        group = groups.get(report.node_group)
        # While a deployment replaces a node group, it has two owners: the report counts when there is one again.
        if group is not None and report.instance_id not in group.nodes:
            self._logger.warning(f"a report of {report.instance_id} is left alone: it is none of {report.node_group}")
            return
        said = "; ".join(one.sentence or one.code for one in report.faults) or report.sentence
        self._logger.info(
            f"{report.instance_id} of {report.node_group} reports {report.kind.value}{said and f': {said}'}",
            extra={
                EVENT_FIELD: Event.NOTICE,
                "node_group": report.node_group,
                "instance_id": report.instance_id,
                "checks": [f"{one.name}: {one.found}" for one in report.checks if not one.passed],
            },
        )
        self._change_node(report.instance_id, report.node_group, lambda node: node.with_report(report))

    def _take_in_announcement(
        self, announcement: Announcement, groups: Mapping[str, OwnedGroup]
    ) -> dict[str, OwnedGroup]:
        """Record what AWS announces of nodes of this cluster, and return their node groups."""
        touched: dict[str, OwnedGroup] = {}
        for name, group in groups.items():
            for one in sorted(set(announcement.instance_ids) & group.nodes.keys()):
                touched[name] = group
                self._announce(one, name, announcement.notice)
        return touched

    def _take_in_statuses(self, groups: Mapping[str, OwnedGroup]) -> None:
        """Record which nodes are unhealthy, and what EC2 has scheduled."""
        statuses = self._reader.read_statuses()
        if statuses is None:
            return
        self._statuses_read = True
        known = self._store.nodes
        for name, group in groups.items():
            for one, owned in group.nodes.items():
                is_down = owned.unhealthy or one in statuses.impaired
                node = known.get(one, NodeRecord(node_group=name))
                # EC2 says since when its checks have failed without a break; an owner does not.
                since = (statuses.impaired.get(one) or node.down_since or self._now) if is_down else None
                if since != node.down_since:
                    self._change_node(one, name, lambda node, since=since: replace(node, down_since=since))
                self._take_in_schedule(one, name, node.notice, statuses)

    def _take_in_tags(self, groups: Mapping[str, OwnedGroup]) -> None:
        """Record the faults that tags name of nodes whose reports have never arrived."""
        claims, known = self._reader.read_claims(), self._store.nodes
        for name, group in groups.items():
            for one in group.nodes.keys() & claims.keys():
                node, claim = known.get(one), claims[one]
                if (node is None or node.reported is None) and (claim.faults or node is not None):
                    self._change_node(one, name, lambda node, claim=claim: from_tags(node, claim, self._now))

    def _take_in_schedule(self, instance_id: str, name: str, before: Notice | None, statuses: Statuses) -> None:
        notice = statuses.notices.get(instance_id)
        if notice is None or (before and (before.code, before.deadline) == (notice.code, notice.deadline)):
            return
        self._announce(instance_id, name, notice)

    def _announce(self, instance_id: str, name: str, notice: Notice) -> None:
        """Record what AWS is about to do with a node, and say so, once for each: EC2 and AWS Health both name it."""
        key = f"notice {notice.deadline or notice.code}"
        node = self._store.nodes.get(instance_id)
        if node is not None and key in node.told:
            self._change_node(instance_id, name, lambda node: replace(node, notice=notice))
            return
        extra = {EVENT_FIELD: Event.NOTICE, "node_group": name, "instance_id": instance_id}
        self._logger.info(f"{instance_id} of {name}: {notice.sentence}", extra=extra)
        if self._settings.topic_arn:
            message = notice_message(self._settings.cluster, name, instance_id, notice)
            try:
                publish(self._clients.sns(), self._settings.topic_arn, *message)
            except AWS_ERRORS as error:
                self._failures.add(name, f"the announcement for {instance_id} could not be sent", error)
                return
        self._change_node(instance_id, name, lambda node: replace(node, notice=notice).with_told(key))

    def _change_node(self, instance_id: str, name: str, change: Any) -> None:  # noqa: ANN401 (mypy infers it at the calls)
        try:
            self._store.change_node(instance_id, name, change)
        except (*AWS_ERRORS, StateChangedError) as error:
            self._failures.add(name, f"what is known of {instance_id} could not be recorded", error)

    def _decide(self, groups: Mapping[str, OwnedGroup], names: Sequence[str], *, acts: bool) -> list[Finding]:
        """Decide about node groups, and do what follows."""
        for name in names if acts else ():
            with suppress(ValueError):  # looking at the node group reports it
                self._executor.send_unsent(name)
        views = [view for name in names if (view := self._view(name, groups.get(name))) is not None]
        context = Context(
            policy=self._settings.policy,
            now=self._now,
            region=self._settings.region,
            bad_serials=self._store.bad_serials,
            statuses_read=self._statuses_read,
        )
        broken = {
            one
            for view in views
            for one, node in view.nodes.items()
            if find_need(one, node, view, context) is not None
        }
        broken |= {one for view in views for one in view.record.unfinished}
        wanted = self._reader.read_wanted(groups) if broken else {}
        read = self._reader.read_instances(broken)
        findings: list[Finding] = []
        done: list[Finding] = []
        for view in views:
            whole = replace(
                view, wanted=wanted.get(view.name), kept=read.kept, stopped=read.stopped, terminated=read.terminated
            )
            whole = with_claims(whole, read.claims, context)
            decided = decide(whole, context)
            findings += decided
            done += self._executor.apply(whole, decided) if acts else []
        emit_repaired(self._settings, done)
        return findings

    def _view(self, name: str, group: OwnedGroup | None) -> GroupView | None:
        """Return what is known of a node group. None: its repairs are not known."""
        try:
            record: GroupRecord = self._store.group(name)
        except ValueError as error:
            self._failures.add_sentence(name, str(error))
            return None
        return GroupView(
            name=name,
            traits=OWNER_KINDS[self._settings.groups[name].owner_kind],
            group=group,
            record=record,
            nodes={
                **{one: NodeRecord(node_group=name) for one in record.unfinished},
                **{one: node for one, node in self._store.nodes.items() if node.node_group == name},
            },
        )

    def _forget_gone(self, groups: Mapping[str, OwnedGroup]) -> None:
        try:
            unread = self._settings.groups.keys() - groups.keys()
            present = {one for one, node in self._store.nodes.items() if node.node_group in unread}
            self._store.forget_gone(present | {one for group in groups.values() for one in group.nodes})
            for name, group in groups.items():
                record = self._store.group(name)
                found = record.pruned(group.nodes, self._now - self._settings.policy.window)
                if found != record:
                    self._store.save_group(name, found)
        except StateChangedError:
            return  # The next run does it.
        except AWS_ERRORS as error:
            self._failures.add(self._settings.cluster, "it could not be recorded which nodes are gone", error)
