"""The tags by which operators keep nodes running, and in which the function records its warnings."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from cluster_common.keep_tags import FOR_EVER, NO_TIME, KeepTags, read_keep_until
from cluster_common.tags import tag_value
from cluster_common.times import parse_time, time_text
from cluster_contract.tags import IDLE_TAG_PREFIX, KEEP_TAG, KEEP_UNTIL_TAG

WARNED_AT_TAG = f"{IDLE_TAG_PREFIX}warned-at"
STOP_AT_TAG = f"{IDLE_TAG_PREFIX}stop-at"
NOTE_TAG = f"{IDLE_TAG_PREFIX}note"
TOLD_TAG = f"{IDLE_TAG_PREFIX}told"
SINCE_TAG = f"{IDLE_TAG_PREFIX}since"
REFUSED_TAG = f"{IDLE_TAG_PREFIX}refused"

STOPPING_TAG = f"{IDLE_TAG_PREFIX}stopping"
"""The tag on what a run is about to stop, until its message was sent: a run may end in between."""

REMINDED_TAG = f"{IDLE_TAG_PREFIX}reminded"
"""The tag that says when the last reminder was sent of a tag that keeps something without a clear end."""

DRY_RUN_NOTE = "dry run - "
"""How a note begins that was written in a dry run."""

TERMINATED = "terminated"
"""What a note says of nodes that do not come back."""

NOTICE_TAGS = (WARNED_AT_TAG, STOP_AT_TAG, NOTE_TAG, TOLD_TAG, SINCE_TAG, REFUSED_TAG)
"""The tags that the function writes, and takes away when the clock starts again."""

# What a warning consists of. Once it is written, a stop needs no more room.
_WARNING = frozenset({WARNED_AT_TAG, STOP_AT_TAG, NOTE_TAG, SINCE_TAG})

NEEDED_TAGS = len(_WARNING) + 1
"""How many tags the function needs room for: those of a warning, and one that says what became of it."""

# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html#tag-restrictions and
# https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-tagging.html: those of AWS do not count.
MAX_TAGS = 50
"""How many tags an instance, a group or a Spot Fleet request can have."""

_NOT_YET = "not yet"
_REFUSED_FOR = timedelta(days=1)

# A stop may be put off for so long without a reminder.
_FAR = timedelta(days=7)


@dataclass(frozen=True, kw_only=True, slots=True)
class IdleTags(KeepTags):
    """What the tags of an instance, a group or a Spot Fleet request say about stopping it.

    Attributes:
        idle_since: Since when it was idle when the warning was sent. None: none was sent, or it cannot be read.
        nodes: How many nodes its group had then. None: likewise.
        warned_at: When the warning of its stop was sent, or when it was last seen idle since. None: likewise.
        stop_text: The value of the tag `idle-stop-at`, which operators may write. None: there is no such tag.
        note: What the warning said, in short.
        told: Whether a message said that a dry run would have stopped it.
        refused_at: When AWS last refused to stop it. None: it did not.
        refusal: With which code.
        stopping_at: When a run began to stop it whose message was not sent yet. None: likewise.
        reminded_at: When a reminder was sent of a tag that keeps it without a clear end. None: likewise.
        noted: Whether any of the function's own tags is there.
        excess: How many tags have to be removed before the function can write its own. 0: none.
        is_full: Whether it can take no more tags at all.
    """

    idle_since: datetime | None = None
    nodes: int | None = None
    warned_at: datetime | None = None
    stop_text: str | None = None
    note: str = ""
    told: bool = False
    refused_at: datetime | None = None
    refusal: str = ""
    stopping_at: datetime | None = None
    reminded_at: datetime | None = None
    noted: bool = False
    excess: int = 0
    is_full: bool = False

    @classmethod
    def from_tags(cls, tags: Mapping[str, str]) -> "IdleTags":
        """Read the tags."""
        refused_at, _, refusal = tags.get(REFUSED_TAG, "").partition(" ")
        idle_since, _, nodes = tags.get(SINCE_TAG, "").partition(" ")
        counted = {key for key in tags if not key.startswith("aws:")}
        others = sum(not key.startswith(IDLE_TAG_PREFIX) for key in counted)
        return cls(
            keep=tags.get(KEEP_TAG),
            keep_until=tags.get(KEEP_UNTIL_TAG),
            idle_since=_time(idle_since),
            nodes=int(nodes) if nodes.isdecimal() and nodes.isascii() else None,
            warned_at=_time(tags.get(WARNED_AT_TAG)),
            stop_text=tags.get(STOP_AT_TAG),
            note=tags.get(NOTE_TAG, ""),
            told=TOLD_TAG in tags,
            refused_at=_time(refused_at),
            refusal=refusal,
            stopping_at=_time(tags.get(STOPPING_TAG)),
            reminded_at=_time(tags.get(REMINDED_TAG)),
            noted=any(key in tags for key in NOTICE_TAGS),
            excess=0 if counted >= _WARNING else max(0, others + NEEDED_TAGS - MAX_TAGS),
            is_full=len(counted) >= MAX_TAGS,
        )

    @property
    def of_dry_run(self) -> bool:
        """Whether the warning said that nothing is stopped then, because it was a dry run."""
        return self.note.startswith(DRY_RUN_NOTE)

    @property
    def stop_at(self) -> datetime | None:
        """When it is stopped, as the function or an operator wrote. None: there is no such tag.

        A time that cannot be read puts the stop off without an end, since its writer meant to.
        """
        if self.stop_text is None:
            return None
        # A message tells of times after it.
        return min(read_keep_until(self.stop_text) or FOR_EVER, FOR_EVER - timedelta(days=365))

    def is_refused(self, now: datetime) -> bool:
        """Say whether AWS refused to stop it within the last day: then it would refuse again."""
        return self.refused_at is not None and now - self.refused_at < _REFUSED_FOR

    def far(self, now: datetime) -> str | None:
        """Say that its stop was put off by more than a week: the end of a sentence. None: it was not."""
        if self.stop_text is None or self.stop_at is None or self.stop_at - now <= _FAR:
            return None
        tag = f"has the tag {STOP_AT_TAG} with {self.stop_text!r}"
        if read_keep_until(self.stop_text) is None:
            return f"{tag}, which {NO_TIME}: it is not stopped until the tag is corrected"
        return f"{tag}: it is not stopped before"


NO_IDLE_TAGS = IdleTags()
"""What the tags say of what has none."""


def notice_tags(idle_since: datetime, nodes: int, stop_at: datetime, note: str) -> dict[str, str]:
    """Return the tags that are written before the warning is sent; the clock runs with `warned_tags`.

    An older warning, whose time to stop may be over, no longer counts. No tag comes after the message that was not
    there before: what can take no more tags is not warned of in each run.
    """
    return {
        SINCE_TAG: f"{time_text(idle_since)} {nodes}",
        WARNED_AT_TAG: _NOT_YET,
        STOP_AT_TAG: time_text(stop_at),
        NOTE_TAG: tag_value(note),
    }


def warned_tags(seen_at: datetime) -> dict[str, str]:
    """Return the tag that says that a warning was sent, or that it has been idle from the warning until now."""
    return {WARNED_AT_TAG: time_text(seen_at)}


def sent_tags(sent_at: datetime, stop_at: datetime) -> dict[str, str]:
    """Return the tags that are written once the message is sent, from when on the promised time runs."""
    return {**warned_tags(sent_at), STOP_AT_TAG: time_text(stop_at)}


def stopping_tags(now: datetime) -> dict[str, str]:
    """Return the tag that says that a run is about to stop it."""
    return {STOPPING_TAG: time_text(now)}


def reminded_tags(now: datetime) -> dict[str, str]:
    """Return the tag that says when a reminder was sent of what keeps it."""
    return {REMINDED_TAG: time_text(now)}


def dry_run_tags(note: str) -> dict[str, str]:
    """Return the tags that say that a message said that a dry run would have stopped it."""
    return {TOLD_TAG: "true", NOTE_TAG: tag_value(note)}


def refusal_tags(refused_at: datetime, code: str) -> dict[str, str]:
    """Return the tag that says that AWS refused to stop it."""
    return {REFUSED_TAG: tag_value(f"{time_text(refused_at)} {code}")}


def _time(text: str | None) -> datetime | None:
    try:
        return parse_time(text) if text else None
    except ValueError:
        return None
