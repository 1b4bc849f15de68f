"""The tags by which operators keep nodes running: `keep` without an end, and `keep-until` a time."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, timezone

from cluster_common.times import time_text
from cluster_contract.tags import KEEP_TAG, KEEP_UNTIL_TAG

# A time without a zone may be so far ahead without a reminder, and one with a zone so far.
_FAR = timedelta(days=7)
_VERY_FAR = timedelta(days=30)

# Where a day ends last: what names no zone is over, wherever its writer lives, when it is over there.
_LAST_ZONE = timezone(timedelta(hours=-12))

NO_TIME = "is not a time such as 2026-11-30T18:00Z"

_KEPT = frozenset({"true", "t", "yes", "y", "on", "1"})
_NOT_KEPT = frozenset({"", "false", "no", "0"})

# The calendar ends with the year that operators write for "for ever".
FOR_EVER = datetime.max.replace(microsecond=0, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True, slots=True)
class KeepTags:
    """What the tags of an instance, an Auto Scaling group or a Spot Fleet request say about keeping it.

    Attributes:
        keep: The value of the tag `keep`. None: there is no such tag.
        keep_until: The value of the tag `keep-until`, likewise.
    """

    keep: str | None = None
    keep_until: str | None = None

    @classmethod
    def from_tags(cls, tags: Mapping[str, str]) -> "KeepTags":
        """Read the tags of a resource, by their keys."""
        return cls(keep=tags.get(KEEP_TAG), keep_until=tags.get(KEEP_UNTIL_TAG))

    @property
    def kept_until(self) -> datetime | None:
        """When the tag `keep-until` ends, or ended. None: there is none, or it cannot be read."""
        return read_keep_until(self.keep_until) if self.keep_until is not None else None

    def kept(self, now: datetime) -> str | None:
        """Say which tag keeps it running: the end of a sentence. None: no tag does.

        A time that cannot be read keeps it, since its writer meant to.
        """
        if self._is_kept_for_ever:
            return f"has the tag {KEEP_TAG}"
        if self.keep_until is None:
            return None
        until = read_keep_until(self.keep_until)
        if until is None:
            return self.unclear(now)
        return f"has the tag {KEEP_UNTIL_TAG}, which ends at {time_text(until)}" if now < until else None

    def unclear(self, now: datetime) -> str | None:
        """Say why its tags keep it for longer than their writer may mean: the end of a sentence."""
        if self.has_unclear_keep:
            what = f"has the tag {KEEP_TAG} with {self.keep!r}, which is neither true nor false"
            return f"{what}: it is kept until the tag is removed, or corrected"
        if self._is_kept_for_ever or self.keep_until is None:
            return None
        until, tag = read_keep_until(self.keep_until), f"has the tag {KEEP_UNTIL_TAG} with {self.keep_until!r}"
        if until is None:
            return f"{tag}, which {NO_TIME}: it is kept until the tag is corrected"
        if until - now > _FAR and not _names_zone(self.keep_until):
            end = f"it is kept until {time_text(until)}, when that time has passed in every time zone"
            return f"{tag}, which names no time zone: {end}"
        if until - now <= _VERY_FAR:
            return None
        return f"{tag}, more than {_VERY_FAR.days} days ahead: the tag {KEEP_TAG} = true keeps it without a reminder"

    @property
    def _is_kept_for_ever(self) -> bool:
        return self._keep not in _NOT_KEPT

    @property
    def has_unclear_keep(self) -> bool:
        """Whether its tag `keep` keeps it, and its writer may have meant the opposite."""
        return self._keep not in _KEPT | _NOT_KEPT

    @property
    def _keep(self) -> str:
        return (self.keep or "").strip().lower()


NO_KEEP_TAGS = KeepTags()
"""What the tags say of what has none."""


def read_keep_until(text: str) -> datetime | None:
    """Read a time as operators write it: ISO 8601; a date lasts to its end, and without a zone to the last zone's.

    A week is no time: 2026-W48 would be its first day.
    """
    text = text.strip()
    if "W" in text.upper():
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=_LAST_ZONE)
    is_date = "T" not in text.upper() and " " not in text and moment.timetz().replace(tzinfo=None) == time()
    more = timedelta(days=1 if is_date else 0)
    return moment + more if moment < FOR_EVER - more else FOR_EVER


def _names_zone(text: str) -> bool:
    return datetime.fromisoformat(text.strip()).tzinfo is not None
