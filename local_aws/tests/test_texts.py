"""Texts that AWS refuses: each with the code of its service, and a legal one beside it."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_aws import LocalAws
from local_aws.texts import refusal_of
from local_aws_scene import ROLE, Stacks, imported

_RULE = {"CidrIp": "10.0.0.0/8", "IpProtocol": "-1"}
_ARN = "arn:aws:sns:us-east-1:123456789012:topic"


@pytest.mark.parametrize(
    ("description", "refused"),
    [("the file system's servers", True), ("a" * 256, True), ("a" * 255, False), ("(a) #1, [b] = {c}; *$!", False)],
)
def test_a_rule_has_a_description_that_ec2_takes(stacks: Stacks, description: str, refused: bool) -> None:
    group = {
        "GroupDescription": "x",
        "VpcId": imported("Vpc"),
        "SecurityGroupIngress": [{**_RULE, "Description": description}],
    }
    name = stacks.create({"Resources": {"Group": {"Type": "AWS::EC2::SecurityGroup", "Properties": group}}})
    assert stacks.status(name) == ("ROLLBACK_COMPLETE" if refused else "CREATE_COMPLETE")
    if refused:
        assert "Invalid rule description" in stacks.reasons(name)["Group"]


# What functions call at run time, and one of each protocol: the call, its parameters, and the code.
CALLS: list[tuple[str, str, dict[str, Any], str]] = [
    ("ec2", "create_tags", {"Resources": ["i-1"], "Tags": [{"Key": "aws:a", "Value": ""}]}, "InvalidParameterValue"),
    (
        "ec2",
        "create_tags",
        {"Resources": ["i-1"], "Tags": [{"Key": "a", "Value": "b" * 257}]},
        "InvalidParameterValue",
    ),
    (
        "ec2",
        "create_tags",
        {"Resources": ["i-1"], "Tags": [{"Key": f"k{n}", "Value": ""} for n in range(51)]},
        "TagLimitExceeded",
    ),
    (
        "autoscaling",
        "create_or_update_tags",
        {"Tags": [{"ResourceId": "g", "ResourceType": "auto-scaling-group", "Key": "k", "Value": "a\x01"}]},
        "ValidationError",
    ),
    ("ssm", "put_parameter", {"Name": "/aws/a", "Value": "b", "Type": "String"}, "ValidationException"),
    ("ssm", "put_parameter", {"Name": "/a", "Value": "b" * 4097, "Type": "String"}, "ValidationException"),
    ("sns", "publish", {"TopicArn": _ARN, "Subject": "a" * 100, "Message": "b"}, "InvalidParameter"),
    ("sns", "publish", {"TopicArn": _ARN, "Subject": "a\x07", "Message": "b"}, "InvalidParameter"),
    ("sns", "publish", {"TopicArn": _ARN, "Subject": "é", "Message": "b"}, "InvalidParameter"),
    (
        "cloudwatch",
        "put_metric_data",
        {"Namespace": "a", "MetricData": [{"MetricName": "b", "Dimensions": [{"Name": "c", "Value": "é"}]}]},
        "InvalidParameterValue",
    ),
    ("cloudwatch", "put_metric_data", {"Namespace": "AWS/Lambda", "MetricData": []}, "InvalidParameterValue"),
    (
        "cloudwatch",
        "put_metric_alarm",
        {"AlarmName": "a\nb", "EvaluationPeriods": 1, "ComparisonOperator": "LessThanThreshold"},
        "ValidationError",
    ),
    (
        "iam",
        "create_role",
        {"RoleName": "a", "AssumeRolePolicyDocument": "{}", "Description": "→"},
        "ValidationError",
    ),
    ("logs", "create_log_group", {"logGroupName": "a b"}, "InvalidParameterException"),
    ("s3", "create_bucket", {"Bucket": "xn--a"}, "InvalidBucketName"),
    ("resource-groups", "create_group", {"Name": "aws-a"}, "BadRequestException"),
    ("sqs", "create_queue", {"QueueName": "a", "tags": {"a'b": "c"}}, "InvalidParameterValue"),
    ("sqs", "create_queue", {"QueueName": "a", "tags": {"a": "aws:c"}}, "InvalidParameterValue"),
]


@pytest.mark.parametrize(("service", "operation", "parameters", "code"), CALLS)
def test_a_call_is_refused_with_the_code_of_its_service(
    aws: LocalAws, service: str, operation: str, parameters: dict[str, Any], code: str
) -> None:
    with pytest.raises(ClientError) as refused:
        getattr(aws.client(service), operation)(**parameters)
    assert refused.value.response["Error"]["Code"] == code


def test_a_buckets_tags_are_read(aws: LocalAws) -> None:
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="tagged")
    s3.put_bucket_tagging(Bucket="tagged", Tagging={"TagSet": [{"Key": "a", "Value": "b c"}]})
    with pytest.raises(ClientError, match="The TagValue you have provided is invalid"):
        s3.put_bucket_tagging(Bucket="tagged", Tagging={"TagSet": [{"Key": "a", "Value": "b,c"}]})
    s3.delete_bucket(Bucket="tagged")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"Description": "é" * 513}, "'Description' length is greater than 1024 bytes."),
        ({"Outputs": {"A": {"Value": "x", "Description": "a" * 1025}}}, "at most 1024 bytes (A)"),
        ({"Outputs": {"a-b": {"Value": "x"}}}, "Output name a-b is non alphanumeric."),
    ],
)
def test_a_template_with_such_a_text_is_refused_at_once(stacks: Stacks, more: dict[str, Any], words: str) -> None:
    with pytest.raises(ClientError) as refused:
        stacks.create({"Resources": {"Role": ROLE}, **more})
    assert words in refused.value.response["Error"]["Message"]


def test_an_exports_name_is_refused(stacks: Stacks) -> None:
    export = {"Value": "x", "Export": {"Name": {"Fn::Sub": "${AWS::StackName}_a"}}}
    name = stacks.create({"Resources": {"Role": ROLE}, "Outputs": {"A": export}})
    assert stacks.status(name) == "ROLLBACK_COMPLETE"


def test_a_stacks_name_is_refused() -> None:
    assert refusal_of("cloudformation", "CreateStack", {"StackName": "1a"}) is not None
    assert refusal_of("cloudformation", "CreateStack", {"StackName": "a1"}) is None
