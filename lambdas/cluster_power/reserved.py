"""What a node group's capacity reservation means for it, and what people are told of it."""

from dataclasses import replace

from cluster_common.times import time_text
from cluster_power.context import Context
from cluster_power.launch_failures import ProblemKind
from cluster_power.problems import Problem
from cluster_power.records import State
from cluster_power.releases import decide_release, starts
from cluster_power.reservations import ACTIVE, COMING, ENDED, Absence, Reservation
from cluster_power.settings import GroupSettings
from cluster_power.verdicts import Decision, Verdict

_LEFT_ALONE = frozenset({Verdict.DELETING, Verdict.UNCONFIGURED, Verdict.UNCLEAR, Verdict.BLOCKED})


def decide_reservation(decision: Decision, own: GroupSettings, context: Context) -> Decision:
    """Add what the node group's reservation means for it.

    Only a reservation that is released while the group is stopped has a say in whether the group is started.

    Args:
        decision: What was decided without it.
        own: The node group's settings.
        context: What decisions rest on.
    """
    if own.reservation_id is None or decision.group is None or decision.verdict in _LEFT_ALONE:
        return decision
    reservation = context.reservations.find(own.reservation_id)
    if reservation is Absence.UNREAD:
        return _unknown(decision, own, "could not be read")
    if isinstance(reservation, Absence) or reservation.state in ENDED:
        return _with_end(decision, own, _end(decision.node_group, own.reservation_id, reservation))
    if reservation.state not in COMING | {ACTIVE}:
        return _unknown(decision, own, f"is {reservation.state!r}, which this function does not know")
    if own.released:
        decision = decide_release(decision, reservation)
    if reservation.state != ACTIVE:
        return decision
    return _with_bill(decision, reservation)


def _unknown(decision: Decision, own: GroupSettings, text: str) -> Decision:
    told = decision.group.record.told if decision.group else ()
    if f"problem/{ProblemKind.RESERVATION_ENDED}" in told and decision.problem is None:
        decision = replace(decision, problem_known=False)
    if not own.released or not starts(decision):
        return decision
    reason = f"{decision.node_group} is not started: its capacity reservation {own.reservation_id} {text}"
    return replace(decision, verdict=Verdict.UNSEEN, reason=reason)


def _end(node_group: str, id: str, reservation: Reservation | Absence) -> str:
    if isinstance(reservation, Absence):
        what = "cannot be found in this account and region"
    else:
        at = f", at {time_text(reservation.ends)}" if reservation.ends else ""
        what = f"has ended ({reservation.state}{at})"
    return (
        f"{node_group}: its capacity reservation {id} {what}: nodes that run go on without it, and no other starts. "
        "It cannot be brought back: when its nodes are no longer needed, give the node group another name and a new "
        "end or another reservation in the cluster's file, and deploy: that ends them."
    )


def _with_end(decision: Decision, own: GroupSettings, sentence: str) -> Decision:
    """Say that the reservation is gone, but do not keep a group from being stopped."""
    if decision.verdict is Verdict.SIZE and not decision.wanted:
        return decision
    problem = Problem(kind=ProblemKind.RESERVATION_ENDED, sentence=sentence)
    decision = replace(decision, problem=problem, problem_known=True)
    if decision.verdict is Verdict.HELD or (starts(decision) and not own.released):
        return replace(decision, reason=f"{decision.reason}. {sentence}")
    return replace(decision, verdict=Verdict.UNUSABLE, reason=sentence)


def _with_bill(decision: Decision, reservation: Reservation) -> Decision:
    """Say of a stopped group what goes on costing."""
    group, held = decision.group, decision.reserve or reservation.instances
    if decision.verdict is not Verdict.KEEP or group is None or group.record.state is not State.STOPPED or not held:
        return decision
    instances = "1 instance, which is billed" if held == 1 else f"{held} instances, which are billed"
    return replace(decision, reason=f"{decision.reason}; its capacity reservation {reservation.id} holds {instances}")
