"""`training-cluster import-map`: what of a deleted stack comes into the map, and what is said where nothing does."""

import json
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from typer.testing import CliRunner

from cdk_training_cluster_cli.data.import_map import import_map, kept_resources
from cdk_training_cluster_cli.main import training_cluster

_NAMES = {
    "AWS::EC2::SecurityGroup": ["Id"],
    "AWS::EC2::Subnet": ["SubnetId"],
    "AWS::EC2::VPC": ["VpcId"],
    "AWS::EC2::VPCGatewayAttachment": ["AttachmentType", "VpcId"],
    "AWS::S3::BucketPolicy": ["Bucket"],
}


def resource(kind: str, **properties: Any) -> dict[str, Any]:
    return {"Type": f"AWS::{kind}", "Properties": properties}


def kept(kind: str, name: str = "It", physical_id: str = "id-1") -> dict[str, Any]:
    return {"LogicalResourceId": name, "ResourceType": f"AWS::{kind}", "PhysicalResourceId": physical_id}


_VPC, _OTHER = kept("EC2::VPC", "Vpc", "vpc-1"), resource("SNS::Topic")
_MAPS: dict[str, tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]] = {
    "kept": ({"It": resource("EC2::VPC")}, [kept("EC2::VPC")], {"It": {"VpcId": "id-1"}}),
    "kept and left out of the template": ({"Other": _OTHER}, [kept("EC2::VPC")], {}),
    "of another type": ({"It": resource("EC2::Subnet")}, [kept("EC2::VPC")], {}),
    "not to be imported": ({"It": resource("FSx::FileSystem")}, [kept("FSx::FileSystem", physical_id="fs-1")], {}),
    "a security group": ({"It": resource("EC2::SecurityGroup")}, [kept("EC2::SecurityGroup")], {}),
    "with two identifiers": (
        {"It": resource("EC2::VPCGatewayAttachment")},
        [kept("EC2::VPCGatewayAttachment", physical_id="IGW|vpc-1")],
        {"It": {"AttachmentType": "IGW", "VpcId": "vpc-1"}},
    ),
    "with one identifier of two": (
        {"It": resource("EC2::VPCGatewayAttachment")},
        [kept("EC2::VPCGatewayAttachment")],
        {},
    ),
    "referring to what is imported too": (
        {"It": resource("EC2::Subnet", VpcId={"Ref": "Vpc"}), "Vpc": resource("EC2::VPC")},
        [kept("EC2::Subnet"), _VPC],
        {"It": {"SubnetId": "id-1"}, "Vpc": {"VpcId": "vpc-1"}},
    ),
    "referring to nothing of the template": (
        {"It": resource("EC2::VPC", Tags=[{"Ref": "AWS::StackName"}])},
        [kept("EC2::VPC")],
        {"It": {"VpcId": "id-1"}},
    ),
    **{
        f"referring by {how} to what is not": (
            {"It": resource("EC2::Subnet", VpcId=value) | more, "Vpc": resource("EC2::VPC", Tags={"Ref": "Topic"})}
            | {"Topic": _OTHER},
            [kept("EC2::Subnet"), _VPC],
            {},
        )
        for how, value, more in (
            ("Ref", {"Ref": "Vpc"}, {}),
            ("Fn::GetAtt", {"Fn::GetAtt": ["Vpc", "CidrBlock"]}, {}),
            ("Fn::GetAtt's text", {"Fn::GetAtt": "Vpc.CidrBlock"}, {}),
            ("Fn::Sub", {"Fn::Sub": "x-${Vpc}"}, {}),
            ("DependsOn", "vpc-1", {"DependsOn": ["Vpc"]}),
        )
    },
}


@pytest.mark.parametrize(("resources", "left", "expected"), _MAPS.values(), ids=_MAPS)
def test_a_map_holds_what_can_be_imported_as_a_whole(
    resources: dict[str, Any], left: list[dict[str, Any]], expected: dict[str, Any]
) -> None:
    assert import_map({"Resources": resources}, left, _NAMES) == expected


def test_the_newest_deleted_stack_of_a_name_that_kept_anything_says_what_it_has_kept() -> None:
    client = boto3.client("cloudformation", region_name="us-east-1")
    stacks = [
        {"StackName": name, "StackId": f"arn:{name}/{day}", "CreationTime": f"2026-11-0{day}T08:00:00Z"}
        for name, day in (("pod", 1), ("pod", 3), ("pod", 2), ("other", 4))
    ]
    resources = [
        {**kept("EC2::VPC", name), "ResourceStatus": status, "LastUpdatedTimestamp": "2026-11-05T08:00:00Z"}
        for name, status in (("Vpc", "DELETE_SKIPPED"), ("Topic", "DELETE_COMPLETE"))
    ]
    with Stubber(client) as stub:
        deleted = {"StackStatusFilter": ["DELETE_COMPLETE"]}
        found = {"StackSummaries": [{**each, "StackStatus": "DELETE_COMPLETE"} for each in stacks]}
        stub.add_response("list_stacks", found, deleted)
        # The newest failed when it was made, and kept nothing.
        stub.add_response("list_stack_resources", {"StackResourceSummaries": []}, {"StackName": "arn:pod/3"})
        stub.add_response("list_stack_resources", {"StackResourceSummaries": resources}, {"StackName": "arn:pod/2"})
        assert [each["LogicalResourceId"] for each in kept_resources(client, "pod")] == ["Vpc"]
        stub.add_response("list_stacks", found, deleted)
        with pytest.raises(ValueError, match=r"^there is no deleted stack none in us-east-1: .*--stack$"):
            kept_resources(client, "none")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"Resources": 1}', '{"Resources": {"A": {}}}', None])
def test_what_is_no_template_is_refused_before_aws_is_asked(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "pod.template.json"
    if text is not None:
        file.write_text(text)
    result = CliRunner().invoke(training_cluster, ["import-map", str(file)])
    assert result.exit_code == 2
    assert f"{file} is no template of a stack (" in result.stderr.replace("\n", "")
    assert json.dumps(result.stdout) == '""'
