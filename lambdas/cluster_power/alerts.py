"""The alerts about a node group that the alert topic's subscribers receive."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from cluster_common.alerts import Alert, end_key
from cluster_common.messages import subject
from cluster_common.operator_commands import group_command
from cluster_common.reservations import ACTIVE, Reservation
from cluster_common.times import format_minutes, time_text
from cluster_contract.power import PowerGroupSettings
from cluster_power.context import Context
from cluster_power.groups import Group
from cluster_power.launch_failures import ProblemKind
from cluster_power.problems import Problem, record_lost
from cluster_power.schedules import timetable
from cluster_power.verdicts import Decision, Verdict
from cluster_power.windows import Phase

PROBLEM = "problem"
VERSIONS = "versions"
SURPLUS = "surplus"
SCHEDULE = "schedule"
RECORD = "record"

NOTICE = timedelta(days=1)
"""How long before the end of a reservation an alert says so. For nodes in a Capacity Block the settings say it."""


def find_alerts(decision: Decision, context: Context) -> list[Alert]:
    """Return the alerts that a node group gives now."""
    group = decision.group
    if group is None:
        return []
    return [
        *_problems(decision, context),
        *_closing(decision, group, context),
        *_ends(decision, group, context),
        *_scheduled(group, context),
    ]


def known_topics(decision: Decision, context: Context) -> frozenset[str]:
    """Return the topics of which everything was seen, so that they can be over."""
    group = decision.group
    is_deleting = group is not None and group.deleting
    known = {
        PROBLEM: decision.problem_known,
        VERSIONS: decision.versions_known,
        SURPLUS: not decision.surplus and not is_deleting,
        SCHEDULE: group is not None and _runs_on(group, context),
        RECORD: decision.node_group in context.orders,
    }
    return frozenset(topic for topic, is_known in known.items() if is_known)


def describe_end(decision: Decision, group: Group, key: str, context: Context) -> tuple[str, str]:
    """Return the subject and the text of the message that a topic is over.

    Args:
        decision: What was decided of the node group.
        group: The group.
        key: The key of the alert that was sent last.
        context: What decisions rest on.
    """
    cluster, (topic, _, kind) = context.settings.cluster, key.partition("/")
    if topic == SCHEDULE:
        ended, text = _NOT_STOPPED, _describe_kept(group, kind.rpartition(" ")[2], context)
    else:
        _, ended, sentence = _SUBJECTS.get(kind, _MISSING)
        text = f"{sentence}: {decision.reason.removesuffix('.')}."
    return subject(f"{cluster}: {ended.format(decision.node_group)}"), f"Cluster {cluster}\n\n{text}"


def _problems(decision: Decision, context: Context) -> Iterator[Alert]:
    if decision.problem is not None and decision.problem_known:
        yield _alert(PROBLEM, decision, decision.problem, context)
    if decision.versions_problem is not None and decision.versions_known:
        yield _alert(VERSIONS, decision, decision.versions_problem, context)
    if decision.surplus_problem is not None:
        yield _alert(SURPLUS, decision, decision.surplus_problem, context, context.settings.launch_grace)
    elif decision.surplus:
        # The reason is not known yet, but nodes too many are from now on.
        problem = Problem(kind=ProblemKind.SURPLUS, sentence=decision.reason)
        yield _alert(SURPLUS, decision, problem, context, timedelta.max)

    order = context.orders.get(decision.node_group)
    if order is not None and order.lost:
        yield _alert(RECORD, decision, record_lost(decision.node_group, str(order)), context)


def _alert(
    topic: str, decision: Decision, problem: Problem, context: Context, delay: timedelta = timedelta(0)
) -> Alert:
    settings, began = context.settings, _SUBJECTS.get(problem.kind, _MISSING)[0].format(decision.node_group)
    commands = "".join(
        f"\n\nTo {action} it:\n{group_command(action, settings.cluster, decision.node_group, settings.region)}"
        for action in _COMMANDS.get(problem.kind, ())
    )
    # A group that is deleted keeps no record, and so no message follows.
    again = "" if problem.kind is ProblemKind.LEFT_BEHIND else "\n\nAnother message follows when this is over."
    return Alert(
        key=f"{topic}/{problem.kind}",
        subject=subject(f"{settings.cluster}: {began}"),
        text=f"Cluster {settings.cluster}\n\n{problem.sentence}{commands}{again}",
        delay=delay,
    )


def _closing(decision: Decision, group: Group, context: Context) -> Iterator[Alert]:
    """Yield that nodes are terminated before their Capacity Block ends; another end is another alert."""
    window, cluster = decision.window, context.settings.cluster
    if window is None or window.phase is not Phase.CLOSING or window.down_at is None or not group.alive:
        return
    left = format_minutes(window.down_at - context.now)
    yield Alert(
        key=end_key(window.block, window.down_at),
        subject=subject(f"{cluster}: the nodes of {group.node_group} are terminated in {left}"),
        text=f"Cluster {cluster}\n\n{window.sentence}.\n\nThe nodes stay if the Capacity Block is extended "
        "before that.",
        expires=window.down_at,
    )


def _scheduled(group: Group, context: Context) -> Iterator[Alert]:
    """Yield that nodes are stopped by their schedule; a stop for another window is another alert."""
    name, settings = group.node_group, context.settings
    schedule, judgment = settings.schedule(name), context.judge_schedule(name, [group])
    if schedule is None or judgment is None or judgment.stop_at is None or not group.alive:
        return
    if judgment.notice is not None:
        return  # It could not be recorded, and so the stop comes later than it says.
    left = format_minutes(judgment.stop_at - context.now)
    kept = timetable(schedule).at(judgment.stop_at).next_end
    until = f"{time_text(kept)}, when the next window ends" if kept else "a stop command"
    yield Alert(
        key=end_key("stop", judgment.stop_at, SCHEDULE),
        subject=subject(f"{settings.cluster}: its schedule stops the nodes of {name} in {left}"),
        text=f"Cluster {settings.cluster}\n\n{name}: its schedule ({schedule}) stops its nodes at "
        f"{time_text(judgment.stop_at)}: save checkpoints.\n\nTo keep them until {until}:\n"
        f"{group_command('start', settings.cluster, name, settings.region)}",
        expires=judgment.stop_at,
    )


def _runs_on(group: Group, context: Context) -> bool:
    """Say whether a node group has nodes that neither its schedule nor a command stops now."""
    if not group.alive or group.record.is_stopped:
        return False
    judgment = context.judge_schedule(group.node_group, [group])
    return judgment is None or (judgment.stop_at is None and judgment.order is None)


def _describe_kept(group: Group, moment: str, context: Context) -> str:
    """Say that a stop by a schedule that was announced does not come, and what comes instead."""
    judgment = context.judge_schedule(group.node_group, [group])
    now = f"Now {judgment.now}." if judgment else "It has no schedule now."
    then = f" At {time_text(judgment.edge)} {judgment.then}." if judgment and judgment.edge else ""
    return f"{group.node_group}: its schedule does not stop its nodes at {moment}. {now}{then}"


def _ends(decision: Decision, group: Group, context: Context) -> Iterator[Alert]:
    """Yield the reservations that end within a day, and the blocks among other capacity that end soon."""
    if not context.is_configured(group) or decision.verdict is Verdict.DELETING:
        return
    own, settings, now = context.settings.groups[group.node_group], context.settings, context.now
    is_sure = decision.verdict is not Verdict.BLOCKED
    ids = (own.reservation_id if is_sure else None, *((*own.listed, *own.blocks) if group.alive else ()))
    for one in map(context.reservations.find, filter(None, ids)):
        if not isinstance(one, Reservation) or one.state != ACTIVE or one.ends is None:
            continue
        is_block = one.id in own.blocks
        moment = one.ends - own.block_ends_early if is_block else one.ends
        notice = settings.closing_notice if is_block else NOTICE
        if moment - notice <= now < moment and not (is_block and one.used == 0):
            title, text = _describe_coming_end(group.node_group, own, one, one.ends, moment - now)
            yield Alert(
                key=end_key(one.id, moment),
                subject=subject(f"{settings.cluster}: {title}"),
                text=f"Cluster {settings.cluster}\n\n{text}",
                expires=moment,
            )


def _describe_coming_end(
    name: str, own: PowerGroupSettings, one: Reservation, ends: datetime, left: timedelta
) -> tuple[str, str]:
    """Return the title and the text of the message that a reservation or a Capacity Block ends soon."""
    at = time_text(ends)
    if one.id in own.blocks:
        title = f"nodes of {name} in a Capacity Block are terminated in {format_minutes(left)}"
        buys = ", and then buys On-Demand Instances, at their full price" if own.on_demand else ""
        text = (
            f"{name}: EC2 terminates the nodes in its Capacity Block {one.id} from "
            f"{time_text(ends - own.block_ends_early)} on, before that ends at {at}: save your checkpoint. Auto "
            "Scaling tries to launch others in the node group's other reservations and blocks"
            f"{buys or '; nothing else replaces them'}."
        )
    elif one.id == own.reservation_id:
        # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-release.html
        title = f"the capacity reservation of {name} ends in {_hours(left)}"
        text = (
            f"{name}: its capacity reservation {one.id} ends at {at}: nodes that run go on at On-Demand "
            "prices, and from then on no node can start.\n\nAn ended reservation cannot be restored: give it a later "
            "end before that, in the cluster's file if the cluster made it, and else in EC2."
        )
    else:
        # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/create-cr-group.html
        title = f"a capacity reservation of {name} ends in {_hours(left)}"
        text = (
            f"{name}: its capacity reservation {one.id} ends at {at}: nodes that run in it go on, at On-Demand "
            "prices, where no other reservation has room for them.\n\nGive it a later end in EC2 before that, "
            "put another into the cluster's file and deploy, or stop the node group."
        )
    return title, text


def _hours(time: timedelta) -> str:
    hours = round(time.total_seconds() / 3600)
    return "less than an hour" if hours < 1 else "1 hour" if hours == 1 else f"{hours} hours"


# The commands that a message of a problem gives.
_COMMANDS = {
    ProblemKind.EMPTIED: ("start", "stop"),
    ProblemKind.RAISED: ("stop", "start"),
    ProblemKind.MIXED_VERSIONS: ("stop", "start"),
    ProblemKind.RECORD_LOST: ("start", "stop"),
}

_NOT_STOPPED = "its schedule does not stop the nodes of {}"

# How a message names a problem of a kind: its begin, its end, and the words before the reason for that.
_MISSING = ("nodes of {} are missing", "no nodes of {} are missing any more", "No nodes are missing any more")
_SUBJECTS: dict[str, tuple[str, str, str]] = {
    ProblemKind.MIXED_VERSIONS: (
        "nodes of {} run different launch template versions",
        "all nodes of {} run one launch template version again",
        "All nodes run one launch template version again",
    ),
    ProblemKind.SURPLUS: (
        "too many nodes of {} run",
        "{} has the right number of nodes again",
        "The number of nodes is right again",
    ),
    ProblemKind.LEFT_BEHIND: (
        "nodes of {} run outside the cluster's file",
        "no nodes of {} run outside the cluster's file any more",
        "No nodes run outside the cluster's file any more",
    ),
    ProblemKind.EMPTIED: (
        "{} has the desired capacity 0 without a stop",
        "{} no longer has the desired capacity 0 without a stop",
        "The node group no longer has the desired capacity 0 without a stop",
    ),
    ProblemKind.RAISED: (
        "nodes of {} run though its schedule has stopped it",
        "no nodes of {} run though its schedule has stopped it",
        "No nodes run any more that the schedule has stopped",
    ),
    ProblemKind.RECORD_LOST: (
        "the record of {} was lost",
        "the record of {} is complete again",
        "The record is complete again",
    ),
    ProblemKind.BLOCK: (
        "the Capacity Block of {} cannot be used",
        "the problem with the Capacity Block of {} is over",
        "The problem with the Capacity Block is over",
    ),
    ProblemKind.RESERVATION_ENDED: (
        "the capacity reservation of {} has ended",
        "the problem with the capacity reservation of {} is over",
        "The problem with the capacity reservation is over",
    ),
}
