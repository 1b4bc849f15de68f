"""When idle nodes are stopped: a warning starts a clock, and work, a removed tag or a new node starts it again."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from cluster_idle.instances import Instance, Owner
from cluster_idle.situation import Situation


@dataclass(frozen=True, kw_only=True)
class Clock:
    """When some idle nodes are stopped.

    Attributes:
        idle_since: Since when all of them are proven idle.
        targets: What carries the warning.
        stop_at: When they are stopped.
        warned: Whether people were warned of it, and no node has worked or come since.
        told: Whether they were told that a dry run would have stopped them.
    """

    idle_since: datetime
    targets: tuple[Owner, ...]
    stop_at: datetime
    warned: bool
    told: bool


def read_clock(idle: Sequence[Instance], situation: Situation) -> Clock:
    """Read from the tags when idle nodes are stopped, or set the time anew.

    Args:
        idle: Nodes that are stopped together, all of them idle; at least one.
        situation: What the decision rests on.
    """
    now, policy = situation.now, situation.policy(idle[0])
    since = max(_idle_since(instance, situation) for instance in idle)
    carriers = {situation.target(instance): instance for instance in idle}
    marks = [situation.marks(target, instance) for target, instance in carriers.items()]
    warned = [one.warned_at for one in marks if one.warned_at is not None]
    stops = [one.stop_at for one in marks if one.stop_at is not None]
    # A warning counts if all that carries it has it, it said what is so now, and idleness is proven from then on
    # without a break. That of a dry run said that nothing would be stopped.
    is_warned = (
        len(warned) == len(stops) == len(marks)
        and max(warned) <= now
        and (policy.dry_run or not any(one.of_dry_run for one in marks))
        and all(_is_idle_from(instance, min(warned), situation) for instance in idle)
    )
    stop_at = max(stops) if is_warned else max([now + policy.warning, *stops])
    return Clock(
        idle_since=since,
        targets=tuple(sorted(carriers)),
        stop_at=stop_at,
        warned=is_warned,
        told=is_warned and all(one.told for one in marks),
    )


def _is_idle_from(instance: Instance, moment: datetime, situation: Situation) -> bool:
    """Say whether a node is proven idle since a time.

    Before what is looked back on, ticks did: one that had seen work would have taken the warning away.
    """
    throughout = situation.evidence[instance.id].throughout and instance.launched <= moment
    return throughout or _idle_since(instance, situation) <= moment


def _idle_since(instance: Instance, situation: Situation) -> datetime:
    evidence = situation.evidence[instance.id]
    if evidence.idle_since is None:
        raise AssertionError(evidence)  # Only idle nodes have a clock.
    return max(evidence.idle_since, instance.launched)
