"""What the cluster's functions have logged."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from cdk_training_cluster_cli.core.aws_errors import plain_refusals
from cdk_training_cluster_cli.observe.deployed import Deployed
from cluster_contract.events import EVENT_FIELD, Event

ERRORS = '?ERROR ?CRITICAL ?Traceback ?"Task timed out"'
"""The filter pattern of what has failed.

Source: https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntaxForLogs.html
"""

_ERROR_LEVELS = ("ERROR", "CRITICAL")
_PLAIN_ERRORS = ("Traceback", "Task timed out", "[ERROR]")
# What Lambda itself writes of each invocation, and metrics in the embedded format.
# https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-view.html
_OF_LAMBDA = ("INIT_START ", "START RequestId", "END RequestId", "REPORT RequestId", "EXTENSION\t")
_METRICS = "_aws"


@dataclass(frozen=True, kw_only=True)
class Record:
    """One record of a function's log.

    Attributes:
        time: When it was written.
        kind: What the function is for, as the cluster's description says.
        level: Its level, such as `INFO`. Empty: it is plain text.
        message: What it says.
        fields: Everything else that it holds.
    """

    time: datetime
    kind: str
    level: str
    message: str
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_error(self) -> bool:
        """Whether something failed."""
        return self.level in _ERROR_LEVELS or (not self.level and any(one in self.message for one in _PLAIN_ERRORS))

    @property
    def event(self) -> Event | None:
        """What event it is. None: it is none."""
        found = self.fields.get(EVENT_FIELD)
        return Event(found) if found in tuple(Event) else None


def read_records(cluster: Deployed, kind: str, since: timedelta, pattern: str = "") -> Iterator[Record]:
    """Yield what a function has logged, without what Lambda adds to each invocation.

    A page holds at most 1 MB, and may be empty although others follow it.

    Args:
        cluster: The cluster.
        kind: What the function is for.
        since: How far to look back.
        pattern: The filter pattern. Default: - everything

    Raises:
        ValueError: CloudWatch Logs refuses.

    Source: https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_FilterLogEvents.html
    """
    group = cluster.description.functions[kind].log_group
    asked: dict[str, Any] = {"logGroupName": group, "startTime": _milliseconds(cluster.now - since)}
    if pattern:
        asked["filterPattern"] = pattern
    with plain_refusals(f"the log group {group}"):
        pages = cluster.client("logs").get_paginator("filter_log_events").paginate(**asked)
        for raw in (one for page in pages for one in page["events"]):
            if not raw["message"].startswith(_OF_LAMBDA):
                yield from _record(kind, raw)


def quoted(text: str) -> str:
    """Return the filter pattern of records that hold a text."""
    return json.dumps(text)


def by_time(records: Iterable[Record]) -> Sequence[Record]:
    """Return records in the order in which they were written."""
    return sorted(records, key=lambda one: one.time)


def _record(kind: str, raw: Mapping[str, Any]) -> Iterator[Record]:
    time = datetime.fromtimestamp(raw["timestamp"] / 1000, UTC)
    try:
        fields = json.loads(raw["message"])
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        yield Record(time=time, kind=kind, level="", message=raw["message"].rstrip())
    elif _METRICS not in fields:
        level, message = str(fields.pop("level", "")), str(fields.pop("message", ""))
        yield Record(time=time, kind=kind, level=level, message=message, fields=fields)


def _milliseconds(time: datetime) -> int:
    return int(time.timestamp() * 1000)
