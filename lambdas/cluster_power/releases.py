"""What becomes of a capacity reservation that is released while its node group is stopped.

EC2 has no reservation for zero instances, and a cancelled one does not come back: the last instance stays.
Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-modify.html
"""

from dataclasses import replace

from cluster_power.launch_failures import ProblemKind, find_launch_failure
from cluster_power.problems import Problem
from cluster_power.records import State
from cluster_power.reservations import ACTIVE, Reservation
from cluster_power.settings import GroupSettings
from cluster_power.verdicts import Decision, Verdict


def decide_release(decision: Decision, reservation: Reservation) -> Decision:
    """Add what is to become of a reservation that is active, or comes.

    It is raised before the group gets its size, and lowered when the group is stopped and none of its nodes
    lives.
    """
    if reservation.state == ACTIVE:
        return replace(decision, reserve=_instances(decision, reservation))
    if not starts(decision):
        return decision
    which = f"its capacity reservation {reservation.id} is {reservation.state}"
    reason = f"{decision.node_group} is not started yet: {which}"
    return replace(decision, verdict=Verdict.BLOCKED, reason=reason)


def starts(decision: Decision) -> bool:
    """Say whether a decision gives a group nodes."""
    return decision.verdict is Verdict.SIZE and decision.wanted > 0


def explain_refusal(decision: Decision, own: GroupSettings, message: str) -> Problem | None:
    """Say why EC2 would not raise a reservation. None: that is no matter of capacity.

    Args:
        decision: What was decided of the node group.
        own: The node group's settings.
        message: EC2's error code and message.
    """
    kind = find_launch_failure(message).kind
    whys = {
        ProblemKind.NO_CAPACITY: "EC2 has no more of its instance type there right now, and its nodes wait until it "
        "has. That is tried again each minute",
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
    if group.record.state is not State.STOPPED or reservation.used is None:
        return None  # Its nodes are to come back: somebody emptied it by hand, or a deploy does.
    # Somebody else's instances in it are not to be shut out.
    least = max(1, reservation.used)
    idle = decision.verdict is not Verdict.SIZE and not (goal or group.desired or group.alive)
    return least if idle and reservation.instances > least else None
