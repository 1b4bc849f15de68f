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

SEEN_SECONDS = 5
"""For how long the checkpoint counts though no node waits: torch keeps its list of those for a second."""

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
        self._whole: float | None = None

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

    def may_end(self, waiting: int, why: str = "a node joins") -> bool:
        """Return whether the agent may end its processes for nodes that wait to join; ask them to save before.

        Args:
            waiting: How many nodes wait.
            why: The reason, as the beginning of a sentence.
        """
        if not waiting:
            # Another node may have seen the newcomer before, and its processes and these save together by now.
            if not self._has(_BEGUN) or self._is_old():
                self._forget(_ASKED, _BEGUN, _DONE)
            return False
        if not self._has(_ANSWERS) or self._has(_DONE):
            return True
        if self._since is None:
            self._since = self._clock()
            self._say(_ASKED)
            print(f"cluster-run: {why}: the job saves first", file=sys.stderr, flush=True)  # noqa: T201
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

    def ended(self, *, is_whole: bool) -> None:
        """Say that the processes have saved, or that they are still to.

        Args:
            is_whole: Whether the checkpoint could be written.
        """
        if is_whole:
            self._say(_DONE)
        else:
            self._forget(_BEGUN)

    def _is_old(self) -> bool:
        if not self._has(_DONE):
            return False
        self._whole = self._clock() if self._whole is None else self._whole
        return self._clock() - self._whole >= SEEN_SECONDS

    def _has(self, name: str) -> bool:
        return self._folder is not None and (self._folder / name).exists()

    def _say(self, name: str) -> None:
        if self._folder is not None and self._folder.is_dir():
            (self._folder / name).touch()

    def _forget(self, *names: str) -> None:
        self._since = self._whole = None
        if self._folder is not None:
            for name in names:
                (self._folder / name).unlink(missing_ok=True)
