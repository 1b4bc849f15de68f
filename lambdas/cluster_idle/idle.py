"""One run: read, weigh, decide, act, report."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime

from aws_lambda_powertools import Logger

from cluster_common.actions import Action
from cluster_common.clients import Clients
from cluster_common.errors import AWS_ERRORS
from cluster_common.failures import Failures
from cluster_common.state_table import StateTable
from cluster_contract.hydration import parse_progress, progress_parameter
from cluster_contract.idle import IdleFunctionSettings, SignalKind
from cluster_contract.state import StatePart
from cluster_idle.context import IdleContext
from cluster_idle.decisions import decide
from cluster_idle.evidence import Evidence
from cluster_idle.executor import IdleExecutor, Outcome
from cluster_idle.instances import Instance, read_cluster, read_spot_requests
from cluster_idle.owner_reader import OwnerReader
from cluster_idle.readings import MetricReader
from cluster_idle.reports import emit_blind_metrics, emit_metrics, find_lingering, log_finding, summarize
from cluster_idle.sent_warnings import IdleRecords
from cluster_idle.verdicts import Decisions


class Idle:
    """Look at a cluster's nodes once, and do what follows.

    What fails for one node does not keep the others running; it is raised when all of them were tried.
    """

    def __init__(
        self,
        settings: IdleFunctionSettings,
        clients: Clients,
        logger: Logger,
        *,
        clock: Callable[[], datetime],
    ) -> None:
        """Look at nothing yet.

        Args:
            settings: The function's settings.
            clients: What it talks to.
            logger: Where it writes what it finds.
            clock: Returns the time.
        """
        self._settings = settings
        self._clients = clients
        self._logger = logger
        self._clock = clock
        self._now = clock().replace(microsecond=0)
        self._failures = Failures(logger)
        self._owners = OwnerReader(settings, clients, failures=self._failures, logger=logger, now=self._now)
        table = StateTable(clients.dynamodb(), settings.state_table, StatePart.IDLE.key(settings.cluster))
        self._records = IdleRecords(table, self._failures, clients.pause)

    def run(self, action: Action) -> dict[str, object]:
        """Do what was asked and return a summary for operators.

        Raises:
            PartialFailureError: Something failed, after everything was tried.
        """
        instances = self._read_instances()
        if instances is None:
            if action is Action.TICK:
                emit_blind_metrics(self._settings)
            self._failures.raise_all()
        context = self._look(instances or [])
        decisions = decide(instances or [], context)
        evaluated = not self._failures
        outcome = self._act(decisions, context) if action is Action.TICK else Outcome()
        lingering = find_lingering(decisions.findings)
        for finding in decisions.findings:
            log_finding(self._logger, finding, outcome, settings=self._settings, lingering=lingering)
        if decisions.breaker:
            self._logger.error(decisions.breaker)
        if action is Action.TICK:
            emit_metrics(self._settings, decisions, outcome, evaluated=evaluated)
        self._failures.raise_all()
        return summarize(self._settings, action.value, decisions, outcome)

    def _read_instances(self) -> list[Instance] | None:
        """Read the instances; None: they could not all be read, and nothing is known of what is not seen."""
        try:
            return [*read_cluster(self._clients.ec2(), self._settings), *self._owners.read_instances()]
        except AWS_ERRORS as error:
            self._failures.add(self._settings.cluster, "its instances could not be read: nothing is stopped", error)
            return None

    def _look(self, instances: Sequence[Instance]) -> IdleContext:
        held = "" if self._records.read() else "the warnings that were sent could not be read"
        context = IdleContext(
            settings=self._settings,
            now=self._now,
            warnings=self._records.warnings,
            reminders=self._records.reminders,
            held=held,
        )
        looked_at = [instance for instance in instances if self._is_looked_at(instance, context)]
        evidence: dict[str, Evidence] = {}
        if looked_at:
            reader = MetricReader(self._clients.cloudwatch(), self._settings, self._failures, self._now)
            evidence = reader.read(looked_at, self._read_sessions(looked_at))
        owners = self._owners.read()
        return replace(
            context,
            evidence=evidence,
            owners=owners,
            unread=self._owners.unread,
            spot_requests=self._read_spot_requests(looked_at),
            restores=self._read_hydration() if looked_at and self._settings.preloads else "",
        )

    @staticmethod
    def _is_looked_at(instance: Instance, context: IdleContext) -> bool:
        # A young one, too: work of a node that has just come voids the warning of its group.
        return instance.running and not context.policy(instance).off and context.is_looked_at(instance)

    def _read_sessions(self, instances: Sequence[Instance]) -> Collection[str] | None:
        """Return who has a session, where a policy asks."""
        asks = any(
            signal.kind is SignalKind.SESSION
            for group in {instance.node_group for instance in instances}
            for signal in self._settings.policy_of(group).signals
        )
        if not asks:
            return None
        try:
            pages = self._clients.ssm().get_paginator("describe_sessions").paginate(State="Active")
            return {session.get("Target", "") for page in pages for session in page.get("Sessions", [])}
        except AWS_ERRORS as error:
            self._failures.add(self._settings.cluster, "its Session Manager sessions could not be read", error)
            return None

    def _read_hydration(self) -> str:
        """Say which data sets keep the nodes running: those that they restore, or of which it is not known."""
        try:
            answer = self._clients.ssm().get_parameter(Name=progress_parameter(self._settings.cluster))
            progress = parse_progress(answer["Parameter"]["Value"])
        except (*AWS_ERRORS, ValueError) as error:
            self._failures.add(self._settings.cluster, "the progress of its data sets could not be read", error)
            return "may restore data sets: their progress could not be read"
        restored = progress.restored_by_nodes(self._now) if progress else ()
        return f"runs while data sets are restored: {', '.join(restored)}" if restored else ""

    def _read_spot_requests(self, instances: Sequence[Instance]) -> dict[str, str]:
        ids = {one.spot_request for one in instances if one.owner.is_instance and one.spot_request}
        if not ids:
            return {}
        try:
            return read_spot_requests(self._clients.ec2(), ids)
        except AWS_ERRORS as error:
            self._failures.add(self._settings.cluster, "its Spot Instance requests could not be read", error)
            return {}

    def _act(self, decisions: Decisions, context: IdleContext) -> Outcome:
        if context.held:
            return Outcome()
        executor = IdleExecutor(
            self._settings,
            self._owners,
            self._records,
            ec2=self._clients.ec2,
            lambda_=self._clients.lambda_,
            sns=self._clients.sns,
            failures=self._failures,
            context=context,
            read_sessions=self._read_sessions,
            clock=self._clock,
            pause=self._clients.pause,
        )
        return executor.apply(decisions)
