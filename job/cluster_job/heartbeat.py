"""What tells the idle stop that a job is at work, for scripts that report nothing themselves.

`cluster-run` sends it from the start, also while it waits for data sets and for nodes. A script that uses `Run` says
better when it is at work: while its process lives that sends it, and no longer than it makes progress.
"""

import os
import threading
import time
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
def beating(beat: Callable[[float | None], None], folder: Path, every: float = HEARTBEAT_SECONDS) -> Iterator[None]:
    """Send heartbeats until the end, but while a process of the script does.

    Args:
        beat: Sends one, and is given for how many seconds the script has had no process, as while torchrun waits for
            nodes; None: it never had one. What it raises is said once, and the job goes on.
        folder: The job's own folder.
        every: The seconds between two.
    """
    ended = threading.Event()

    def run() -> None:
        has_said, lived = False, 0.0
        while not ended.is_set():
            try:
                if is_taken_over(folder):
                    lived = time.time()
                else:
                    beat(_silent(folder, lived))
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


def _silent(folder: Path, lived: float) -> float | None:
    try:
        return time.time() - max(lived, (folder / _TAKEN_OVER).stat().st_mtime)
    except FileNotFoundError:
        return None


def is_taken_over(folder: Path) -> bool:
    """Return whether a process that lives sends heartbeats itself.

    Args:
        folder: The job's own folder.
    """
    try:
        return Path("/proc", (folder / _TAKEN_OVER).read_text()).exists()
    except FileNotFoundError:
        return False
