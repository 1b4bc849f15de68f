"""Why nodes are missing: a pure function of a group, its activities and the time."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto

from cluster_power.groups import Activity, Group
from cluster_power.launch_failures import ProblemKind, find_launch_failure, instance_type_in


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What keeps a group's nodes from running.

    Attributes:
        kind: The kind, which the problem tag remembers.
        sentence: What is the matter and what one can do.
    """

    kind: ProblemKind
    sentence: str


class Outlook(Enum):
    """What can be said about a group's missing nodes."""

    COMPLETE = auto()
    """None are missing."""

    PENDING = auto()
    """They are launching; it is too early to call that a problem."""

    PROBLEM = auto()
    """Something keeps them from running."""

    UNSEEN = auto()
    """They are missing, and Auto Scaling could not be asked why."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What can be said about a group's missing nodes, with the problem if there is one."""

    outlook: Outlook
    problem: Problem | None = None


def find_problem(group: Group, *, goal: int, sized_by_us: bool, grace: timedelta, now: datetime) -> Finding:
    """Say why a group has fewer nodes in service than it should.

    Args:
        group: The group.
        goal: How many nodes it should have.
        sized_by_us: Whether the power function gave it this size, so that it is known since when.
        grace: How long nodes may take to launch.
        now: The time.
    """
    if group.in_service >= goal:
        return Finding(outlook=Outlook.COMPLETE)
    where = f" in {', '.join(group.zones)}" if group.zones else ""
    running = f"{group.node_group}: {group.in_service} of {goal} nodes are running{where}"
    if group.launching_suspended is not None:
        return _problem(ProblemKind.SUSPENDED, f"{running}: {_suspended(group)}")
    if group.activities is None:
        return Finding(outlook=Outlook.UNSEEN)
    failure = _newest_launch(group)
    if failure is not None and failure.failed:
        rule = find_launch_failure(failure.message)
        types = instance_type_in(failure.message) or " or ".join(group.instance_types) or "nodes of its type"
        return _problem(rule.kind, f"{running}: {rule.explain(failure.message, types)}")
    changed = max(
        (moment for moment in (group.memory.since, *(one.started for one in group.activities)) if moment),
        default=now,
    )
    if not sized_by_us or now - changed < grace:
        return Finding(outlook=Outlook.PENDING)
    minutes = round(grace.total_seconds() / 60)
    return _problem(
        ProblemKind.SLOW,
        f"{running}: Auto Scaling reports no error, and the others have not come up in more than {minutes} "
        f"minutes. Look at the activity history of the Auto Scaling group {group.name}.",
    )


def _newest_launch(group: Group) -> Activity | None:
    """Return the newest launch that ended since the group was sized; one under way has nothing to say yet."""
    since = group.memory.since
    return next(
        (
            activity
            for activity in group.activities or ()
            if activity.launch and activity.finished and (since is None or activity.started >= since)
        ),
        None,
    )


def _suspended(group: Group) -> str:
    reason = f" ({group.launching_suspended})" if group.launching_suspended else ""
    return (
        f"launching is suspended on the Auto Scaling group{reason}. Auto Scaling does so itself after a day "
        f"of failed launches. When the cause is gone, resume the process Launch of {group.name}."
    )


def _problem(kind: ProblemKind, sentence: str) -> Finding:
    return Finding(outlook=Outlook.PROBLEM, problem=Problem(kind=kind, sentence=sentence))
