"""What CloudWatch refuses of a dashboard."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_aws import LocalAws

_METRIC = {"type": "metric", "properties": {"region": "us-east-1", "metrics": [["AWS/EC2", "CPUUtilization"]]}}
_TEXT = {"type": "text", "properties": {"markdown": "it"}}


def _graph(*metrics: list[Any]) -> list[dict[str, Any]]:
    return [{"type": "metric", "properties": {"region": "us-east-1", "metrics": list(metrics)}}]


def _put(aws: LocalAws, body: str, name: str = "It-1") -> None:
    aws.client("cloudwatch").put_dashboard(DashboardName=name, DashboardBody=body)


def test_a_right_dashboard_is_kept(aws: LocalAws) -> None:
    body = json.dumps({"widgets": [_METRIC, _TEXT] * 250})
    _put(aws, body)
    assert aws.client("cloudwatch").get_dashboard(DashboardName="It-1")["DashboardBody"] == body


@pytest.mark.parametrize(
    ("widgets", "problem"),
    [
        ([_TEXT] * 501, "it has 501 widgets, and may have 500"),
        ([{"type": "texts"}], "there is no type 'texts'"),
        ([{"type": "text", "properties": {}}], "markdown is required"),
        ([{**_TEXT, "x": 20, "width": 6}], "do not fit"),
        ([{"type": "alarm", "properties": {"alarms": ["arn"] * 101}}], "1 to 100 alarms"),
        (_graph(["AWS/EC2", "CPUUtilization", "InstanceId"]), "is no namespace, name, and pairs"),
        (_graph([{"expression": "a", "id": "e"}], [{"expression": "b", "id": "e"}]), "must differ"),
        (_graph([{"expression": "a" * 2049}]), "2049 characters"),
    ],
)
def test_what_cloudwatch_does_not_take_is_refused(aws: LocalAws, widgets: list[Any], problem: str) -> None:
    with pytest.raises(ClientError, match=problem) as refused:
        _put(aws, json.dumps({"widgets": widgets}))
    assert refused.value.response["Error"]["Code"] == "InvalidParameterInput"


@pytest.mark.parametrize(("name", "body"), [("a.b", '{"widgets": []}'), ("it", "{"), ("it", "[]")])
def test_a_wrong_name_and_what_is_no_body_are_refused(aws: LocalAws, name: str, body: str) -> None:
    with pytest.raises(ClientError, match="InvalidParameterInput"):
        _put(aws, body, name)
