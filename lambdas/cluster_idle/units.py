"""When idle nodes are stopped: after a warning that still counts, or after one that is sent now."""

from collections.abc import Sequence
from datetime import datetime

from cluster_contract.idle import PERIOD
from cluster_idle.context import IdleContext
from cluster_idle.evidence import describe_threshold
from cluster_idle.instances import Instance
from cluster_idle.sent_warnings import SentWarning
from cluster_idle.verdicts import Unit


def make_unit(
    name: str, idle: Sequence[Instance], together: Sequence[Instance], context: IdleContext, *, waits: bool
) -> Unit:
    """Return idle nodes as what is stopped together, and when that is.

    Args:
        name: The node group's name, or the instance's id.
        idle: Nodes that are stopped together, all of them idle; at least one.
        together: These, and those of their group that are not stopped.
        context: What the decision rests on.
        waits: Whether they wait for nodes that came lately, in place of others, to be judged.
    """
    now, policy, ids = context.now, context.policy(idle[0]), {one.id for one in idle}
    # What came lately in place of another is idle so far, and says nothing of the time before.
    since = max(max(at, one.launched) for one in idle if (at := context.evidence[one.id].idle_since))
    sent = context.warnings.get(name)
    counts = sent if sent is not None and _counts(sent, since, idle, together, context) else None
    return Unit(
        name=name,
        instances=tuple(idle),
        others=tuple(one.id for one in together if one.id not in ids),
        targets=tuple(sorted({context.target(one) for one in idle})),
        idle_since=min(since, counts.idle_since) if counts else since,
        idle_description=describe_threshold(policy),
        stop_at=counts.stop_at if counts else now + policy.warning,
        dry_run=policy.dry_run,
        warned=counts is not None,
        reported=counts is not None and counts.reported,
        renew=counts is not None and now - (counts.idle_until or now) >= policy.warning + PERIOD,
        refused=sent is not None and any(sent.refusal(one, now) for one in (name, *(one.id for one in idle))),
        waits=waits,
    )


def _counts(
    sent: SentWarning, since: datetime, idle: Sequence[Instance], together: Sequence[Instance], context: IdleContext
) -> bool:
    """Say whether a warning counts: it says what a stop does now, and nothing has kept the nodes since."""
    until = sent.idle_until
    return (
        until is not None
        and since <= until <= context.now
        # One of a dry run said that nothing would be stopped.
        and (context.policy(idle[0]).dry_run or not sent.dry_run)
        and {one.owner.key for one in idle}.issubset(sent.owners)
        # An operator has plans for a group that grew; nodes that came in place of others are no more than before.
        and not (len(together) > sent.nodes and any(one.launched >= until for one in together))
        and not any(_was_kept(one, until, context) for one in together)
    )


def _was_kept(instance: Instance, since: datetime, context: IdleContext) -> bool:
    """Say whether a tag kept a node, or what owns it, until some time after a given one, and no longer does."""
    tags = (instance.keep_tags, context.keep_tags(instance.owner))
    return any(one.kept_until is not None and one.kept_until > since for one in tags)
