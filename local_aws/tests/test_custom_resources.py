"""Custom resources: the function answers at a signed address, and a stack fails as AWS says it where it does not."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from function_scene import made_function
from local_aws import LocalAws
from local_aws_scene import Stacks, Template

# What it answers is in the environment, so that a test can change its mind between two requests.
_HANDLER = """
import json, os, time
from urllib.error import HTTPError
from urllib.request import Request, urlopen

def _described(api, event):
    try:
        said = api.describe_stack_resource(StackName=event["StackId"], LogicalResourceId=event["LogicalResourceId"])
    except Exception as error:
        return str(error)
    return [said["StackResourceDetail"].get(key) for key in ("ResourceStatus", "PhysicalResourceId")]

def handler(event, context):
    mind = json.loads(os.environ["MIND"])
    kind = event["RequestType"]
    if kind in mind.get("silent", []):
        return
    import boto3
    boto3.client("ssm").put_parameter(
        Name="/custom/last", Value=json.dumps([kind, event.get("PhysicalResourceId")]), Type="String", Overwrite=True
    )
    seen = {**event, "described": _described(boto3.client("cloudformation"), event)}
    boto3.client("ssm").put_parameter(Name=f"/custom/seen/{time.time_ns()}", Value=json.dumps(seen), Type="String")
    answer = {
        "Status": "FAILED" if kind in mind.get("fails", []) else "SUCCESS",
        "Reason": "no such thing",
        "PhysicalResourceId": event["ResourceProperties"].get("Called") or mind.get("id", "made"),
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


def seen(aws: LocalAws) -> list[dict[str, Any]]:
    """Return the requests since the last call, oldest first."""
    api = aws.client("ssm")
    pages = api.get_paginator("get_parameters_by_path").paginate(Path="/custom/seen")
    found = sorted(pages.search("Parameters[].[Name, Value]"))
    for name, _ in found:
        api.delete_parameter(Name=name)
    return [json.loads(value) for _, value in found]


def with_properties(**properties: Any) -> Template:
    properties = {"ServiceToken": _ARN, **properties}
    return {"Resources": {"Custom": {"Type": "Custom::Thing", "Properties": properties}}}


def failing(template: Template) -> Template:
    """Return the template with a resource that fails after the custom one."""
    wrong = {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": ""}, "DependsOn": "Custom"}
    return {"Resources": {**template["Resources"], "Wrong": wrong}}


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


def test_a_resource_of_its_own_type_gets_its_properties_as_text(aws: LocalAws, stacks: Stacks) -> None:
    think(aws, "{}")
    seen(aws)
    name = stacks.create(with_properties(Count=8, Yes=True, More=[{"Size": 1.5}], ServiceTimeout=60))
    (event,) = seen(aws)
    assert event["ResourceProperties"] == {
        "ServiceToken": _ARN,
        "ServiceTimeout": "60",
        "Count": "8",
        "Yes": "true",
        "More": [{"Size": "1.5"}],
    }
    assert event["StackId"] == stacks.api.describe_stacks(StackName=name)["Stacks"][0]["StackId"]
    assert event["ResourceType"] == "Custom::Thing"
    assert event["described"] == ["CREATE_IN_PROGRESS", None]


def _turns(aws: LocalAws) -> list[tuple[str, str | None, str, Any]]:
    return [
        (
            event["RequestType"],
            event.get("PhysicalResourceId"),
            event["ResourceProperties"].get("Called", ""),
            event["described"],
        )
        for event in seen(aws)
    ]


def test_another_name_is_a_replacement_and_what_is_replaced_goes_afterwards(aws: LocalAws, stacks: Stacks) -> None:
    think(aws, "{}")
    seen(aws)
    name = stacks.create(with_properties(Called="one"))
    stacks.update(name, with_properties(Called="two"))
    assert (stacks.status(name), stacks.physical_ids(name)) == ("UPDATE_COMPLETE", {"Custom": "two"})
    assert _turns(aws) == [
        ("Create", None, "one", ["CREATE_IN_PROGRESS", None]),
        ("Update", "one", "two", ["UPDATE_IN_PROGRESS", "one"]),
        ("Delete", "one", "one", ["UPDATE_COMPLETE", "two"]),
    ]
    stacks.api.delete_stack(StackName=name)
    assert _turns(aws) == [("Delete", "two", "two", ["DELETE_IN_PROGRESS", "two"])]


def test_a_replacement_is_rolled_back_by_another(aws: LocalAws, stacks: Stacks) -> None:
    think(aws, "{}")
    name = stacks.create(with_properties(Called="one"))
    seen(aws)
    stacks.update(name, failing(with_properties(Called="two")))
    assert (stacks.status(name), stacks.physical_ids(name)) == ("UPDATE_ROLLBACK_COMPLETE", {"Custom": "one"})
    assert _turns(aws) == [
        ("Update", "one", "two", ["UPDATE_IN_PROGRESS", "one"]),
        ("Update", "two", "one", ["UPDATE_IN_PROGRESS", "two"]),
        ("Delete", "two", "two", ["UPDATE_COMPLETE", "one"]),
    ]


def test_what_leaves_a_template_is_described_no_longer(aws: LocalAws, stacks: Stacks) -> None:
    think(aws, "{}")
    other = {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": "x"}}
    name = stacks.create(with_properties(Called="one"))
    seen(aws)
    stacks.update(name, {"Resources": {"Other": other}})
    ((kind, physical, _, described),) = _turns(aws)
    assert (kind, physical) == ("Delete", "one")
    assert "Resource Custom does not exist for stack" in described


def test_a_creation_that_nobody_answers_is_deleted_under_a_name_that_is_made_up(
    aws: LocalAws, stacks: Stacks
) -> None:
    think(aws, '{"silent": ["Create"]}')
    seen(aws)
    name = stacks.create(with_properties(Called="one"))
    assert stacks.status(name) == "ROLLBACK_COMPLETE"
    ((kind, physical, _, described),) = _turns(aws)
    assert (kind, described) == ("Delete", ["DELETE_IN_PROGRESS", physical])
    assert str(physical).startswith(f"{name}-Custom-")


def test_a_creation_that_fails_is_deleted_under_the_name_of_the_answer(aws: LocalAws, stacks: Stacks) -> None:
    think(aws, '{"fails": ["Create"]}')
    seen(aws)
    name = stacks.create(with_properties(Called="one"))
    assert stacks.status(name) == "ROLLBACK_COMPLETE"
    assert [(kind, physical) for kind, physical, _, _ in _turns(aws)] == [("Create", None), ("Delete", "one")]


def test_another_token_is_refused_and_rolled_back(aws: LocalAws, stacks: Stacks) -> None:
    think(aws, "{}")
    name = stacks.create(with_properties(Called="one"))
    with made_function(aws, "other", _HANDLER, {"MIND": "{}"}) as other:
        seen(aws)
        stacks.update(name, with_properties(Called="one", ServiceToken=other))
    assert stacks.status(name) == "UPDATE_ROLLBACK_COMPLETE"
    assert "Modifying service token is not allowed." in stacks.reasons(name)["Custom"]
    assert seen(aws) == []
