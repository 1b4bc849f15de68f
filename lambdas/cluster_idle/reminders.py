"""Tags that keep nodes from being stopped without an end that is clear: people are reminded of them every day."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cluster_contract.tags import KEEP_UNTIL_TAG
from cluster_idle.instances import Instance, Owner, OwnerKind
from cluster_idle.marks import STOP_AT_TAG, Marks
from cluster_idle.situation import Situation

_DAY = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Reminder:
    """A tag with which something is kept for longer than its writer may have meant.

    Attributes:
        owner: What carries the tag.
        name: Of what people are told.
        key: The tag's key.
        words: What it says, and what follows from that: the end of a sentence.
        is_due: Whether people were not told within a day.
    """

    owner: Owner
    name: str
    key: str
    words: str
    is_due: bool


def find_reminders(instances: Sequence[Instance], situation: Situation) -> list[Reminder]:
    """Return what people are to be reminded of, in the order of what carries it."""
    return sorted(_find(instances, situation), key=lambda one: (one.owner, one.key))


def _find(instances: Sequence[Instance], situation: Situation) -> Iterator[Reminder]:
    for instance in instances:
        owned_elsewhere = instance.owner.kind is OwnerKind.OTHER
        if not owned_elsewhere and not situation.policy(instance).off and situation.is_looked_at(instance):
            yield from _of_marks(instance.itself, instance.id, instance.marks, situation.now)
    for owner, state in situation.owners.items():
        if state.size and not situation.settings.policy_of(state.node_group).off:
            yield from _of_marks(owner, f"{state.node_group}: {owner.words}", state.marks, situation.now)


def _of_marks(owner: Owner, name: str, marks: Marks, now: datetime) -> Iterator[Reminder]:
    found = {KEEP_UNTIL_TAG: marks.unclear(now), STOP_AT_TAG: marks.far(now)}
    for key, words in found.items():
        if words:
            reminded = marks.reminded_at is not None and now - marks.reminded_at < _DAY
            yield Reminder(owner=owner, name=name, key=key, words=words, is_due=not reminded)
