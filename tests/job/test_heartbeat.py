import threading
from pathlib import Path

import pytest

from cluster_job.drain import JOB_FOLDER, drain_request
from cluster_job.heartbeat import beating, take_over


class _Beats:
    """Counts heartbeats; a test waits for each."""

    def __init__(self) -> None:
        self.seen = threading.Semaphore(0)

    def __call__(self) -> None:
        self.seen.release()


def test_heartbeats_are_sent_until_the_script_takes_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beats = _Beats()
    monkeypatch.setenv(JOB_FOLDER, str(tmp_path))
    with beating(beats, tmp_path, every=0):
        assert beats.seen.acquire(timeout=30)
        assert beats.seen.acquire(timeout=30)
        (thread,) = (one for one in threading.enumerate() if one.name == "cluster-run-heartbeat")
        take_over()
        thread.join(timeout=30)
        assert not thread.is_alive()
    assert drain_request() is None


def test_a_heartbeat_that_fails_is_said_once_and_tried_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    beats = _Beats()

    def refused() -> None:
        beats()
        raise OSError("no route to host")

    with beating(refused, tmp_path, every=0):
        assert all(beats.seen.acquire(timeout=30) for _ in range(3))

    assert capfd.readouterr().err.count("no heartbeat can be sent, and the job goes on: no route to host") == 1
