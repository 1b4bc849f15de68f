"""CloudWatch's data: users' own, EC2's own, and GetMetricData by metric, with limits, pages and statuses.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html
https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricData.html
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import wraps
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from moto.cloudwatch.models import Statistics, cloudwatch_backends
from moto.core.responses import ActionResult

from local_aws.refusal import Refusal

_MOST_QUERIES, _MOST_POINTS = 500, 100_800
_COMPLETE, _PARTIAL = "Complete", "PartialData"
_STATUSES = frozenset({_COMPLETE, _PARTIAL, "InternalError", "Forbidden"})

# EC2's own metrics of an instance that are the same for every hypervisor, and their units. Of instances on Nitro, as
# all are here, it publishes whole numbers, rounded down: 0 is what one busy vCPU of 192 shows.
# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/viewing_metrics_with_cloudwatch.html
_EC2_NAMESPACE = "AWS/EC2"
_EC2_UNITS: Mapping[str, str] = {"CPUUtilization": "Percent", "NetworkIn": "Bytes", "NetworkOut": "Bytes"}

_Key = tuple[str, str, tuple[tuple[str, str], ...]]


@dataclass
class _Index:
    """The data of a region, by metric; it reads on where it stopped."""

    read: int = 0
    by_metric: dict[_Key, list[Any]] = field(default_factory=lambda: defaultdict(list))

    def look_up(self, backend: Any, key: _Key) -> Sequence[Any]:
        """Return the data of a metric, unordered."""
        if len(backend.metric_data) < self.read:
            self.read = 0
            self.by_metric.clear()
        for datum in backend.metric_data[self.read :]:
            dimensions = tuple(sorted((each.name, each.value) for each in datum.dimensions))
            self.by_metric[datum.namespace, datum.name, dimensions].append(datum)
            self.read += 1
        return self.by_metric.get(key, ())


@dataclass(frozen=True)
class _Status:
    """What the results of some queries say instead of Complete."""

    code: str
    match: str


_indexes: WeakKeyDictionary[Any, _Index] = WeakKeyDictionary()
_statuses: list[_Status] = []
_lock = Lock()


def by_metric(original: Callable[[Any], ActionResult]) -> Callable[[Any], ActionResult]:
    """Return GetMetricData so that queries of metrics are answered here, and those with an expression by moto."""

    @wraps(original)
    def get_metric_data(response: Any) -> ActionResult:
        params = response._get_params()
        queries = params.get("MetricDataQueries") or []
        start, end = _minute(params["StartTime"]), params["EndTime"].replace(microsecond=0)
        size = int(params.get("MaxDatapoints") or _MOST_POINTS)
        _check(queries, start, end, size)
        if any("Expression" in query for query in queries):
            return original(response)
        with _lock:
            index = _indexes.setdefault(response.cloudwatch_backend, _Index())
            found = [_result(response.cloudwatch_backend, index, query, (start, end)) for query in queries]
        if (params.get("ScanBy") or "TimestampDescending") == "TimestampDescending":
            for result in found:
                result["Timestamps"].reverse()
                result["Values"].reverse()
        shown = [result for query, result in zip(queries, found, strict=True) if query.get("ReturnData", True)]
        page, token = _page(shown, int(params.get("NextToken") or 0), size)
        return ActionResult({"MetricDataResults": page, "NextToken": token})

    return get_metric_data


def _minute(moment: datetime) -> datetime:
    """Return a time as CloudWatch rounds a start of less than 15 days ago."""
    return moment.replace(second=0, microsecond=0)


def _check(queries: Sequence[Mapping[str, Any]], start: datetime, end: datetime, size: int) -> None:
    if len(queries) > _MOST_QUERIES:
        raise Refusal(
            "ValidationError",
            f"The collection MetricDataQueries must not have a size greater than {_MOST_QUERIES}.",
        )
    if start >= end:
        raise Refusal("ValidationError", "The parameter EndTime must be greater than StartTime.")
    if not 1 <= size <= _MOST_POINTS:
        raise Refusal("ValidationError", f"The parameter MaxDatapoints must be between 1 and {_MOST_POINTS}.")
    ids = [query["Id"] for query in queries]
    if len(set(ids)) < len(ids):
        raise Refusal("ValidationError", "The values for parameter id in MetricDataQueries are not unique.")
    for place, query in enumerate(queries, start=1):
        if "MetricStat" not in query and "Expression" not in query:
            raise Refusal(
                "ValidationError", f"The parameter MetricDataQueries.member.{place}.MetricStat is required.\n"
            )


def _result(
    backend: Any, index: _Index, query: Mapping[str, Any], window: tuple[datetime, datetime]
) -> dict[str, Any]:
    """Return a query's values, oldest first, each at the start of its period."""
    wanted, metric, (start, end) = query["MetricStat"], query["MetricStat"]["Metric"], window
    dimensions = tuple(sorted((each["Name"], each["Value"]) for each in metric.get("Dimensions") or []))
    period, unit, stat = timedelta(seconds=int(wanted["Period"])), wanted.get("Unit"), wanted["Stat"]
    periods: dict[int, list[Any]] = defaultdict(list)
    for datum in index.look_up(backend, (metric["Namespace"], metric["MetricName"], dimensions)):
        moment = _minute(datum.timestamp)  # CloudWatch keeps no seconds
        if start <= moment < end and unit in {None, datum.unit}:
            periods[(moment - start) // period].append(datum)
    result: dict[str, Any] = {
        "Id": query["Id"],
        "Label": query.get("Label") or metric["MetricName"],
        "Timestamps": [start + place * period for place in sorted(periods)],
        "Values": [_statistic(stat, periods[place]) for place in sorted(periods)],
        "StatusCode": _COMPLETE,
    }
    return result | _said_instead(query, result)


def _statistic(stat: str, data: Sequence[Any]) -> Any:
    statistics = Statistics([stat], data[0].timestamp)
    statistics.metric_data = list(data)
    value = statistics.get_statistics_for_type(stat)
    if value is None:
        raise NotImplementedError(f"the statistic {stat} in GetMetricData")
    return value


def _said_instead(query: Mapping[str, Any], result: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a result says instead where a status is ordered for its query.

    Partial data is the older half; of the others CloudWatch has none.
    """
    metric = query["MetricStat"]["Metric"]
    names = {metric["Namespace"], metric["MetricName"]}
    names |= {each["Value"] for each in metric.get("Dimensions") or []}
    for status in _statuses:
        if status.match in names:
            kept = len(result["Values"]) // 2 if status.code == _PARTIAL else 0
            return {
                "StatusCode": status.code,
                "Timestamps": result["Timestamps"][:kept],
                "Values": result["Values"][:kept],
                "Messages": [{"Code": status.code, "Value": f"{status.code} on order"}],
            }
    return {}


def _page(results: Sequence[dict[str, Any]], start: int, size: int) -> tuple[list[dict[str, Any]], str | None]:
    """Return the results of a page of so many points, and the token of the next; one that is cut is PartialData."""
    page, place, end = [], 0, start + size
    for result in results:
        first, place = place, place + len(result["Values"])
        # An empty one belongs to the page that ends where it is.
        here = first < end and place > start if place > first else start < first <= end or first == start == 0
        if not here:
            continue
        inside = slice(max(start - first, 0), end - first)
        cut = {"Timestamps": result["Timestamps"][inside], "Values": result["Values"][inside]}
        page.append(result | cut | ({"StatusCode": _PARTIAL} if place > end else {}))
    return page, str(end) if place > end else None


def of_users_alone(original: Callable[[Any], ActionResult]) -> Callable[[Any], ActionResult]:
    """Return PutMetricData so that it refuses the namespaces of AWS's services."""

    @wraps(original)
    def put_metric_data(response: Any) -> ActionResult:
        namespace = str(response._get_params()["Namespace"])
        if namespace.startswith("AWS/"):
            raise Refusal("InvalidParameterValue", f"The value {namespace} for parameter Namespace is invalid.")
        return original(response)

    return put_metric_data


def add_instance_metric(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Let EC2 have published a metric of an instance."""
    name = str(request["metric"])
    if name not in _EC2_UNITS:
        raise ValueError(f"the metric must be one of {', '.join(_EC2_UNITS)}, got {name}")
    data = [
        {
            "MetricName": name,
            "Dimensions": [{"Name": "InstanceId", "Value": request["instance_id"]}],
            "Timestamp": datetime.fromisoformat(moment).astimezone(UTC).replace(tzinfo=None),  # as moto has them
            "Value": float(int(value)),
            "Unit": _EC2_UNITS[name],
        }
        for moment, value in request["points"]
    ]
    cloudwatch_backends[request["account"]][request["region"]].put_metric_data(_EC2_NAMESPACE, data)
    return {}


def set_status(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Let results of queries that name something say a status, until everything is taken back."""
    code = str(request["status"])
    if code not in _STATUSES:
        raise ValueError(f"the status must be one of {', '.join(sorted(_STATUSES))}, got {code}")
    with _lock:
        for match in request["matches"]:
            _statuses[:] = [status for status in _statuses if status.match != match]
            if code != _COMPLETE:
                _statuses.append(_Status(code, str(match)))
    return {}


def clear_statuses() -> None:
    """Let every result be complete again."""
    with _lock:
        _statuses.clear()
