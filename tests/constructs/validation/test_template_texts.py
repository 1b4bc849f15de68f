"""Texts of whole templates: which are certain to be refused, where they are, and what a synth says of them."""

from typing import Any

import pytest
from aws_cdk import App, CfnOutput, Environment, Stack, Tags
from aws_cdk import aws_ec2 as ec2

from cdk_training_cluster import ClusterNetwork
from cdk_training_cluster.validation.templates.texts import broken_texts

_GROUP, _TOPIC = "AWS::EC2::SecurityGroup", "AWS::SNS::Topic"
_NAME = {"Ref": "Name"}


def _found(template: Any) -> list[tuple[str, str, str]]:
    return [
        (limit.id, each.logical_id, each.location)
        for (limit, _), findings in broken_texts(template).items()
        for each in findings
    ]


RESOURCES = [
    (_GROUP, {"GroupDescription": "it's"}, "securityGroupText", "GroupDescription"),
    (_GROUP, {"GroupDescription": {"Fn::Join": ["", ["it's ", _NAME]]}}, "securityGroupText", "GroupDescription"),
    (_GROUP, {"GroupDescription": {"Fn::Join": ["'", [_NAME, _NAME]]}}, "securityGroupText", "GroupDescription"),
    (_GROUP, {"GroupDescription": {"Fn::Join": ["'", [_NAME]]}}, None, ""),
    (_GROUP, {"GroupDescription": {"Fn::Join": ["'", _NAME]}}, None, ""),
    (_GROUP, {"GroupDescription": {"Fn::Sub": "it's ${Name}"}}, "securityGroupText", "GroupDescription"),
    (_GROUP, {"GroupDescription": {"Fn::Sub": ["${A} it's", {"A": "a"}]}}, "securityGroupText", "GroupDescription"),
    (_GROUP, {"GroupDescription": {"Fn::Sub": "its ${Name}, ${!Literal}"}}, None, ""),
    (_GROUP, {"GroupDescription": {"Fn::If": ["C", "it's", "its"]}}, None, ""),
    (_GROUP, {"GroupDescription": _NAME}, None, ""),
    (
        _GROUP,
        {"SecurityGroupIngress": [{"Description": "its"}, {"Description": "it's"}]},
        "securityGroupRuleText",
        "SecurityGroupIngress.1.Description",
    ),
    (_GROUP, {"SecurityGroupIngress": {"Fn::If": ["C", [{"Description": "it's"}], []]}}, None, ""),
    (_GROUP, {"Tags": [{"Key": "aws:a", "Value": "b"}]}, "ec2TagKey", "Tags.0.Key"),
    (_GROUP, {"Tags": [{"Key": f"k{number}", "Value": ""} for number in range(51)]}, "tagCount", "Tags"),
    (_GROUP, {"Tags": [{"Key": f"k{number}", "Value": ""} for number in range(50)]}, None, ""),
    ("AWS::EC2::EIP", {"Tags": [{"Key": {"Fn::Sub": "aws:${Name}"}}]}, "ec2TagKey", "Tags.0.Key"),
    ("AWS::SSM::Parameter", {"Tags": {"a'b": "c"}}, "parameterTagKey", "Tags.a'b"),
    ("AWS::SSM::Parameter", {"Tags": {"a": "c'd"}}, "parameterTagValue", "Tags.a"),
    ("AWS::SNS::Subscription", {"Protocol": "email", "Endpoint": "me"}, "email", "Endpoint"),
    *(
        ("AWS::SSM::Parameter", {**tier, "Value": "a" * 8192}, limit, "Value" if limit else "")
        for tier, limit in (
            ({}, "standardParameterValue"),
            ({"Tier": "Standard"}, "standardParameterValue"),
            ({"Tier": "Advanced"}, None),
            ({"Tier": "Intelligent-Tiering"}, None),
            ({"Tier": {"Ref": "Tier"}}, None),
        )
    ),
    ("AWS::SNS::Subscription", {"Protocol": "https", "Endpoint": "https://me"}, None, ""),
    (_TOPIC, {"Subscription": [{"Protocol": "email", "Endpoint": "me"}]}, "email", "Subscription.0.Endpoint"),
    ("AWS::Other::Thing", {"GroupDescription": "it's"}, None, ""),
]


@pytest.mark.parametrize(("kind", "properties", "limit", "location"), RESOURCES)
def test_a_text_of_a_resource_breaks_its_limit_as_far_as_it_is_known(
    kind: str, properties: Any, limit: str | None, location: str
) -> None:
    template = {"Resources": {"One": {"Type": kind, "Properties": properties}, "Two": {"Type": "AWS::SQS::Queue"}}}
    assert _found(template) == ([] if limit is None else [(limit, "One", f"Properties.{location}")])


SECTIONS = [
    ({"Description": "é" * 513}, "templateDescription", "Description", "Description"),
    ({"Outputs": {"a-b": {"Value": "x"}}}, "logicalId", "a-b", "Outputs.a-b"),
    ({"Outputs": {"A": {"Description": "a" * 1025}}}, "outputDescription", "A", "Outputs.A.Description"),
    ({"Outputs": {"A": {"Export": {"Name": {"Fn::Sub": "${B}_c"}}}}}, "exportName", "A", "Outputs.A.Export.Name"),
    (
        {"Parameters": {"A": {"Description": "a" * 4001}}},
        "templateParameterDescription",
        "A",
        "Parameters.A.Description",
    ),
]


@pytest.mark.parametrize(("template", "limit", "logical_id", "location"), SECTIONS)
def test_a_text_of_another_section_of_a_template_breaks_its_limit(
    template: Any, limit: str, logical_id: str, location: str
) -> None:
    assert _found(template) == [(limit, logical_id, location)]


def test_a_synth_names_each_text_that_users_put_beside_the_library(capfd: pytest.CaptureFixture[str]) -> None:
    app = App()
    stack = Stack(app, "Test", env=Environment(region="us-east-1"))
    network = ClusterNetwork(stack, "Network", availability_zone="us-east-1b")
    ec2.CfnSecurityGroup(stack, "Theirs", group_description="Bob's", vpc_id=network.vpc.vpc_id)
    CfnOutput(stack, "Out", value="x", description="d" * 1025)
    Tags.of(network).add("team", "a" * 257)
    with pytest.raises(RuntimeError) as refused:
        app.synth()
    said = f"{refused.value}{capfd.readouterr().err}"
    assert (
        "ERROR GroupDescription must have 1 to 255 characters of a-z, A-Z, 0-9, spaces and . _ - : / ( ) # "
        ", @ [ ] + "
        '= ; { } ! $ * &, got "Bob\'s": take "\'" out (cdk-training-cluster)\n'
        "   Test/Theirs (Theirs) aws-cdk-lib.aws_ec2.CfnSecurityGroup\n"
        "   Suggested fix: See https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateSecurityGroup.html\n"
        "   Acknowledge with 'cdk-training-cluster::securityGroupText'"
    ) in said
    assert "Acknowledge with 'cdk-training-cluster::outputDescription'" in said
    assert "Test/Network/Vpc (NetworkVpcFAC8F4A5)" in said
