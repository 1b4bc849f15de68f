"""How what ranks measured meets at rank 0: each writes an item a minute, and rank 0 reads them all in one query.

It goes through the runs' table and not through the job's process group, where a rank that does not take part would
stop all the others. 512 ranks write 22 million items a month, which is $14 at $0.625 a million.
"""

from collections.abc import Mapping
from dataclasses import asdict, fields

from cluster_job.causes import RankFacts
from cluster_job.records import RANK_PREFIX, Records, decoded, encoded

_STALE_SECONDS = 180.0

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
            item = {**asdict(facts), "windows": windows, "at": now, "world": world_size}
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
                windows = {int(window): seconds for window, seconds in item["windows"].items()}
                found[facts.rank] = (facts, windows)
        return found
