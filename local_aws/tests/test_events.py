"""EventBridge rules: which events reach which targets, with which input, and who may be invoked."""

import copy
import json
from typing import Any

import pytest

from local_aws import LocalAws, LocalAwsError
from local_aws_scene import ROLE, Stacks, Template

DELIVERED = "Capacity Block Reservation Delivered"
BLOCK = "cr-0123456789abcdef0"

TEMPLATE: Template = {
    "Resources": {
        "Role": ROLE,
        "Power": {
            "Type": "AWS::Lambda::Function",
            "Properties": {
                "Code": {"ZipFile": "def handler(event, context): return event"},
                "Handler": "index.handler",
                "Runtime": "python3.13",
                "Role": {"Fn::GetAtt": ["Role", "Arn"]},
            },
        },
        "Block": {
            "Type": "AWS::Events::Rule",
            "Properties": {
                "Description": "Starts and ends with the block.",
                "EventPattern": {
                    "source": ["aws.ec2"],
                    "detail-type": [DELIVERED, "Capacity Block Delivered"],
                    "detail": {"capacity-reservation-id": [BLOCK]},
                },
                "State": "ENABLED",
                "Targets": [
                    {
                        "Arn": {"Fn::GetAtt": ["Power", "Arn"]},
                        "Id": "Power",
                        "Input": json.dumps({"action": "tick"}),
                    }
                ],
                "Tags": [{"Key": "cluster", "Value": "test"}],
            },
        },
        "Permission": {
            "Type": "AWS::Lambda::Permission",
            "Properties": {
                "FunctionName": {"Ref": "Power"},
                "Action": "lambda:InvokeFunction",
                "Principal": "events.amazonaws.com",
                "SourceArn": {"Fn::GetAtt": ["Block", "Arn"]},
            },
        },
    }
}


def _event(**changes: Any) -> dict[str, Any]:
    return {
        "source": "aws.ec2",
        "detail-type": DELIVERED,
        "detail": {"capacity-reservation-id": BLOCK, "end-date": "2026-12-01T00:00:00Z"},
        **changes,
    }


@pytest.fixture
def template() -> Template:
    return copy.deepcopy(TEMPLATE)


def _rule(template: Template) -> dict[str, Any]:
    rule: dict[str, Any] = template["Resources"]["Block"]["Properties"]
    return rule


def test_an_event_invokes_the_function_with_its_constant_input(
    aws: LocalAws, stacks: Stacks, template: Template
) -> None:
    ids = stacks.physical_ids(stacks.create(template))
    (invocation,) = aws.send_event(_event())
    assert invocation == {
        "rule": ids["Block"],
        "id": "Power",
        "target": f"arn:aws:lambda:us-east-1:123456789012:function:{ids['Power']}",
        "input": {"action": "tick"},
    }


OTHERS = [
    ("another source", _event(source="aws.s3")),
    ("another kind", _event(**{"detail-type": "Capacity Block Gone"})),
    ("another block", _event(detail={"capacity-reservation-id": "cr-0fedcba9876543210"})),
    ("no block at all", _event(detail={})),
]


@pytest.mark.parametrize("event", [row[1] for row in OTHERS], ids=[row[0] for row in OTHERS])
def test_other_events_invoke_nothing(
    aws: LocalAws, stacks: Stacks, template: Template, event: dict[str, Any]
) -> None:
    stacks.create(template)
    assert aws.send_event(event) == []


def test_a_disabled_rule_and_a_deleted_one_invoke_nothing(aws: LocalAws, stacks: Stacks, template: Template) -> None:
    name = stacks.create(template)
    _rule(template)["State"] = "DISABLED"
    stacks.update(name, template)
    assert stacks.reasons(name) == {}
    assert aws.send_event(_event()) == []
    _rule(template)["State"] = "ENABLED"
    stacks.update(name, template)
    assert len(aws.send_event(_event())) == 1
    stacks.api.delete_stack(StackName=name)
    assert aws.send_event(_event()) == []


def test_without_an_input_the_target_is_given_the_whole_event(
    aws: LocalAws, stacks: Stacks, template: Template
) -> None:
    del _rule(template)["Targets"][0]["Input"]
    stacks.create(template)
    (invocation,) = aws.send_event(_event(time="2026-11-30T11:20:00Z"))
    given = invocation["input"]
    assert given.pop("id")
    assert given == {
        **_event(),
        "version": "0",
        "account": "123456789012",
        "region": "us-east-1",
        "resources": [],
        "time": "2026-11-30T11:20:00Z",
    }


def test_an_input_transformer_makes_the_input(aws: LocalAws, stacks: Stacks, template: Template) -> None:
    (target,) = _rule(template)["Targets"]
    del target["Input"]
    target["InputTransformer"] = {
        "InputPathsMap": {"block": "$.detail.capacity-reservation-id"},
        "InputTemplate": '{"block": "<block>"}',
    }
    stacks.create(template)
    assert [invocation["input"] for invocation in aws.send_event(_event())] == [{"block": BLOCK}]


def _without_permission(template: Template) -> None:
    del template["Resources"]["Permission"]


def _for_another_rule(template: Template) -> None:
    arn = "arn:aws:events:us-east-1:123456789012:rule/other"
    template["Resources"]["Permission"]["Properties"]["SourceArn"] = arn


def _for_another_service(template: Template) -> None:
    template["Resources"]["Permission"]["Properties"]["Principal"] = "s3.amazonaws.com"


@pytest.mark.parametrize("change", [_without_permission, _for_another_rule, _for_another_service])
def test_a_function_that_eventbridge_may_not_invoke_is_told(
    aws: LocalAws, stacks: Stacks, template: Template, change: Any
) -> None:
    change(template)
    rule = stacks.physical_ids(stacks.create(template))["Block"]
    with pytest.raises(LocalAwsError, match=rf"EventBridge may not invoke the function of the rule {rule}"):
        aws.send_event(_event())


def test_an_input_that_is_no_json_fails_the_rule(stacks: Stacks, template: Template) -> None:
    _rule(template)["Targets"][0]["Input"] = "{action: tick}"
    reasons = stacks.reasons(stacks.create(template))
    assert "JSON syntax error in input for target Power." in reasons["Block"]


def test_a_rules_tags_change_in_place(aws: LocalAws, stacks: Stacks, template: Template) -> None:
    name = stacks.create(template)
    rule = stacks.physical_ids(name)["Block"]
    _rule(template)["Tags"] = [{"Key": "team", "Value": "ml"}]
    stacks.update(name, template)
    assert stacks.physical_ids(name)["Block"] == rule
    arn = f"arn:aws:events:us-east-1:123456789012:rule/{rule}"
    assert aws.client("events").list_tags_for_resource(ResourceARN=arn)["Tags"] == [{"Key": "team", "Value": "ml"}]


def test_an_event_without_its_source_is_an_error(aws: LocalAws) -> None:
    with pytest.raises(LocalAwsError, match="missing key 'source'"):
        aws.send_event({"detail-type": DELIVERED, "detail": {}})
