"""What reaches the function: its schedule, operators, the reports of nodes, and what AWS announces of instances."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from cluster_common.actions import Action, parse_action
from cluster_contract.aliases import EVENTS_ALIAS
from cluster_contract.health import REPORT_DETAIL_TYPE, NodeReport, read_source
from cluster_contract.texts import printable
from cluster_health.node_records import Notice

_HEALTH_EVENT, _HEALTH_SOURCE = "AWS Health Event", "aws.health"


@dataclass(frozen=True, kw_only=True)
class Announcement:
    """What AWS says it is about to do with instances.

    Attributes:
        instance_ids: The instances.
        notice: What it says.
    """

    instance_ids: tuple[str, ...]
    notice: Notice


@dataclass(frozen=True, kw_only=True)
class Received:
    """A report, and who sent it.

    Attributes:
        report: The report.
        sender: The session of the nodes' role that sent it, which IAM has made sure of.
    """

    report: NodeReport
    sender: str


Incoming = Action | Received | Announcement


def parse_event(event: Mapping[str, Any], alias: str) -> Incoming:
    """Read an event.

    Args:
        event: What the schedule or an operator sends, or what EventBridge brings.
        alias: The alias that it came through: that of EventBridge brings reports and announcements, and nothing else.

    Raises:
        InvalidEventError: An operator asks for something that the function does not do.
        ValueError: EventBridge brings what is no report and no announcement.
    """
    if alias != EVENTS_ALIAS:
        return parse_action(event)
    kind, source, detail = event.get("detail-type"), event.get("source"), event.get("detail")
    if not isinstance(detail, dict):
        # It is data.
        raise ValueError(f"the detail of an event must be an object, got {printable(repr(detail))}")  # noqa: TRY004
    if kind == REPORT_DETAIL_TYPE:
        return _received(NodeReport.from_json(detail), event)
    if (kind, source) != (_HEALTH_EVENT, _HEALTH_SOURCE):
        said = printable(repr(kind))
        raise ValueError(f"detail-type must be {REPORT_DETAIL_TYPE} or AWS's own {_HEALTH_EVENT}, got {said}")
    try:
        return _aws_health(detail, datetime.fromisoformat(event["time"]))
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"the event {kind!r} lacks something or has it in another form: {error!r}") from None


def _received(report: NodeReport, event: Mapping[str, Any]) -> Received:
    """Return a report that is no later than EventBridge received it: the clock of a node may be ahead."""
    cluster, sender = read_source(event.get("source"))
    if cluster != report.cluster:
        raise ValueError(f"a report of a node of {report.cluster} comes from a node of {printable(cluster)}")
    received = datetime.fromisoformat(event["time"]) if "time" in event else report.at
    return Received(report=replace(report, at=min(report.at, received)), sender=sender)


def _aws_health(detail: Mapping[str, Any], at: datetime) -> Announcement:
    """https://docs.aws.amazon.com/health/latest/ug/aws-health-events-eventbridge-schema.html"""
    code, starts = detail["eventTypeCode"], detail.get("startTime")
    is_scheduled = bool(starts) and detail["eventTypeCategory"] == "scheduledChange"
    deadline = parsedate_to_datetime(str(starts)).astimezone(UTC) if is_scheduled else None
    ids = tuple(one["entityValue"] for one in detail.get("affectedEntities", ()))
    is_over = detail.get("statusCode") == "closed"
    notice = Notice(code=code, at=at, deadline=deadline, sentence=f"AWS Health announces {code}")
    return Announcement(instance_ids=() if is_over else ids, notice=notice)
