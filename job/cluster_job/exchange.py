"""How what ranks measured meets at rank 0: each writes an item a minute, and rank 0 reads them all in one query.

It goes through the runs' table and not through the job's process group, where a rank that does not take part would
stop all the others. An item stays below 1 KB, which is one write unit: 512 ranks x 60 x 730 hours are 22.4 million of
them a month, or $14.02 at $0.625 a million; what rank 0 reads of them is 70 read units a minute or $0.38.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
https://aws.amazon.com/dynamodb/pricing/on-demand/
"""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from cluster_job.causes import RankFacts
from cluster_job.records import RANK_PREFIX, Records, decoded, encoded

_STALE_SECONDS = 180.0

_MOST_WINDOWS = 40  # ranks write at different times, and steps of 0.1 s make a window in 2 s

Windows = Mapping[int, float]
"""The medians of a rank's own work by window."""


class Exchange:
    """Gives what this rank measured, and takes what the others did."""

    def __init__(self, records: Records | None) -> None:
        self._records = records

    def give(self, now: float, world_size: int, facts: RankFacts, windows: Windows) -> None:
        """Write what this rank measured.

        Args:
            now: The time, in seconds since 1970.
            world_size: How many ranks there are.
            facts: What it measured.
            windows: The medians of its own work.
        """
        if self._records is not None:
            measured = {name: _short(value) for name, value in asdict(facts).items()}
            item = {**measured, "windows": _in_a_row(windows), "at": round(now), "world": world_size}
            self._records.run.put(f"{RANK_PREFIX}{facts.rank:05}", encoded(item))

    def take(self, now: float, world_size: int) -> Mapping[int, tuple[RankFacts, Windows]]:
        """Return what ranks of this world measured in the last minutes, by rank.

        Args:
            now: The time, in seconds since 1970.
            world_size: How many ranks there are; a hot spare's number is higher.
        """
        values = self._records.run.list(RANK_PREFIX).values() if self._records is not None else ()
        names = [one.name for one in fields(RankFacts)]
        found = {}
        for item in map(decoded, values):
            is_here = item["world"] == world_size and item["rank"] < world_size
            if is_here and item["at"] > now - _STALE_SECONDS:
                known = {name: item[name] for name in names}
                facts = RankFacts(**{**known, "throttled_gpus": tuple(known["throttled_gpus"])})
                first, medians = item["windows"]
                windows = {first + place: one for place, one in enumerate(medians) if one is not None}
                found[facts.rank] = (facts, windows)
        return found


def _in_a_row(windows: Windows) -> tuple[int, list[float | None]]:
    """Return the number of the first window and the medians from there on, null where one is missing."""
    last = max(windows, default=0)
    first = max(min(windows, default=0), last - _MOST_WINDOWS + 1)
    medians = [windows.get(window) for window in range(first, last + 1)]
    return first, [None if one is None else _short(one) for one in medians]


def _short(value: Any) -> Any:  # noqa: ANN401 - a fact of any kind
    """Return a number with the four digits that say something."""
    return float(f"{value:.4g}") if isinstance(value, float) else value
