"""EventBridge rules: what is refused of their targets, and what changes in place."""

import copy
import json
from typing import Any

import pytest

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


@pytest.fixture
def template() -> Template:
    return copy.deepcopy(TEMPLATE)


def _rule(template: Template) -> dict[str, Any]:
    rule: dict[str, Any] = template["Resources"]["Block"]["Properties"]
    return rule


def test_an_input_that_is_no_json_fails_the_rule(stacks: Stacks, template: Template) -> None:
    _rule(template)["Targets"][0]["Input"] = "{action: tick}"
    reasons = stacks.reasons(stacks.create(template))
    assert "JSON syntax error in input for target Power." in reasons["Block"]
