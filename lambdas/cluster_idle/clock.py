"""When idle nodes are stopped: a warning starts a clock, and work, a removed tag or a new node starts it again."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from cluster_contract.idle import PERIOD
from cluster_idle.context import IdleContext
from cluster_idle.idle_tags import TERMINATED, IdleTags
from cluster_idle.instances import Instance, Owner


@dataclass(frozen=True, kw_only=True)
class Clock:
    """When some idle nodes are stopped.

    Attributes:
        idle_since: Since when all of them are idle, as far as is known.
        targets: What carries the warning.
        stop_at: When they are stopped.
        warned: Whether a warning was sent, and no node has worked, come or been kept since.
        told: Whether a message said that a dry run would have stopped them.
        renew: Whether the warning will soon be older than the metrics that a run reads: it is renewed before.
        refused: Whether AWS refused to stop them within the last day.
    """

    idle_since: datetime
    targets: tuple[Owner, ...]
    stop_at: datetime
    warned: bool
    told: bool
    renew: bool
    refused: bool


def read_clock(idle: Sequence[Instance], together: Sequence[Instance], context: IdleContext) -> Clock:
    """Read from the tags when idle nodes are stopped, or set the time anew.

    Args:
        idle: Nodes that are stopped together, all of them idle; at least one.
        together: These, and those of their group that are not stopped.
        context: What the decision rests on.
    """
    now, policy = context.now, context.policy(idle[0])
    # What came lately in place of another is idle so far, and says nothing of the time before.
    since = max(_idle_since(instance, context) for instance in idle if context.evidence[instance.id].idle_since)
    carriers = {context.target(instance): instance for instance in idle}
    idle_tags = [context.idle_tags(target, instance) for target, instance in carriers.items()]
    warned = [one.warned_at for one in idle_tags if one.warned_at is not None]
    stops = [one.stop_at for one in idle_tags if one.stop_at is not None]
    # A warning counts if every carrier has it, it describes the present effect of a stop, and the nodes are proven
    # idle from then on without a break. The warning of a dry run said that nothing would be stopped.
    is_warned = (
        len(warned) == len(stops) == len(idle_tags)
        and since <= min(warned)
        and max(warned) <= now
        and not _has_grown(together, idle_tags, min(warned))
        and all(_says_so(one, instance, context) for one, instance in zip(idle_tags, carriers.values(), strict=True))
        and not any(_was_kept(instance, min(warned), context) for instance in together)
    )
    told = [one.idle_since for one in idle_tags if one.idle_since is not None] if is_warned else []
    return Clock(
        idle_since=min(since, max(told)) if told else since,
        targets=tuple(sorted(carriers)),
        # A stop that an operator has put off stays put off.
        stop_at=max(stops) if is_warned else max([now + policy.warning, *stops]),
        warned=is_warned,
        told=is_warned and all(one.told for one in idle_tags),
        renew=is_warned and now - min(warned) >= policy.warning + PERIOD,
        refused=any(one.is_refused(now) for one in idle_tags),
    )


def _has_grown(together: Sequence[Instance], idle_tags: Sequence[IdleTags], warned_at: datetime) -> bool:
    """Say whether nodes came since a warning, and not in place of others: an operator has plans for them."""
    came = any(one.launched >= warned_at for one in together)
    return came and any(one.nodes is None or len(together) > one.nodes for one in idle_tags)


def _says_so(idle_tags: IdleTags, instance: Instance, context: IdleContext) -> bool:
    """Say whether a warning describes what a stop does now: that of a dry run or of another effect does not."""
    if not idle_tags.note or (idle_tags.of_dry_run and not context.policy(instance).dry_run):
        return False
    is_owned = not instance.owner.is_instance
    return context.unit(instance) != instance.id or (TERMINATED in idle_tags.note) == is_owned


def _was_kept(instance: Instance, since: datetime, context: IdleContext) -> bool:
    """Say whether a tag kept a node, or what owns it, until some time after a given one, and no longer does."""
    idle_tags = (instance.idle_tags, context.idle_tags(instance.owner, instance))
    return any(one.kept_until is not None and one.kept_until > since for one in idle_tags)


def _idle_since(instance: Instance, context: IdleContext) -> datetime:
    evidence = context.evidence[instance.id]
    if evidence.idle_since is None:
        raise AssertionError(evidence)  # Only idle nodes have a clock.
    return max(evidence.idle_since, instance.launched)
