"""Which of two starts of a run may mark and delete its checkpoints: the one with the later token, without torch.

A start that was stopped for a minute, or whose node was cut off, does not know that another one has taken its lease.
So each holder of a lease gets a token with a greater number, and leaves it in the run's folder before it reads what
lies there. A start that finds another's token there marks nothing, deletes nothing and renames nothing.
"""

import contextlib
from dataclasses import dataclass
from pathlib import Path

_PREFIX = ".token-"


class Superseded(Exception):  # noqa: N818 - the run prints the message as it is
    """A later start of the run has opened its folder; the message is a sentence."""


@dataclass(frozen=True)
class Token:
    """The number of a lease's holder.

    Attributes:
        number: It grows by 1 with each holder.
        series: The name of the numbers: tables of other clusters, and items that expired, count anew.
    """

    number: int
    series: str

    def __str__(self) -> str:
        return f"{self.number}-{self.series}"

    @classmethod
    def parse(cls, text: str) -> "Token":
        """Return the token that a text names.

        Args:
            text: What `str` returned.
        """
        number, _, series = text.partition("-")
        return cls(int(number), series)

    def is_before(self, other: "Token") -> bool:
        """Return whether another token replaces this one.

        Args:
            other: The other token.
        """
        return self.series == other.series and self.number < other.number


class Fence:
    """A start's token in the folder of its run.

    Args:
        root: The run's folder.
        token: The start's token. None: it has no lease, and is kept from nothing.
    """

    def __init__(self, root: Path, token: Token | None) -> None:
        self._root, self._token = root, token
        self._is_up = False

    def put_up(self) -> bool:
        """Leave the token in the folder, and remove those before it; return whether it was not there yet.

        Raises:
            Superseded: A later start has done so.
        """
        if self._token is None or self._is_up:
            return False
        self._root.mkdir(parents=True, exist_ok=True)
        own = self._path(self._token)
        is_new = not own.exists()
        own.touch()
        # All create theirs before they look: of two at least one sees the other.
        others = self._tokens() - {self._token}
        if any(map(self._token.is_before, others)):
            own.unlink(missing_ok=True)
            raise self._superseded()
        for other in others:
            with contextlib.suppress(OSError):  # Mountpoint for Amazon S3 deletes with --allow-delete only
                self._path(other).unlink()
        self._is_up = True
        return is_new

    def check(self) -> None:
        """Look whether this start may change checkpoints.

        Raises:
            Superseded: Another start has opened the folder since.
        """
        if self._token is None:
            return
        self.put_up()
        found = self._tokens()
        if any(map(self._token.is_before, found)) or (found and self._token not in found):
            raise self._superseded()

    def _superseded(self) -> Superseded:
        return Superseded(
            f"another start of this run has opened {self._root}: this one marks, renames and deletes no checkpoint "
            "there any more, and ends"
        )

    def _tokens(self) -> set[Token]:
        if not self._root.is_dir():
            return set()
        names = [one.name.removeprefix(_PREFIX) for one in self._root.iterdir() if one.name.startswith(_PREFIX)]
        return {Token.parse(name) for name in names if name.partition("-")[0].isdecimal()}

    def _path(self, token: Token) -> Path:
        return self._root / f"{_PREFIX}{token}"
