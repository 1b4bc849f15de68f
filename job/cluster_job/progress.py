"""How far the processes of a node have trained, as its agent knows it when they have ended, however they did.

The first process of each node keeps two numbers in a file of the job's own folder. The file is mapped into memory:
a step costs no system call, and what was written outlives the process.
"""

import contextlib
import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cluster_job.drain import JOB_FOLDER

_NAME = ".steps"  # requests to drain lie in the same folder: names that begin with a dot are none
_LAYOUT = struct.Struct("<qq")


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far processes have trained.

    Attributes:
        start: The number of steps that were done when they began: those of the checkpoint.
        steps: The number of steps that are done.
    """

    start: int
    steps: int


class StepFile:
    """The file.

    Args:
        folder: The job's own folder. None: `cluster-run` did not start the job, and nothing is kept.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._file = None if folder is None else folder / _NAME
        self._map: mmap.mmap | None = None
        self._start = 0

    @classmethod
    def of(cls, variables: Mapping[str, str]) -> "StepFile":
        """Return the file of this process's job.

        Args:
            variables: The environment variables.
        """
        folder = variables.get(JOB_FOLDER)
        return cls(Path(folder) if folder else None)

    def begin(self, start: int) -> None:
        """Say with which step the processes begin; a folder that cannot be written to keeps no job from its start.

        Args:
            start: The number of steps that are done.
        """
        self._start = start
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.write_bytes(_LAYOUT.pack(start, start))
                with self._file.open("r+b") as opened:
                    self._map = mmap.mmap(opened.fileno(), _LAYOUT.size)

    def done(self, steps: int) -> None:
        """Say how many steps are done.

        Args:
            steps: Their number.
        """
        if self._map is not None:
            _LAYOUT.pack_into(self._map, 0, self._start, steps)

    def read(self) -> Progress | None:
        """Return what the processes have said. None: nothing."""
        if self._file is None:
            return None
        try:
            start, steps = _LAYOUT.unpack(self._file.read_bytes())
        except (OSError, struct.error):
            return None
        return Progress(start=start, steps=steps)

    def forget(self) -> None:
        """Forget it: the agent starts new processes."""
        if self._file is not None:
            self._file.unlink(missing_ok=True)
