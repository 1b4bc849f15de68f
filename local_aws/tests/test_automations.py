"""Automation runbooks that invoke functions."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from function_scene import made_function
from local_aws import LocalAws
from local_aws_scene import Stacks

_HANDLER = """
def handler(event, context):
    if event["reason"] == "fail":
        raise RuntimeError("no capacity for this")
    return {"started": event["node_groups"]}
"""
_CODE = "InvalidAutomationExecutionParametersException"


@pytest.fixture(scope="module")
def function(aws: LocalAws) -> Iterator[str]:
    with made_function(aws, "starter", _HANDLER, {}) as arn:
        yield arn


@pytest.fixture(autouse=True)
def as_before(aws: LocalAws) -> Iterator[None]:
    aws.forget_calls()
    yield
    aws.clear_faults()


def _content(function: str, **inputs: Any) -> dict[str, Any]:
    payload = {"node_groups": "{{ Groups }}", "by": "run {{ automation:EXECUTION_ID }}", "reason": "{{Reason}}"}
    step = {
        "name": "Start",
        "action": "aws:invokeLambdaFunction",
        "timeoutSeconds": 60,
        "isEnd": True,
        "inputs": {"FunctionName": function, **(inputs or {"InputPayload": payload})},
    }
    return {
        "schemaVersion": "0.3",
        "parameters": {
            "Groups": {"type": "StringList", "allowedValues": ["a", "b"], "default": ["a", "b"]},
            "Reason": {"type": "String", "allowedPattern": "^[a-z ]+$"},
        },
        "mainSteps": [step],
        "outputs": ["Start.Payload"],
    }


@pytest.fixture
def runbook(stacks: Stacks, function: str) -> str:
    properties = {"Content": _content(function), "DocumentType": "Automation"}
    name = stacks.create({"Resources": {"Runbook": {"Type": "AWS::SSM::Document", "Properties": properties}}})
    assert stacks.reasons(name) == {}
    return stacks.physical_ids(name)["Runbook"]


def _run(aws: LocalAws, runbook: str, **parameters: list[str]) -> dict[str, Any]:
    ssm = aws.client("ssm")
    execution = ssm.start_automation_execution(DocumentName=runbook, Parameters=parameters)["AutomationExecutionId"]
    ended: dict[str, Any] = ssm.get_automation_execution(AutomationExecutionId=execution)["AutomationExecution"]
    return ended


def test_a_runbook_invokes_its_function_with_its_parameters(aws: LocalAws, runbook: str) -> None:
    ended = _run(aws, runbook, Reason=["we go on"])
    assert ended["AutomationExecutionStatus"] == "Success"
    assert [json.loads(text) for text in ended["Outputs"]["Start.Payload"]] == [{"started": ["a", "b"]}]
    (call,) = aws.calls("Invoke")
    assert json.loads(call.parameters["Payload"]) == {
        "node_groups": ["a", "b"],
        "by": f"run {ended['AutomationExecutionId']}",
        "reason": "we go on",
    }
    (step,) = ended["StepExecutions"]
    assert (step["StepName"], step["StepStatus"], step["Outputs"]["StatusCode"]) == ("Start", "Success", ["200"])


def test_a_function_that_fails_fails_the_runbook(aws: LocalAws, runbook: str) -> None:
    ended = _run(aws, runbook, Reason=["fail"])
    assert ended["AutomationExecutionStatus"] == "Failed"
    assert "FunctionError: Unhandled" in ended["FailureMessage"]
    assert "no capacity for this" in ended["FailureMessage"]
    aws.fail("Invoke", "TooManyRequestsException", "Rate exceeded")
    ended = _run(aws, runbook, Reason=["go"])
    assert ended["AutomationExecutionStatus"] == "Failed"
    assert "TooManyRequestsException" in ended["FailureMessage"]
    assert "not successfully executed" in ended["Outputs"]["Start.Payload"][0]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"Reason": ["x"], "Other": ["y"]}, "Undefined execution inputs: [Other]"),
        ({}, "Missing required parameter: Reason in user inputs."),
        ({"Reason": ["x"], "Groups": ["a", "c"]}, 'Parameter "Groups" has value "c" not found in [a, b].'),
        ({"Reason": ["X"]}, 'Parameter "Reason" has value "X" not matching ^[a-z ]+$.'),
        ({"Reason": ["x", "y"]}, 'Parameter "Reason" of type String takes one value, got 2.'),
    ],
    ids=["unknown", "missing", "not allowed", "no match", "two"],
)
def test_wrong_parameters_are_refused(
    aws: LocalAws, runbook: str, parameters: dict[str, list[str]], message: str
) -> None:
    with pytest.raises(ClientError) as error:
        _run(aws, runbook, **parameters)
    assert (error.value.response["Error"]["Code"], error.value.response["Error"]["Message"]) == (_CODE, message)
    assert aws.calls("Invoke") == []


@pytest.mark.parametrize("service", ["lambda.amazonaws.com", "ssm.amazonaws.com"])
def test_a_runbooks_role_must_be_one_that_automation_can_assume(
    aws: LocalAws, stacks: Stacks, function: str, service: str
) -> None:
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": service}}
    role = {"AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [trust]}}
    content = {**_content(function), "assumeRole": {"Fn::GetAtt": ["Role", "Arn"]}}
    name = stacks.create(
        {
            "Resources": {
                "Role": {"Type": "AWS::IAM::Role", "Properties": role},
                "Runbook": {
                    "Type": "AWS::SSM::Document",
                    "Properties": {"Content": content, "DocumentType": "Automation"},
                },
            }
        }
    )
    runbook = stacks.physical_ids(name)["Runbook"]
    if service == "ssm.amazonaws.com":
        assert _run(aws, runbook, Reason=["go"])["AutomationExecutionStatus"] == "Success"
        return
    with pytest.raises(ClientError, match="The defined assume role is unable to be assumed"):
        _run(aws, runbook, Reason=["go"])
