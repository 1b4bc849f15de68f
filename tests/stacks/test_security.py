"""What docs/security.md promises of clusters/hardened.yaml, and of a foundation's bucket."""

from typing import Any

import pytest
from aws_cdk import App
from aws_cdk.assertions import Match, Template
from typer.testing import CliRunner

from cdk_training_cluster_stacks.cluster_file import read_cluster_file
from cdk_training_cluster_stacks.commands import training_cluster
from cdk_training_cluster_stacks.foundation import FoundationStack
from examples import PROJECT

_HARDENED = PROJECT / "clusters/hardened.yaml"


@pytest.fixture(scope="module", params=["base-pod", "hardened"])
def made(request: pytest.FixtureRequest) -> tuple[str, Template]:
    cluster = read_cluster_file(PROJECT / f"clusters/{request.param}.yaml")
    return request.param, Template.from_stack(FoundationStack(App(), "Foundation", cluster=cluster))


def test_the_page_shows_the_policy_that_the_command_prints() -> None:
    printed = CliRunner().invoke(training_cluster, ["key-policy", str(_HARDENED)]).output
    assert f"```json\n{printed}```" in (PROJECT / "docs/security.md").read_text()


def test_without_a_key_there_is_no_policy() -> None:
    ended = CliRunner().invoke(training_cluster, ["key-policy", str(PROJECT / "clusters/dev-box.yaml")])
    assert ended.exit_code == 1
    assert "encryption_key is required for a key's policy" in ended.output


def test_old_versions_in_the_bucket_are_kept_for_a_while(made: tuple[str, Template]) -> None:
    rule = {
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7},
        "Id": "old-versions",
        "NoncurrentVersionExpiration": {"NoncurrentDays": 90},
        "Status": "Enabled",
    }
    bucket = {"VersioningConfiguration": {"Status": "Enabled"}, "LifecycleConfiguration": {"Rules": [rule]}}
    made[1].has_resource_properties("AWS::S3::Bucket", bucket)


def test_key_and_access_logs_of_the_bucket_are_choices(made: tuple[str, Template]) -> None:
    name, template = made
    default: dict[str, Any] = {"SSEAlgorithm": "AES256"}
    logging: Any = Match.absent()
    if name == "hardened":
        default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": read_cluster_file(_HARDENED).encryption_key}
        logging = {"DestinationBucketName": "example-access-logs", "LogFilePrefix": "hardened/"}
    encryption = [Match.object_like({"ServerSideEncryptionByDefault": default})]
    template.has_resource_properties(
        "AWS::S3::Bucket",
        {
            "BucketEncryption": {"ServerSideEncryptionConfiguration": encryption},
            "LoggingConfiguration": logging,
        },
    )
