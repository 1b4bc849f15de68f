"""The server's process, as the measurement sees it."""

import json
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True, kw_only=True)
class Account:
    """What was done to the account since a fleet was put in it.

    Attributes:
        requests: How many there were, by operation.
        stopped: How many instances were stopped.
        warned: How many instances carry tags that they had not before.
        slow: How many answers took longer to write than the delay.
    """

    requests: dict[str, int]
    stopped: int
    warned: int
    slow: int


class SweepServer:
    """Start the server in a process of its own, and stop it at the end."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.sweep.server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise RuntimeError("the sweep's server did not start")
        self.url = f"http://localhost:{json.loads(line)['port']}"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.communicate()

    def put_fleet(self, size: int) -> None:
        """Put a new fleet in the account and forget the old one.

        Args:
            size: How many instances it has.
        """
        self._ask("fleet", json.dumps({"size": size}).encode())

    def account(self) -> Account:
        """Return what was done to the account."""
        return Account(**self._ask("account"))

    def _ask(self, path: str, body: bytes | None = None) -> Any:  # noqa: ANN401 - any JSON
        request = urllib.request.Request(f"{self.url}/bench/{path}", data=body)  # noqa: S310 - localhost
        with urllib.request.urlopen(request) as answer:  # noqa: S310 - localhost
            return json.loads(answer.read())
