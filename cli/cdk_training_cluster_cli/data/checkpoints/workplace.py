"""The directory beside a checkpoint's place in which a restore writes until every file is proven."""

import os
import shutil
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from cluster_contract.checkpoints import RESTORING

_SOURCE, _RESTORED, _REPLACED = "source", "restored", "replaced"


@dataclass(frozen=True)
class Workplace:
    """A directory of which a restore owns the name; it changes nothing there that no restore has written.

    Attributes:
        target: The directory that is to be the checkpoint.
    """

    target: Path

    @property
    def path(self) -> Path:
        """The directory, beside the target, so that a rename puts the checkpoint in place."""
        return self.target.with_name(f".{self.target.name}{RESTORING}")

    @property
    def restored(self) -> Path:
        """What will be the target."""
        return self.path / _RESTORED

    @property
    def _replaced(self) -> Path:
        """What was at the target before."""
        return self.path / _REPLACED

    def check(self, paths: AbstractSet[str]) -> None:
        """Refuse a directory that holds anything else than what a restore of these files writes.

        Args:
            paths: The checkpoint's files.

        Raises:
            ValueError: It holds something else.
        """
        foreign = self._foreign(paths)
        if foreign is not None:
            raise ValueError(f"{foreign} is not of a restore of this checkpoint: move it away")

    def make(self, source: str) -> None:
        """Make the directory, or go on in the one that an earlier restore left.

        Args:
            source: Where the checkpoint lies, for who finds the directory.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        note = self.path / _SOURCE
        if not note.exists():
            note.write_text(f"{source}\n")
        self.restored.mkdir(exist_ok=True)

    def finish(self) -> None:
        """Put what is restored in place, and delete what it replaces.

        A kill between the two renames leaves the old directory in the workplace: the next restore goes on.
        """
        if os.path.lexists(self.target):
            _delete(self._replaced)
            self.target.rename(self._replaced)
        self.restored.rename(self.target)
        self._clear()

    def clear(self) -> None:
        """Delete what a restore that was killed after it put the checkpoint in place has left."""
        if self.path.exists() and self._foreign(frozenset()) is None and not self.restored.exists():
            self._clear()

    def _clear(self) -> None:
        _delete(self._replaced)
        (self.path / _SOURCE).unlink(missing_ok=True)
        self.path.rmdir()

    def _foreign(self, paths: AbstractSet[str]) -> Path | None:
        if not os.path.lexists(self.path):
            return None
        names = {each.name for each in self.path.iterdir()} if _is_directory(self.path) else {""}
        if names and _SOURCE not in names:
            return self.path
        others = names - {_SOURCE, _RESTORED, _REPLACED}
        if others:
            return self.path / min(others)
        if _RESTORED in names and not _is_directory(self.restored):
            return self.restored
        for place, directories, files in os.walk(self.restored):
            for name in (*directories, *files):
                path = Path(place, name)
                below = path.relative_to(self.restored).as_posix()
                if path.is_symlink() or not (path.is_dir() or below in paths):
                    return path
        return None


def _is_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _delete(path: Path) -> None:
    if _is_directory(path):
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
