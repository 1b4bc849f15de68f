"""What people are told: each problem once when it begins and once when it ends, and what is about to end."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from cluster_common.errors import AWS_ERRORS
from cluster_common.failures import Failures
from cluster_common.times import time_text
from cluster_power.groups import Group, OwnerKind
from cluster_power.owners import Owner
from cluster_power.problems import Problem
from cluster_power.records import (
    CLOSING_TAG,
    DESIRED_TAG,
    LISTED_END_TAG,
    NONE,
    PROBLEM_TAG,
    VERSIONS_TAG,
    Record,
)
from cluster_power.reports import (
    block_closes,
    listed_reservations_end,
    problem_began,
    problem_ended,
    reservation_ends,
)
from cluster_power.settings import Settings
from cluster_power.verdicts import Decision
from cluster_power.windows import Phase

if TYPE_CHECKING:
    from mypy_boto3_sns.client import SNSClient


class Announcements:
    """Tell people through the topic, and remember in tags what they were told.

    A message is sent before it is remembered: better to say it twice than never. Where runs overlap, the later one
    looks first whether the other has told it.
    """

    def __init__(
        self,
        settings: Settings,
        owners: Mapping[OwnerKind, Owner],
        sns: "Callable[[], SNSClient]",
        failures: Failures,
        now: datetime,
    ) -> None:
        self._settings = settings
        self._owners = owners
        self._sns = sns
        self._failures = failures
        self._now = now

    def note(self, decision: Decision, before: Group | None) -> None:
        """Write down why the desired capacity is what it is, where that has changed."""
        group = decision.group
        if group is None or before is None or group.deleting or group.record.desired == before.record.desired:
            return
        given = group.record.desired
        try:
            self._owners[group.owner].write_tags(group, {DESIRED_TAG: given.text if given else NONE})
        except AWS_ERRORS as error:
            self._failures.add(group.node_group, "could not remember why its desired capacity is what it is", error)

    def announce(self, decision: Decision) -> None:
        """Tell what is new about a node group."""
        group = decision.group
        if group is None:
            return
        if decision.problem_known:
            self._tell_problem(decision, group, PROBLEM_TAG, lambda record: record.problems, decision.problem)
        if decision.versions_known:
            self._tell_problem(
                decision, group, VERSIONS_TAG, lambda record: record.versions, decision.versions_problem
            )
        self._tell_closing(decision, group)
        self._tell_end(decision, group)
        self._tell_listed_end(decision, group)

    def _tell_problem(
        self,
        decision: Decision,
        group: Group,
        tag: str,
        told: Callable[[Record], tuple[str, ...]],
        problem: Problem | None,
    ) -> None:
        """Tell each kind of a problem once until all is well: launches may fail in turns for two reasons."""
        before, kinds = told(group.record), (problem.kind.value,) if problem else ()
        after = before + kinds if not set(kinds) <= set(before) else before if kinds else ()
        if after == before:
            return
        message = (
            problem_began(self._settings, decision.node_group, problem)
            if problem
            else problem_ended(self._settings, decision.node_group, before[-1], decision.reason)
        )
        self._tell(
            group,
            message,
            {tag: " ".join(after) or NONE},
            lambda record: told(record) == after,
            "could not report a problem's begin or end",
        )

    def _tell_closing(self, decision: Decision, group: Group) -> None:
        """Tell once that nodes go; a block that was extended since has another time, which is told again."""
        window = decision.window
        if window is None or window.phase is not Phase.CLOSING or window.down_at is None or not group.alive:
            return
        message = block_closes(self._settings, decision.node_group, window, window.down_at - self._now)
        self._tell_moment(group, window.down_at, message, "could not report that its Capacity Block ends")

    def _tell_end(self, decision: Decision, group: Group) -> None:
        """Tell once that a reservation ends; one that was given a later end since is told again."""
        ends, own = decision.reservation_ends, self._settings.groups.get(decision.node_group)
        if ends is None or own is None or own.reservation is None:
            return
        message = reservation_ends(self._settings, decision.node_group, own.reservation, ends, ends - self._now)
        self._tell_moment(group, ends, message, "could not report that its capacity reservation ends")

    def _tell_listed_end(self, decision: Decision, group: Group) -> None:
        """Tell once that listed reservations end."""
        end = decision.listed_end
        if end is None:
            return
        self._tell(
            group,
            listed_reservations_end(self._settings, decision.node_group, end, end.ends - self._now),
            {LISTED_END_TAG: " ".join(end.told)},
            lambda record: set(end.told) <= set(record.listed_ends),
            "could not report that capacity reservations end",
        )

    def _tell_moment(self, group: Group, moment: datetime, message: tuple[str, str], failure: str) -> None:
        if group.record.closing == moment:
            return
        tags = {CLOSING_TAG: time_text(moment)}
        self._tell(group, message, tags, lambda record: record.closing == moment, failure)

    def _tell(
        self,
        group: Group,
        message: tuple[str, str],
        tags: Mapping[str, str],
        is_told: Callable[[Record], bool],
        failure: str,
    ) -> None:
        owner, (subject, text) = self._owners[group.owner], message
        try:
            glance = owner.glance(group)
            if glance is None or is_told(glance.record):
                return
            if self._settings.topic_arn:
                self._sns().publish(TopicArn=self._settings.topic_arn, Subject=subject, Message=text)
            owner.write_tags(group, tags)
        except AWS_ERRORS as error:
            self._failures.add(group.node_group or group.name, failure, error)
