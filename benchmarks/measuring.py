"""Runs programs in processes of their own, in turn, so that a busy machine slows them all alike."""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

_MEBIBYTE = 1024


class FailedError(Exception):
    """A program failed; the text is what it said."""


class Runnable(Protocol):
    """What takes turns."""

    def run(self) -> "Run":
        """Run it once, and say what it took."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """What is measured: a command for the interpreter that runs this.

    Attributes:
        arguments: What the interpreter runs.
        environment: Its environment variables.
    """

    arguments: Sequence[str]
    environment: Mapping[str, str]

    def run(self) -> "Run":
        """Run it once, from the start of the process to its end.

        Raises:
            FailedError: It did not end with 0.
        """
        started = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, *self.arguments],
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        said = process.stderr.read() if process.stderr is not None else ""
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise FailedError(said)
        # Of the process and of those it has started and waited for: Python and CDK's Node.
        return Run(
            seconds=seconds,
            cpu_seconds=usage.ru_utime + usage.ru_stime,
            peak_mib=usage.ru_maxrss / _MEBIBYTE,
        )


@dataclass(frozen=True, kw_only=True)
class Run:
    """What one run took.

    Attributes:
        seconds: From start to end.
        cpu_seconds: Of all its processes, in user and system mode.
        peak_mib: The memory of the larger of its two processes.
    """

    seconds: float
    cpu_seconds: float
    peak_mib: float


@dataclass(frozen=True)
class Runs:
    """What all runs of one program took, in the order of the turns."""

    runs: list[Run] = field(default_factory=list)

    def figures(self) -> dict[str, float]:
        """Return the medians, and the least of the seconds: what a machine at rest comes to."""
        return {
            "seconds": round(statistics.median(run.seconds for run in self.runs), 3),
            "least_seconds": round(min(run.seconds for run in self.runs), 3),
            "cpu_seconds": round(statistics.median(run.cpu_seconds for run in self.runs), 3),
            "peak_mib": round(max(run.peak_mib for run in self.runs), 1),
        }

    def beside(self, other: "Runs") -> dict[str, float]:
        """Return how many times as much these took: by the medians, turn by turn, and in CPU time.

        Args:
            other: What ran in the same turns.
        """
        mine, theirs = self.figures(), other.figures()
        turns = [run.seconds / same.seconds for run, same in zip(self.runs, other.runs, strict=True)]
        return {
            "ratio": round(mine["seconds"] / theirs["seconds"], 3),
            "ratio_of_turns": round(statistics.median(turns), 3),
            "cpu_ratio": round(mine["cpu_seconds"] / theirs["cpu_seconds"], 3),
        }


def in_turn(
    programs: Mapping[str, Runnable], turns: int, tell: Callable[[int], object], *, first: int = 0
) -> dict[str, Runs]:
    """Run every program once a turn, after one turn that counts for nothing: it fills the caches of files.

    Args:
        programs: What to run, by name.
        turns: How many turns count.
        tell: Called with the number of each turn before it begins.
        first: The first turn's number; 1 leaves out the one that counts for nothing. Default: 0
    """
    measured = {name: Runs() for name in programs}
    for turn in range(first, turns + 1):
        tell(turn)
        for name, program in programs.items():
            run = program.run()
            if turn > 0:
                measured[name].runs.append(run)
    return measured


def environment(output: Path, context: str) -> dict[str, str]:
    """Return the variables with which the CDK CLI runs an app, and CDK's validation off.

    Args:
        output: Where the cloud assembly is written to.
        context: The context, as JSON.
    """
    variables = {
        **os.environ,
        "CDK_CONTEXT_JSON": context,
        "CDK_OUTDIR": str(output),
        "CDK_VALIDATION": "false",
        "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "1",
    }
    # Both sides are compiled once, as everybody's modules are.
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    return variables
