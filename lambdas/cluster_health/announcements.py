"""What reaches the function: its schedule, operators, the reports of nodes, and what AWS announces of instances."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from cluster_common.actions import Action, parse_action
from cluster_contract.health import REPORT_DETAIL_TYPE, NodeReport
from cluster_health.node_records import Notice

_HEALTH_EVENT = "AWS Health Event"


@dataclass(frozen=True, kw_only=True)
class Announcement:
    """What AWS says it is about to do with instances.

    Attributes:
        instance_ids: The instances.
        notice: What it says.
    """

    instance_ids: tuple[str, ...]
    notice: Notice


Incoming = Action | NodeReport | Announcement


def parse_event(event: Mapping[str, Any]) -> Incoming:
    """Read an event.

    Args:
        event: What the schedule or an operator sends, or what EventBridge brings.

    Raises:
        InvalidEventError: An operator asks for something that the function does not do.
        ValueError: EventBridge brings what is no report and no announcement.
    """
    kind = event.get("detail-type")
    if kind is None:
        return parse_action(event)
    detail = event.get("detail")
    if not isinstance(detail, dict):
        raise ValueError(f"the detail of an event must be an object, got {detail!r}")  # noqa: TRY004 (it is data)
    if kind == REPORT_DETAIL_TYPE:
        return _received(NodeReport.from_json(detail), event)
    if kind != _HEALTH_EVENT:
        raise ValueError(f"detail-type must be {REPORT_DETAIL_TYPE} or {_HEALTH_EVENT}, got {kind!r}")
    try:
        return _aws_health(detail, datetime.fromisoformat(event["time"]))
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"the event {kind!r} lacks something or has it in another form: {error!r}") from None


def _received(report: NodeReport, event: Mapping[str, Any]) -> NodeReport:
    """Return a report that is no later than EventBridge received it: the clock of a node may be ahead."""
    received = datetime.fromisoformat(event["time"]) if "time" in event else report.at
    return replace(report, at=min(report.at, received))


def _aws_health(detail: Mapping[str, Any], at: datetime) -> Announcement:
    """https://docs.aws.amazon.com/health/latest/ug/aws-health-events-eventbridge-schema.html"""
    code, starts = detail["eventTypeCode"], detail.get("startTime")
    is_scheduled = bool(starts) and detail["eventTypeCategory"] == "scheduledChange"
    deadline = parsedate_to_datetime(str(starts)).astimezone(UTC) if is_scheduled else None
    ids = tuple(one["entityValue"] for one in detail.get("affectedEntities", ()))
    is_over = detail.get("statusCode") == "closed"
    notice = Notice(code=code, at=at, deadline=deadline, sentence=f"AWS Health announces {code}")
    return Announcement(instance_ids=() if is_over else ids, notice=notice)
