"""`make bench`: what the library costs, beside the least that CDK itself costs, in turn and in one run.

Every figure is of a process of its own, started cold; a ratio compares medians of runs that took turns, so that a
busy machine slows both sides alike. Results go to `build/bench.json`.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table

_PROJECT = Path(__file__).parents[1]
_EMPTY_APP = "from aws_cdk import App, Stack\napp = App()\nStack(app, 'Empty')\napp.synth()\n"
_MEBIBYTE = 1024


@dataclass(frozen=True, kw_only=True)
class Case:
    """One thing to measure.

    Attributes:
        name: What it is.
        command: What the process runs, after the interpreter.
        cluster: The cluster file the app reads. None: no file.
        beside: The case that its time is compared with. None: it is such a case itself.
    """

    name: str
    command: Sequence[str]
    cluster: str | None = None
    beside: str | None = None


_CASES = (
    Case(name="empty CDK app: synth", command=("-c", _EMPTY_APP)),
    *(
        Case(
            name=f"{name}: synth",
            command=("app.py",),
            cluster=f"clusters/{name}.yaml",
            beside="empty CDK app: synth",
        )
        for name in ("base-pod", "dev-box")
    ),
    Case(name="aws_cdk: import", command=("-c", "import aws_cdk, aws_cdk.aws_ec2, aws_cdk.aws_iam")),
    Case(
        name="cdk_training_cluster: import", command=("-c", "import cdk_training_cluster"), beside="aws_cdk: import"
    ),
    Case(
        name="look up one instance type",
        command=("-c", "from cdk_training_cluster import instance_type_info as i; i('p5.48xlarge')"),
        beside="cdk_training_cluster: import",
    ),
)


def main(runs: int = 7) -> None:
    """Measure every case, in turn.

    Args:
        runs: How often each case runs.
    """
    measured: dict[str, list[tuple[float, float]]] = {case.name: [] for case in _CASES}
    results: dict[str, dict[str, float | int]] = {}
    console = Console()
    with tempfile.TemporaryDirectory() as directory, console.status("measuring"):
        for turn in range(runs):
            for case in _CASES:
                output = Path(directory) / f"{turn}-{case.name}"
                measured[case.name].append(_run(case, output))
                if turn == 0 and case.cluster is not None:
                    results[case.name] = _size(output)
    for case in _CASES:
        seconds = statistics.median(second for second, _ in measured[case.name])
        entry = results.setdefault(case.name, {})
        entry |= {
            "median_seconds": round(seconds, 3),
            "peak_mib": round(max(peak for _, peak in measured[case.name]), 1),
        }
        if case.beside is not None:
            entry["ratio"] = round(seconds / results[case.beside]["median_seconds"], 2)
    _show(console, results, runs)
    build = _PROJECT / "build"
    build.mkdir(exist_ok=True)
    (build / "bench.json").write_text(json.dumps({"runs": runs, "cases": results}, indent=2) + "\n")


def _run(case: Case, output: Path) -> tuple[float, float]:
    """Run a case once and return its seconds, and the peak memory in MiB of the larger of its two processes."""
    context = json.loads((_PROJECT / "cdk.json").read_text())["context"] | {"cluster": case.cluster}
    environment = {
        **os.environ,
        "CDK_OUTDIR": str(output),
        "CDK_VALIDATION": "false",
        "CDK_CONTEXT_JSON": json.dumps(context),
    }
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *case.command],
        cwd=_PROJECT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{case.name} ended with {process.returncode}")
    return seconds, _peak(usage)


def _peak(usage: resource.struct_rusage) -> float:
    return usage.ru_maxrss / _MEBIBYTE


def _size(output: Path) -> dict[str, float | int]:
    templates = [path.read_text() for path in sorted(output.glob("*.template.json"))]
    return {
        "resources": sum(len(json.loads(template)["Resources"]) for template in templates),
        "template_bytes": sum(map(len, templates)),
    }


def _show(console: Console, results: dict[str, dict[str, float | int]], runs: int) -> None:
    table = Table(title=f"Cold processes, median of {runs} in turn", title_justify="left")
    for heading in ("what", "seconds", "ratio", "peak MiB", "resources", "bytes"):
        table.add_column(heading, justify="left" if heading == "what" else "right", no_wrap=True)
    for name, entry in results.items():
        keys = ("median_seconds", "ratio", "peak_mib", "resources", "template_bytes")
        table.add_row(name, *(str(entry.get(key, "")) for key in keys))
    console.print(table)


if __name__ == "__main__":
    typer.run(main)
