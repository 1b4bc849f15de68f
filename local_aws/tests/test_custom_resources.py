"""Custom resources: the function answers at a signed address, and a stack fails as AWS says it where it does not."""

from collections.abc import Iterator
from typing import Any

import pytest

from function_scene import made_function
from local_aws import LocalAws
from local_aws_scene import Stacks, Template

# What it answers is in the environment, so that a test can change its mind between two requests.
_HANDLER = """
import json, os
from urllib.error import HTTPError
from urllib.request import Request, urlopen

def handler(event, context):
    mind = json.loads(os.environ["MIND"])
    kind = event["RequestType"]
    if kind in mind.get("silent", []):
        return
    import boto3
    boto3.client("ssm").put_parameter(
        Name="/custom/last", Value=json.dumps([kind, event.get("PhysicalResourceId")]), Type="String", Overwrite=True
    )
    answer = {
        "Status": "FAILED" if kind in mind.get("fails", []) else "SUCCESS",
        "Reason": "no such thing",
        "PhysicalResourceId": mind.get("id", "made"),
        **{key: event[key] for key in ("StackId", "RequestId", "LogicalResourceId")},
    }
    headers = {"Content-Type": mind.get("content type", "")}
    try:
        urlopen(Request(event["ResponseURL"], json.dumps(answer).encode(), headers, method="PUT"))
    except HTTPError as error:
        print(error.code, error.read())
"""
_ARN = "arn:aws:lambda:us-east-1:123456789012:function:custom"
TEMPLATE: Template = {
    "Resources": {
        "Custom": {
            "Type": "AWS::CloudFormation::CustomResource",
            "Properties": {"ServiceToken": _ARN, "ServiceTimeout": 60},
        }
    }
}
SILENT = "CloudFormation did not receive a response from your custom resource. Please check your logs for requestId ["


@pytest.fixture(autouse=True, scope="module")
def _function(aws: LocalAws) -> Iterator[None]:
    with made_function(aws, "custom", _HANDLER, {"MIND": "{}"}):
        yield


def think(aws: LocalAws, mind: str) -> None:
    aws.client("lambda").update_function_configuration(
        FunctionName="custom", Environment={"Variables": {"MIND": mind}}
    )


def last(aws: LocalAws) -> str:
    return str(aws.client("ssm").get_parameter(Name="/custom/last")["Parameter"]["Value"])


def with_timeout(seconds: int) -> Template:
    properties: dict[str, Any] = {"ServiceToken": _ARN, "ServiceTimeout": seconds}
    return {"Resources": {"Custom": {**TEMPLATE["Resources"]["Custom"], "Properties": properties}}}


def test_it_is_asked_in_every_turn_of_its_life(aws: LocalAws, stacks: Stacks) -> None:
    think(aws, "{}")
    name = stacks.create(TEMPLATE)
    assert (stacks.status(name), last(aws)) == ("CREATE_COMPLETE", '["Create", null]')
    assert stacks.physical_ids(name) == {"Custom": "made"}
    stacks.update(name, with_timeout(90))
    assert (stacks.status(name), last(aws)) == ("UPDATE_COMPLETE", '["Update", "made"]')
    stacks.api.delete_stack(StackName=name)
    assert last(aws) == '["Delete", "made"]'


@pytest.mark.parametrize(
    ("mind", "reason"),
    [
        ('{"silent": ["Create"]}', SILENT),
        ('{"content type": "application/json"}', SILENT),
        (
            '{"fails": ["Create"]}',
            "Received response status [FAILED] from custom resource. Message returned: no such thing (RequestId: ",
        ),
    ],
)
def test_who_does_not_answer_well_fails_the_stack(mind: str, reason: str, aws: LocalAws, stacks: Stacks) -> None:
    think(aws, mind)
    name = stacks.create(TEMPLATE)

    assert stacks.status(name).startswith("ROLLBACK_")
    assert reason in stacks.reasons(name)["Custom"]


def test_who_is_silent_on_deletion_blocks_it(aws: LocalAws, stacks: Stacks) -> None:
    think(aws, '{"silent": ["Delete"]}')
    name = stacks.create(TEMPLATE)
    stacks.api.delete_stack(StackName=name)

    assert stacks.status(name) == "DELETE_FAILED"
    assert SILENT in stacks.reasons(name)["Custom"]
    think(aws, "{}")
