"""Lambda's Invoke: the function's own zip runs, calls back, fails as Lambda says it, and can live later."""

import base64
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ClientError

from function_scene import made_function
from local_aws import LocalAws

_HANDLER = """
import os, time
from datetime import datetime, timezone

def handler(event, context):
    if event.get("fail"):
        raise RuntimeError("no capacity for this")
    if event.get("exit"):
        os._exit(3)
    if event.get("remember"):
        import boto3
        boto3.client("ssm").put_parameter(
            Name=event["remember"], Value=context.function_name, Type="String", Overwrite=True
        )
    if event.get("wait_for"):
        import boto3
        ssm = boto3.client("ssm")
        ssm.put_parameter(Name=event["wait_for"], Value="runs", Type="String", Overwrite=True)
        while ssm.get_parameter(Name=event["wait_for"])["Parameter"]["Value"] == "runs":
            pass
    print("a line of the log")
    now, arn = datetime.now(timezone.utc).isoformat(), context.invoked_function_arn
    return {"event": event, "arn": arn, "says": os.environ["SAYS"], "now": now, "time": time.time()}
"""
_ARN = "arn:aws:lambda:us-east-1:123456789012:function:{}"


@pytest.fixture(scope="module")
def function(aws: LocalAws) -> Iterator[str]:
    with made_function(aws, "invoked", _HANDLER, {"SAYS": "hello"}):
        yield "invoked"


def test_what_a_function_writes_is_in_its_log_group(aws: LocalAws, function: str) -> None:
    _invoke(aws, {})
    pages = aws.client("logs").get_paginator("filter_log_events")
    found = pages.paginate(logGroupName=f"/aws/lambda/{function}", filterPattern='"line of"')
    assert "a line of the log" in list(found.search("events[].message"))


def _invoke(aws: LocalAws, event: object, **words: Any) -> Any:
    return aws.client("lambda").invoke(**{"FunctionName": "invoked", "Payload": json.dumps(event).encode(), **words})


def _said(answer: Any) -> Any:
    return json.loads(answer["Payload"].read())


def test_a_function_calls_back_to_the_local_aws(aws: LocalAws, function: str) -> None:
    answer = _invoke(aws, {"remember": "/invoked/by"}, LogType="Tail")
    assert (answer["StatusCode"], answer.get("FunctionError")) == (200, None)
    said = _said(answer)
    assert (said["event"], said["says"]) == ({"remember": "/invoked/by"}, "hello")
    assert aws.client("ssm").get_parameter(Name="/invoked/by")["Parameter"]["Value"] == function
    assert b"a line of the log" in base64.b64decode(answer["LogResult"])
    assert "invoked: a line of the log" in aws.log.read_text()


@pytest.mark.usefixtures("function")
def test_an_event_has_had_its_effect_when_it_is_accepted(aws: LocalAws) -> None:
    answer = _invoke(aws, {"remember": "/invoked/event"}, InvocationType="Event", FunctionName=_ARN.format("invoked"))
    assert (answer["StatusCode"], answer["Payload"].read()) == (202, b"")
    assert aws.client("ssm").get_parameter(Name="/invoked/event")["Parameter"]["Value"] == "invoked"


def test_a_function_is_told_the_alias_that_it_is_invoked_through(aws: LocalAws, function: str) -> None:
    client, arn = aws.client("lambda"), _ARN.format(function)
    client.create_alias(FunctionName=function, Name="operate", FunctionVersion="$LATEST")
    for words, alias in (
        ({}, ""),
        ({"FunctionName": f"{function}:operate"}, ":operate"),
        ({"FunctionName": f"{arn}:operate"}, ":operate"),
        ({"Qualifier": "operate"}, ":operate"),
        ({"Qualifier": "$LATEST"}, ""),
    ):
        assert _said(_invoke(aws, {}, **words))["arn"] == f"{arn}{alias}"
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        _invoke(aws, {}, Qualifier="nobody")


@pytest.mark.usefixtures("function")
@pytest.mark.parametrize(
    ("event", "kind", "message"),
    [
        ({"fail": True}, "RuntimeError", "no capacity for this"),
        ({"exit": True}, "Runtime.ExitError", "invoked ended with exit status 3"),
    ],
    ids=["raises", "ends"],
)
def test_a_failure_is_the_payload(aws: LocalAws, event: object, kind: str, message: str) -> None:
    answer = _invoke(aws, event)
    assert (answer["StatusCode"], answer["FunctionError"]) == (200, "Unhandled")
    assert _said(answer) == {"errorMessage": message, "errorType": kind}


def test_a_failed_event_is_tried_again_and_then_kept_with_its_error(aws: LocalAws, function: str) -> None:
    sqs, lambda_ = aws.client("sqs"), aws.client("lambda")
    queue = sqs.create_queue(QueueName="failed-events")["QueueUrl"]
    arn = "arn:aws:sqs:us-east-1:123456789012:failed-events"
    config = {"MaximumRetryAttempts": 1, "DestinationConfig": {"OnFailure": {"Destination": arn}}}
    with pytest.raises(ClientError, match=f"does not have permissions to call SendMessage on {arn}"):
        lambda_.put_function_event_invoke_config(FunctionName=function, **config)
    statement = {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": arn}
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    aws.client("iam").put_role_policy(RoleName=function, PolicyName="send", PolicyDocument=document)
    lambda_.put_function_event_invoke_config(FunctionName=function, **config)

    _invoke(aws, {"fail": True}, InvocationType="Event")

    [message] = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10)["Messages"]
    record = json.loads(message["Body"])
    assert (
        record["requestContext"] | {"condition": "RetriesExhausted", "approximateInvokeCount": 2}
        == (record["requestContext"])
    )
    assert (record["requestPayload"], record["responsePayload"]["errorType"]) == ({"fail": True}, "RuntimeError")

    lambda_.create_alias(FunctionName=function, Name="kept", FunctionVersion="$LATEST")
    _invoke(aws, {"fail": True}, InvocationType="Event", Qualifier="kept")
    assert not sqs.receive_message(QueueUrl=queue).get("Messages"), "an alias has a configuration of its own"
    lambda_.put_function_event_invoke_config(
        FunctionName=function, Qualifier="kept", **{**config, "MaximumRetryAttempts": 0}
    )
    _invoke(aws, {"fail": True}, InvocationType="Event", Qualifier="kept")
    [message] = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10)["Messages"]
    context = json.loads(message["Body"])["requestContext"]
    assert (context["functionArn"], context["approximateInvokeCount"]) == (f"{_ARN.format(function)}:kept", 1)

    lambda_.delete_function_event_invoke_config(FunctionName=function, Qualifier="kept")
    with pytest.raises(lambda_.exceptions.ResourceNotFoundException):
        lambda_.get_function_event_invoke_config(FunctionName=function, Qualifier="kept")
    assert lambda_.get_function_event_invoke_config(FunctionName=function)["MaximumRetryAttempts"] == 1
    aws.client("iam").delete_role_policy(RoleName=function, PolicyName="send")


def test_beyond_its_reserved_concurrency_a_request_is_refused_and_an_event_waits(
    aws: LocalAws, function: str
) -> None:
    lambda_, ssm = aws.client("lambda"), aws.client("ssm")
    lambda_.put_function_concurrency(FunctionName=function, ReservedConcurrentExecutions=1)
    with ThreadPoolExecutor() as pool:
        first = pool.submit(_invoke, aws, {"wait_for": "/invoked/running"})
        while not ssm.get_parameters(Names=["/invoked/running"])["Parameters"]:
            assert not first.done(), first.result()
        with pytest.raises(ClientError) as error:
            _invoke(aws, {})
        event = pool.submit(_invoke, aws, {"remember": "/invoked/late"}, InvocationType="Event")
        assert not ssm.get_parameters(Names=["/invoked/late"])["Parameters"]
        ssm.put_parameter(Name="/invoked/running", Value="ends", Type="String", Overwrite=True)
        assert (first.result()["StatusCode"], event.result()["StatusCode"]) == (200, 202)
    assert error.value.response["Error"]["Code"] == "TooManyRequestsException"
    assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 429
    assert ssm.get_parameter(Name="/invoked/late")["Parameter"]["Value"] == function
    lambda_.delete_function_concurrency(FunctionName=function)


def test_no_account_is_left_with_fewer_than_100_unreserved_executions(aws: LocalAws, function: str) -> None:
    with pytest.raises(ClientError, match=r"below its minimum value of \[100\]"):
        aws.client("lambda").put_function_concurrency(FunctionName=function, ReservedConcurrentExecutions=901)


def test_an_unknown_function_is_not_found(aws: LocalAws) -> None:
    with pytest.raises(ClientError, match=f"Function not found: {_ARN.format('nobody')}") as error:
        _invoke(aws, {}, FunctionName="nobody")
    assert error.value.response["Error"]["Code"] == "ResourceNotFoundException"
    assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 404
