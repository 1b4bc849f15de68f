"""The fleet that is swept: standalone tagged p5.48xlarge, some of them idle, at times that are relative to now."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

CLUSTER = "base-pod"
INSTANCE_TYPE = "p5.48xlarge"
GPUS = 8
NAMESPACE = f"CdkTrainingCluster/Nodes/{CLUSTER}"
METRIC = "nvidia_smi_utilization_gpu"
PERIOD = timedelta(minutes=5)
THRESHOLD = 5.0

TAG = "cdk-training-cluster:cluster"
NOTE = "cdk-training-cluster:idle-note"

# Every instance is idle, or not, by its place among so many: 1 of 10 is to be stopped, whatever the fleet's size.
_ROUND = 50
_DUE, _IDLE, _SILENT = 5, 1, 1

# 17 hexadecimal digits, of which the last are the instance's index.
_PREFIX = "i-0b"
_DIGITS = 15


class Part(Enum):
    """What an instance's GPUs have done, and what is known of it."""

    BUSY = "busy"
    """They work."""

    DUE = "due"
    """They have been idle all the time; the warning is over."""

    IDLE = "idle"
    """They have been idle all the time; no warning was sent."""

    SILENT = "silent"
    """They are not heard of."""


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """A number of instances, each of which is known by its index.

    Attributes:
        size: How many there are.
        now: When the fleet was looked at first; its instances were launched six hours before.
    """

    size: int
    now: datetime

    @property
    def launched(self) -> datetime:
        """When its instances were launched."""
        return self.now - timedelta(hours=6)

    def part(self, index: int) -> Part:
        """Return what an instance does.

        Args:
            index: The instance's index.
        """
        place = index % _ROUND
        if place < _DUE:
            return Part.DUE
        if place < _DUE + _IDLE:
            return Part.IDLE
        if place < _DUE + _IDLE + _SILENT:
            return Part.SILENT
        return Part.BUSY

    def ids(self, part: Part) -> list[str]:
        """Return the ids of the instances that do the same.

        Args:
            part: What they do.
        """
        return [instance_id(index) for index in range(self.size) if self.part(index) is part]

    def tags(self, index: int) -> dict[str, str]:
        """Return an instance's tags.

        Args:
            index: The instance's index.
        """
        tags = {"Name": f"node-{index}", TAG: CLUSTER, "team": "pretraining", "cost-center": "4711"}
        if self.part(index) is Part.DUE:
            tags[NOTE] = "idle: below 5 % for 60 minutes. It will be stopped."
        return tags

    def warnings(self) -> list[dict[str, Any]]:
        """Return the items of the state table: the warnings of those that are due."""
        warned_at = self.now - timedelta(minutes=35)
        return [
            {
                "part": {"S": f"idle#{CLUSTER}"},
                "name": {"S": one},
                "idle_since": {"S": _text(warned_at - timedelta(hours=1))},
                "stop_at": {"S": _text(self.now - timedelta(minutes=5))},
                "nodes": {"N": "1"},
                "owners": {"L": [{"S": f"instance/{one}"}]},
                "idle_until": {"S": _text(warned_at)},
            }
            for one in self.ids(Part.DUE)
        ]

    def periods(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Yield the starts of the full periods in a window, the oldest first, none of them in the future.

        Args:
            start: Where the window starts.
            end: Where it ends; a period that starts there is outside.
        """
        seconds = int(PERIOD.total_seconds())
        first = -(-int(start.timestamp()) // seconds) * seconds
        for second in range(first, int(min(end, datetime.now(UTC) - PERIOD).timestamp()), seconds):
            yield datetime.fromtimestamp(second, UTC)

    def utilization(self, index: int) -> float | None:
        """Return how busy an instance's GPUs are in any period, in percent; None where nothing is heard of them.

        Args:
            index: The instance's index.
        """
        return _UTILIZATION[self.part(index)]


_UTILIZATION: Mapping[Part, float | None] = {Part.BUSY: 93.0, Part.DUE: 0.0, Part.IDLE: 0.0, Part.SILENT: None}


def instance_id(index: int) -> str:
    """Return an instance's id.

    Args:
        index: Its index.
    """
    return f"{_PREFIX}{index:0{_DIGITS}x}"


def index_of(instance: str) -> int:
    """Return an instance's index.

    Args:
        instance: Its id.
    """
    return int(instance.removeprefix(_PREFIX), 16)


def _text(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")
