"""When a Capacity Block lets nodes run: a pure function of the block and the time.

A block is active from its start to its end; EC2 terminates what runs in it some time before the end. The nodes
go earlier, at the time of the warning that EC2 gives 40 minutes ahead: an alert goes out half an hour before, so that
jobs save their work, and Auto Scaling then shuts the nodes down, for which their programs get the operating
system's signals.
Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-monitor.html
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, auto

from cluster_common.owners.groups import is_old
from cluster_common.reservations import ACTIVE, COMING, ENDED, UNREAD_TEXT, Absence, Reservation
from cluster_common.times import time_text
from cluster_contract.power import PowerFunctionSettings, PowerGroupSettings
from cluster_power.groups import Group
from cluster_power.launch_failures import ProblemKind
from cluster_power.problems import Problem

MARGIN = timedelta(minutes=10)
"""How long before EC2 begins to terminate nodes they are taken down."""

# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-view.html
_ENDINGS = {
    "payment-failed": "was never paid, and EC2 has released it",
    "cancelled": "was cancelled",
    "cancelling": "was cancelled",
    "failed": "could not be made",
    "unsupported": "could not be made",
    "expired": "has ended",
}
_REPLACE = "put the id of another one into the cluster's file (capacity_block) and deploy, or remove the node group"


class Phase(Enum):
    """Whether nodes can run in a Capacity Block at the moment."""

    BEFORE = auto()
    """Not yet: it has not started."""

    OPEN = auto()
    """Nodes run in it."""

    CLOSING = auto()
    """Nodes run in it, and go soon."""

    OVER = auto()
    """No more: EC2 is about to terminate what runs in it, or has done so."""

    UNUSABLE = auto()
    """No: it never comes, never comes back, or is not what the node group needs."""

    UNSEEN = auto()
    """EC2 did not return the block, or returned a state that the function does not know."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """What a node group's Capacity Block allows at the moment, and the sentences that say it.

    Attributes:
        block: The block's id.
        phase: Whether nodes can run in it.
        cause: What it is that decides, within another sentence.
        sentence: The same as a sentence of its own.
        instances: How many instances it has.
        starts: When it starts, or should have, while it has not. None: it has, or that is unknown.
        down_at: When its nodes go. None: unknown.
        problem: What is wrong with it. None: nothing, or EC2 could not be asked.
        is_elsewhere: Whether the group launches in other Availability Zones, or has nodes that cannot run in the
            block, since it has not started or has ended, or that EC2 does not count in it: nothing starts, and what
            runs stays.
    """

    block: str
    phase: Phase
    cause: str
    sentence: str
    instances: int = 0
    starts: datetime | None = None
    down_at: datetime | None = None
    problem: Problem | None = None
    is_elsewhere: bool = False


def find_phase(
    block: Reservation | Absence, *, now: datetime, ends_early: timedelta, notice: timedelta = timedelta(0)
) -> Phase:
    """Say whether nodes can run in a Capacity Block.

    Args:
        block: The block, or why nothing is known of it.
        now: The time.
        ends_early: How long before the block's end EC2 begins to terminate its nodes.
        notice: How long before they go it is closing.
    """
    if isinstance(block, Absence):
        return Phase.UNSEEN
    if block.state in ENDED or block.plain:
        return Phase.UNUSABLE
    if block.starts is None or block.ends is None:
        return Phase.UNSEEN
    down_at = block.ends - ends_early - MARGIN
    if now >= down_at:
        return Phase.OVER  # EC2 keeps to the end, whatever state the block is in.
    if block.state not in COMING | {ACTIVE}:
        return Phase.UNSEEN
    return _phase_before_its_end(block, block.starts, down_at - notice, now)


def _phase_before_its_end(block: Reservation, starts: datetime, closing_at: datetime, now: datetime) -> Phase:
    # Before it starts a block has no instances, whatever was bought.
    if now < starts or block.state in COMING or not block.instances:
        return Phase.BEFORE
    return Phase.CLOSING if now >= closing_at else Phase.OPEN


def find_window(
    name: str,
    own: PowerGroupSettings,
    block: Reservation | Absence,
    *,
    group: Group | None,
    settings: PowerFunctionSettings,
    now: datetime,
) -> Window:
    """Say what a node group's Capacity Block allows, and what is wrong with it.

    Args:
        name: The node group.
        own: Its settings, which name the block.
        block: The block, or why nothing is known of it.
        group: What owns its nodes. None: unknown.
        settings: The function's settings.
        now: The time.
    """
    block_id = own.block or ""
    phase = find_phase(block, now=now, ends_early=own.block_ends_early, notice=settings.closing_notice)
    if isinstance(block, Absence):
        return _unseen(name, block_id, block)
    # Nodes run that the function launched; it gives a group the size 0 before its own block ends.
    runs = group is not None and group.desired > 0 and group.alive > 0 and group.record.size != 0
    has_ended = block.ends is not None and now >= block.ends
    if phase is Phase.UNUSABLE or (phase is Phase.OVER and runs and has_ended):
        window = _unusable(name, block, _wrong(block))
        return _with_nodes_elsewhere(window) if runs else window
    if phase is Phase.UNSEEN or block.starts is None or block.ends is None:
        return _unseen(name, block_id, block)
    zones = group.zones if group else ()
    if phase is not Phase.OVER and zones and block.zone and block.zone not in zones:
        there = ", ".join(sorted(zones))
        wrong = (
            f"is in {block.zone} and its nodes launch in {there}: none is started or terminated; use a network in "
            f"{block.zone}, or {_REPLACE}"
        )
        return replace(_unusable(name, block, wrong), is_elsewhere=True)
    if phase is Phase.BEFORE:
        window = _before(name, block, block.starts, settings, now)
        is_elsewhere = runs and now < block.starts
    else:
        window = _since_start(name, own, block, phase, ends_at=block.ends, now=now)
        is_elsewhere = runs and phase is not Phase.OVER and _runs_elsewhere(group, block)
        if is_elsewhere:
            window = replace(window, phase=Phase.OPEN, sentence=f"{name}: {window.cause}")
    return _with_nodes_elsewhere(window) if is_elsewhere else window


def _runs_elsewhere(group: Group | None, block: Reservation) -> bool:
    """Say whether all nodes are older than the launch template that names a block, and EC2 counts none in it."""
    if group is None or not group.live_ids or block.used != 0:
        return False
    return all(is_old(group.nodes[one].template, group.templates) for one in group.live_ids)


def too_small(group: Group, window: Window, count: int) -> Problem:
    """Say that a block has fewer instances than its node group has nodes."""
    instances = "1 instance" if window.instances == 1 else f"{window.instances} instances"
    return Problem(
        kind=ProblemKind.BLOCK_TOO_SMALL,
        sentence=f"{group.node_group}: {group.in_service} of {count} nodes are running: its Capacity Block "
        f"{window.block} has {instances}. Lower the count in the cluster's file, or give the node group a larger "
        "block.",
    )


def _with_nodes_elsewhere(window: Window) -> Window:
    """Return the window of a block that a deploy named while the nodes worked in another: they work on."""
    sentence = f"{window.sentence}. The nodes that run are not in it, and stay until EC2 or a stop terminates them"
    return replace(window, sentence=sentence, problem=_problem(f"{sentence}."), is_elsewhere=True)


def _before(
    name: str, block: Reservation, starts: datetime, settings: PowerFunctionSettings, now: datetime
) -> Window:
    if now < starts:
        unpaid = " and is not paid for yet (payment-pending)" if block.state == "payment-pending" else ""
        text = f"starts at {time_text(starts)}{unpaid}"
    else:
        state = block.state if block.state != ACTIVE else "active without instances"
        text = f"should have started at {time_text(starts)} and is {state}"
    sentence = f"{name} waits for its Capacity Block {block.id}, which {text}"
    late = now - starts >= settings.launch_grace
    return Window(
        block=block.id,
        phase=Phase.BEFORE,
        cause=f"its Capacity Block {block.id} {text}",
        sentence=sentence,
        starts=starts,
        problem=_problem(f"{sentence}: ask AWS Support why it is not delivered.") if late else None,
    )


def _since_start(
    name: str, own: PowerGroupSettings, block: Reservation, phase: Phase, *, ends_at: datetime, now: datetime
) -> Window:
    cause = f"its Capacity Block {block.id} {'ended' if now >= ends_at else 'ends'} at {time_text(ends_at)}"
    terminated_from = ends_at - own.block_ends_early
    down_at = terminated_from - MARGIN
    sentences = {
        Phase.OPEN: f"{name} runs until {time_text(down_at)}: {cause}",
        Phase.CLOSING: f"{name}: its nodes are terminated at {time_text(down_at)}, before {cause}: save checkpoints",
        Phase.OVER: f"{name} is stopped: {cause}, and EC2 terminates its instances from {time_text(terminated_from)}",
    }
    return Window(
        block=block.id,
        phase=phase,
        cause=cause,
        sentence=sentences[phase],
        instances=block.instances,
        down_at=down_at,
    )


def _unseen(name: str, id: str, block: Reservation | Absence) -> Window:
    if isinstance(block, Reservation):
        is_known = block.state in COMING | {ACTIVE}
        what = "has no start or no end" if is_known else f"has the state {block.state!r}"
        text = f"{what}, which this function does not know"
    elif block is Absence.UNREAD:
        text = UNREAD_TEXT
    else:
        text = "cannot be found in this account and region"
    known = block is not Absence.UNREAD
    kept = "its size is left alone" if known else "its size is left alone until a run can read it"
    sentence = f"{name}: its Capacity Block {id} {text}: {kept}"
    return Window(
        block=id,
        phase=Phase.UNSEEN,
        cause=f"its Capacity Block {id} {text}",
        sentence=sentence,
        problem=_problem(f"{sentence}. If the id is wrong, {_REPLACE}.") if known else None,
    )


def _wrong(block: Reservation) -> str:
    if block.plain:
        return "is an On-Demand Capacity Reservation: give it as from_reservation, or " + _REPLACE
    return f"{_ENDINGS.get(block.state, _ENDINGS['expired'])} ({block.state}): {_REPLACE}"


def _unusable(name: str, block: Reservation, wrong: str) -> Window:
    sentence = f"{name}: its Capacity Block {block.id} {wrong}"
    return Window(
        block=block.id,
        phase=Phase.UNUSABLE,
        cause=f"its Capacity Block {block.id} {wrong.split(':', maxsplit=1)[0]}",
        sentence=sentence,
        problem=_problem(f"{sentence}."),
    )


def _problem(sentence: str) -> Problem:
    return Problem(kind=ProblemKind.BLOCK, sentence=sentence)
