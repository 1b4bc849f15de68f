"""What EC2 and Auto Scaling are about to do with the node, as its metadata says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from cluster_contract.times import parse_time

from .metadata import Metadata

STANDBY, TERMINATING = "standby", "terminating"
"""The code of the notice that Auto Scaling takes the node away, and waits for it if there is a lifecycle hook."""

_LIFECYCLE = "autoscaling/target-lifecycle-state"
# https://docs.aws.amazon.com/autoscaling/ec2/userguide/retrieving-target-lifecycle-state-through-imds.html
LIFECYCLE_NOTICES = {
    "Terminated": (TERMINATING, "Auto Scaling terminates the node"),
    "Standby": (STANDBY, "Auto Scaling keeps the node in standby"),
    "Warmed:Terminated": (TERMINATING, "Auto Scaling terminates the node"),
    "Warmed:Stopped": (TERMINATING, "Auto Scaling stops the node for its warm pool"),
    "Warmed:Hibernated": (TERMINATING, "Auto Scaling hibernates the node for its warm pool"),
    "Warmed:Running": (STANDBY, "Auto Scaling keeps the node running in its warm pool"),
}
"""Code and sentence of the notice for each state that Auto Scaling wants the node in."""

# Before a reboot or stop that EC2 has scheduled: longer than a checkpoint, and short beside the weeks of notice.
_MAINTENANCE_LEAD = timedelta(minutes=30)


class Notice(NamedTuple):
    """One thing that is about to be done with the node.

    Attributes:
        code: Its short name.
        sentence: What it is, for operators, without a full stop.
        deadline: When it is done, where that is known.
        drains: Whether the node takes no job any more.
    """

    code: str
    sentence: str
    deadline: datetime | None = None
    drains: bool = True


class Notices:
    """The notices of a node; the questions about Spot are asked of Spot instances only."""

    def __init__(self, metadata: Metadata) -> None:
        """Ask nothing yet.

        Args:
            metadata: The instance metadata service.
        """
        self._metadata = metadata
        self._spot: bool | None = None

    def urgent(self) -> list[Notice]:
        """Return what may be due in seconds.

        Raises:
            OSError: The metadata service does not answer.
        """
        if self._spot is None:
            # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-categories.html
            self._spot = self._metadata.get("instance-life-cycle") == "spot"
        found = LIFECYCLE_NOTICES.get((self._metadata.get(_LIFECYCLE) or "").strip())
        notices = [Notice(*found)] if found else []
        return [*notices, *self._of_spot()] if self._spot else notices

    def scheduled(self, now: datetime) -> list[Notice]:
        """Return the maintenance that EC2 has scheduled first; the node is drained half an hour before it.

        Args:
            now: The time.

        Raises:
            OSError: The metadata service does not answer.
        """
        # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/viewing_scheduled_events.html
        events = json.loads(self._metadata.get("events/maintenance/scheduled") or "[]")
        active = [event for event in events if event.get("State", "active") == "active"]
        return [_maintenance(event, now) for event in sorted(active, key=_start)[:1]]

    def _of_spot(self) -> Iterator[Notice]:
        # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
        action = json.loads(self._metadata.get("spot/instance-action") or "{}")
        if action:
            yield Notice("spot", f"EC2 is about to {action['action']} the Spot Instance", _time(action["time"]))
        # It says that an interruption has become more likely, and may be wrong. Auto Scaling launches a replacement
        # and terminates the node then, which drains it.
        # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/rebalance-recommendations.html
        elif self._metadata.get("events/recommendations/rebalance"):
            yield Notice("rebalance", "EC2 sees an elevated risk that the Spot Instance is interrupted", drains=False)


def _maintenance(event: dict[str, Any], now: datetime) -> Notice:
    start = _start(event)
    sentence = f"EC2 has scheduled {event['Code']} of the node for {start:%Y-%m-%d %H:%M} UTC"
    return Notice("maintenance", sentence, start, drains=now >= start - _MAINTENANCE_LEAD)


def _start(event: dict[str, Any]) -> datetime:
    return _time(str(event["NotBefore"]))


def _time(text: str) -> datetime:
    # 2017-09-18T08:22:00Z of Spot, and 21 Jan 2019 09:00:43 GMT of scheduled events
    if "T" in text and text.endswith("Z"):
        return parse_time(text)
    return datetime.strptime(text, "%d %b %Y %H:%M:%S GMT").replace(tzinfo=timezone.utc)
