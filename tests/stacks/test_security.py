"""What docs/security.md promises of clusters/hardened.yaml, and of a foundation's bucket."""

import json
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App
from aws_cdk.assertions import Match, Template
from typer.testing import CliRunner

from cdk_training_cluster_cli.main import training_cluster
from cdk_training_cluster_file import ClusterFile, read_cluster_file
from cdk_training_cluster_stacks.cluster import ClusterStack
from cdk_training_cluster_stacks.foundation import FoundationStack
from examples import PROJECT
from local_aws.cloudformation import schemas

_HARDENED = PROJECT / "clusters/hardened.yaml"
_KEY = read_cluster_file(_HARDENED).encryption_key


@pytest.fixture(scope="module", params=["p4de", "hardened"])
def made(request: pytest.FixtureRequest) -> tuple[str, Template]:
    cluster = read_cluster_file(PROJECT / f"clusters/{request.param}.yaml")
    return request.param, Template.from_stack(FoundationStack(App(), "Foundation", cluster=cluster))


def test_the_page_shows_the_statements_that_the_command_prints() -> None:
    printed = CliRunner().invoke(training_cluster, ["key-policy", str(_HARDENED)]).output
    assert f"```json\n{printed}```" in (PROJECT / "docs/security.md").read_text()


def test_a_shared_key_gets_no_statement_but_those_of_services_and_a_new_one_a_whole_policy() -> None:
    runner = CliRunner()
    added = json.loads(runner.invoke(training_cluster, ["key-policy", str(_HARDENED)]).stdout)
    whole = json.loads(runner.invoke(training_cluster, ["key-policy", "--new-key", str(_HARDENED)]).stdout)
    assert [statement["Sid"] for statement in whole["Statement"]] == ["Account", *(each["Sid"] for each in added)]
    assert whole["Statement"][1:] == added


def test_the_key_of_a_file_system_alone_needs_no_statement(tmp_path: Path) -> None:
    text = _HARDENED.read_text().replace(f"\nencryption_key: {_KEY}\n", "\n")
    (tmp_path / "cluster.yaml").write_text(text)
    ended = CliRunner().invoke(training_cluster, ["key-policy", str(tmp_path / "cluster.yaml")])
    assert (json.loads(ended.stdout), ended.stderr) == (
        [],
        "file_system.encryption_key needs no statement here: KMS's default policy is enough.\n",
    )


def test_the_cluster_s_key_comes_and_goes_in_place() -> None:
    file = read_cluster_file(PROJECT / "clusters/p4de.yaml")
    without, with_key = (_templates(file.model_copy(update={"encryption_key": key})) for key in (None, _KEY))
    for before, after in zip(without, with_key, strict=True):
        assert before["Resources"].keys() == after["Resources"].keys()
        assert _exports(before) == _exports(after)
        for name, resource in before["Resources"].items():
            for path in schemas.create_only(resource["Type"]):
                was, will_be = (each["Resources"][name].get("Properties", {}) for each in (before, after))
                assert schemas.value_at(was, path) == schemas.value_at(will_be, path), (name, path)


def _templates(cluster: ClusterFile) -> list[dict[str, Any]]:
    app = App()
    foundation = FoundationStack(app, "Foundation", cluster=cluster)
    stacks = (foundation, ClusterStack(app, "Cluster", cluster=cluster, foundation=foundation))
    return [dict(Template.from_stack(stack).to_json()) for stack in stacks]


def _exports(template: dict[str, Any]) -> list[Any]:
    return [output for output in template["Outputs"].values() if "Export" in output]


def test_without_a_key_there_is_no_policy() -> None:
    ended = CliRunner().invoke(training_cluster, ["key-policy", str(PROJECT / "clusters/dev-box.yaml")])
    assert ended.exit_code == 2
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
