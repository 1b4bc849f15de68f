import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cluster_job import heartbeat
from cluster_job.drain import JOB_FOLDER, drain_request
from cluster_job.heartbeat import beating, is_taken_over, take_over
from max_seconds import MAX_SECONDS


class _Beats:
    """Counts heartbeats; a test waits for each."""

    def __init__(self) -> None:
        self.seen = threading.Semaphore(0)
        self.silent: float | None = None

    def __call__(self, silent: float | None) -> None:
        self.silent = silent
        self.seen.release()


def test_heartbeats_are_sent_but_while_a_process_of_the_script_lives_that_sends_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beats = _Beats()
    monkeypatch.setenv(JOB_FOLDER, str(tmp_path))
    assert not is_taken_over(tmp_path)
    with beating(beats, tmp_path, every=0):
        assert beats.seen.acquire(timeout=MAX_SECONDS)
    assert beats.silent is None
    take_over()
    assert is_taken_over(tmp_path)
    program = "from cluster_job.heartbeat import take_over; take_over()"
    subprocess.run([sys.executable, "-c", program], cwd=Path(heartbeat.__file__).parents[1], check=True)
    assert not is_taken_over(tmp_path)
    os.utime(tmp_path / ".reports", (0, 0))
    beats = _Beats()
    with beating(beats, tmp_path, every=0):  # torchrun waits for a node, and sets up again
        assert all(beats.seen.acquire(timeout=MAX_SECONDS) for _ in range(2))
    assert beats.silent is not None
    assert beats.silent > 50 * 365 * 86_400
    assert drain_request() is None


def test_a_heartbeat_that_fails_is_said_once_and_tried_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    beats = _Beats()

    def refused(silent: float | None) -> None:
        beats(silent)
        raise OSError("no route to host")

    with beating(refused, tmp_path, every=0):
        assert all(beats.seen.acquire(timeout=MAX_SECONDS) for _ in range(3))

    assert capfd.readouterr().err.count("no heartbeat can be sent, and the job goes on: no route to host") == 1
