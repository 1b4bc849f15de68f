"""What the end of one of several reservations means for nodes that run in any of them.

Nodes whose reservation ends run on at On-Demand prices, whatever a later launch may use.
Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/create-cr-group.html
"""

from collections.abc import Sequence
from dataclasses import replace

from cluster_power.context import Context
from cluster_power.launch_failures import ProblemKind
from cluster_power.problems import Problem
from cluster_power.reservations import ACTIVE, ENDED, Absence, Reservation
from cluster_power.settings import GroupSettings
from cluster_power.verdicts import Decision, Verdict


def decide_listed(decision: Decision, own: GroupSettings, context: Context) -> Decision:
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
        f"{node_group}: its {what} ended ({', '.join(ended)}), and {run} on at On-Demand prices: on_demand decides "
        "about launches only. Stop the node group when its work is saved, or put another reservation into the "
        "cluster's file and deploy: nodes that run move into it."
    )
