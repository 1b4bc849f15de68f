"""What the processes of a run leave in the runs' table: what ranks measured, and the last report of each run.

What a rank measured lies below the run's own key, and the reports of all runs below one key, so that one query lists
them: for the next process of a run, and for the command `training-cluster status`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from cluster_job.table import Versioned

REPORTS = "#reports"
"""Below this key the last report of each run lies, by the run's name."""

RANK_PREFIX = "rank#"
"""How the keys start below which ranks say what they measured."""


class Reports(Protocol):
    """The last reports of all runs, as `table.RunTable` has them; a run asks for its own only."""

    def put(self, key: str, value: bytes) -> None:
        """Put a value at a key, whatever lies there."""

    def read(self, key: str) -> "Versioned | None":
        """Return what lies at a key; None: nothing."""


class Items(Reports, Protocol):
    """The items of a run, which are listed too."""

    def list(self, prefix: str) -> Mapping[str, bytes]:
        """Return the values whose keys begin with a text, by their keys."""


@dataclass(frozen=True, kw_only=True)
class Records:
    """The items that a process reads and writes.

    Attributes:
        run: Those of its run.
        reports: The last reports of all runs.
    """

    run: Items
    reports: Reports


def encoded(value: Mapping[str, object]) -> bytes:
    """Return a value as the table holds it."""
    return json.dumps(value, separators=(",", ":")).encode()


def decoded(value: bytes) -> Mapping[str, Any]:
    """Return what `encoded` encoded."""
    found: Mapping[str, Any] = json.loads(value)
    return found
