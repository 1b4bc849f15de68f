import base64
import json
import os
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cluster_job import Run
from cluster_job.checkpoints import LATEST, MARKER, Aside, Checkpoint, CheckpointFolder, read_checkpoint
from cluster_job.digests import DigestStream, Unreadable, file_digest, has_digests, unreadable
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


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("keep", 0, "keep must be at least 1 checkpoint, got 0"),
        ("keep_hourly", -1, "keep_hourly must be at least 0 checkpoints, got -1"),
        ("keep_daily", -1, "keep_daily must be at least 0 checkpoints, got -1"),
    ],
)
def test_numbers_of_kept_checkpoints_are_checked(setting: str, value: int, message: str) -> None:
    settings: dict[str, Any] = {setting: value}
    with pytest.raises(ValueError, match=message):
        Run(global_batch=1, **settings)


def test_the_first_checkpoints_of_hours_and_days_are_kept_and_no_more(tmp_path: Path) -> None:
    """One every ten minutes for four days, as steps that count the minutes."""
    start, day = datetime(2026, 11, 24, tzinfo=UTC), 24 * 60
    folder = CheckpointFolder(tmp_path, keep=2, keep_hourly=2, keep_daily=2)
    kept: list[Checkpoint] = []
    for minute in range(5, 4 * day, 10):
        written = (start + timedelta(minutes=minute)).isoformat()
        whole = [*kept, Checkpoint(path=folder.path(minute, "0" * 8), step=minute, written=written)]
        paths = set(folder._kept(whole))
        kept = [one for one in whole if one.path in paths]
        assert len(kept) <= 6
        assert minute < 65 or any(minute - one.step >= 60 for one in kept)
        assert minute < day + 5 or any(minute - one.step >= day for one in kept)
    end = 4 * day - 5
    assert [one.step for one in kept] == [2 * day + 5, 3 * day + 5, end - 110, end - 50, end - 10, end]


def test_without_hours_and_days_only_the_newest_are_kept(tmp_path: Path) -> None:
    now = datetime(2026, 11, 24, tzinfo=UTC)
    folder = CheckpointFolder(tmp_path / "run", clock=lambda: now)
    hourly = CheckpointFolder(tmp_path / "hourly", keep=1, keep_hourly=1, clock=lambda: now)
    for step in range(1, 5):
        now += timedelta(minutes=20)
        save(folder, step)
        save(hourly, step)
    assert [one.step for one in folder.all()] == [3, 4]
    assert [one.step for one in hourly.all()] == [3, 4], "the first of its hour, and the newest"


def test_a_checkpoint_of_another_size_is_set_aside_and_never_deleted(folder: CheckpointFolder) -> None:
    older, newest = save(folder, 1), save(folder, 2)
    (newest.path / "__1_0.distcp").write_bytes(b"x")
    unfinished = write(folder, 3)
    assert folder.set_damaged_aside() == [newest.path.with_name(f"{newest.path.name}.damaged")]
    assert folder.latest() == older
    for step in range(4, 8):
        save(folder, step)
    assert newest.path.with_name(f"{newest.path.name}.damaged").is_dir()
    assert not unfinished.path.exists()


def test_a_checkpoint_is_set_aside_where_nothing_can_be_renamed(
    folder: CheckpointFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "rename", refuse)  # as on Mountpoint for Amazon S3
    older, newest = save(folder, 1), save(folder, 2)
    assert folder.set_aside(newest.path, Aside.DAMAGED) == newest.path
    assert folder.latest() == older
    for step in range(4, 8):
        save(folder, step)
    assert newest.path.is_dir()


@pytest.mark.parametrize(
    "marker",
    [
        pytest.param("[" * 100_000, id="nested deeply"),
        '{"files": {"\\u0000": 1}}',
        '{"files": {"\\ud800": 1}}',
        '{"files": {"/dev/zero": 0}}',
        '{"files": {"../../../../../../../../../../dev/zero": 0}}',
        '{"files": {}, "step": 1e400, "ended": false, "history": {}}',
        '{"files": {}, "step": 3, "ended": false, "history": {}}',
        '{"files": {}, "step": 2, "ended": false, "history": []}',
        '{"files": {}, "step": 2, "ended": false, "history": {"rank_hours": "many"}}',
        '{"files": {}, "step": 2, "ended": false, "history": {"rank_hours": NaN}}',
        '{"files": {}, "step": 2, "ended": false, "history": {"failures": -1}}',
        f'{{"files": {{}}, "step": 2, "ended": false, "history": {{"failures": 1{"0" * 400}}}}}',
    ],
)
def test_a_marker_that_no_run_wrote_keeps_no_run_from_its_other_checkpoints(
    folder: CheckpointFolder, marker: str
) -> None:
    older, newest = save(folder, 1), save(folder, 2)
    newest.marker.write_text(marker)
    assert folder.latest() == older
    folder.set_damaged_aside()
    assert folder.latest() == older


@pytest.mark.parametrize("damage", [lambda file: os.truncate(file, 2**42), lambda file: _replace(file, "/dev/zero")])
def test_a_marker_without_end_fills_no_memory(folder: CheckpointFolder, damage: Callable[[Path], None]) -> None:
    older, newest = save(folder, 1), save(folder, 2)
    damage(newest.marker)
    assert folder.latest() == older
    folder.set_damaged_aside()
    assert unreadable(newest.marker) is not None
    assert not has_digests(newest.marker)


def _replace(file: Path, target: str) -> None:
    file.unlink()
    file.symlink_to(target)


def test_newer_checkpoints_that_cannot_be_read_cost_none_that_can(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path / "run", keep_hourly=1, keep_daily=1)
    save(folder, 2)
    details = {"ended": False, "history": {}, "written": "9999-12-31T23:59:59", "files": {}}
    for step in (8, 9):
        write(folder, step).marker.write_text(json.dumps({"step": step, **details}))
    save(folder, 3)
    assert [one.step for one in folder.all()] == [2, 3, 8, 9]


@pytest.mark.parametrize("digests", [[], {"/dev/zero": ""}, {"\0": ""}, {"9" * 5000: ""}, None])
def test_a_marker_with_digests_that_no_run_wrote_is_damaged(folder: CheckpointFolder, digests: object) -> None:
    checkpoint = save(folder, 1)
    details = json.loads(checkpoint.marker.read_text())
    details["digests"] = {"algorithm": "CRC32", "files": digests}
    checkpoint.marker.write_text(json.dumps(details))
    found = unreadable(checkpoint.marker)
    assert found is not None
    assert found.damaged


DIGESTS = {"__0_0.distcp": file_digest, "__1_0.distcp": file_digest}


def with_digests(folder: CheckpointFolder, step: int) -> Checkpoint:
    checkpoint = write(folder, step)
    folder.commit(checkpoint, DIGESTS, {name: digest(checkpoint.path / name) for name, digest in DIGESTS.items()})
    return checkpoint


def test_other_contents_of_the_same_size_are_found_by_the_rank_that_compares_the_file(
    folder: CheckpointFolder,
) -> None:
    checkpoint = with_digests(folder, 1)
    assert has_digests(checkpoint.marker)
    assert [unreadable(checkpoint.marker, rank=rank, world_size=2) for rank in range(2)] == [None, None]
    (checkpoint.path / "__1_0.distcp").write_bytes(b"xy")
    assert folder.latest() == checkpoint, "its sizes are right"
    found = [unreadable(checkpoint.marker, rank=rank, world_size=2) for rank in range(2)]
    assert found == [None, Unreadable(reason="__1_0.distcp does not hold what was written", damaged=True)]
    assert unreadable(checkpoint.marker) == found[1], "one rank compares all files"
    (checkpoint.path / "__1_0.distcp").unlink()
    missing = unreadable(checkpoint.marker)
    assert missing is not None
    assert not missing.damaged, "it is perhaps there for other ranks, and another time"


def test_a_marker_of_an_earlier_release_has_nothing_to_compare(folder: CheckpointFolder) -> None:
    checkpoint = save(folder, 1)
    assert not has_digests(checkpoint.marker)
    assert unreadable(checkpoint.marker) is None


def test_the_digest_of_a_stream_is_that_of_the_file(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as raw:
        stream = DigestStream(raw)
        for piece in (b"1234", memoryview(b"56789")):
            stream.write(piece)
        os.fsync(stream.fileno())
        assert (tmp_path / "file").read_bytes() == b"123456789", "what fsync writes is all there is"
        assert stream.tell() == 9
    assert stream.digest == file_digest(tmp_path / "file")
    assert base64.b64decode(stream.digest).hex() == "cbf43926", "the check value of CRC-32"
