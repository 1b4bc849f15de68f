"""What tells the idle stop that a job is at work, for scripts that report nothing themselves.

`cluster-run` sends it from the start, also while it waits for data sets. A script that uses `Run` says better when it
is at work: then its own process sends it, and no longer than it makes progress.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster_job.drain import JOB_FOLDER
from cluster_job.hang_watch import say
from cluster_job.metrics import HEARTBEAT_SECONDS

_TAKEN_OVER = ".reports"
"""The file in the job's own folder with which a script takes over."""


def take_over() -> None:
    """Let `cluster-run` send no more heartbeats, since this process does."""
    folder = os.environ.get(JOB_FOLDER)
    if folder and Path(folder).is_dir():
        Path(folder, _TAKEN_OVER).touch()


@contextmanager
def beating(beat: Callable[[], None], folder: Path, every: float = HEARTBEAT_SECONDS) -> Iterator[None]:
    """Send heartbeats until the end, or until a script takes over.

    Args:
        beat: Sends one; what it raises is said once, and the job goes on.
        folder: The job's own folder.
        every: The seconds between two.
    """
    ended = threading.Event()

    def run() -> None:
        has_said = False
        while not (folder / _TAKEN_OVER).exists():
            try:
                beat()
            except Exception as error:
                if not has_said:
                    say(f"no heartbeat can be sent, and the job goes on: {error}")
                has_said = True
            if ended.wait(every):
                return

    thread = threading.Thread(target=run, name="cluster-run-heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
