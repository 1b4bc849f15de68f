"""What capacity reservations mean for node groups that run in them, and the effect of releasing one.

EC2 has no reservation for zero instances, and a cancelled one does not come back: the last instance stays. Nodes
whose reservation ends run on at On-Demand prices, whatever a later launch may use.
Sources: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-modify.html and
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/create-cr-group.html
"""

from collections.abc import Sequence
from dataclasses import replace

from cluster_common.reservations import ACTIVE, COMING, ENDED, UNREAD_TEXT, Absence, Reservation
from cluster_common.times import time_text
from cluster_contract.power import PowerGroupSettings
from cluster_power.context import Context
from cluster_power.launch_failures import ProblemKind, find_launch_failure
from cluster_power.problems import Problem
from cluster_power.verdicts import Decision, Verdict

_LEFT_ALONE = frozenset({Verdict.DELETING, Verdict.UNCONFIGURED, Verdict.BLOCKED})


def decide_reservation(decision: Decision, own: PowerGroupSettings, context: Context) -> Decision:
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
        return _unknown(decision, own, f"{UNREAD_TEXT}; the next run reads it again")
    if isinstance(reservation, Absence) or reservation.state in ENDED:
        return _with_end(decision, own, _end(decision.node_group, own.reservation_id, reservation))
    if reservation.state not in COMING | {ACTIVE}:
        return _unknown(decision, own, f"has the state {reservation.state!r}, which this function does not know")
    if own.released:
        decision = _decide_release(decision, reservation)
    if reservation.state != ACTIVE:
        return decision
    return _with_bill(decision, reservation)


def _unknown(decision: Decision, own: PowerGroupSettings, text: str) -> Decision:
    told = decision.group.record.told if decision.group else ()
    if f"problem/{ProblemKind.RESERVATION_ENDED}" in told and decision.problem is None:
        decision = replace(decision, problem_known=False)
    if not own.released or not _starts(decision):
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
        f"{node_group}: its capacity reservation {id} {what}: nodes that run go on at On-Demand prices, and no other "
        "node starts. An ended reservation cannot be restored: when the nodes are no longer needed, give the node "
        "group another name and a new end or another reservation in the cluster's file, and deploy, which terminates "
        "them."
    )


def _with_end(decision: Decision, own: PowerGroupSettings, sentence: str) -> Decision:
    """Say that the reservation is gone, but do not keep a group from being stopped."""
    if decision.verdict is Verdict.SIZE and not decision.wanted:
        return decision
    problem = Problem(kind=ProblemKind.RESERVATION_ENDED, sentence=sentence)
    decision = replace(decision, problem=problem, problem_known=True)
    if decision.verdict is Verdict.HELD or (_starts(decision) and not own.released):
        return replace(decision, reason=f"{decision.reason}. {sentence}")
    return replace(decision, verdict=Verdict.UNUSABLE, reason=sentence)


def _with_bill(decision: Decision, reservation: Reservation) -> Decision:
    """Say of a stopped group which instances of its reservation are still billed."""
    group, held = decision.group, decision.reserve or reservation.instances
    if decision.verdict is not Verdict.KEEP or group is None or not group.record.is_stopped or not held:
        return decision
    instances = "1 instance, which is billed" if held == 1 else f"{held} instances, which are billed"
    return replace(decision, reason=f"{decision.reason}; its capacity reservation {reservation.id} holds {instances}")


def _decide_release(decision: Decision, reservation: Reservation) -> Decision:
    """Add the size that a reservation should get that is active, or comes.

    It is raised before the group gets its size, and lowered when the group is stopped and none of its nodes
    lives.
    """
    if reservation.state == ACTIVE:
        return replace(decision, reserve=_instances(decision, reservation))
    if not _starts(decision):
        return decision
    which = f"its capacity reservation {reservation.id} is {reservation.state}"
    reason = f"{decision.node_group} is not started yet: {which}"
    return replace(decision, verdict=Verdict.BLOCKED, reason=reason)


def _starts(decision: Decision) -> bool:
    """Say whether a decision gives a group nodes."""
    return decision.verdict is Verdict.SIZE and decision.wanted > 0


def explain_refusal(decision: Decision, own: PowerGroupSettings, message: str) -> Problem | None:
    """Say why EC2 would not raise a reservation. None: that is no matter of capacity.

    Args:
        decision: What was decided of the node group.
        own: The node group's settings.
        message: EC2's error code and message.
    """
    kind = find_launch_failure(message).kind
    whys = {
        ProblemKind.NO_CAPACITY: "EC2 has no more capacity of its instance type in that Availability Zone now, and "
        "its nodes start when it has. The power function asks again every minute",
        ProblemKind.QUOTA: "the account's EC2 quota in this region does not allow so many. Ask for more in Service "
        "Quotas (EC2, the quota of the type's family), or lower the count in the cluster's file",
    }
    if kind not in whys or decision.group is None:
        return None
    sentence = (
        f"{decision.node_group}: {decision.group.in_service} of {decision.wanted} nodes are running: its capacity "
        f"reservation {own.reservation_id} could not be raised to {decision.reserve} instances: {whys[kind]}. "
        f"AWS says: {message}"
    )
    return Problem(kind=kind, sentence=sentence)


def _instances(decision: Decision, reservation: Reservation) -> int | None:
    """Return for how many instances the reservation should hold capacity. None: for as many as it does."""
    group = decision.group
    if group is None:
        return None
    goal = group.desired if decision.verdict is Verdict.HELD else decision.wanted
    if goal > reservation.instances:
        return goal
    if not group.record.is_stopped or reservation.used is None:
        return None  # Its nodes are to come back: an operator or a deployment has set its size to 0.
    # Instances of other owners in it are not to be shut out.
    least = max(1, reservation.used)
    idle = decision.verdict is not Verdict.SIZE and not (goal or group.desired or group.alive)
    return least if idle and reservation.instances > least else None


def decide_listed(decision: Decision, own: PowerGroupSettings, context: Context) -> Decision:
    """Say that nodes run on at On-Demand prices, where nothing graver is to be said.

    Args:
        decision: What was decided without it.
        own: The node group's settings, which list reservations.
        context: What decisions rest on.
    """
    group = decision.group
    if group is None or not decision.problem_known or decision.problem is not None:
        return decision
    found = {one: context.reservations.find(one) for one in (*own.listed, *own.blocks)}
    if Absence.UNREAD in found.values():
        known = f"problem/{ProblemKind.RESERVATION_ENDED}" not in group.record.told
        return replace(decision, problem_known=known)
    ended = [one for one in own.listed if _has_ended(found[one])]
    active = [one for one in found.values() if isinstance(one, Reservation) and one.state == ACTIVE]
    # What others run in the reservations hides as many nodes.
    nodes = group.in_service - sum(one.used or 0 for one in active)
    if not ended or nodes <= 0 or any(one.used is None for one in active):
        return decision
    problem = Problem(kind=ProblemKind.RESERVATION_ENDED, sentence=_sentence(decision.node_group, ended, nodes))
    decision = replace(decision, problem=problem)
    if decision.verdict is Verdict.KEEP:
        return replace(decision, verdict=Verdict.UNUSABLE, reason=problem.sentence)
    return replace(decision, reason=f"{decision.reason.removesuffix('.')}. {problem.sentence}")


def _has_ended(reservation: Reservation | Absence) -> bool:
    return reservation is Absence.NOT_FOUND or (isinstance(reservation, Reservation) and reservation.state in ENDED)


def _sentence(node_group: str, ended: Sequence[str], nodes: int) -> str:
    what = "capacity reservation has" if len(ended) == 1 else "capacity reservations have"
    run = "1 node runs" if nodes == 1 else f"{nodes} nodes run"
    return (
        f"{node_group}: its {what} ended ({', '.join(ended)}), and {run} on at On-Demand prices: on_demand limits "
        "launches only. Stop the node group when its work is saved, or put another reservation into the cluster's "
        "file and deploy: running nodes then use it."
    )
