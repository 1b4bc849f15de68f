"""Data sets: which ones FSx can link, alone and beside each other."""

from typing import Any

import pytest
from aws_cdk import CfnParameter
from aws_cdk import aws_s3 as s3

from cdk_training_cluster import Dataset
from cdk_training_cluster.storage.dataset import overlaps
from synthesis import new_stack


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
