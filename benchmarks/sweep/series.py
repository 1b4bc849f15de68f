"""The answers to GetMetricData, in JSON, the protocol that botocore chooses for CloudWatch."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from benchmarks.sweep.fleet import METRIC, NAMESPACE, Fleet, index_of


def metric_data(fleet: Fleet, body: bytes) -> bytes:
    """Return the answer that holds the series that were asked for: utilization is all there is.

    Args:
        fleet: The fleet.
        body: The request's body.
    """
    request = json.loads(body)
    start, end = (datetime.fromtimestamp(request[name], UTC) for name in ("StartTime", "EndTime"))
    times = [int(time.timestamp()) for time in fleet.periods(start, end)]
    if request.get("ScanBy") != "TimestampAscending":
        times.reverse()
    results = [_result(fleet, query, times) for query in request["MetricDataQueries"]]
    return json.dumps({"MetricDataResults": results, "Messages": []}).encode()


def _result(fleet: Fleet, query: Mapping[str, Any], times: list[int]) -> dict[str, Any]:
    value = _value(fleet, query["MetricStat"]["Metric"])
    heard = [] if value is None else times
    return {
        "Id": query["Id"],
        "Label": METRIC,
        "Timestamps": heard,
        "Values": [value] * len(heard),
        "StatusCode": "Complete",
    }


def _value(fleet: Fleet, metric: Mapping[str, Any]) -> float | None:
    if (metric["Namespace"], metric["MetricName"]) != (NAMESPACE, METRIC):
        return None
    (dimension,) = metric["Dimensions"]
    return fleet.utilization(index_of(dimension["Value"]))
