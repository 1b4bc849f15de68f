"""The hands of the function: it reads the groups, carries out what was decided, and tells people."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from aws_lambda_powertools import Logger

from cluster_common.errors import AWS_ERRORS, PartialFailureError, error_code, error_text
from cluster_power.decisions import Decision, Verdict, decide, new_memories, note_surplus, remember
from cluster_power.groups import Group, read_activities, read_groups, write_tags
from cluster_power.memory import (
    NONE,
    PROBLEM_TAG,
    SINCE_TAG,
    SIZE_TAG,
    SURPLUS_SINCE_TAG,
    SURPLUS_TAG,
    Memory,
    time_text,
)
from cluster_power.orders import Order, OrderAction
from cluster_power.problems import Problem
from cluster_power.reports import emit_metrics, problem_began, problem_ended, summarize
from cluster_power.settings import Settings

if TYPE_CHECKING:
    from mypy_boto3_autoscaling.client import AutoScalingClient
    from mypy_boto3_sns.client import SNSClient

_QUIET = frozenset({Verdict.KEEP, Verdict.PENDING, Verdict.SIZE, Verdict.DELETING})


@dataclass(frozen=True, kw_only=True)
class Clients:
    """What the function talks to.

    Attributes:
        auto_scaling: EC2 Auto Scaling.
        sns: Makes the SNS client; most ticks publish nothing and do without.
    """

    auto_scaling: "AutoScalingClient"
    sns: "Callable[[], SNSClient]"


class Power:
    """Carry out one order on a cluster.

    What fails for one group does not keep the others waiting; it is raised when all of them were tried.
    """

    def __init__(self, settings: Settings, clients: Clients, logger: Logger, now: datetime) -> None:
        self._settings = settings
        self._clients = clients
        self._logger = logger
        self._now = now.replace(microsecond=0)
        self._failures: list[str] = []

    def carry_out(self, order: Order) -> dict[str, object]:
        """Do what was ordered and return a summary that people read.

        Raises:
            PartialFailureError: Something failed, after everything was tried.
        """
        groups = [self._with_activities(group) for group in self._read()]
        memories = new_memories(groups, self._settings, order, self._now)
        before = {group.name: group for group in groups}
        noted = note_surplus(remember(groups, memories), self._now)
        decisions = [
            decision
            for decision in decide(noted, self._settings, self._now)
            if order.action is OrderAction.TICK or decision.node_group in order.node_groups
        ]
        if order.action is not OrderAction.STATUS:
            decisions = [self._act(decision, before, memories, order) for decision in decisions]
        for decision in decisions:
            self._log(decision)
        if order.action is OrderAction.TICK:
            for decision in decisions:
                self._note_surplus(decision, before)
                self._announce(decision)
            emit_metrics(self._settings, decisions, complete=not self._failures)
        if self._failures:
            raise PartialFailureError(self._failures)
        return summarize(self._settings, order, decisions)

    def _read(self, name: str | None = None) -> list[Group]:
        return read_groups(self._clients.auto_scaling, self._settings.cluster, name=name)

    def _with_activities(self, group: Group) -> Group:
        """Ask why nodes are missing, where they are."""
        if group.in_service >= group.desired or group.deleting:
            return group
        try:
            return replace(group, activities=read_activities(self._clients.auto_scaling, group))
        except AWS_ERRORS as error:
            self._fail(group.node_group, "could not read the scaling activities", error)
            return replace(group, activities=None)

    def _act(
        self, decision: Decision, before: dict[str, Group], memories: dict[str, Memory], order: Order
    ) -> Decision:
        """Write what is to be remembered, then set the size, then remember that it was set.

        In this order a crash anywhere leaves the group so that the next tick does the rest.
        """
        group = decision.group
        if group is None or not (group.name in memories or decision.verdict is Verdict.SIZE):
            return decision
        try:
            if order.action is OrderAction.TICK and not self._is_still(before[group.name]):
                return replace(
                    decision,
                    group=before[group.name],
                    verdict=Verdict.BLOCKED,
                    reason=f"{decision.node_group} changed while the tick looked: the next tick decides",
                )
            if group.name in memories:
                write_tags(self._clients.auto_scaling, group, memories[group.name].to_tags())
            if decision.verdict is Verdict.SIZE:
                return self._size(decision, group)
        except AWS_ERRORS as error:
            self._fail(decision.node_group, f"could not bring it to {decision.wanted}", error)
        return decision

    def _is_still(self, group: Group) -> bool:
        """Whether the group is as it was read: an operator's order may have come in between."""
        fresh = self._read(group.name)
        return [(one.memory, one.desired) for one in fresh] == [(group.memory, group.desired)]

    def _size(self, decision: Decision, group: Group) -> Decision:
        if group.desired != decision.wanted:
            try:
                self._clients.auto_scaling.set_desired_capacity(
                    AutoScalingGroupName=group.name, DesiredCapacity=decision.wanted, HonorCooldown=False
                )
            except AWS_ERRORS as error:
                if error_code(error) != "ScalingActivityInProgress":
                    raise
                reason = f"{decision.node_group} is busy with another scaling activity: the next tick tries again"
                return replace(decision, verdict=Verdict.BLOCKED, reason=reason)
        memory = replace(group.memory, size=decision.wanted, since=self._now)
        write_tags(
            self._clients.auto_scaling,
            group,
            {SIZE_TAG: str(decision.wanted), SINCE_TAG: time_text(self._now)},
        )
        return replace(decision, group=replace(group, desired=decision.wanted, memory=memory))

    def _note_surplus(self, decision: Decision, before: dict[str, Group]) -> None:
        """Write down since when more nodes live than should, which Auto Scaling does not tell."""
        group = decision.group
        if group is None or group.deleting or decision.node_group not in self._settings.counts:
            return
        since = group.memory.surplus_since
        if since == before[group.name].memory.surplus_since:
            return
        try:
            tags = {SURPLUS_SINCE_TAG: time_text(since) if since else NONE}
            write_tags(self._clients.auto_scaling, group, tags)
        except AWS_ERRORS as error:
            self._fail(decision.node_group, "could not remember since when too many nodes run", error)

    def _announce(self, decision: Decision) -> None:
        """Tell people once when a problem begins, and once when it ends; a tag knows which was told."""
        group = decision.group
        if group is None:
            return
        if decision.problem_known:
            self._tell(decision, group, PROBLEM_TAG, group.memory.problem, decision.problem)
        if decision.surplus_known:
            self._tell(decision, group, SURPLUS_TAG, group.memory.surplus, decision.surplus_problem)

    def _tell(self, decision: Decision, group: Group, tag: str, told: str | None, problem: Problem | None) -> None:
        kind = problem.kind.value if problem else None
        if kind == told:
            return
        subject, message = (
            problem_began(self._settings, decision.node_group, problem)
            if problem
            else problem_ended(self._settings, decision.node_group, told, decision.reason)
        )
        try:
            if self._settings.topic_arn:
                self._clients.sns().publish(TopicArn=self._settings.topic_arn, Subject=subject, Message=message)
            # After the message: better to say it twice than never.
            write_tags(self._clients.auto_scaling, group, {tag: kind or NONE})
        except AWS_ERRORS as error:
            self._fail(decision.node_group, "could not report a problem's begin or end", error)

    def _fail(self, node_group: str, what: str, error: Exception) -> None:
        failure = f"{node_group}: {what} ({error_text(error)})"
        self._failures.append(failure)
        self._logger.error(failure, extra={"node_group": node_group})

    def _log(self, decision: Decision) -> None:
        log = self._logger.info if decision.verdict in _QUIET else self._logger.warning
        group = decision.group
        log(
            decision.reason,
            extra={
                "node_group": decision.node_group,
                "verdict": decision.verdict.value,
                "wanted": decision.wanted,
                "desired": group.desired if group else None,
                "in_service": group.in_service if group else None,
                "alive": group.alive if group else None,
                "auto_scaling_group": group.name if group else None,
            },
        )


__all__: Sequence[str] = ("Clients", "Power")
