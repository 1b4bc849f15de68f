import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_job import Run
from cluster_job.checkpoints import LATEST, MARKER, Checkpoint, CheckpointFolder, read_checkpoint
from cluster_job.intervals import History


@pytest.fixture
def folder(tmp_path: Path) -> CheckpointFolder:
    return CheckpointFolder(tmp_path / "run")


def write(folder: CheckpointFolder, step: int, attempt: str = "0" * 8) -> Checkpoint:
    path = folder.path(step, attempt)
    path.mkdir(parents=True)
    for rank in range(2):
        (path / f"__{rank}_0.distcp").write_bytes(b"x" * (rank + 1))
    return Checkpoint(path=path, step=step, history=History(failures=1, rank_hours=step / 10))


def save(folder: CheckpointFolder, step: int, attempt: str = "0" * 8) -> Checkpoint:
    checkpoint = write(folder, step, attempt)
    folder.commit(checkpoint, ["__0_0.distcp", "__1_0.distcp"])
    return checkpoint


def test_a_run_goes_on_with_the_newest_whole_checkpoint(folder: CheckpointFolder) -> None:
    assert folder.latest() is None
    save(folder, 100)
    newest = save(folder, 1_000_000_000, "a" * 8)
    write(folder, 1_000_000_001)
    assert folder.latest() == newest
    assert (folder.root / LATEST).resolve() == newest.path


def cut_short(folder: CheckpointFolder, path: Path) -> Iterator[str]:
    """Yield the states in which a killed job can leave a checkpoint, from its beginning to just before its end."""
    whole = folder.root.parent / "whole"
    path.rename(whole)
    path.mkdir()
    yield "nothing"
    for file in sorted(whole.iterdir(), key=lambda one: one.name == MARKER):
        contents = file.read_bytes()
        for part in {0, len(contents) // 2, len(contents) - 1}:
            (path / file.name).write_bytes(contents[:part])
            yield f"{part} bytes of {file.name}"
        (path / file.name).write_bytes(contents)
        if file.name != MARKER:
            yield file.name
    for name in ("__0_0.distcp", "__1_0.distcp"):  # and what a lost disk or an export to S3 leaves
        contents = (path / name).read_bytes()
        (path / name).write_bytes(contents[:-1])
        yield f"the marker, and {name} in part"
        (path / name).write_bytes(contents)


def test_half_a_checkpoint_is_ignored_whenever_the_job_was_killed_and_removed_by_the_next(
    folder: CheckpointFolder,
) -> None:
    older = save(folder, 1)
    half = save(folder, 2).path
    for state in cut_short(folder, half):
        assert read_checkpoint(half) is None, state
        assert folder.latest() == older, state
    (half / "__0_0.distcp").unlink()
    newer = write(folder, 3)
    save(folder, 2, "a" * 8)
    assert not half.exists()
    assert newer.path.exists(), "another replica may be writing it"


def test_a_checkpoint_without_the_files_of_a_rank_is_not_marked_and_deletes_no_other(
    folder: CheckpointFolder,
) -> None:
    kept, half = save(folder, 1), write(folder, 2)
    (half.path / "__1_0.distcp").unlink()  # it lies on the other node's own disk
    with pytest.raises(FileNotFoundError, match=r"lacks __1_0.distcp, .* in a directory that all nodes share"):
        folder.commit(half, ["__0_0.distcp", "__1_0.distcp"])
    assert folder.all() == [kept]


def test_older_checkpoints_are_deleted_when_a_newer_one_is_whole(folder: CheckpointFolder) -> None:
    for step in (1, 2, 3):
        save(folder, step)
    write(folder, 4)
    assert [one.step for one in folder.all()] == [2, 3]
    save(folder, 1, "b" * 8)
    assert [one.step for one in folder.all()] == [1, 2, 3], "the one that was just written is kept"


def test_a_process_of_an_earlier_start_writes_nowhere_else(folder: CheckpointFolder) -> None:
    first, second = folder.path(5, folder.new_attempt()), folder.path(5, folder.new_attempt())
    assert first != second


def test_other_directories_and_added_files_are_left_alone(folder: CheckpointFolder) -> None:
    (folder.root / "step-1").mkdir(parents=True)
    kept = save(folder, 1)
    (kept.path / "NOTES").write_text("kept by its user")
    assert folder.latest() == kept
    save(folder, 2)
    assert {one.name for one in folder.root.iterdir()} >= {"step-1", kept.path.name}


def test_a_mount_of_s3_without_links_directory_syncs_and_deletions_works(
    folder: CheckpointFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """https://github.com/awslabs/mountpoint-s3/blob/main/doc/SEMANTICS.md."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    for name in ("symlink_to", "replace", "rename", "unlink"):
        monkeypatch.setattr(Path, name, refuse)
    monkeypatch.setattr(shutil, "rmtree", refuse)
    for step in (1, 2, 3):
        save(folder, step)
    assert [one.step for one in folder.all()] == [1, 2, 3]
    write(folder, 4)
    assert folder.latest() == folder.all()[-1]


def test_the_newest_whole_checkpoint_is_kept_until_the_next_is_whole(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path / "run", keep=1)
    kept = save(folder, 1)
    write(folder, 2)
    assert folder.latest() == kept
    assert [one.step for one in (save(folder, 3), *folder.all())] == [3, 3]


def test_at_least_one_checkpoint_is_kept() -> None:
    with pytest.raises(ValueError, match="keep must be at least 1 checkpoint, got 0"):
        Run(global_batch=1, keep=0)
