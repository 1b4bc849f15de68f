"""The last report of a training run in the runs' table, to which each job of the cluster may write."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from cdk_training_cluster_file.problems import printable
from cluster_contract.runs import RunMetric

_LOOK_BACK = timedelta(days=1)
_CLOCKS_DIFFER = timedelta(minutes=5)
_MOST = 1e12


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))


Line = Annotated[str, StringConstraints(max_length=1000), AfterValidator(_one_line)]
Number = Annotated[float, Field(ge=-_MOST, le=_MOST, allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, le=_MOST, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=-1, le=int(_MOST))]


class Totals(BaseModel):
    """The seconds that count as training, and the others, since the run began."""

    kept_seconds: Amount
    lost_seconds: Amount
    finished: bool


class Cause(BaseModel):
    """The probable cause of a slow run."""

    kind: Line
    sentence: Line


class Hang(BaseModel):
    """The last time that the ranks of a run waited for one that was stuck."""

    at: Amount
    sentence: Line


class RunReport(BaseModel):
    """The fields of a report, and its metrics by their names."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[Annotated[str, StringConstraints(pattern=r"^\w{1,64}$")], Number | None]

    at: Amount
    totals: Totals
    step: Count | None = None
    cost_cap_usd: Amount | None = None
    slowest_ranks: list[tuple[Count, Amount]] = Field(default=[], max_length=100)
    low_utilization: Line | None = None
    likely_cause: Cause | None = None
    hang: Hang | None = None

    @property
    def time(self) -> datetime:
        """The time of the report."""
        return datetime.fromtimestamp(self.at, UTC)

    @property
    def goodput_percent(self) -> float | None:
        """The percentage of the time that was training. None: no time has passed."""
        elapsed = self.totals.kept_seconds + self.totals.lost_seconds
        return 100 * self.totals.kept_seconds / elapsed if elapsed else None

    def metric(self, metric: RunMetric) -> float | None:
        """Return the value of a metric. None: the report has none.

        Args:
            metric: The metric.
        """
        return self.__pydantic_extra__.get(metric.value)

    def values(self, run: str) -> Mapping[str, object]:
        """Return the report for JSON.

        Args:
            run: The run's name.
        """
        return {
            **self.model_dump(exclude={"totals"}, exclude_unset=True),
            "run": run,
            "finished": self.totals.finished,
            "goodput_of_run_percent": self.goodput_percent,
            "lost_seconds_of_run": self.totals.lost_seconds,
        }


def report_of(item: Mapping[str, Any], now: datetime) -> tuple[str, RunReport] | None:
    """Return the name of a run and its report. None: the item is invalid, older than a day, or later than now.

    Args:
        item: The item of the table.
        now: The current time.
    """
    try:
        found = RunReport.model_validate_json(item["value"]["B"])
        run = _one_line(item["key"]["S"])
        return (run, found) if now - _LOOK_BACK <= found.time <= now + _CLOCKS_DIFFER else None
    except (KeyError, OverflowError, TypeError, ValidationError, ValueError):
        return None
