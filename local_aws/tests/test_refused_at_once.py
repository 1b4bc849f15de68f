"""What CloudFormation refuses before it starts: there is no stack afterwards."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_aws import LocalAws
from local_aws_scene import ROLE, Stacks, Template

TOPIC: Template = {"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}


def _topic(**properties: Any) -> Template:
    return {"Resources": {"Topic": {"Type": "AWS::SNS::Topic", "Properties": properties}}}


# Words of the refusal, and the template.
REFUSED: dict[str, Any] = {
    "Invalid template property or properties [nothing]": "nothing: here",
    "At least one Resources member must be defined.": {"Outputs": {}},
    "Every Resources object must contain a Type member.": {"Resources": {"A": {}}},
    "Unresolved resource dependencies [Nothing]": _topic(DisplayName={"Ref": "Nothing"}),
    "Unresolved resource dependencies [Nothing] in the Resources block": _topic(
        DisplayName={"Fn::Sub": "${Nothing.Arn}"}
    ),
    "Circular dependency between resources: [A, B]": {
        "Resources": {
            "A": {"Type": "AWS::SNS::Topic", "DependsOn": "B"},
            "B": {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": {"Ref": "A"}}},
        }
    },
    "Parameters: [P] must have values": {**TOPIC, "Parameters": {"P": {"Type": "String"}}},
    "Parameter 'P' must be one of AllowedValues": {
        **TOPIC,
        "Parameters": {"P": {"Type": "String", "Default": "c", "AllowedValues": ["a", "b"]}},
    },
    "Unable to fetch parameters [/nothing] from parameter store": {
        **TOPIC,
        "Parameters": {"P": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/nothing"}},
    },
    "parameter value ami-0123456789abcdef0 for parameter name P does not exist": {
        **TOPIC,
        "Parameters": {"P": {"Type": "AWS::EC2::Image::Id", "Default": "ami-0123456789abcdef0"}},
    },
    "Template validation error: Rule Never": {
        **TOPIC,
        "Rules": {"Never": {"Assertions": [{"Assert": {"Fn::Equals": ["a", "b"]}}]}},
    },
    "Invalid template property or properties [Transform]": {**TOPIC, "Transform": "AWS::LanguageExtensions"},
    "Unresolved condition dependency Never": {
        "Resources": {"Topic": {"Type": "AWS::SNS::Topic", "Condition": "Never"}}
    },
}


@pytest.mark.parametrize("words", REFUSED)
def test_a_template_that_makes_no_sense_is_refused_at_once(aws: LocalAws, words: str) -> None:
    api, template = aws.client("cloudformation"), REFUSED[words]
    before = len(api.describe_stacks()["Stacks"])
    body = template if isinstance(template, str) else json.dumps(template)
    with pytest.raises(ClientError) as refusal:
        api.create_stack(StackName="senseless", TemplateBody=body)
    assert refusal.value.response["Error"]["Code"] == "ValidationError"
    assert words in refusal.value.response["Error"]["Message"]
    assert len(api.describe_stacks()["Stacks"]) == before


def test_iam_resources_need_a_capability(aws: LocalAws) -> None:
    template = json.dumps({"Resources": {"Role": ROLE}})
    with pytest.raises(ClientError, match=r"Requires capabilities : \[CAPABILITY_IAM\]"):
        aws.client("cloudformation").create_stack(StackName="incapable", TemplateBody=template)


def test_an_update_without_a_change_is_refused(stacks: Stacks) -> None:
    name = stacks.create(TOPIC)
    with pytest.raises(ClientError, match=r"No updates are to be performed\."):
        stacks.update(name, TOPIC)
    assert stacks.status(name) == "CREATE_COMPLETE"


def test_an_update_may_not_change_a_resource_type(stacks: Stacks) -> None:
    name = stacks.create(TOPIC)
    with pytest.raises(ClientError, match=r"Update of resource type is not permitted.*\[Topic\]"):
        stacks.update(name, {"Resources": {"Topic": {"Type": "AWS::SQS::Queue"}}})


def test_a_stack_that_rolled_back_must_be_deleted_first(stacks: Stacks) -> None:
    name = stacks.create({"Resources": {"Fleet": {"Type": "AWS::EC2::EC2Fleet"}}})
    with pytest.raises(ClientError, match="is in ROLLBACK_COMPLETE state and can not be updated"):
        stacks.update(name, TOPIC)


def test_an_action_that_moto_lacks_is_a_400_with_its_name(aws: LocalAws) -> None:
    calls: dict[str, Callable[[], object]] = {
        "DescribeFastLaunchImages": aws.client("ec2").describe_fast_launch_images,
        "LookupEvents": aws.client("cloudtrail").lookup_events,
        "DescribeFileCaches": aws.client("fsx").describe_file_caches,
        "ListCodeSigningConfigs": aws.client("lambda").list_code_signing_configs,
    }
    for action, call in calls.items():
        with pytest.raises(ClientError, match=f"the local AWS cannot do {action}") as refusal:
            call()
        assert refusal.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
