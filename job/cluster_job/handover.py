"""How the processes of a job save before they are ended for nodes that join it.

torchrun's agent starts the processes of all nodes again when a node joins. It asks those of its own node first, by
files in the job's own folder, and waits until the checkpoint is whole. Scripts that do not save with `Run` are not
waited for.
"""

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from cluster_job.drain import JOB_FOLDER

BEGIN_SECONDS = 60
"""For how long a node that joins waits for the others to begin to save: a step has to end before."""

WRITE_SECONDS = 600
"""For how long it waits for the checkpoint, once they save."""

# Requests to drain lie in the same folder: names that begin with a dot are none.
_ANSWERS, _ASKED, _BEGUN, _DONE = ".save-answers", ".save-asked", ".save-begun", ".save-done"


class Handover:
    """What one node's agent and its processes say to one another.

    Args:
        folder: The job's own folder. None: `cluster-run` did not start the job, and nothing is asked.
        clock: Returns seconds that never go back.
    """

    def __init__(self, folder: Path | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._clock = clock
        self._since: float | None = None

    @classmethod
    def of(cls, variables: Mapping[str, str]) -> "Handover":
        """Return the handover of this process's job.

        Args:
            variables: The environment variables.
        """
        folder = variables.get(JOB_FOLDER)
        return cls(Path(folder) if folder else None)

    def start(self) -> None:
        """Forget what was said: the agent starts new processes."""
        self._forget(_ANSWERS, _ASKED, _BEGUN, _DONE)

    def may_end(self, waiting: int) -> bool:
        """Return whether the agent may end its processes for nodes that wait to join; ask them to save before.

        Args:
            waiting: How many nodes wait.
        """
        if not waiting:
            # Another node may have seen the newcomer before, and its processes and these save together by now.
            if self._has(_DONE) or not self._has(_BEGUN):
                self._forget(_ASKED, _BEGUN, _DONE)
            return False
        if not self._has(_ANSWERS) or self._has(_DONE):
            return True
        if self._since is None:
            self._since = self._clock()
            self._say(_ASKED)
            print("cluster-run: a node joins: the job saves first", file=sys.stderr, flush=True)  # noqa: T201
        limit = WRITE_SECONDS if self._has(_BEGUN) else BEGIN_SECONDS
        return self._clock() - self._since >= limit

    def answers(self) -> None:
        """Say that this process saves when it is asked."""
        self._say(_ANSWERS)

    @property
    def is_asked(self) -> bool:
        """Whether the processes are to save, and have not."""
        return self._has(_ASKED) and not self._has(_DONE)

    def begun(self) -> None:
        """Say that the processes save."""
        self._say(_BEGUN)

    def done(self) -> None:
        """Say that the checkpoint is whole."""
        self._say(_DONE)

    def _has(self, name: str) -> bool:
        return self._folder is not None and (self._folder / name).exists()

    def _say(self, name: str) -> None:
        if self._folder is not None and self._folder.is_dir():
            (self._folder / name).touch()

    def _forget(self, *names: str) -> None:
        self._since = None
        if self._folder is not None:
            for name in names:
                (self._folder / name).unlink(missing_ok=True)
