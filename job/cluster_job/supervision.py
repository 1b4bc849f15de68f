"""What `cluster-run` does while torchrun runs: a drain gives the job time to save, and then ends it in order."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path

from cluster_job.drain import DRAIN_FOLDER, DrainRequest, drain_request, write_drain_request
from cluster_job.exits import Exit
from cluster_job.motion import children

_POLL_SECONDS = 0.5


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How long a drain may take.

    Attributes:
        drain_seconds: The time to save in where the drain sets no deadline.
        term_seconds: The time to end in after SIGTERM.
        shutdown_seconds: What torchrun gives its processes after SIGTERM; they get it before the deadline.
    """

    drain_seconds: float
    term_seconds: float
    shutdown_seconds: float


def supervise(command: Sequence[str], variables: Mapping[str, str], folder: Path, limits: Limits) -> int:
    """Run torchrun to its end; return the exit code.

    SIGUSR1, which Slurm sends before a preemption, and SIGTERM, which Kubernetes sends, drain the job.

    Args:
        command: torchrun's command.
        variables: Its environment variables.
        folder: Where a signal's request to drain is written for the job.
        limits: How long a drain may take.
    """
    supervisor = _Supervisor(command, variables, folder, limits)
    return supervisor.run()


@dataclass
class _Supervisor:
    command: Sequence[str]
    variables: Mapping[str, str]
    folder: Path
    limits: Limits
    _signals: list[int] = field(default_factory=list)
    _drained: DrainRequest | None = None
    _drained_workers: Collection[int] = ()
    _end: float | None = None
    _terminated: bool = False

    def run(self) -> int:
        watched = (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT)
        before = {number: signal.signal(number, lambda got, _: self._signals.append(got)) for number in watched}
        try:
            # What ignores SIGUSR1 hands that on: of the job's processes only those with a handler see it.
            process = subprocess.Popen(  # noqa: S603
                self.command,
                env=self.variables,
                preexec_fn=lambda: signal.signal(signal.SIGUSR1, signal.SIG_IGN),  # noqa: PLW1509
            )
            while not _ended(process, _POLL_SECONDS):
                self._look(process)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        return self._code(process.returncode)

    def _look(self, process: "subprocess.Popen[bytes]") -> None:
        while self._signals:
            self._take(self._signals.pop(0), process)
        found = drain_request(DRAIN_FOLDER, self.folder)
        if found is None:
            self._forget_drain()
            return
        if self._drained is None:
            _say(f"{found.sentence}: the job saves and ends")
        workers = children(process.pid)
        if not self._drained_workers:
            self._drained_workers = workers
            for worker in workers:
                _send(worker, signal.SIGUSR1)
        elif workers and not set(workers) & set(self._drained_workers):
            # For torchrun they have failed, and within its own budget of restarts it starts them again.
            self._drained_workers = workers
            _say("the processes have ended, and torchrun ends too")
            self._terminate(process)
        if self._drained != found:
            self._drained = found
            self._end = time.monotonic() + self._seconds_left(found)
        if self._end is not None and time.monotonic() >= self._end:
            self._end = None
            _say(f"the time to save is over: the processes get SIGTERM, and {self.limits.shutdown_seconds:.0f} s")
            self._terminate(process)

    def _terminate(self, process: "subprocess.Popen[bytes]") -> None:
        self._terminated = True
        process.terminate()

    def _forget_drain(self) -> None:
        """Forget a drain that was taken back: the next one gives the job its time anew, and a failure is its own."""
        if self._drained is not None and not self._terminated:
            _say("the node is no longer drained, and the job goes on")
            self._drained = self._end = None
            self._drained_workers = ()

    def _seconds_left(self, request: DrainRequest) -> float:
        if request.deadline is None:
            return self.limits.drain_seconds
        left = (request.deadline - datetime.now(timezone.utc)).total_seconds()
        return max(0.0, left - self.limits.shutdown_seconds)

    def _take(self, number: int, process: "subprocess.Popen[bytes]") -> None:
        if number == signal.SIGINT:
            process.send_signal(signal.SIGINT)
            return
        if number == signal.SIGTERM:
            end = datetime.now(timezone.utc) + timedelta(seconds=self.limits.term_seconds)
            request = DrainRequest(code="sigterm", sentence="cluster-run got SIGTERM", deadline=end)
        else:
            request = DrainRequest(code="sigusr1", sentence="cluster-run got SIGUSR1", deadline=None)
        write_drain_request(self.folder, request)

    def _code(self, code: int) -> int:
        if self._drained is not None and code != 0:
            return Exit.AGAIN
        return 128 - code if code < 0 else code


def _ended(process: "subprocess.Popen[bytes]", seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _say(sentence: str) -> None:
    sys.stderr.write(f"cluster-run: {sentence}\n")
    sys.stderr.flush()
