"""Faults on order: a service's own errors, held and lost answers; and the record of calls."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from local_aws import LocalAws

_NO_INSTANCE = "i-0123456789abcdef0"
_TOPIC = "arn:aws:sns:us-east-1:123456789012:none"


@pytest.fixture(autouse=True)
def without_faults(aws: LocalAws) -> Iterator[None]:
    aws.forget_calls()
    yield
    aws.clear_faults()


def _code(error: pytest.ExceptionInfo[ClientError]) -> str:
    return str(error.value.response["Error"]["Code"])


def _metric_data(aws: LocalAws) -> Any:
    now = datetime.now(UTC)
    query = {
        "Id": "a",
        "MetricStat": {"Metric": {"Namespace": "N", "MetricName": "M"}, "Period": 300, "Stat": "Maximum"},
    }
    return aws.client("cloudwatch").get_metric_data(
        MetricDataQueries=[query], StartTime=now - timedelta(hours=1), EndTime=now
    )


# One operation of each protocol, and an error that its model knows or does not.
_CALLS = {
    "ec2": ("StopInstances", "RequestLimitExceeded", 503),
    "autoscaling": ("SetDesiredCapacity", "ScalingActivityInProgress", 400),
    "cloudwatch": ("GetMetricData", "Throttling", 400),
    "ssm": ("DescribeSessions", "InternalServerError", 500),
    "sns": ("Publish", "AuthorizationError", 403),
    "lambda": ("Invoke", "TooManyRequestsException", 429),
    "scheduler": ("GetSchedule", "ThrottlingException", 429),
}
_MAKE: dict[str, Callable[[LocalAws], Any]] = {
    "ec2": lambda aws: aws.client("ec2").stop_instances(InstanceIds=[_NO_INSTANCE]),
    "autoscaling": lambda aws: aws.client("autoscaling").set_desired_capacity(
        AutoScalingGroupName="none", DesiredCapacity=1
    ),
    "cloudwatch": _metric_data,
    "ssm": lambda aws: aws.client("ssm").describe_sessions(State="Active"),
    "sns": lambda aws: aws.client("sns").publish(TopicArn=_TOPIC, Message="hello"),
    "lambda": lambda aws: aws.client("lambda").invoke(FunctionName="none", Payload=b'{"action": "stop"}'),
    "scheduler": lambda aws: aws.client("scheduler").get_schedule(Name="none"),
}


@pytest.mark.parametrize("service", _CALLS)
def test_an_operation_fails_as_its_service_says_it(aws: LocalAws, service: str) -> None:
    operation, code, status = _CALLS[service]
    aws.fail(operation, code, "not now", status=status)
    with pytest.raises(ClientError) as error:
        _MAKE[service](aws)
    assert _code(error) == code
    assert error.value.response["Error"]["Message"] == "not now"
    assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == status
    (call,) = aws.calls(operation)
    assert (call.service, call.status) == (service, status)


def test_a_fault_strikes_so_many_times_after_so_many_that_pass(aws: LocalAws) -> None:
    ec2 = aws.client("ec2")
    aws.fail("DescribeInstances", "InternalError", times=2, after=1)
    ec2.describe_instances()
    for _ in range(2):
        with pytest.raises(ClientError, match="InternalError"):
            ec2.describe_instances()
    ec2.describe_instances()
    assert [call.status for call in aws.calls("DescribeInstances")] == [200, 400, 400, 200]


def test_a_fault_strikes_only_what_it_is_aimed_at(aws: LocalAws) -> None:
    ec2 = aws.client("ec2")
    aws.fail("DescribeInstances", "UnauthorizedOperation", match=f"{_NO_INSTANCE[:-1]}1")
    aws.fail("Invoke", "ServiceException", match="/functions/other/")
    aws.fail("DescribeInstances", "InternalError", service="neptune")
    ec2.describe_instances(Filters=[{"Name": "instance-id", "Values": [_NO_INSTANCE]}])
    with pytest.raises(ClientError, match="UnauthorizedOperation"):
        ec2.describe_instances(Filters=[{"Name": "instance-id", "Values": [f"{_NO_INSTANCE[:-1]}1"]}])
    with pytest.raises(ClientError, match="ServiceException"):
        aws.client("lambda").invoke(FunctionName="other")
    assert aws.clear_faults() == ["DescribeInstances"]


def test_a_lost_answer_leaves_what_was_done_and_a_lost_request_nothing(aws: LocalAws) -> None:
    ssm = aws.client("ssm")
    aws.lose("PutParameter", "answer")
    aws.lose("PutParameter", "request")
    for name in ("/lost/answer", "/lost/request"):
        with pytest.raises(ConnectionClosedError):
            ssm.put_parameter(Name=name, Value="1", Type="String")
    found = ssm.get_parameters(Names=["/lost/answer", "/lost/request"])
    assert [each["Name"] for each in found["Parameters"]] == ["/lost/answer"]
    assert [call.status for call in aws.calls("PutParameter")] == [None, None]
    ssm.delete_parameter(Name="/lost/answer")


def test_the_record_has_the_parameters_as_boto3_spells_them(aws: LocalAws) -> None:
    for service in _CALLS:
        with suppress(ClientError):
            _MAKE[service](aws)
    said = {call.operation: call.parameters for call in aws.calls()}
    assert said["StopInstances"] == {"InstanceIds": [_NO_INSTANCE]}
    assert said["SetDesiredCapacity"] == {"AutoScalingGroupName": "none", "DesiredCapacity": 1}
    assert said["DescribeSessions"] == {"State": "Active"}
    assert said["Publish"] == {"TopicArn": _TOPIC, "Message": "hello"}
    assert said["GetSchedule"]["Name"] == "none"
    assert said["Invoke"]["FunctionName"] == "none"
    assert json.loads(said["Invoke"]["Payload"]) == {"action": "stop"}
    assert said["GetMetricData"]["MetricDataQueries"][0]["MetricStat"]["Stat"] == "Maximum"
    assert datetime.fromisoformat(said["GetMetricData"]["StartTime"])
