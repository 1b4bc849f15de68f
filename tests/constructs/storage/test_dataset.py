"""Data sets: which ones FSx can link, alone and beside each other."""

from typing import Any

import pytest
from aws_cdk import CfnParameter, Duration, RemovalPolicy, Stack
from aws_cdk import aws_s3 as s3

from cdk_training_cluster import ClusterNetwork, Dataset, DatasetEvent, TrainingFileSystem
from cdk_training_cluster.storage.dataset import overlaps
from synthesis import ZONE, new_stack, only


def _dataset(path: str, prefix: str = "", bucket: str = "corpus") -> Dataset:
    stack = new_stack()
    return Dataset(bucket=s3.Bucket.from_bucket_name(stack, "Bucket", bucket), file_system_path=path, prefix=prefix)


@pytest.mark.parametrize("path", ["data", "//data", "/data//raw", ""])
def test_a_path_starts_with_one_slash(path: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        _dataset(path)
    assert str(refused.value) == f"file_system_path must start with one /, such as '/data', got {path!r}"


@pytest.mark.parametrize("prefix", ["/tokens/", "s3://corpus/tokens/"])
def test_a_prefix_is_a_key_prefix(prefix: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        _dataset("/data", prefix)
    assert str(refused.value) == (
        f"prefix must be a key prefix without a leading /, such as 'tokens/', got {prefix!r}"
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bucket": "corpus"}, "bucket must be an IBucket, such as s3.Bucket.from_bucket_name(…), got 'corpus'"),
        ({"file_system_path": None}, "file_system_path must be a directory, such as '/data', got None"),
        ({"prefix": ["tokens/"]}, "prefix must be a key prefix, such as 'tokens/', got ['tokens/']"),
        ({"chunk_size_mib": 0}, "chunk_size_mib must be at least 1, got 0"),
        ({"chunk_size_mib": 512_001}, "chunk_size_mib must be at most 512000, got 512001"),
        ({"preload": "*.bin"}, "preload must be True, False or a list of patterns, such as ['*.bin'], got '*.bin'"),
        ({"preload": []}, "preload must have from 1 to 20 patterns, got 0: use wider patterns"),
        (
            {"preload": ["/train/*"]},
            "preload must have patterns relative to the dataset's directory, such as 'train/*.bin', got '/train/*': "
            "leave out the leading /",
        ),
        (
            {"preload": [""]},
            "preload must have patterns of 1 to 256 characters that are known when the template is made, such as "
            "'*.bin', got ''",
        ),
        (
            {"preload_max_gib": 5},
            "preload_max_gib limits what is preloaded, got 5 without preload: add preload",
        ),
        (
            {"release_after": Duration.hours(36)},
            "release_after must be from 1 day to 3650 days, in steps of 1440 minutes, got 1 day 12 hours",
        ),
        (
            {"import_events": ["MOVED"]},
            "import_events must be a list, each item of it DatasetEvent.NEW or DatasetEvent.CHANGED or "
            "DatasetEvent.DELETED, got 'MOVED' in it",
        ),
    ],
)
def test_a_value_of_another_kind_is_refused(settings: dict[str, Any], message: str) -> None:
    bucket = s3.Bucket.from_bucket_name(new_stack(), "Bucket", "corpus")
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        Dataset(**{"bucket": bucket, "file_system_path": "/data", **settings})
    assert str(refused.value) == message


def test_tokens_are_not_checked() -> None:
    _dataset(CfnParameter(new_stack(), "Path").value_as_string)


@pytest.mark.parametrize(
    ("prefix", "address"),
    [("", "s3://corpus/"), ("tokens", "s3://corpus/tokens/"), ("a/b/", "s3://corpus/a/b/")],
)
def test_the_address_is_written_as_fsx_takes_it(prefix: str, address: str) -> None:
    assert _dataset("/data", prefix).data_repository_path == address


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("/a", "x/"), ("/b", "y/")),
        (("/a", "x/"), ("/ab", "xy/")),
        (("/a", "x/", "one"), ("/b", "x/", "two")),
        (("/a", "", "one"), ("/b", "", "two")),
    ],
)
def test_side_by_side_is_fine(first: tuple[str, ...], second: tuple[str, ...]) -> None:
    assert overlaps([_dataset(*first), _dataset(*second)]) == []


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (
            ("/data", "x/"),
            ("/data/raw", "y/"),
            "the datasets at /data and /data/raw overlap: file_system_path must not lie in another dataset's; "
            "choose directories side by side",
        ),
        (
            ("/data", "x/"),
            ("/data/", "y/"),
            "the datasets at /data and /data overlap: file_system_path must not lie in another dataset's; choose "
            "directories side by side",
        ),
        (
            ("/data", "x/"),
            ("/", "y/"),
            "the datasets at /data and / overlap: file_system_path must not lie in another dataset's; choose "
            "directories side by side",
        ),
        (
            ("/a", "tokens/"),
            ("/b", "tokens/en/"),
            "the datasets at /a and /b overlap: their prefixes 'tokens/' and 'tokens/en/' lie in each other in one "
            "bucket; link the outer one alone",
        ),
        (
            ("/a", "tokens"),
            ("/b", ""),
            "the datasets at /a and /b overlap: their prefixes 'tokens' and '' lie in each other in one bucket; "
            "link the outer one alone",
        ),
    ],
)
def test_one_inside_the_other_is_refused(first: tuple[str, ...], second: tuple[str, ...], message: str) -> None:
    assert list(map(str, overlaps([_dataset(*first), _dataset(*second)]))) == [message]


def test_a_file_system_takes_eight() -> None:
    datasets = [_dataset(f"/{number}", f"{number}/") for number in range(9)]
    assert overlaps(datasets[:8]) == []
    assert list(map(str, overlaps(datasets))) == ["a file system takes at most 8 datasets, got 9"]


_ALL = list(DatasetEvent)
_LINK = "AWS::FSx::DataRepositoryAssociation"


def _linked(stack: Stack, bucket: s3.IBucket, **settings: Any) -> dict[str, Any]:
    dataset = Dataset(bucket=bucket, file_system_path="/data", **settings)
    TrainingFileSystem(stack, "F", network=ClusterNetwork(stack, "N", availability_zone=ZONE), datasets=[dataset])
    return only(stack, _LINK)


@pytest.mark.parametrize(
    ("settings", "properties"),
    [
        ({}, {"S3": {"AutoImportPolicy": {"Events": _ALL}}}),
        (
            {"export_events": ["NEW"], "import_events": ["DELETED", "NEW", "NEW"], "chunk_size_mib": 512_000},
            {
                "S3": {"AutoImportPolicy": {"Events": ["NEW", "DELETED"]}, "AutoExportPolicy": {"Events": ["NEW"]}},
                "ImportedFileChunkSize": 512_000,
            },
        ),
        ({"import_events": []}, {}),
    ],
)
def test_a_link_passes_on_what_the_settings_say(settings: dict[str, Any], properties: dict[str, Any]) -> None:
    stack = new_stack()
    events = {name: [DatasetEvent(one) for one in settings[name]] for name in settings if name.endswith("_events")}
    link = _linked(stack, s3.Bucket.from_bucket_name(stack, "B", "corpus"), **{**settings, **events})["Properties"]
    assert {key: link[key] for key in link if key in {"S3", "ImportedFileChunkSize"}} == properties


def test_a_link_imports_changes_within_its_region_only() -> None:
    stack = new_stack()
    bucket = s3.Bucket.from_bucket_attributes(stack, "B", bucket_name="corpus", region="eu-west-1")
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        _linked(stack, bucket)
    assert str(refused.value) == (
        f"the dataset at /data must have a bucket in {stack.region}, the file system's region, got one in eu-west-1: "
        "FSx imports changes within a region only; set import_events=[] or copy the data"
    )
    _linked(other := new_stack(), s3.Bucket.from_bucket_attributes(other, "B", bucket_name="corpus"))
    bucket = s3.Bucket.from_bucket_attributes(third := new_stack(), "B", bucket_name="corpus", region="eu-west-1")
    _linked(third, bucket, import_events=[], export_events=_ALL)


def test_a_bucket_that_is_emptied_loses_its_link_first_and_takes_no_deletions() -> None:
    stack = new_stack()
    bucket = s3.Bucket(stack, "B", auto_delete_objects=True, removal_policy=RemovalPolicy.DESTROY)
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        _linked(stack, bucket, export_events=[DatasetEvent.DELETED])
    assert str(refused.value) == (
        "the dataset at /data must not export DELETED to a bucket with auto_delete_objects, which is emptied with "
        "its stack: a file and its object would be deleted by either; take away one of them"
    )
    stack = new_stack()
    bucket = s3.Bucket(stack, "B", auto_delete_objects=True, removal_policy=RemovalPolicy.DESTROY)
    depends = _linked(stack, bucket, export_events=[DatasetEvent.NEW])["DependsOn"]
    assert any("AutoDeleteObjects" in each for each in depends)
