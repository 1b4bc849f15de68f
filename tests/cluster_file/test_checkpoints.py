"""`checkpoints:` in a cluster file: its forms, its mistakes, and what the two stacks make of it."""

from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App
from aws_cdk.assertions import Template

from cdk_training_cluster_file import read_cluster_file
from cdk_training_cluster_stacks.cluster import ClusterStack
from cdk_training_cluster_stacks.foundation import FoundationStack
from cluster_files import RIGHT, problems

_KEY = "arn:aws:kms:us-east-1:111122223333:key/0a1b2c3d-4e5f-6789-abcd-ef0123456789"
_OTHER_KEY = _KEY.replace("0a1b", "0a1c")


def _stacks(directory: Path, checkpoints: str) -> tuple[dict[str, Any], dict[str, Any]]:
    (directory / "cluster.yaml").write_text(f"{RIGHT}checkpoints: {checkpoints}\n")
    file = read_cluster_file("cluster.yaml", relative_to=directory)
    app = App()
    foundation = FoundationStack(app, "Foundation", cluster=file)
    cluster = ClusterStack(app, "Cluster", cluster=file, foundation=foundation)
    return dict(Template.from_stack(foundation).to_json()), dict(Template.from_stack(cluster).to_json())


@pytest.mark.parametrize(
    ("checkpoints", "kind", "variable"),
    [
        ("{}", "AWS::S3::Bucket", "CHECKPOINT_DIR=/fsx/checkpoints"),
        (
            "{exported: {file_system_path: /runs, keep_versions: 5, keep_deleted_days: 7, expire_after_days: 365,"
            " replicate_to: {bucket: other, region: us-west-2}}}",
            "AWS::S3::Bucket",
            "CHECKPOINT_DIR=/fsx/runs",
        ),
        ("{exported: {bucket: mine, prefix: runs}}", None, "CHECKPOINT_DIR=/fsx/checkpoints"),
        ("{express: {}}", "AWS::S3Express::DirectoryBucket", "CHECKPOINT_URL=s3://"),
        ("{express: {bucket: runs--use1-az4--x-s3}}", None, "CHECKPOINT_URL=s3://runs--use1-az4--x-s3/"),
    ],
)
def test_the_foundation_keeps_the_bucket_and_the_cluster_watches_it(
    checkpoints: str, kind: str | None, variable: str, tmp_path: Path
) -> None:
    foundation, cluster = _stacks(tmp_path, checkpoints)
    made = [
        (one["Type"], one["DeletionPolicy"])
        for name, one in foundation["Resources"].items()
        if "Bucket" in one["Type"] and "Policy" not in one["Type"] and "Dataset" not in name
    ]
    assert made == ([] if kind is None else [(kind, "RetainExceptOnCreate")])
    assert variable in str(cluster)
    assert "CheckpointFunctionName" in cluster["Outputs"]


@pytest.mark.parametrize(
    ("express", "keys"),
    [
        ("{bucket: runs--use1-az4--x-s3}", []),
        (f"{{bucket: runs--use1-az4--x-s3, encryption_key: {_OTHER_KEY!r}}}", [_OTHER_KEY]),
        ("{}", [_KEY]),
    ],
)
def test_a_directory_bucket_is_read_with_its_own_key(express: str, keys: list[str], tmp_path: Path) -> None:
    _, cluster = _stacks(tmp_path, f"{{express: {express}}}\nencryption_key: {_KEY}")
    statements = [
        statement
        for name, one in cluster["Resources"].items()
        if one["Type"] == "AWS::IAM::Policy" and "JobRole" in name
        for statement in one["Properties"]["PolicyDocument"]["Statement"]
    ]
    assert [
        each["Resource"] for each in statements if each["Action"] == ["kms:Decrypt", "kms:GenerateDataKey"]
    ] == keys


@pytest.mark.parametrize(
    ("checkpoints", "message"),
    [
        ("{exported: {}, express: {}}", "must name one of exported and express, got both; leave one out"),
        ("{exported: {file_system_path: /data/x}}", "file_system_path must not lie in another dataset's"),
        ("{exported: {keep_versions: 101}}", "checkpoints.exported.keep_versions"),
        ("{express: {zone_id: us-east-1b}}", "must be the id of a zone, such as 'use1-az4', and not its name"),
        ("{express: {bucket: runs}}", "must be the name of a directory bucket, <base>--<zone id>--x-s3"),
        ("{max_minutes_without_checkpoint: 12}", "checkpoints.max_minutes_without_checkpoint"),
    ],
)
def test_a_mistake_is_said_with_its_place(checkpoints: str, message: str, tmp_path: Path) -> None:
    said = problems(tmp_path, f"{RIGHT}checkpoints: {checkpoints}\n")
    assert message in "\n".join(said)
    assert any(line.startswith("cluster.yaml:") for line in said)
