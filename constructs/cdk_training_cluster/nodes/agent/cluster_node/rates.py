"""How fast counters of the node grow: totals say little on a node that has run for weeks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from .programs import ROOT

_DEVICES = "/sys/class/infiniband"
_SENT = "tx_bytes"
_SENT_AGAIN = "retrans_bytes"
# No document says what is usual: both limits only ask an operator to look. Less traffic than the floor says nothing.
_MOST_SENT_AGAIN = 0.01
_FLOOR_BYTES = 1e9
_MOST_EVENTS_A_MINUTE = 10
# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-working-monitor.html
_EVENTS = ("retrans_timeout_events", "unresponsive_remote_events", "impaired_remote_conn_events", "rx_drops")


class Rates:
    """The growth of counters from one reading to the next."""

    def __init__(self) -> None:
        self._before: dict[str, tuple[float, Mapping[str, int]]] = {}

    def growth(self, device: str, counters: Mapping[str, int], now: float) -> tuple[float, dict[str, int]]:
        """Return the minutes since the last reading, and by how much each counter has grown.

        A counter that is lower than before was reset, and counts from zero.

        Args:
            device: The device.
            counters: Its counters.
            now: Seconds that have passed.
        """
        then, before = self._before.get(device, (now, counters))
        self._before[device] = (now, dict(counters))
        grown = {
            name: value - before[name] if value >= before[name] else value
            for name, value in counters.items()
            if name in before
        }
        return (now - then) / 60, grown


def efa_errors(rates: Rates, now: float) -> Iterator[tuple[str, str]]:
    """Yield each Elastic Fabric Adapter that retransmits or fails faster than usual, and what it does.

    Args:
        rates: The rates of all readings.
        now: Seconds that have passed.
    """
    for device in sorted(Path(ROOT + _DEVICES).glob("*")):
        folder = device / "ports/1/hw_counters"
        names = (_SENT, _SENT_AGAIN, *_EVENTS)
        minutes, grown = rates.growth(device.name, dict(_counters(folder, names)), now)
        if minutes <= 0:
            continue
        sent, again = grown.get(_SENT, 0), grown.get(_SENT_AGAIN, 0)
        said = [
            f"{name} grew by {grown[name] / minutes:.0f} a minute"
            for name in _EVENTS
            if grown.get(name, 0) / minutes > _MOST_EVENTS_A_MINUTE
        ]
        if sent >= _FLOOR_BYTES and again > sent * _MOST_SENT_AGAIN:
            said.append(f"{again / sent:.1%} of the bytes were sent again")
        if said:
            yield device.name, "; ".join(said)


def _counters(folder: Path, names: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    for name in names:
        try:
            yield name, int((folder / name).read_text())
        except (OSError, ValueError):
            # Older drivers have fewer.
            continue
