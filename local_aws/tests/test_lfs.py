"""The stand-in for `lfs`: what its calls answer, and what becomes of the files."""

import os
import subprocess
from pathlib import Path

import pytest

from local_aws.lustre_client import LFS, LustreDirectory

RESTORED = "(0x00000009) exists archived, archive_id:1"
RELEASED = "(0x0000000d) released exists archived, archive_id:1"


@pytest.fixture
def lustre(tmp_path: Path) -> LustreDirectory:
    return LustreDirectory(tmp_path)


def lfs(*arguments: str | Path, **environment: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [LFS, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("name", ["a", "two words", "two\nlines", "-dash", "\udcff\udcfe", "deep/er/file"])
def test_a_restore_is_asked_for_and_comes_later(lustre: LustreDirectory, name: str) -> None:
    file = lustre.add(name)
    assert lfs("hsm_state", file) == (0, f"{file}: {RELEASED}\n", "")
    assert lfs("hsm_restore", file, LFS_LATENCY="60") == (0, "", "")
    assert lfs("hsm_action", file) == (0, f"{file}: RESTORE running (0 bytes moved)\n", "")
    assert lfs("hsm_state", file) == (0, f"{file}: {RELEASED}\n", "")
    for request in (lustre.home / "requests").iterdir():
        os.utime(request, (0, 0))  # The time has come.
    assert lfs("hsm_action", file) == (0, f"{file}: NOOP\n", "")
    assert lfs("hsm_state", file) == (0, f"{file}: {RESTORED}\n", "")
    assert file.read_bytes() == b"contents"
    assert lfs("hsm_restore", file) == (0, "", "")


@pytest.mark.parametrize(
    ("fault", "status", "error"),
    [
        (
            {"call": "hsm_restore", "error": "EPERM"},
            1,
            "Cannot send HSM request (use of {a}): Operation not permitted",
        ),
        ({"call": "hsm_state", "error": "EIO"}, 5, "can't get hsm state for {b}: Input/output error"),
        ({"call": "copy", "error": "EACCES"}, 0, ""),
    ],
)
def test_a_fault_hits_as_often_as_it_says(
    lustre: LustreDirectory, fault: dict[str, str], status: int, error: str
) -> None:
    a, b = lustre.add("a"), lustre.add("b")
    lustre.faults({"path": "b", "times": 1, **fault})
    call = fault["call"] if fault["call"] != "copy" else "hsm_restore"
    returned, _, said = lfs(call, a, b)
    assert (returned, said) == (status, error.format(a=a, b=b) + "\n" if error else "")
    lfs("hsm_state", a, b)
    assert lustre.released() == ([b] if call == "hsm_restore" else [a, b])
    assert lfs("hsm_restore", a, b)[0] == 0
    assert lfs("hsm_state", a, b)[1] == f"{a}: {RESTORED}\n{b}: {RESTORED}\n"


def test_what_cannot_be_looked_up_fails_the_whole_request(lustre: LustreDirectory, tmp_path: Path) -> None:
    a, gone = lustre.add("a"), lustre.files / "gone"
    assert lfs("hsm_restore", a, gone) == (2, "", f"Cannot stat {gone}: No such file or directory\n")
    assert lfs("hsm_restore", lustre.files) == (1, "", f'error: "{lustre.files}" is not a regular file\n')
    assert lustre.released() == [a]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("x")
    assert lfs("path2fid", elsewhere)[0] == lfs("hsm_state", elsewhere)[0] == 25
    assert lfs("path2fid", lustre.files)[0] == 0


def test_contents_go_out_and_are_released(lustre: LustreDirectory) -> None:
    file = lustre.files / "new"
    file.write_bytes(b"weights")
    assert lfs("hsm_state", file)[1] == f"{file}: (0x00000000)\n"
    assert lfs("hsm_release", file)[0] == 1
    assert lfs("hsm_archive", file)[0] == lfs("hsm_release", file)[0] == 0
    assert (lustre.objects / "new").read_bytes() == b"weights"
    assert lustre.released() == [file]
