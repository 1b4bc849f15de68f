"""What one run over a fleet may take."""

from collections.abc import Mapping
from math import ceil

DESCRIBE = "DescribeInstances"
RE_READ = "DescribeInstances by id"
"""The name under which another look at instances whose ids are known is counted."""

GOALS = {"wall_ratio": 1.1, "peak_mib": 128, "peak_at": 10_000, "import_ratio": 1.2, "gang_ratio": 1.2}

_PAGE, _QUERIES, _BATCH, _ITEMS, _OTHERS = 200, 500, 50, 25, 5


def most_requests(instances: int, stops: int, owners: int) -> int:
    """Return how many requests a run may make.

    Args:
        instances: How many instances there are.
        stops: How many it stops.
        owners: How many owners it warns or stops: a standalone instance is its own.
    """
    # A batch is read again and stopped; a warning is written twice and noted on its owner, a stop is recorded twice.
    reads = ceil(instances / _PAGE) + ceil(instances / _QUERIES)
    writes = 2 * (ceil(stops / _ITEMS) + ceil((owners - stops) / _ITEMS)) + owners - stops
    return reads + 2 * ceil(stops / _BATCH) + writes + _OTHERS


def meets(entry: Mapping[str, float]) -> dict[str, bool]:
    """Say which goals a run over a fleet meets; how much memory it takes counts in the largest fleet only.

    Turns are compared one by one, since the machine may have been busy with something else in some of them.

    Args:
        entry: `instances`, `requests`, `most_requests`, `ratio_of_turns` and `peak_mib`.
    """
    return {
        "requests": entry["requests"] <= entry["most_requests"],
        "wall": entry["ratio_of_turns"] <= GOALS["wall_ratio"],
        "peak": entry["instances"] < GOALS["peak_at"] or entry["peak_mib"] <= GOALS["peak_mib"],
    }
