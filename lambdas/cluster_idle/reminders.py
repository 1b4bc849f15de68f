"""Tags that keep nodes from being stopped without a clear end: a message names them every day."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from cluster_common.keep_tags import KeepTags
from cluster_idle.context import IdleContext
from cluster_idle.instances import Instance, Owner

REMIND_EVERY = timedelta(days=1)
"""How much time passes between two reminders of a tag."""


@dataclass(frozen=True, kw_only=True)
class Reminder:
    """A tag that keeps something for longer than its writer may have meant.

    Attributes:
        owner: What carries the tag.
        name: How the message names what carries it.
        description: What it says, and what follows from that: the end of a sentence.
        by_keep: Whether that is the tag `keep`, and not `keep-until`.
        is_due: Whether a reminder is sent now: none was within a day.
    """

    owner: Owner
    name: str
    description: str
    by_keep: bool
    is_due: bool


def find_reminders(instances: Sequence[Instance], context: IdleContext) -> list[Reminder]:
    """Return the reminders, in the order of what carries the tags."""
    return sorted(_find(instances, context), key=lambda one: one.owner)


def _find(instances: Sequence[Instance], context: IdleContext) -> Iterator[Reminder]:
    for instance in instances:
        if not instance.owner.is_foreign and not context.policy(instance).off and context.is_looked_at(instance):
            yield from _of_tags(instance.itself, instance.id, instance.keep_tags, context)
    for owner, state in context.owners.items():
        if state.desired and not context.settings.policy_of(state.node_group).off:
            yield from _of_tags(owner, f"{state.node_group}: {owner.description}", state.keep_tags, context)


def _of_tags(owner: Owner, name: str, tags: KeepTags, context: IdleContext) -> Iterator[Reminder]:
    description, sent = tags.unclear(context.now), context.reminders.get(owner.key)
    if description:
        is_due = sent is None or context.now - sent >= REMIND_EVERY
        yield Reminder(owner=owner, name=name, description=description, by_keep=tags.has_unclear_keep, is_due=is_due)
