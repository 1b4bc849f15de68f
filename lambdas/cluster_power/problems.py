"""Why nodes are missing, and why nodes stay: pure functions of a group, its activities and the time."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto

from cluster_common.operator_commands import remove_protection, resume_process
from cluster_common.owners.groups import Activity
from cluster_power.groups import Group
from cluster_power.launch_failures import ProblemKind, find_launch_failure, instance_type_in


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What keeps a group's nodes from running, or from going.

    Attributes:
        kind: The kind, which the key of its alert names.
        sentence: What is the matter and what one can do.
    """

    kind: ProblemKind
    sentence: str


# Lifecycle states that nodes do not leave by themselves, and what one can do.
# https://docs.aws.amazon.com/autoscaling/ec2/userguide/lifecycle-hooks-overview.html and
# https://docs.aws.amazon.com/autoscaling/ec2/userguide/as-enter-exit-standby.html
_STAYS = {
    ":Wait": "A lifecycle hook keeps {nodes}: complete the lifecycle action of each, or delete the hook.",
    ":Retained": "A lifecycle hook that was abandoned retains {nodes}: inspect each, and terminate it in EC2.",
    "Standby": "Auto Scaling does not terminate {nodes} in Standby: terminate each, or return it to service, which "
    "raises the desired capacity.",
}


class Outlook(Enum):
    """What can be said about a group's missing nodes, or about its nodes too many."""

    COMPLETE = auto()
    """There are none."""

    PENDING = auto()
    """They are launching, or going away; it is too early to call that a problem."""

    PROBLEM = auto()
    """Something keeps them from running, or from going."""

    UNSEEN = auto()
    """They are missing, and it returned no activities that say why."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What can be said about a group's nodes, with the problem if there is one."""

    outlook: Outlook
    problem: Problem | None = None

    @property
    def known(self) -> bool:
        """Whether it says that there is a problem, or that there is none."""
        return self.outlook in (Outlook.COMPLETE, Outlook.PROBLEM)


def find_problem(
    group: Group,
    *,
    goal: int,
    sized_by_us: bool,
    grace: timedelta,
    now: datetime,
    region: str,
    reserved: bool = False,
) -> Finding:
    """Say why a group has fewer nodes in service than it should.

    Of a group that a scheduler sizes it is not known how many that are: only a launch that fails says that jobs need
    more.

    Args:
        group: The group.
        goal: How many nodes it should have.
        sized_by_us: Whether the power function gave it this size, so that it is known since when.
        grace: How long nodes may take to launch.
        now: The time.
        region: The cluster's region, for commands.
        reserved: Whether it runs in a reservation or block alone, where a node has to be gone before another comes.
    """
    coming = _preparing(group, now) + (_freed(group, grace, now) if reserved else 0)
    if goal - group.in_service - group.places_of_standby <= coming:
        return Finding(outlook=Outlook.PENDING if group.may_launch(goal) else Outlook.COMPLETE)
    grace = max(grace, group.owner.launch_time)
    most = f"up to {goal}" if group.scheduler_sized else str(goal)
    where = f" in {', '.join(group.zones)}" if group.zones else ""
    running = f"{group.node_group}: {group.in_service} of {most} nodes are running{where}"
    if group.launching_suspended is not None:
        return _problem(ProblemKind.SUSPENDED, f"{running}: {_suspended(group, region, resumed=sized_by_us)}")
    if group.activities is None:
        return Finding(outlook=Outlook.UNSEEN)
    launches = _launches(group)
    changed = max(
        (moment for moment in (group.record.since, *(one.started for one in group.activities)) if moment),
        default=now,
    )
    slow = sized_by_us and now - changed >= grace
    # Of nodes that were asked for at once some may come after others have failed.
    telling = [one for one in launches if slow and one.started >= changed - grace] or launches[:1]
    failure = next((one for one in telling if one.failed), None)
    if failure is not None:
        rule = find_launch_failure(failure.message)
        types = instance_type_in(failure.message) or " or ".join(group.instance_types) or "nodes of its type"
        return _problem(
            rule.kind, f"{running}: {rule.explain(failure.message, types, group.owner, retried=sized_by_us)}"
        )
    if group.scheduler_sized or not slow:
        return Finding(outlook=Outlook.COMPLETE if group.scheduler_sized else Outlook.PENDING)
    minutes, owner = round(grace.total_seconds() / 60), group.owner
    return _problem(
        ProblemKind.SLOW,
        f"{running}: {owner.service} reports no error, and the others have not come up in more than {minutes} "
        f"minutes. Look at the {owner.history} of the {owner.noun} {group.name}. {owner.retries}",
    )


def find_surplus(group: Group, *, goal: int, grace: timedelta, now: datetime, region: str) -> Finding:
    """Say why more of a group's nodes live than should.

    A group of which none is in service may go on costing: nodes that are protected, in Standby or in a lifecycle
    hook live on whatever size the group is given.
    https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-instance-protection.html

    Args:
        group: The group.
        goal: How many nodes it should have.
        grace: How long nodes may take to go.
        now: The time.
        region: The cluster's region, for commands.
    """
    if group.alive <= goal:
        return Finding(outlook=Outlook.COMPLETE)
    if group.record.since is None or now - group.record.since < grace:
        return Finding(outlook=Outlook.PENDING)
    owner = group.owner
    look = f"look at the {owner.history} of the {owner.noun} {group.name}, and at the nodes."
    reasons = " ".join(_stays(group, region)) or f"No reason is reported: {look}"
    return _problem(ProblemKind.SURPLUS, f"{_billed(group)} where {goal} should ({_states(group)}). {reasons}")


def left_behind(group: Group, *, why: str, region: str) -> Problem:
    """Say that nodes run in a group that is no longer the cluster's: an alarm reports it if they run for long.

    Args:
        group: The group.
        why: What makes it none of the cluster's.
        region: The cluster's region, for commands.
    """
    noun = group.owner.noun
    stays = "".join(f" {reason}" for reason in _stays(group, region))
    return Problem(
        kind=ProblemKind.LEFT_BEHIND,
        sentence=f"{_billed(group)} ({_states(group)}), and {why}. Either a deployment that removes the {noun} "
        f"{group.name} is under way, or CloudFormation could not delete it, or it was created outside "
        f"the stack: look at the stack's events, and delete it if its nodes are not needed.{stays}",
    )


def emptied(reason: str) -> Problem:
    """Say that a group has the size 0 without a stop: by hand, or by a stop that was not completed."""
    return Problem(
        kind=ProblemKind.EMPTIED,
        sentence=f"{reason}. If a stop was under way, it was not completed. Start the node group to bring its nodes "
        "back, or stop it to keep it stopped.",
    )


def raised(reason: str) -> Problem:
    """Say that a group that its schedule has stopped was given nodes by hand."""
    return Problem(
        kind=ProblemKind.RAISED,
        sentence=f"{reason}. Its schedule has stopped the node group, so it stops none of these nodes before the end "
        "of its next window, and they are billed. Stop the node group to stop them, or start it to keep all of its "
        "nodes until then.",
    )


def record_lost(name: str, order: str) -> Problem:
    """Say that a group keeps the nodes that it has since nothing says what was ordered of it."""
    return Problem(
        kind=ProblemKind.RECORD_LOST,
        sentence=f"{name} is {order}. Start the node group to give it all of its nodes, or stop it.",
    )


def describe_surplus(group: Group, goal: int) -> str:
    """Say that more nodes live than should and that there is still time for them to go."""
    owner, nodes = group.owner, _nodes(group.alive - goal)
    surplus = (
        f"{owner.service} {'terminates them when their jobs end' if owner.keeps_jobs else f'is terminating {nodes}'}"
    )
    return f"{_run(group)} where {goal} should ({_states(group)}): {surplus}"


def _run(group: Group) -> str:
    name = group.node_group or group.name
    return f"{name}: 1 node still runs" if group.alive == 1 else f"{name}: {group.alive} nodes still run"


def _billed(group: Group) -> str:
    return f"{_run(group)} and {'is' if group.alive == 1 else 'are'} billed"


def _states(group: Group) -> str:
    states = Counter({"InService": group.in_service}) + Counter(group.out_of_service)
    return ", ".join(f"{number} {state}" for state, number in sorted(states.items()))


def _stays(group: Group, region: str) -> Iterator[str]:
    """Yield what is seen to keep nodes from going, each with what one can do."""
    if group.terminating_suspended is not None:
        reason = f" ({group.terminating_suspended})" if group.terminating_suspended else ""
        name = group.auto_scaling_group or group.name
        yield (
            f"The process Terminate of the Auto Scaling group {name} is suspended{reason}: resume it "
            f"({resume_process('Terminate', name, region)})."
        )
    if group.protected:
        ids = [one for one, node in group.nodes.items() if node.protected]
        yield (
            f"Scale-in protection keeps {_nodes(group.protected)}: remove it "
            f"({remove_protection(group.auto_scaling_group or group.name, ids, region)})."
        )
    if group.owner.keeps_jobs:
        yield (
            f"{group.owner.service} runs their jobs to the end before it terminates them: wait, or end the jobs "
            f"({group.owner.keeps_jobs})."
        )
    for ending, sentence in _STAYS.items():
        number = sum(state.endswith(ending) for state in group.out_of_service)
        if number:
            yield sentence.format(nodes=_nodes(number))


def _preparing(group: Group, now: datetime) -> int:
    """Return how many nodes are on their way into service, and have not taken too long."""
    longest = group.owner.preparing
    return sum(
        # What ends by itself needs no time of launch, which not every owner has.
        longest.get(node.state) == timedelta.max
        or (node.launched is not None and now - node.launched < longest.get(node.state, timedelta(0)))
        for node in group.nodes.values()
    )


def _freed(group: Group, grace: timedelta, now: datetime) -> int:
    """Return how many nodes were terminated within the grace: launches in their places fail until they are gone.

    A node may wait in a lifecycle hook first, and Auto Scaling tries again in its own time.
    https://docs.aws.amazon.com/autoscaling/ec2/userguide/lifecycle-hooks-overview.html
    """
    return sum(one.termination and now - one.started < grace for one in group.activities or ())


def _launches(group: Group) -> list[Activity]:
    """Return the launches that ended since the group was sized, newest first: one under way says nothing yet."""
    since, read = group.record.since, group.activities or ()
    return [one for one in read if one.launch and one.finished and (since is None or one.started >= since)]


def _suspended(group: Group, region: str, *, resumed: bool) -> str:
    reason = f" ({group.launching_suspended})" if group.launching_suspended else ""
    if not group.suspended_by_auto_scaling:
        return (
            f"launching is suspended on the Auto Scaling group{reason}, and the power function does not resume it. "
            "When the cause is gone, resume it "
            f"({resume_process('Launch', group.auto_scaling_group or group.name, region)})."
        )
    then = f"The power function resumes it. {group.owner.retries}" if resumed else "A start command resumes it."
    return (
        f"Auto Scaling has suspended launching on the Auto Scaling group{reason}, as it does after about a day of "
        f"failed launches. {then}"
    )


def _nodes(number: int) -> str:
    return "1 node" if number == 1 else f"{number} nodes"


def _problem(kind: ProblemKind, sentence: str) -> Finding:
    return Finding(outlook=Outlook.PROBLEM, problem=Problem(kind=kind, sentence=sentence))
