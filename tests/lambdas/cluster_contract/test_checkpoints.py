"""What a listing says about checkpoints."""

import tracemalloc
from datetime import UTC, datetime, timedelta

import pytest

from cluster_contract.checkpoints import (
    Checkpoint,
    CheckpointPlace,
    StoredFile,
    checkpoints,
    newest_complete,
    place_parameter,
    stored_files,
)

_START = datetime(2026, 11, 22, tzinfo=UTC)


def _files(*paths: str) -> list[StoredFile]:
    """Each file is of 10 bytes, and a minute younger than the one before it."""
    return [StoredFile(path, 10, _START + timedelta(minutes=minute)) for minute, path in enumerate(paths)]


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ([], {}),
        (["a/.metadata", "a/__0_0.distcp"], {"a": (2, True)}),
        (["a/model/w.pt", "a/.complete"], {"a": (2, True)}),
        (["a/__0_0.distcp"], {"a": (1, False)}),
        (["a/rank0/w.pt", "a/rank1/w.pt"], {"a": (2, False)}),
        # Runs: what is not complete beside a complete one is a checkpoint of its own.
        (["run/a/.metadata", "run/b/w.pt", "run/latest.txt"], {"run/a": (1, True), "run/b": (1, False)}),
        # The outer marker stands for all below it.
        (["a/model/.metadata", "a/.complete"], {"a": (2, True)}),
        # What is not in place yet.
        (
            ["a.partial/.metadata", "run/.a.training-cluster-restore/restored/.metadata"],
            {"a.partial": (1, False), "run": (1, False)},
        ),
        (["a.complete/x", "latest.txt", ".complete"], {"a.complete": (1, False)}),
    ],
)
def test_a_directory_with_a_marker_is_a_complete_checkpoint(
    paths: list[str], expected: dict[str, tuple[int, bool]]
) -> None:
    for given in (paths, paths[::-1]):  # A directory bucket lists in no order.
        assert {one.name: (one.files, one.complete) for one in checkpoints(_files(*given))} == expected


def test_the_newest_complete_checkpoint_is_the_one_that_was_written_last() -> None:
    found = checkpoints(_files("step-9/.metadata", "step-10/w", "step-10/.metadata", "step-11/w"))
    assert [one.name for one in found] == ["step-11", "step-10", "step-9"]
    assert newest_complete(found) == Checkpoint(
        name="step-10",
        files=2,
        bytes=20,
        newest=_START + timedelta(minutes=2),
        completed=_START + timedelta(minutes=2),
    )
    assert newest_complete([one for one in found if not one.complete]) is None


def test_deep_directories_take_no_more_memory_than_their_names() -> None:
    keys = (f"{number:04}/{'a/' * 500}.complete" for number in range(300))
    tracemalloc.start()
    found = checkpoints(StoredFile(key, 1, _START) for key in keys)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == 300
    assert most < 10 * 2**20


def test_a_checkpoint_is_as_old_as_its_marker() -> None:
    found = checkpoints(_files("a/.metadata", "b/.metadata", "a/eval.log", "a/model/.metadata"))
    assert [one.name for one in found] == ["b", "a"]
    assert newest_complete(found) == found[0]
    assert (found[1].completed, found[1].newest) == (_START, _START + timedelta(minutes=3))


def test_a_listing_of_s3_is_read_below_its_prefix_and_without_directories() -> None:
    keys = ["runs/", "runs/a/", "runs/a/w x\n.pt", "other/b"]
    contents = [{"Key": key, "Size": 10, "LastModified": _START} for key in keys]
    assert list(stored_files(contents, "runs/")) == [StoredFile("a/w x\n.pt", 10, _START)]


def test_the_place_is_read_from_its_parameter() -> None:
    assert place_parameter("llama") == "/training-cluster/llama/checkpoints"
    place = CheckpointPlace.parse('{"bucket": "b", "prefix": "runs/", "directory": "/fsx/checkpoints"}')
    assert place == CheckpointPlace(bucket="b", prefix="runs/", directory="/fsx/checkpoints")
    with pytest.raises(ValueError, match="no bucket"):
        CheckpointPlace.parse("{}")
