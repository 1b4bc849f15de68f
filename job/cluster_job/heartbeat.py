"""What tells the idle stop that a job is at work, for scripts that report nothing themselves.

`cluster-run` sends it from the start, also while it waits for data sets and for nodes. A script that uses `Run` says
better when it is at work: while its process lives that sends it, and no longer than it makes progress.
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
"""The file in the job's own folder with the process that has taken over."""


def take_over() -> None:
    """Let `cluster-run` send no heartbeats while this process lives, since it does."""
    folder = os.environ.get(JOB_FOLDER)
    if folder and Path(folder).is_dir():
        Path(folder, _TAKEN_OVER).write_text(str(os.getpid()))


@contextmanager
def beating(beat: Callable[[], None], folder: Path, every: float = HEARTBEAT_SECONDS) -> Iterator[None]:
    """Send heartbeats until the end, but while a process of the script does.

    Args:
        beat: Sends one; what it raises is said once, and the job goes on.
        folder: The job's own folder.
        every: The seconds between two.
    """
    ended = threading.Event()

    def run() -> None:
        has_said = False
        while not ended.is_set():
            try:
                if not is_taken_over(folder):
                    beat()
            except Exception as error:
                if not has_said:
                    say(f"no heartbeat can be sent, and the job goes on: {error}")
                has_said = True
            ended.wait(every)

    thread = threading.Thread(target=run, name="cluster-run-heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()


def is_taken_over(folder: Path) -> bool:
    """Return whether a process that lives sends heartbeats itself.

    Args:
        folder: The job's own folder.
    """
    try:
        return Path("/proc", (folder / _TAKEN_OVER).read_text()).exists()
    except FileNotFoundError:
        return False
