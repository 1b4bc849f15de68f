"""Alerts: what subscribers have to know, compared with what was sent last, so that each change is one message."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cluster_common.times import time_text

_END = "end"

# Between the key of an alert that is not sent yet and the minute in which it was found first.
_SINCE = "@"


@dataclass(frozen=True, kw_only=True)
class Alert:
    """One thing that subscribers of the alert topic have to know.

    Attributes:
        key: What it is, after its topic: `problem/no-capacity`. Alerts of one topic are over together.
        subject: The subject of the message.
        text: The message.
        expires: From when on it is of no use. Default: - never: it is over when it is no longer found.
        delay: For how long it must be found before it is sent. Default: - it is sent at once.
    """

    key: str
    subject: str
    text: str
    expires: datetime | None = None
    delay: timedelta = timedelta(0)


@dataclass(frozen=True, kw_only=True)
class AlertChanges:
    """What is new and what is over since the last message.

    Attributes:
        new: The alerts that were not sent yet.
        over: The key that was sent last of each topic that is over.
        told: The keys to be kept once both were sent, and those of alerts that wait, with their times.
    """

    new: tuple[Alert, ...]
    over: tuple[str, ...]
    told: tuple[str, ...]


def compare_alerts(
    alerts: Sequence[Alert], told: Sequence[str], *, known: Collection[str], now: datetime
) -> AlertChanges:
    """Compare alerts with what was sent.

    Args:
        alerts: What was found.
        told: The keys of the alerts that were sent.
        known: The topics of which everything was seen: one without an alert is over.
        now: The time.
    """
    first_seen = {key: since for key, _, since in (one.partition(_SINCE) for one in told) if since.isdecimal()}
    minute, new, waiting = int(now.timestamp() // 60), list[Alert](), list[str]()
    for one in alerts:
        if one.key in told or (one.expires is not None and now >= one.expires):
            continue
        since = int(first_seen.get(one.key, minute))
        if timedelta(minutes=minute - since) >= one.delay:
            new.append(one)
        else:
            waiting.append(f"{one.key}{_SINCE}{since}")
    sent = [key for key in told if _SINCE not in key and (_topic(key) in known or not _has_ended(key, now))]
    open_topics = {_topic(one.key) for one in alerts}
    over = {_topic(key): key for key in sent if _topic(key) in known and _topic(key) not in open_topics}
    kept = [key for key in sent if _topic(key) not in over] + [one.key for one in new] + waiting
    return AlertChanges(new=tuple(new), over=tuple(over.values()), told=tuple(kept))


def end_key(id: str, moment: datetime, topic: str = _END) -> str:
    """Return the key of something that ends at a known time: no message says then that it is over.

    Args:
        id: What ends.
        moment: When. An end that is moved, later or earlier, is another.
        topic: Its topic, where a message says that it did not come.
    """
    return f"{topic}/{id} {time_text(moment)}"


def _has_ended(key: str, now: datetime) -> bool:
    _, is_timed, moment = key.rpartition(" ")
    return bool(is_timed) and moment <= time_text(now)


def _topic(key: str) -> str:
    return key.partition("/")[0]
