from typing import Any

import pytest

from policy_evaluator import Call, is_allowed, resolve, role_statements, unused

READ = {"Effect": "Allow", "Action": ["s3:Get*"], "Resource": "arn:aws:s3:::corpus/*"}
TAGGED = {
    "Effect": "Allow",
    "Action": "ec2:StopInstances",
    "Resource": "*",
    "Condition": {"StringEquals": {"aws:ResourceTag/team": ["a", "b"]}},
}
KEYS = {
    "Effect": "Allow",
    "Action": "ec2:CreateTags",
    "Resource": "*",
    "Condition": {"ForAllValues:StringLike": {"aws:TagKeys": "power-*"}, "Null": {"aws:TagKeys": "false"}},
}
# As AWS's own AWSEC2VssSnapshotPolicy says that an instance may act on itself alone.
# https://docs.aws.amazon.com/aws-managed-policy/latest/reference/AWSEC2VssSnapshotPolicy.html
ITSELF = {
    "Effect": "Allow",
    "Action": "ec2:CreateImage",
    "Resource": ["arn:aws:ec2:*:*:instance/*"],
    "Condition": {"ArnLike": {"ec2:SourceInstanceARN": "arn:aws:ec2:*:*:instance/${ec2:InstanceId}"}},
}
OWN_PREFIX = READ | {"Resource": "arn:aws:s3:::corpus/${aws:PrincipalTag/team}/*"}
NODE = "arn:aws:ec2:us-east-1:111122223333:instance/i-1"


@pytest.mark.parametrize(
    ("statements", "call", "allowed"),
    [
        ([READ], Call(action="s3:GetObject", resource="arn:aws:s3:::corpus/a/b"), True),
        ([READ], Call(action="S3:getobject", resource="arn:aws:s3:::corpus/a"), True),
        ([READ], Call(action="s3:PutObject", resource="arn:aws:s3:::corpus/a"), False),
        ([READ], Call(action="s3:GetObject", resource="arn:aws:s3:::corpus"), False),
        ([], Call(action="s3:GetObject", resource="*"), False),
        ([READ, READ | {"Effect": "Deny"}], Call(action="s3:GetObject", resource="arn:aws:s3:::corpus/a"), False),
        ([TAGGED], Call(action="ec2:StopInstances", resource="i", context={"aws:ResourceTag/team": "b"}), True),
        ([TAGGED], Call(action="ec2:StopInstances", resource="i", context={"aws:ResourceTag/team": "c"}), False),
        ([TAGGED], Call(action="ec2:StopInstances", resource="i"), False),
        ([KEYS], Call(action="ec2:CreateTags", resource="i", context={"aws:TagKeys": ["power-a", "power-b"]}), True),
        ([KEYS], Call(action="ec2:CreateTags", resource="i", context={"aws:TagKeys": ["power-a", "name"]}), False),
        ([KEYS], Call(action="ec2:CreateTags", resource="i"), False),
        *(
            (
                [ITSELF],
                Call(
                    action="ec2:CreateImage",
                    resource=NODE,
                    context={"ec2:SourceInstanceARN": NODE, "ec2:InstanceID": node},
                ),
                allowed,
            )
            for node, allowed in (("i-1", True), ("i-2", False))
        ),
        *(
            (
                [OWN_PREFIX],
                Call(
                    action="s3:GetObject", resource="arn:aws:s3:::corpus/a/b", context={"aws:PrincipalTag/team": team}
                ),
                allowed,
            )
            for team, allowed in (("a", True), ("b", False))
        ),
    ],
)
def test_calls_are_judged_as_iam_does(statements: list[dict[str, Any]], call: Call, allowed: bool) -> None:
    assert is_allowed(statements, call) is allowed


def test_for_all_values_is_true_of_none_as_in_iam() -> None:
    statement = KEYS | {"Condition": {"ForAllValues:StringLike": {"aws:TagKeys": "power-*"}}}

    assert is_allowed([statement], Call(action="ec2:CreateTags", resource="i"))


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        (READ | {"Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}}, NotImplementedError),
        (READ | {"Condition": {"StringEqualsIfExists": {"a": "b"}}}, NotImplementedError),
        (READ | {"NotAction": "*"}, NotImplementedError),
        (READ | {"Resource": "${ec2:SourceInstanceARN}"}, NotImplementedError),
    ],
)
def test_what_is_not_known_is_refused_and_not_passed(statement: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match="cannot evaluate"):
        is_allowed([statement], Call(action="s3:GetObject", resource="arn:aws:s3:::corpus/a"))


def test_each_action_on_each_resource_has_to_be_used() -> None:
    statement = {"Effect": "Allow", "Action": ["s3:Get*", "s3:Put*"], "Resource": ["a", "b"]}
    calls = [Call(action="s3:GetObject", resource="a"), Call(action="s3:PutObject", resource="b")]

    assert unused([statement], calls) == ["s3:Get* on b", "s3:Put* on a"]


def test_references_are_put_in() -> None:
    value = {
        "Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, {"Fn::GetAtt": ["Log", "Arn"]}, {"Fn::Sub": "${X}/*"}]]
    }

    assert resolve({"a": [value]}, {"AWS::Partition": "aws", "Log.Arn": ":log", "X": "x"}) == {
        "a": ["arn:aws:logx/*"]
    }


def test_the_statements_of_a_role_are_those_of_all_its_policies() -> None:
    document = {"PolicyDocument": {"Statement": [READ]}}
    template = {
        "Resources": {
            "Role": {"Type": "AWS::IAM::Role", "Properties": {"Policies": [document]}},
            "Own": {"Type": "AWS::IAM::Policy", "Properties": {**document, "Roles": [{"Ref": "Role"}]}},
            "Other": {"Type": "AWS::IAM::Policy", "Properties": {**document, "Roles": [{"Ref": "Else"}]}},
        }
    }

    assert role_statements(template, "Role", {}) == [READ, READ]
