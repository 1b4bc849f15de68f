"""Measures how fast and in how much memory `cluster-node hydrate` restores, beside the line that AWS documents.

Both run on the same stand-in for Lustre's `lfs` (local_aws/lustre_client): a restore takes 50 ms from its request to
the contents, and each call 1 ms for each of its files, which the real one looks up on the metadata server. AWS's line
ends with its last request; the 50 ms until that file has its contents are added. It does not look whether they came:
the program does. The stand-in starts in about 15 ms, where the real `lfs` and AWS's `sudo` start too.

The run over a million files measures memory. The stand-in would take hours of CPU for it, so that a smaller one,
below, says whether a sparse file has blocks, and restores it by writing a byte.

The line: https://docs.aws.amazon.com/fsx/latest/LustreGuide/preload-file-contents-hsm-dra.html
"""

import base64
import json
import os
import platform
import shutil
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.measuring import FailedError, Program, Run, in_turn
from local_aws.lustre_client import LFS, LustreDirectory

GOALS = {"ratio": 3, "peak_mib": 64}

_FILES, _MILLION = 2_000, 1_000_000
_LATENCY, _LOOKUP = 0.05, 0.001
_AGENT = Path(__file__).resolve().parents[1] / "constructs/cdk_training_cluster/nodes/agent"
# What getrusage tells of a process is at least what the process that started it had: the program's own peak is in
# /proc, and is kept when it ends.
_START = """
import atexit, re, sys
sys.path.insert(0, sys.argv.pop(1))
peak = sys.argv.pop(1)
atexit.register(lambda: open(peak, "w").write(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]))
from cluster_node.__main__ import main
main()
"""
_SMALL_LFS = """#!{python} -SE
import os, sys
for path in sys.argv[2:]:
    if sys.argv[1] == "hsm_restore":
        file = os.open(path, os.O_WRONLY)
        os.write(file, b"x")
        os.close(file)
    elif sys.argv[1] == "hsm_state":
        state = "0x00000009" if os.lstat(path).st_blocks else "0x0000000d"
        sys.stdout.write(f"{{path}}: ({{state}})\\n")
"""
_LINE = "find {directory} -type f -print0 | xargs -0 -n 1 -P 8 lfs hsm_restore"


@dataclass(frozen=True, kw_only=True)
class _Side:
    """One of the two, with released files of its own for each run.

    Attributes:
        home: Where the file system is made.
        files: How many files it has.
        program: What runs.
        added_seconds: What passes after it has ended until all files have their contents.
    """

    home: Path
    files: int
    program: Program
    added_seconds: float = 0

    def run(self) -> Run:
        """Run it once.

        Raises:
            FailedError: It failed, or a file has not its contents.
        """
        shutil.rmtree(self.home, ignore_errors=True)
        lustre = LustreDirectory(self.home)
        _make(lustre, self.files)
        run = self.program.run()
        if not self.added_seconds and any(path.stat().st_blocks == 0 for path in lustre.files.rglob("*.bin")):
            raise FailedError("a file has not its contents\n")
        peak = self.home / "peak"
        own = int(peak.read_text()) / 1024 if peak.exists() else run.peak_mib
        return replace(run, seconds=run.seconds + self.added_seconds, peak_mib=own)


def measure(runs: int, million_files: bool, directory: Path, tell: Callable[[str], object]) -> dict[str, Any]:
    """Return the figures of both, in turn.

    Args:
        runs: How many turns count.
        million_files: Whether to hydrate a million files too, once.
        directory: An empty directory.
        tell: Called with a line of progress as each turn begins.

    Raises:
        FailedError: A run failed, or did not restore all files.
    """
    machine = {
        "cpus": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
    }
    line = _LINE.format(directory=directory / "line/files/data")
    shell = f"import os; os.execvp('bash', ['bash', '-c', {line!r}])"
    environment = _environment(directory)
    sides = {
        "program": _Side(
            home=directory / "program", files=_FILES, program=_program(directory / "program", environment)
        ),
        "line": _Side(
            home=directory / "line",
            files=_FILES,
            program=Program(arguments=("-S", "-c", shell), environment=environment),
            added_seconds=_LATENCY,
        ),
    }
    measured = in_turn(sides, runs, lambda turn: tell(f"hydrate: turn {turn} of {runs}"))
    turns = zip(measured["line"].runs, measured["program"].runs, strict=True)
    figures = {name: side.figures() for name, side in measured.items()}
    result: dict[str, Any] = {
        "runs": runs,
        "files": _FILES,
        "machine": machine,
        "goals": GOALS,
        "ratio": round(figures["line"]["seconds"] / figures["program"]["seconds"], 2),
        "ratio_of_turns": round(statistics.median(line.seconds / program.seconds for line, program in turns), 2),
        **{name: {**side, "files_per_second": round(_FILES / side["seconds"], 1)} for name, side in figures.items()},
    }
    if million_files:
        tell("hydrate: 1,000,000 files")
        result["million"] = measure_million(directory / "million")
    return result


def measure_million(home: Path) -> dict[str, Any]:
    """Return the figures of one run over a million files.

    Args:
        home: Where they are made.
    """
    small = home.with_name("bin") / "lfs"
    small.parent.mkdir()
    small.write_text(_SMALL_LFS.format(python=sys.executable))
    small.chmod(0o755)
    environment = _environment(home.parent)
    program = _program(home, {**environment, "PATH": f"{small.parent}:{environment['PATH']}"})
    run = _Side(home=home, files=_MILLION, program=program).run()
    shutil.rmtree(home)
    return {"files": _MILLION, "seconds": round(run.seconds), "peak_mib": round(run.peak_mib, 1)}


def show(console: Console, figures: dict[str, Any]) -> None:
    """Print the figures."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("hydration", no_wrap=True)
    for heading in ("files", "seconds", "files/s", "MiB"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, side in (("cluster-node hydrate", "program"), ("find | xargs -P 8 lfs", "line")):
        entry = figures[side]
        table.add_row(
            name,
            f"{figures['files']:,}",
            f"{entry['seconds']:.2f}",
            f"{entry['files_per_second']:,.0f}",
            f"{entry['peak_mib']:.0f}" if side == "program" else "",
        )
    if million := figures.get("million"):
        rate = million["files"] / million["seconds"]
        cells = (f"{million['files']:,}", str(million["seconds"]), f"{rate:,.0f}", f"{million['peak_mib']:.0f}")
        table.add_row("cluster-node hydrate", *cells)
    console.print(table)
    goal = f"Goals: {figures['goals']['ratio']} times AWS's line, {figures['goals']['peak_mib']} MiB."
    console.print(f"{figures['ratio']} times AWS's line, {figures['ratio_of_turns']} turn by turn. {goal}")


def _environment(directory: Path) -> dict[str, str]:
    path = f"{LFS.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {
        **os.environ,
        "PATH": path,
        "LFS_LATENCY": str(_LATENCY),
        "LFS_LOOKUP": str(_LOOKUP),
        "ROOT": str(directory),
    }


def _program(home: Path, environment: dict[str, str]) -> Program:
    mount_point = f"/{home.name}/files"
    request = {
        "action": "restore",
        "run": "bench",
        "directory": f"{mount_point}/data",
        "mount_point": mount_point,
        "seconds": 36_000,
    }
    text = base64.b64encode(json.dumps(request).encode()).decode()
    return Program(
        arguments=("-I", "-c", _START, str(_AGENT), str(home / "peak"), "hydrate", text), environment=environment
    )


def _make(lustre: LustreDirectory, files: int) -> None:
    """Make released files: half of them in one directory, the others in directories of 1,000."""
    contents = lustre.home / "contents"
    contents.write_bytes(b"x" * 512)
    for number in range(files):
        relative = f"data/flat/{number:07}.bin" if number % 2 else f"data/deep/{number // 2_000}/{number:07}.bin"
        for part in (lustre.files, lustre.objects):
            if number < 2 or number % 2_000 == 0:  # noqa: PLR2004 - the first of each directory
                (part / relative).parent.mkdir(parents=True, exist_ok=True)
        if files < _MILLION:
            (lustre.objects / relative).symlink_to(contents)
        descriptor = os.open(lustre.files / relative, os.O_CREAT | os.O_WRONLY)
        os.ftruncate(descriptor, 512)
        os.close(descriptor)
