"""The answers to GetMetricData, in JSON, the protocol that botocore chooses for CloudWatch.

A host whose GPUs are idle is idle, too, and EC2 sees it whether or not its agent is heard of.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from benchmarks.sweep.fleet import GPUS, METRIC, NAMESPACE, Fleet, index_of

# How often an agent looks at the GPUs in a period.
_LOOKS = 5


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
    value = _value(fleet, query["MetricStat"]["Metric"], query["MetricStat"]["Stat"])
    heard = [] if value is None else times
    return {
        "Id": query["Id"],
        "Label": METRIC,
        "Timestamps": heard,
        "Values": [value] * len(heard),
        "StatusCode": "Complete",
    }


def _value(fleet: Fleet, metric: Mapping[str, Any], statistic: str) -> float | None:
    if metric["Namespace"] == "AWS/EC2":
        return 0.1
    if (metric["Namespace"], metric["MetricName"]) != (NAMESPACE, METRIC):
        return None
    (dimension,) = metric["Dimensions"]
    utilization = fleet.utilization(index_of(dimension["Value"]))
    return _LOOKS * GPUS if utilization is not None and statistic == "SampleCount" else utilization
