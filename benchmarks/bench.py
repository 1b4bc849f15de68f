"""`make bench`: what synthesis, a sweep of the idle stop and hydration take, each beside something plainer.

`make bench ARGS='--only synth'` measures only one of the three and leaves the others' figures as they were.

Synthesis is measured beside an app of CDK's typed classes that makes the same. For each cluster the app is run as a
user runs it, from the cluster file on. Out of the templates that it writes, an app of typed L1 classes is generated
(see `typed_app`), and proven to give the same templates: if it does not, nothing is measured. Then both run in
processes of their own, started cold, in turn; one turn before the first counts for nothing. Everything else is equal:
interpreter, context flags, stacks, CDK's validation off. The typed app has less to do: it reads no cluster file and
stages no files. What these cost is measured too: a second typed app stages the files that the library uploads, and
`eight-p5` is `TrainingCluster` in one stack, without a cluster file.

The sweep is one run of the idle function over fleets of standalone p5.48xlarge, a tenth of which are to be stopped,
beside `minimal_idle`, a script that makes the same calls to find and stop them with no safety. Both run in processes
of their own, started cold, in turn, against a server on localhost that answers each request after 40 ms (see
`sweep/server.py`). A run that stops or warns of anything else than what is due is an error.

Hydration is described in `hydration.py`.

A busy machine slows all of a turn alike, so that ratios hold where seconds do not. `build/bench.json`:

    runs                    how many turns counted
    machine                 {cpus, load: 1-minute load average before the first turn, python, aws_cdk_lib}
    goals                   {ratio, resources, bytes, import_ratio}: at most; the sizes are for 8 x p5.48xlarge
    synth.<name>            one entry a cluster, and `eight-p5`
      resources, bytes      of all its templates together
      ratio                 median seconds of the library / median seconds of the typed app
      ratio_of_turns        median of the ratios of each turn
      cpu_ratio             the same as `ratio`, of CPU seconds
      with_files            {ratio, ratio_of_turns, cpu_ratio}: the same beside the typed app that stages the files
      library, typed,       {seconds, least_seconds, cpu_seconds, peak_mib}: medians, and the fastest run's seconds;
      typed_with_files
                            cpu_seconds are user and system time of Python and Node together; peak_mib is the larger
                            of the two processes
    others.<name>           the same figures of `empty app` (what CDK itself takes), `import aws_cdk` (with the
                            modules that this library imports) and `import library`
    import                  {ratio, ratio_of_turns, cpu_ratio} of the last two
    sweep                   runs, machine {cpus, load, python, boto3}
      goals                 {wall_ratio, peak_mib, peak_at, import_ratio, gang_ratio}: at most; `peak_mib` at
                            `peak_at` instances
      gangs                 one_gang_cpu_seconds, ten_gangs_cpu_seconds of the decision about 10,000 idle nodes, and
                            cpu_ratio_of_turns: the median of the ratios of each turn; meets: the goal
      import                ratio, ratio_of_turns, cpu_ratio of importing the function and making its clients, beside
                            importing boto3 and making the same; function, boto3: as `library` above; meets: the goal
      fleets.<size>         turns: how many counted; instances; stops: how many are due; owners: how many are stopped
                            or warned of; requests, most_requests: how many the function made, and may make;
                            ratio, ratio_of_turns, cpu_ratio: of the function's and the minimal script's seconds;
                            peak_mib: of the function; meets: {requests, wall, peak}: which goals, a ratio's by
                            the turns;
                            slow: how many answers of one run took the server longer than the delay;
                            function, minimal: as `library` above, and requests {operation: number}; looking again at
                            instances by their ids counts as an operation of its own
    hydrate                 runs, files, machine {cpus, load, python}; goals {ratio, peak_mib}
      ratio, ratio_of_turns how many times as many files a second the program restores as AWS's line
      program, line         files_per_second, and as `library` above
      million               files, seconds, peak_mib of one run over 1,000,000 files, if they were asked for
"""

import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks import hydration, typed_app
from benchmarks.assembly import differences, stacks_of
from benchmarks.measuring import FailedError, Program, environment, in_turn
from benchmarks.sweep.table import show_sweep

_PROJECT = Path(__file__).resolve().parents[1]
_BUILD = _PROJECT / "build"

# 8 x p5.48xlarge with network and file system, without guardrails: AWS ParallelCluster 3.16 comes to 66 and 81 KB.
_GOALS = {"ratio": 1.25, "resources": 60, "bytes": 60_000, "import_ratio": 1.1}

_SIDES = ("library", "typed", "typed_with_files")
_CLUSTERS = ("p4de", "p5-reservation", "slurm", "base-pod", "hyperpod", "batch")
# Without those of orchestrators, which the library imports when they are asked for.
_SOURCES = [path for path in (_PROJECT / "constructs").rglob("*.py") if "orchestrators" not in path.parts]
_MODULES = sorted(
    {name for path in _SOURCES for name in re.findall(r"^from aws_cdk import (aws_\w+)", path.read_text(), re.M)}
)
_OTHERS = {
    "empty app": "from aws_cdk import App, Stack; app = App(); Stack(app, 'Empty'); app.synth()",
    "import aws_cdk": f"from aws_cdk import {', '.join(_MODULES)}",
    "import library": "import cdk_training_cluster",
}


class Part(StrEnum):
    """What can be measured by itself."""

    SYNTH = "synth"
    SWEEP = "sweep"
    HYDRATE = "hydrate"


def main(
    clusters: Annotated[list[str] | None, typer.Argument(help="Clusters, by the names of their files.")] = None,
    runs: Annotated[int, typer.Option(help="How many turns count; over large fleets fewer do.", min=1)] = 10,
    only: Annotated[Part | None, typer.Option(help="Measure this part only.")] = None,
    million_files: Annotated[bool, typer.Option(help="Hydrate 1,000,000 files too: ten minutes, 6 GB.")] = False,
) -> None:
    """Measure, print and write `build/bench.json`."""
    names = clusters or list(_CLUSTERS)
    missing = [name for name in names if not _cluster_file(name).is_file()]
    if missing:
        sys.exit(f"error: there is no {', '.join(str(_cluster_file(name)) for name in missing)}")
    console = Console()
    with tempfile.TemporaryDirectory() as directory, console.status("proving") as status:
        try:
            if only in (None, Part.SYNTH):
                _keep(_measure(names, runs, Path(directory), lambda turn: status.update(f"turn {turn} of {runs}")))
            if only in (None, Part.SWEEP):
                _keep({"sweep": _sweep(runs, Path(directory) / "sweep.json", status.update)})
            if only in (None, Part.HYDRATE):
                _keep({"hydrate": hydration.measure(runs, million_files, Path(directory), status.update)})
        except FailedError as error:
            sys.exit(str(error))
    results = _kept()
    if only in (None, Part.SYNTH):
        _show(console, results)
    if only in (None, Part.SWEEP):
        show_sweep(console, results["sweep"])
    if only in (None, Part.HYDRATE):
        hydration.show(console, results["hydrate"])


def _kept() -> dict[str, Any]:
    file = _BUILD / "bench.json"
    results: dict[str, Any] = json.loads(file.read_bytes()) if file.exists() else {}
    return results


def _keep(results: dict[str, Any]) -> None:
    """Write figures beside those that are kept."""
    _BUILD.mkdir(exist_ok=True)
    (_BUILD / "bench.json").write_text(json.dumps({**_kept(), **results}, indent=2) + "\n", encoding="utf-8")


def _sweep(runs: int, output: Path, tell: Callable[[str], object]) -> Any:  # noqa: ANN401 - any JSON
    """Run the sweep in a process of its own (see `sweep/__main__.py`) and return its figures."""
    command = [sys.executable, "-m", "benchmarks.sweep", str(output), "--runs", str(runs)]
    said = list[str]()
    with subprocess.Popen(
        command, cwd=_PROJECT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        for line in process.stdout or ():
            said.append(line)
            tell(f"sweep: {line.strip()}")
    if process.returncode != 0:
        raise FailedError("".join(said))
    return json.loads(output.read_bytes())


def _measure(names: list[str], runs: int, directory: Path, tell: Callable[[int], object]) -> dict[str, Any]:
    programs: dict[str, Program] = {}
    synth: dict[str, dict[str, Any]] = {}
    for name in [*names, "eight-p5"]:
        app = ("-m", "benchmarks.eight_p5") if name == "eight-p5" else (str(_PROJECT / "app.py"),)
        programs |= {f"{name} {side}": program for side, program in _sides(name, app, directory).items()}
        templates = stacks_of(directory / f"{name}-library")
        synth[name] = {
            "resources": sum(len(stack.template["Resources"]) for stack in templates),
            "bytes": sum(stack.size for stack in templates),
        }
    others = {name: _program(("-c", code), directory / "other") for name, code in _OTHERS.items()}
    machine = {
        "cpus": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "aws_cdk_lib": version("aws-cdk-lib"),
    }
    measured = in_turn({**programs, **others}, runs, tell)
    for name, sizes in synth.items():
        library, typed, with_files = (measured[f"{name} {side}"] for side in _SIDES)
        synth[name] = {
            **sizes,
            **library.beside(typed),
            "with_files": library.beside(with_files),
            **{side: measured[f"{name} {side}"].figures() for side in _SIDES},
        }
    return {
        "runs": runs,
        "machine": machine,
        "goals": _GOALS,
        "synth": synth,
        "others": {name: measured[name].figures() for name in others},
        "import": measured["import library"].beside(measured["import aws_cdk"]),
    }


def _sides(name: str, app: tuple[str, ...], directory: Path) -> dict[str, Program]:
    """Return the library's program and the typed ones, which are proven to make the same.

    Raises:
        FailedError: A program fails, or one makes different templates.
    """
    made = directory / f"{name}-library"
    sides = {"library": _program(app, made, name)}
    sides["library"].run()
    for side in ("typed", "typed_with_files"):
        output = directory / f"{name}-{side}"
        file = typed_app.write(made, _BUILD / "bench" / name / side, files=side == "typed_with_files")
        sides[side] = _program((str(file),), output, name)
        sides[side].run()
        found = differences(made, output)
        if found:
            raise FailedError("\n".join([f"{name}: the typed app makes other templates than the library:", *found]))
    return sides


def _program(arguments: tuple[str, ...], output: Path, cluster: str | None = None) -> Program:
    context = json.loads((_PROJECT / "cdk.json").read_text(encoding="utf-8"))["context"]
    if cluster is not None:
        context["cluster"] = str(_cluster_file(cluster))
    return Program(arguments=arguments, environment=environment(output, json.dumps(context)))


def _cluster_file(name: str) -> Path:
    return _PROJECT / "clusters" / f"{name}.yaml"


def _show(console: Console, results: dict[str, Any]) -> None:
    goals, machine = results["goals"], results["machine"]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("what", no_wrap=True)
    for heading in ("seconds", "typed", "ratio", "turns", "CPU", "files", "resources", "bytes"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, entry in results["synth"].items():
        table.add_row(
            name,
            *(f"{entry[side]['seconds']:.2f}" for side in ("library", "typed")),
            *(f"{entry[ratio]:.2f}" for ratio in ("ratio", "ratio_of_turns", "cpu_ratio")),
            f"{entry['with_files']['ratio']:.2f}",
            str(entry["resources"]),
            f"{entry['bytes']:,}",
        )
    for name, figures in results["others"].items():
        table.add_row(name, f"{figures['seconds']:.2f}")
    runs = (
        f"Cold processes, {results['runs']} turns on {machine['cpus']} CPUs, load {machine['load']} before the first."
    )
    eight = f"{goals['resources']} resources, {goals['bytes']:,} bytes"
    imported = results["import"]
    console.print(
        f"Importing the library beside aws-cdk-lib's modules that it imports: {imported['ratio']:.2f}, by the turns "
        f"{imported['ratio_of_turns']:.2f}, goal {goals['import_ratio']}."
    )
    goal = f"Goals: a ratio of {goals['ratio']}; 8 x p5.48xlarge: {eight}."
    console.print(runs)
    console.print(table)
    console.print(
        "Ratios: of the medians, median of each turn's, of CPU time, of the medians where both stage files."
    )
    console.print(goal)


if __name__ == "__main__":
    typer.run(main)
