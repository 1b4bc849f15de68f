"""Change sets that import what a deleted stack has kept: what comes back, and what CloudFormation refuses."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_aws import LocalAws
from local_aws_scene import Stacks, Template

_KEPT = {"DeletionPolicy": "Retain"}
_KEPT_RESOURCES: dict[str, Any] = {
    "Vpc": {"Type": "AWS::EC2::VPC", **_KEPT, "Properties": {"CidrBlock": "10.9.0.0/16"}},
    "Gateway": {"Type": "AWS::EC2::InternetGateway", **_KEPT},
    "Attachment": {
        "Type": "AWS::EC2::VPCGatewayAttachment",
        **_KEPT,
        "Properties": {"VpcId": {"Ref": "Vpc"}, "InternetGatewayId": {"Ref": "Gateway"}},
    },
    "Bucket": {"Type": "AWS::S3::Bucket", **_KEPT},
}
_TEMPLATE: Template = {"Resources": {**_KEPT_RESOURCES, "Topic": {"Type": "AWS::SNS::Topic"}}}


class _Kept:
    """A stack that was deleted, and what it kept."""

    def __init__(self, stacks: Stacks) -> None:
        self.api, self.name = stacks.api, stacks.create(_TEMPLATE)
        self.ids = stacks.physical_ids(self.name)
        self.api.delete_stack(StackName=self.name)

    def wanted(self) -> list[dict[str, Any]]:
        """Return what is imported, as the request says it."""
        kinds, vpc = _KEPT_RESOURCES, self.ids["Vpc"]
        identifiers = {
            "Vpc": {"VpcId": vpc},
            "Gateway": {"InternetGatewayId": self.ids["Gateway"]},
            "Attachment": {"AttachmentType": "IGW", "VpcId": vpc},
            "Bucket": {"BucketName": self.ids["Bucket"]},
        }
        return [
            {"LogicalResourceId": name, "ResourceType": kinds[name]["Type"], "ResourceIdentifier": identifier}
            for name, identifier in identifiers.items()
        ]

    def ask(self, template: Template | None = None, wanted: list[dict[str, Any]] | None = None) -> str:
        """Make the change set, and return its id."""
        given = template or {"Resources": _KEPT_RESOURCES}
        answer = self.api.create_change_set(
            StackName=self.name,
            ChangeSetName="import",
            ChangeSetType="IMPORT",
            TemplateBody=json.dumps(given),
            ResourcesToImport=self.wanted() if wanted is None else wanted,
        )
        return str(answer["Id"])


@pytest.fixture
def kept(stacks: Stacks) -> _Kept:
    return _Kept(stacks)


def test_what_a_deleted_stack_has_kept_comes_under_a_new_one(aws: LocalAws, stacks: Stacks, kept: _Kept) -> None:
    change_set = kept.ask()
    changes = kept.api.describe_change_set(ChangeSetName=change_set)["Changes"]
    assert {change["ResourceChange"]["Action"] for change in changes} == {"Import"}
    kept.api.execute_change_set(ChangeSetName=change_set)

    assert stacks.status(kept.name) == "IMPORT_COMPLETE"
    left = {name: one for name, one in kept.ids.items() if name != "Topic"}
    assert stacks.physical_ids(kept.name) == left
    # The rest comes with the next deployment, which finds the imported ones as they are.
    kept.api.update_stack(StackName=kept.name, TemplateBody=json.dumps(_TEMPLATE))
    assert stacks.status(kept.name) == "UPDATE_COMPLETE"
    assert {name: one for name, one in stacks.physical_ids(kept.name).items() if name != "Topic"} == left
    kept.name = "another"
    with pytest.raises(ClientError, match=f"{kept.ids['Bucket']} already exists in stack "):
        kept.ask({"Resources": {"Bucket": _KEPT_RESOURCES["Bucket"]}}, kept.wanted()[-1:])
    assert aws.client("ec2").describe_vpcs(VpcIds=[kept.ids["Vpc"]])["Vpcs"]


def _without_policy(kept: _Kept) -> str:
    bare = {"Resources": {**_KEPT_RESOURCES, "Bucket": {"Type": "AWS::S3::Bucket"}}}
    return kept.ask(bare)


def _with_output(kept: _Kept) -> str:
    return kept.ask({"Resources": _KEPT_RESOURCES, "Outputs": {"Vpc": {"Value": {"Ref": "Vpc"}}}})


def _of_another_kind(kept: _Kept) -> str:
    file_system = {"Type": "AWS::FSx::FileSystem", **_KEPT, "Properties": {"FileSystemType": "LUSTRE"}}
    wanted: dict[str, Any] = {"LogicalResourceId": "Files", "ResourceType": "AWS::FSx::FileSystem"}
    return kept.ask({"Resources": {"Files": file_system}}, [{**wanted, "ResourceIdentifier": {"Id": "fs-0"}}])


def _gone(kept: _Kept) -> str:
    wanted = {**kept.wanted()[-1], "ResourceIdentifier": {"BucketName": "another"}}
    return kept.ask({"Resources": {"Bucket": _KEPT_RESOURCES["Bucket"]}}, [wanted])


def _by_another_name(kept: _Kept) -> str:
    wanted = {**kept.wanted()[-1], "ResourceIdentifier": {"Name": kept.ids["Bucket"]}}
    return kept.ask({"Resources": {"Bucket": _KEPT_RESOURCES["Bucket"]}}, [wanted])


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (_without_policy, r"to import \[Bucket\] must have DeletionPolicy attribute specified in the template\.$"),
        (_with_output, r"As part of the import operation, you cannot modify or add \[Outputs\]$"),
        (_of_another_kind, r"ResourceTypes \[AWS::FSx::FileSystem\] are not supported for Import$"),
        (lambda kept: kept.ask(_TEMPLATE), r"You have modified resources \[Topic\] in your template that are not "),
        (_gone, r"Resource of type 'AWS::S3::Bucket' with identifier 'another' was not found\.$"),
        (_by_another_name, r"type AWS::S3::Bucket is identified by \[BucketName\], got \[Name\]$"),
    ],
)
def test_what_cannot_be_imported_is_refused(kept: _Kept, ask: Any, why: str) -> None:
    with pytest.raises(ClientError, match=why):
        ask(kept)
    with pytest.raises(ClientError, match="does not exist"):
        kept.api.describe_stacks(StackName=kept.name)


def test_an_import_that_fails_leaves_what_there_was(stacks: Stacks, kept: _Kept) -> None:
    alone = {"Resources": {"Attachment": _KEPT_RESOURCES["Attachment"]}}
    with pytest.raises(ClientError, match="Vpc"):  # a reference to what is not there
        kept.ask(alone, [kept.wanted()[2]])
    wrong = {**_KEPT_RESOURCES["Bucket"], "Properties": {"Wrong": 1}}
    kept.api.execute_change_set(ChangeSetName=kept.ask({"Resources": {"Bucket": wrong}}, kept.wanted()[-1:]))
    assert stacks.status(kept.name) == "IMPORT_ROLLBACK_COMPLETE"
    assert stacks.physical_ids(kept.name) == {}


def test_a_summary_says_what_identifies_the_resources_of_a_template(stacks: Stacks) -> None:
    file_system = {"Type": "AWS::FSx::FileSystem", "Properties": {"FileSystemType": "LUSTRE"}}
    template = {"Resources": {"Files": file_system, **_KEPT_RESOURCES}}
    summaries = stacks.api.get_template_summary(TemplateBody=json.dumps(template))["ResourceIdentifierSummaries"]
    found = {one["ResourceType"]: (one["LogicalResourceIds"], one["ResourceIdentifiers"]) for one in summaries}
    assert found["AWS::EC2::VPCGatewayAttachment"] == (["Attachment"], ["AttachmentType,VpcId"])
    assert "AWS::FSx::FileSystem" not in found
