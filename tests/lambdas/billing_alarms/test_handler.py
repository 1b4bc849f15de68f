"""The handler as Lambda calls it, for ticks and for CloudFormation, against moto's services in this process."""

import json
import threading
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, cast

import boto3
import pytest
from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext
from moto import mock_aws

from answers import Answers, answering
from billing_alarms.billing import parse_request
from billing_alarms.handler import handler
from billing_alarms.removal import answer
from billing_alarms.watched_budget import WatchedBudget
from billing_scene import PREFIX, TOPIC
from cluster_common import clients
from cluster_common.errors import InvalidEventError
from cluster_contract.codec import InvalidSettingsError

SETTINGS: dict[str, Any] = {
    "cluster": "base-pod",
    "prefix": PREFIX,
    "monthly_usd": 20_000,
    "thresholds": [50, 100],
    "services": [],
    "accounts": [],
    "emails": [],
}


def context(partition: str = "aws", region: str = "eu-west-1") -> LambdaContext:
    return cast(
        "LambdaContext",
        SimpleNamespace(
            function_name="billing",
            memory_limit_in_mb=256,
            invoked_function_arn=f"arn:{partition}:lambda:{region}:123456789012:function:billing",
            aws_request_id="11111111-2222-3333-4444-555555555555",
            get_remaining_time_in_millis=lambda: 240_000,
        ),
    )


@pytest.fixture
def cloudwatch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("BILLING_ALARMS_SETTINGS", json.dumps(SETTINGS))
    _forget_clients()
    with mock_aws():
        topic = boto3.client("sns", region_name="eu-west-1").create_topic(Name="alerts")["TopicArn"]
        monkeypatch.setenv("ALERT_TOPIC_ARN", topic)
        monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
        yield boto3.client("cloudwatch", region_name="us-east-1")
    _forget_clients()


def _forget_clients() -> None:
    for client in (clients.cloudwatch, clients.sns, clients.lambda_):
        client.cache_clear()


@pytest.fixture
def answers() -> Iterator[Answers]:
    with answering() as server:
        yield server


def request(answers: Answers, kind: str, **more: str) -> dict[str, Any]:
    return {
        "RequestType": kind,
        "ResponseURL": answers.address,
        "StackId": "arn:aws:cloudformation:eu-west-1:123456789012:stack/base-pod-cluster/1",
        "RequestId": "request-1",
        "LogicalResourceId": "Removal",
        "ResourceType": "AWS::CloudFormation::CustomResource",
        **more,
    }


def answered(answers: Answers) -> dict[str, str]:
    ((content_type, response),) = answers.taken
    assert content_type == ""
    kept = {"StackId", "RequestId", "LogicalResourceId"}
    assert {key: response[key] for key in kept} == {key: request(answers, "Delete")[key] for key in kept}
    assert response["Status"] == "SUCCESS"
    return response


def test_a_tick_in_any_region_makes_alarms_in_the_billing_region(cloudwatch: Any) -> None:
    said = handler({"action": "tick"}, context())

    assert said is not None
    assert said["topic"] == TOPIC.replace("111122223333", "123456789012")
    names = [alarm["AlarmName"] for alarm in cloudwatch.describe_alarms()["MetricAlarms"]]
    assert sorted(names) == [f"{PREFIX}total/100", f"{PREFIX}total/50"]
    assert boto3.client("cloudwatch", region_name="eu-west-1").describe_alarms()["MetricAlarms"] == []
    again = cast("dict[str, Any]", handler({}, context()))
    assert {each["action"] for each in again["alarms"]} == {"keep"}


@pytest.mark.parametrize("kind", ["Create", "Update"])
def test_cloudformation_is_answered_at_once_when_nothing_is_to_be_removed(
    kind: str, cloudwatch: Any, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Not even the settings are read.
    monkeypatch.delenv("BILLING_ALARMS_SETTINGS")
    handler(request(answers, kind), context())

    assert answered(answers)["PhysicalResourceId"] == "billing-alarms"
    assert cloudwatch.describe_alarms()["MetricAlarms"] == []


def test_a_deletion_removes_alarms_and_topic_and_answers(cloudwatch: Any, answers: Answers) -> None:
    handler({}, context())
    trust = boto3.client("iam").create_role(RoleName="billing", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    functions = boto3.client("lambda", region_name="eu-west-1")
    functions.create_function(FunctionName="billing", Role=trust, Handler="a.b", Code={"ZipFile": b"-"})
    answers.refusals = 2
    handler(request(answers, "Delete", PhysicalResourceId="as-it-was"), context())

    assert (answered(answers)["PhysicalResourceId"], answered(answers)["Reason"]) == ("as-it-was", "")
    assert cloudwatch.describe_alarms()["MetricAlarms"] == []
    assert boto3.client("sns", region_name="us-east-1").list_topics()["Topics"] == []
    assert functions.get_function_concurrency(FunctionName="billing")["ReservedConcurrentExecutions"] == 0


UNABLE: dict[str, tuple[str, dict[str, Any], str]] = {
    "broken settings": ("{", {}, "the billing alarms: InvalidSettingsError: the environment variable BILLING_"),
    "another partition": (
        json.dumps(SETTINGS),
        {"partition": "aws-cn"},
        "the billing alarms: InvalidSettingsError: billing alarms need us-east-1",
    ),
}


@pytest.mark.parametrize(("settings", "where", "reason"), UNABLE.values(), ids=UNABLE)
@pytest.mark.usefixtures("cloudwatch")
def test_a_deletion_that_cannot_remove_anything_is_answered_all_the_same(
    settings: str, where: dict[str, Any], reason: str, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BILLING_ALARMS_SETTINGS", settings)
    handler(request(answers, "Delete"), context(**where))

    assert answered(answers)["Reason"].startswith(reason)


def test_a_removal_that_hangs_is_answered_in_time(answers: Answers) -> None:
    released = threading.Event()
    told: list[Sequence[str]] = []

    def hang() -> None:
        released.wait()

    # No time at all: what answers does not wait.
    answer(request(answers, "Delete"), remove=hang, tell=told.append, seconds=0, logger=Logger(service="test"))
    released.set()

    assert answered(answers)["Reason"] == "the billing alarms: it took too long"
    assert told == [("the billing alarms: it took too long",)]


@pytest.mark.parametrize("partition", ["aws-cn", "aws-us-gov", "aws-iso"])
def test_a_partition_without_billing_metrics_is_refused_in_one_sentence(partition: str) -> None:
    arn = f"arn:{partition}:lambda:here-1:123456789012:function:billing"
    with pytest.raises(InvalidSettingsError) as refused:
        WatchedBudget.from_environment({}, arn)

    assert str(refused.value) == (
        "billing alarms need us-east-1, which has the only billing metrics and is in the partition aws; the function "
        f"is {arn}: leave the budget out"
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"other": 1}, "got other"),
        ({"services": "AmazonEC2"}, "services must be a list, got 'AmazonEC2'"),
        ({"monthly_usd": True}, "monthly_usd must be a number, got True"),
        ({"thresholds": [float("nan")]}, r"thresholds\[0\] must be a number, got nan"),
    ],
)
def test_settings_that_no_construct_writes_are_refused(change: dict[str, Any], says: str) -> None:
    environment = {"BILLING_ALARMS_SETTINGS": json.dumps(SETTINGS | change)}
    with pytest.raises(InvalidSettingsError, match=says):
        WatchedBudget.from_environment(environment, context().invoked_function_arn)


@pytest.mark.parametrize("event", [{"action": "stop"}, {"action": ["tick"]}, {"act": "tick"}])
def test_an_event_for_something_else_is_refused(event: dict[str, object]) -> None:
    with pytest.raises(InvalidEventError, match="the event takes action, one of tick, status, got"):
        parse_request(event)
