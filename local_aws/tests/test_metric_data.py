"""GetMetricData as CloudWatch answers it: values by period, limits, pages and statuses."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_aws import LocalAws

_NAMESPACE, _OTHER = "Nodes", "Others"
_PERIOD = timedelta(seconds=300)


@cache
def _start() -> datetime:
    """When the data begins: so long before the first test here, and not before the tests are collected."""
    return datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=40)


@pytest.fixture(autouse=True)
def without_faults(aws: LocalAws) -> Iterator[None]:
    yield
    aws.clear_faults()


@pytest.fixture(scope="module", autouse=True)
def points(aws: LocalAws) -> None:
    """Three points in each period of i-busy, one of i-idle, some of them in the near future; one elsewhere."""
    data = []
    for place in range(12):
        moment = _start() + place * _PERIOD
        busy = [(moment + timedelta(seconds=110 * each), float(place + each)) for each in range(3)]
        data += [_datum("i-busy", at, value) for at, value in busy]
        data.append(_datum("i-idle", moment + timedelta(seconds=137), 0.0))
    aws.client("cloudwatch").put_metric_data(Namespace=_NAMESPACE, MetricData=data)
    aws.client("cloudwatch").put_metric_data(Namespace=_OTHER, MetricData=[_datum("i-idle", _start(), 99.0)])


def test_only_ec2_publishes_in_its_namespace(aws: LocalAws) -> None:
    with pytest.raises(ClientError) as refused:
        aws.client("cloudwatch").put_metric_data(Namespace="AWS/EC2", MetricData=[_datum("i-host", _start(), 1.0)])
    assert refused.value.response["Error"]["Message"] == "The value AWS/ for parameter Namespace is invalid."
    aws.add_instance_metric("CPUUtilization", "i-host", [(_start(), 0.52), (_start() + _PERIOD, 1.99)])
    query = _query("i-host", "Average")
    query["MetricStat"]["Metric"] |= {"Namespace": "AWS/EC2", "MetricName": "CPUUtilization"}
    assert _get(aws, query)["MetricDataResults"][0]["Values"] == [0.0, 1.0]  # on Nitro
    with pytest.raises(
        RuntimeError, match="the metric must be one of CPUUtilization, NetworkIn, NetworkOut, got Cpu"
    ):
        aws.add_instance_metric("Cpu", "i-host", [])


def _datum(instance_id: str, at: datetime, value: float) -> dict[str, Any]:
    return {
        "MetricName": "gpu",
        "Dimensions": [{"Name": "InstanceId", "Value": instance_id}],
        "Timestamp": at,
        "Value": value,
        "Unit": "Percent",
    }


def _query(instance_id: str, stat: str = "Maximum", id: str = "a") -> dict[str, Any]:
    metric = {
        "Namespace": _NAMESPACE,
        "MetricName": "gpu",
        "Dimensions": [{"Name": "InstanceId", "Value": instance_id}],
    }
    return {"Id": id, "MetricStat": {"Metric": metric, "Period": 300, "Stat": stat}}


def _get(aws: LocalAws, *queries: dict[str, Any], **more: Any) -> dict[str, Any]:
    answer: dict[str, Any] = aws.client("cloudwatch").get_metric_data(
        **{
            "MetricDataQueries": list(queries),
            "StartTime": _start(),
            "EndTime": _start() + 12 * _PERIOD,
            "ScanBy": "TimestampAscending",
            **more,
        }
    )
    return answer


@pytest.mark.parametrize(
    ("stat", "first"), [("Maximum", 2.0), ("Minimum", 0.0), ("Sum", 3.0), ("Average", 1.0), ("SampleCount", 3)]
)
def test_a_period_has_its_statistic_and_its_start(aws: LocalAws, stat: str, first: float) -> None:
    (result,) = _get(aws, _query("i-busy", stat))["MetricDataResults"]
    assert result["Timestamps"] == [_start() + place * _PERIOD for place in range(12)]
    assert result["Values"][0] == first
    assert (result["Id"], result["StatusCode"]) == ("a", "Complete")


def test_another_namespace_is_another_metric_and_an_unknown_one_is_empty(aws: LocalAws) -> None:
    idle, unknown = _get(aws, _query("i-idle"), _query("i-unknown", id="b"))["MetricDataResults"]
    assert idle["Values"] == [0.0] * 12
    assert (unknown["Id"], unknown["Values"], unknown["StatusCode"]) == ("b", [], "Complete")


def test_no_more_than_500_queries_are_taken(aws: LocalAws) -> None:
    queries = [_query("i-idle", id=f"q{place}") for place in range(501)]
    assert len(_get(aws, *queries[:500])["MetricDataResults"]) == 500
    with pytest.raises(ClientError, match="MetricDataQueries must not have a size greater than 500") as error:
        _get(aws, *queries)
    assert error.value.response["Error"]["Code"] == "ValidationError"


def test_points_come_in_pages_and_a_cut_series_is_partial(aws: LocalAws) -> None:
    queries = [_query("i-idle"), _query("i-busy", id="b"), _query("i-unknown", id="c")]
    first = _get(aws, *queries, MaxDatapoints=18)
    assert [(each["Id"], len(each["Values"]), each["StatusCode"]) for each in first["MetricDataResults"]] == [
        ("a", 12, "Complete"),
        ("b", 6, "PartialData"),
    ]
    second = _get(aws, *queries, MaxDatapoints=18, NextToken=first["NextToken"])
    assert [(each["Id"], len(each["Values"]), each["StatusCode"]) for each in second["MetricDataResults"]] == [
        ("b", 6, "Complete"),
        ("c", 0, "Complete"),
    ]
    assert "NextToken" not in second
    assert second["MetricDataResults"][0]["Timestamps"][0] == _start() + 6 * _PERIOD
    exactly = _get(aws, *queries, MaxDatapoints=24)
    assert [each["Id"] for each in exactly["MetricDataResults"]] == ["a", "b", "c"]
    assert "NextToken" not in exactly


@pytest.mark.parametrize(("status", "left"), [("PartialData", 6), ("InternalError", 0), ("Forbidden", 0)])
def test_a_status_can_be_ordered(aws: LocalAws, status: Any, left: int) -> None:
    aws.set_metric_status(status, "i-busy")
    queries = [_query("i-idle"), _query("i-busy", id="b")]
    idle, busy = _get(aws, *queries)["MetricDataResults"]
    assert (idle["StatusCode"], len(idle["Values"])) == ("Complete", 12)
    assert (busy["StatusCode"], len(busy["Values"])) == (status, left)
    aws.set_metric_status("Complete", "i-busy")
    assert [each["StatusCode"] for each in _get(aws, *queries)["MetricDataResults"]] == ["Complete", "Complete"]
