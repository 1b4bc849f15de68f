"""Alerts: what people have to know, compared with what they were told last, so that each change is one message."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

# A tag's value holds so many characters, and keys are kept in one, with a space between them.
# https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_Tag.html
_MAX_LENGTH = 256


@dataclass(frozen=True, kw_only=True)
class Alert:
    """One thing that people have to know.

    Attributes:
        key: What it is, after its topic: `problem/no-capacity`. Alerts of one topic are over together.
        subject: The subject of the message.
        text: The message.
        expires: From when on it is of no use. Default: - never: it is over when it is no longer found.
    """

    key: str
    subject: str
    text: str
    expires: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class AlertChanges:
    """What is new and what is over since people were told last.

    Attributes:
        new: The alerts that people have not been told of.
        over: The key that was told last of each topic that is over.
        told: The keys to be kept once people were told of both.
    """

    new: tuple[Alert, ...]
    over: tuple[str, ...]
    told: tuple[str, ...]


def compare_alerts(
    alerts: Sequence[Alert], told: Sequence[str], *, known: Collection[str], now: datetime
) -> AlertChanges:
    """Compare alerts with what people were told.

    Args:
        alerts: What was found.
        told: The keys of the alerts that people were told of.
        known: The topics of which everything was seen: one without an alert is over.
        now: The time.
    """
    new = tuple(one for one in alerts if one.key not in told and (one.expires is None or now < one.expires))
    open_topics = {_topic(one.key) for one in alerts}
    over = {_topic(key): key for key in told if _topic(key) in known and _topic(key) not in open_topics}
    kept = [key for key in told if _topic(key) not in over] + [one.key for one in new]
    while len(" ".join(kept)) > _MAX_LENGTH:
        del kept[0]
    return AlertChanges(new=new, over=tuple(over.values()), told=tuple(kept))


def _topic(key: str) -> str:
    return key.partition("/")[0]
