"""CloudWatch's GetMetricData in memory, an answer for each instance and metric."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from fake_service import FakeService

CURRENT = datetime(2026, 11, 2, 12, tzinfo=UTC)
IDLE = [(CURRENT - timedelta(minutes=5 * number), 0.0) for number in range(1, 13)]
GPU = "nvidia_smi_utilization_gpu"

Result = tuple[list[tuple[datetime, float]], str]


class FakeMetricData(FakeService):
    """CloudWatch that answers by the instance and the metric of a query."""

    def __init__(self, answer: Callable[[str, str], Result | None] = lambda *_: (IDLE, "Complete")) -> None:
        super().__init__("cloudwatch")
        self._answer = answer
        self.pages: list[list[dict[str, Any]]] | None = None

    def get_metric_data(self, **parameters: Any) -> dict[str, Any]:
        """Answer GetMetricData: in one page, or in those that a test gives."""
        self.record("GetMetricData", dict(parameters))
        if self.pages is not None:
            number = int(parameters.get("NextToken", "0"))
            more = {"NextToken": str(number + 1)} if number + 1 < len(self.pages) else {}
            return {"MetricDataResults": self.pages[number], **more}
        found = []
        for query in parameters["MetricDataQueries"]:
            metric = query["MetricStat"]["Metric"]
            answer = self._answer(metric["Dimensions"][0]["Value"], metric["MetricName"])
            if answer is not None and metric["MetricName"] == GPU and query["MetricStat"]["Stat"] == "SampleCount":
                answer = [(when, 8 * 5.0) for when, _ in answer[0]], answer[1]
            if answer is not None:
                found.append(result(query["Id"], *answer))
        return {"MetricDataResults": found}

    @property
    def queries(self) -> list[list[dict[str, Any]]]:
        """The queries of each request."""
        return [request["MetricDataQueries"] for _, request in self.requests]


def result(id: str, points: Sequence[tuple[datetime, float]], status: str = "Complete") -> dict[str, Any]:
    """Return a query's part of an answer of GetMetricData."""
    return {
        "Id": id,
        "Timestamps": [when for when, _ in points],
        "Values": [value for _, value in points],
        "StatusCode": status,
    }
