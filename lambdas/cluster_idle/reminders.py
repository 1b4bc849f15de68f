"""Tags that keep nodes from being stopped without a clear end: a message names them every day."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cluster_contract.tags import KEEP_UNTIL_TAG
from cluster_idle.context import IdleContext
from cluster_idle.idle_tags import STOP_AT_TAG, IdleTags
from cluster_idle.instances import Instance, Owner

_DAY = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Reminder:
    """A tag with which something is kept for longer than its writer may have meant.

    Attributes:
        owner: What carries the tag.
        name: How the message names what carries it.
        key: The tag's key.
        description: What it says, and what follows from that: the end of a sentence.
        is_due: Whether a reminder is sent now: none was within a day.
    """

    owner: Owner
    name: str
    key: str
    description: str
    is_due: bool


def find_reminders(instances: Sequence[Instance], context: IdleContext) -> list[Reminder]:
    """Return the reminders, in the order of what carries the tags."""
    return sorted(_find(instances, context), key=lambda one: (one.owner, one.key))


def _find(instances: Sequence[Instance], context: IdleContext) -> Iterator[Reminder]:
    for instance in instances:
        if not instance.owner.is_foreign and not context.policy(instance).off and context.is_looked_at(instance):
            yield from _of_tags(instance.itself, instance.id, instance.idle_tags, context.now)
    for owner, state in context.owners.items():
        if state.desired and not context.settings.policy_of(state.node_group).off:
            yield from _of_tags(owner, f"{state.node_group}: {owner.description}", state.idle_tags, context.now)


def _of_tags(owner: Owner, name: str, idle_tags: IdleTags, now: datetime) -> Iterator[Reminder]:
    found = {KEEP_UNTIL_TAG: idle_tags.unclear(now), STOP_AT_TAG: idle_tags.far(now)}
    for key, words in found.items():
        if words:
            reminded = idle_tags.reminded_at is not None and now - idle_tags.reminded_at < _DAY
            # Without room for a tag the function could not record that it reminded, and would do so in each run.
            is_due = not reminded and (idle_tags.reminded_at is not None or not idle_tags.is_full)
            yield Reminder(owner=owner, name=name, key=key, description=words, is_due=is_due)
