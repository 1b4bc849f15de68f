"""Where stacks and torch's record of collectives are written on a node that other users share."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from stat import S_IMODE

import pytest

from cluster_job.flight_recorder import make_folder, own_folder


@pytest.fixture
def expected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    own_folder.cache_clear()
    yield tmp_path / f"tmp/cdk-training-cluster-{os.getuid()}"
    own_folder.cache_clear()


@pytest.mark.parametrize("exists", [False, True])
def test_no_other_user_may_write_where_stacks_are_written(expected: Path, exists: bool) -> None:
    if exists:
        expected.mkdir()
        expected.chmod(0o777)
    make_folder("llama")
    assert own_folder() == expected
    assert (S_IMODE(expected.stat().st_mode), (expected / "llama").is_dir()) == (0o700, True)


@pytest.mark.parametrize("made", ["link", "folder", "file"])
def test_what_another_user_made_there_is_not_used(expected: Path, tmp_path: Path, made: str) -> None:
    (tmp_path / "other").mkdir()
    if made == "link":
        expected.symlink_to(tmp_path / "other")
    elif made == "file":
        expected.touch()
    elif os.geteuid() == 0:
        expected.mkdir()
        os.chown(expected, 65534, 65534)
    else:
        pytest.skip("only root can make the folder of another user")
    make_folder("llama")
    assert own_folder().parent == expected.parent
    assert own_folder() != expected
    assert (S_IMODE(own_folder().stat().st_mode), (own_folder() / "llama").is_dir()) == (0o700, True)
    assert not [*(tmp_path / "other").iterdir()]


def test_without_room_for_a_folder_nothing_is_written(expected: Path) -> None:
    expected.parent.rmdir()
    make_folder("llama")
    with pytest.raises(OSError, match="Not a directory"):
        (own_folder() / "llama").mkdir(parents=True)
