"""Links of a Lustre file system to S3: what they refuse, what becomes of them, which files follow which objects."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_aws import LocalAws
from local_aws.lustre_client import LustreDirectory
from local_aws_scene import NODES, Stacks
from lustre_scene import LinkedFileSystem

_IMPORT, _EXPORT, _RELEASE = (
    *("IMPORT_METADATA_FROM_REPOSITORY", "EXPORT_TO_REPOSITORY"),
    "RELEASE_DATA_FROM_FILESYSTEM",
)
_ALL = ["NEW", "CHANGED", "DELETED"]


@pytest.fixture
def linked(aws: LocalAws, stacks: Stacks) -> Iterator[LinkedFileSystem]:
    with LinkedFileSystem.made(aws, stacks) as made:
        yield made


def _s3(imported: list[str] | None = None, exported: list[str] | None = None) -> dict[str, Any]:
    policies = {"AutoImportPolicy": imported, "AutoExportPolicy": exported}
    return {"S3": {name: {"Events": events} for name, events in policies.items() if events}}


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], {"a/one": 3, "two": 3, "empty": 0}),
        (["NEW"], {"a/one": 3, "two": 3, "empty": 0, "new": 1}),
        (["CHANGED"], {"a/one": 5, "two": 3, "empty": 0}),
        (["DELETED"], {"a/one": 3, "empty": 0}),
        (_ALL, {"a/one": 5, "empty": 0, "new": 1}),
    ],
    ids=lambda value: "+".join(value) or "none" if isinstance(value, list) else "",
)
def test_files_follow_objects_as_the_events_say(
    linked: LinkedFileSystem, events: list[str], expected: dict[str, int]
) -> None:
    linked.put(**{"a/one": "old", "two": "old", "empty": ""})
    linked.link(BatchImportMetaDataOnCreate=True, **_s3(events))
    linked.finish_tasks()
    linked.put(**{"a/one": "newer", "new": "1"})
    linked.delete("two")
    assert linked.files() == expected
    assert len(linked.released()) == sum(size > 0 for size in expected.values())


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], {"old": "old", "gone": "gone"}),
        (["NEW"], {"old": "old", "gone": "gone", "step/": "", "step/model": "weights"}),
        (["CHANGED"], {"old": "changed", "gone": "gone"}),
        (_ALL, {"old": "changed", "step/": "", "step/model": "weights"}),
    ],
    ids=lambda value: "+".join(value) or "none" if isinstance(value, list) else "",
)
def test_objects_follow_files_as_the_events_say(
    linked: LinkedFileSystem, events: list[str], expected: dict[str, str]
) -> None:
    linked.put(old="old", gone="gone")
    linked.link(BatchImportMetaDataOnCreate=True, **_s3(exported=events))
    linked.finish_tasks()
    (linked.directory / "old").write_text("changed")
    (linked.directory / "gone").unlink()
    (linked.directory / "step").mkdir()
    (linked.directory / "step" / "model").write_text("weights")
    linked.settle()
    assert linked.objects() == expected


def test_what_is_restored_is_not_exported_and_what_is_exported_is_not_imported(linked: LinkedFileSystem) -> None:
    linked.put(one="one")
    linked.link(BatchImportMetaDataOnCreate=True, **_s3(_ALL, _ALL))
    linked.finish_tasks()
    before = linked.version("one")
    linked.restore("one")
    (linked.directory / "two").write_text("two")
    linked.settle()
    linked.settle()
    assert (linked.version("one"), linked.objects()) == (before, {"one": "one", "two": "two"})
    assert [(linked.directory / name).read_text() for name in ("one", "two")] == ["one", "two"]


def test_a_hundred_thousand_keys_are_imported_and_strange_ones_counted(linked: LinkedFileSystem) -> None:
    linked.aws.put_objects(linked.bucket, "tokens/shards/", 100_000, "contents of ")
    for strange in ("../outside", "x" * 256, "a name\nof two lines"):
        linked.aws.put_objects(linked.bucket, f"tokens/{strange}", 1)
    linked.link(BatchImportMetaDataOnCreate=True)
    task = linked.finish_tasks()[0]
    assert task["Status"] | {"LastUpdatedTime": 0} == {
        **{"TotalCount": 100_003, "SucceededCount": 100_001, "FailedCount": 2, "LastUpdatedTime": 0}
    }
    assert task["FailureDetails"]["Message"] == "2 files failed to process."
    assert linked.restore("shards/000042", "a name\nof two lines000000") == ["contents of 42", "0"]


def _no_notification(linked: LinkedFileSystem) -> None:
    linked.s3.put_bucket_notification_configuration(Bucket=linked.bucket, NotificationConfiguration={})


def _policy(linked: LinkedFileSystem) -> None:
    arn = f"arn:aws:s3:::{linked.bucket}"
    statement = {"Effect": "Deny", "Principal": "*", "Action": "s3:GetObject", "Resource": f"{arn}/*"}
    linked.s3.put_bucket_policy(Bucket=linked.bucket, Policy=json.dumps({"Statement": [statement]}))


def _key(linked: LinkedFileSystem) -> None:
    arn = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
    linked.aws.add_key(arn, json.dumps({"Statement": []}))
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": arn}}
    linked.s3.put_bucket_encryption(Bucket=linked.bucket, ServerSideEncryptionConfiguration={"Rules": [rule]})


def _no_directory(linked: LinkedFileSystem) -> None:
    linked.directory.rmdir()


@pytest.mark.parametrize(
    ("trouble", "lifecycle", "message", "after_update"),
    [
        (_no_notification, "MISCONFIGURED", "the FSx event notification configuration", "AVAILABLE"),
        (_policy, "MISCONFIGURED", "unable to validate access to the S3 bucket", "MISCONFIGURED"),
        (_key, "MISCONFIGURED", "unable to access the KMS key", "MISCONFIGURED"),
        (_no_directory, "FAILED", "The file system path /data does not exist", "FAILED"),
    ],
    ids=["notification", "policy", "key", "directory"],
)
def test_a_link_says_what_keeps_it_from_its_work(
    linked: LinkedFileSystem, trouble: Any, lifecycle: str, message: str, after_update: str
) -> None:
    link = linked.link(**_s3(_ALL))
    assert linked.described()["Lifecycle"] == "AVAILABLE"
    trouble(linked)
    linked.put(late="1")
    said = linked.described()
    assert said["Lifecycle"] == lifecycle
    assert message in said["FailureDetails"]["Message"]
    assert not (linked.directory / "late").exists()
    linked.fsx.update_data_repository_association(AssociationId=link)
    assert linked.described()["Lifecycle"] == after_update
    assert (linked.directory / "late").exists() == (after_update == "AVAILABLE")


def test_other_notifications_of_the_same_events_keep_it_from_importing(linked: LinkedFileSystem) -> None:
    topic = {"TopicArn": "arn:aws:sns:us-east-1:123456789012:theirs", "Events": ["s3:ObjectCreated:Put"]}
    linked.s3.put_bucket_notification_configuration(
        Bucket=linked.bucket, NotificationConfiguration={"TopicConfigurations": [topic]}
    )
    linked.link(**_s3(_ALL))
    assert linked.described()["Lifecycle"] == "MISCONFIGURED"


def test_a_bucket_of_another_region_is_linked_without_automatic_import_alone(linked: LinkedFileSystem) -> None:
    elsewhere = linked.bucket_in("eu-west-1")
    with pytest.raises(ClientError, match="Automatic import is not supported for the S3 bucket"):
        linked.link(DataRepositoryPath=f"s3://{elsewhere}/", **_s3(["NEW"]))
    link = linked.link(DataRepositoryPath=f"s3://{elsewhere}/", **_s3(exported=["NEW"]))
    with pytest.raises(ClientError, match="Automatic import is not supported for the S3 bucket"):
        linked.fsx.update_data_repository_association(AssociationId=link, **_s3(["NEW"]))


@pytest.mark.parametrize("delete_files", [False, True])
def test_deleting_a_link_leaves_the_files_unless_told(linked: LinkedFileSystem, delete_files: bool) -> None:
    linked.put(one="one")
    link = linked.link(BatchImportMetaDataOnCreate=True, **_s3(_ALL))
    linked.finish_tasks()
    linked.fsx.delete_data_repository_association(AssociationId=link, DeleteDataInFileSystem=delete_files)
    assert (linked.directory / "one").exists() != delete_files
    assert linked.objects() == {"one": "one"}
    assert "TopicConfigurations" not in linked.s3.get_bucket_notification_configuration(Bucket=linked.bucket)


def test_cloudformation_changes_events_and_chunks_in_place_and_waits_for_the_link(
    stacks: Stacks, aws: LocalAws
) -> None:
    template = {"Resources": {name: json.loads(json.dumps(NODES["Resources"][name])) for name in ("Files", "Link")}}
    name = stacks.create(template)
    link = stacks.physical_ids(name)["Link"]
    properties = template["Resources"]["Link"]["Properties"]
    properties |= {"ImportedFileChunkSize": 512, **_s3(["NEW"], ["NEW"])}
    stacks.update(name, template)
    assert stacks.physical_ids(name)["Link"] == link
    (said,) = aws.client("fsx").describe_data_repository_associations(AssociationIds=[link])["Associations"]
    assert (said["ImportedFileChunkSize"], said["S3"]) == (512, _s3(["NEW"], ["NEW"])["S3"])
    aws.set_link_fate("/data", "MISCONFIGURED", "Amazon FSx cannot read it.")
    properties["ImportedFileChunkSize"] = 256
    stacks.update(name, template)
    aws.set_link_fate("/data", None)
    assert stacks.reasons(name)["Link"].startswith(f'Resource handler returned message: "{link} is MISCONFIGURED.')


def test_tasks_take_turns_and_end_as_ordered(linked: LinkedFileSystem) -> None:
    linked.put(one="1")
    linked.link()
    linked.aws.set_task_fate(_IMPORT, "EXECUTING")
    task = linked.task(_IMPORT, ClientRequestToken="once")
    assert linked.task(_IMPORT, ClientRequestToken="once") == task
    for expected in ("EXECUTING", "EXECUTING"):
        assert linked.tasks()[0]["Lifecycle"] == expected
    with pytest.raises(ClientError, match="DataRepositoryTaskExecuting"):
        linked.task(_EXPORT)
    with pytest.raises(ClientError, match="BadRequest"):
        linked.fsx.delete_file_system(FileSystemId=linked.id)
    linked.aws.set_task_fate(_IMPORT, None)
    linked.fsx.cancel_data_repository_task(TaskId=task)
    assert linked.tasks()[0]["Lifecycle"] == "CANCELED"
    with pytest.raises(ClientError, match="DataRepositoryTaskEnded"):
        linked.fsx.cancel_data_repository_task(TaskId=task)
    linked.aws.set_task_fate(_IMPORT, "FAILED", "Amazon FSx is unable to list the bucket.")
    linked.task(_IMPORT)
    failed = linked.finish_tasks()[1]
    linked.aws.set_task_fate(_IMPORT, None)
    assert (failed["Lifecycle"], failed["FailureDetails"]["Message"]) == (
        *("FAILED", "Amazon FSx is unable to list the bucket."),
    )
    shown = linked.tasks(Filters=[{"Name": "task-lifecycle", "Values": ["FAILED"]}])
    assert [one["TaskId"] for one in shown] == [failed["TaskId"]]


def test_export_and_release_do_what_their_paths_say(linked: LinkedFileSystem) -> None:
    linked.link()
    for name in ("a", "b"):
        (linked.directory / name).write_text(name)
    linked.settle()
    assert linked.objects() == {}
    linked.task(_EXPORT, Paths=["data/a"])
    assert linked.finish_tasks()[0]["Status"]["SucceededCount"] == 1
    assert linked.objects() == {"a": "a"}
    for days, expected in ((1, []), (0, ["a"])):
        configuration = {"DurationSinceLastAccess": {"Unit": "DAYS", "Value": days}}
        linked.task(_RELEASE, Paths=["/"], ReleaseConfiguration=configuration)
        linked.finish_tasks()
        assert linked.released() == expected
    assert linked.restore("a") == ["a"]
    assert [path.name for path in LustreDirectory(Path(linked.directory.parents[1])).released()] == []


@pytest.mark.parametrize(
    ("kind", "request_", "code"),
    [
        ("AUTO_RELEASE_DATA", {}, "UnsupportedOperation"),
        (_IMPORT, {"Paths": ["data"]}, "BadRequest"),
        (_EXPORT, {"Paths": ["s3://bucket/"]}, "BadRequest"),
        (_IMPORT, {"Report": {"Enabled": True}}, "BadRequest"),
        (_RELEASE, {"CapacityToRelease": 1}, "BadRequest"),
        (_EXPORT, {"ReleaseConfiguration": {}}, "BadRequest"),
    ],
)
def test_a_task_that_cannot_be_is_refused(
    linked: LinkedFileSystem, kind: str, request_: dict[str, Any], code: str
) -> None:
    with pytest.raises(ClientError, match=code):
        linked.task(_IMPORT if code == "BadRequest" else kind)  # nothing is linked yet
    linked.link()
    with pytest.raises(ClientError, match=code):
        linked.task(kind, **request_)
