"""How long a checkpoint stalls a job, and how long a drained node takes until its state is durable."""

import json
import os
import statistics
import subprocess
from pathlib import Path
from typing import Any

from benchmarks.recovery.nodes import BIN

RANKS = 2


def measure_stall(folder: Path) -> dict[str, float]:
    """Return the seconds that a step waits for `torch.save`, and for `Run.checkpoint`, in turns in one process."""
    answer = _launch(folder, 1)
    return {
        "torch.save": statistics.median(answer["save"]),
        "Run.checkpoint": statistics.median(answer["checkpoint"][1:]),
        "Run.checkpoint, first": answer["checkpoint"][0],
        "durable after": statistics.median(answer["durable"][1:]),
    }


def measure_digests(folder: Path) -> dict[str, float]:
    """Return what digests add to the writing of a checkpoint, as a share of it, and the seconds of comparing them."""
    answer = _launch(folder, 1, "digests")

    def added(with_digests: str, without: str) -> float:
        turns = zip(answer[with_digests], answer[without], strict=True)
        return float(statistics.median(one / other - 1 for one, other in turns))

    return {
        "digests": added("digests", "torch"),
        "digests, CPU": added("digests cpu", "torch cpu"),
        "written by torch": statistics.median(answer["torch"]),
        "compared": statistics.median(answer["compare"]),
    }


def measure_drain(folder: Path) -> float:
    """Return the seconds from the file that drains a node until the checkpoint is durable."""
    return float(_launch(folder, RANKS, "drain")["drained"])


def _launch(folder: Path, ranks: int, *arguments: str) -> dict[str, Any]:
    folder.mkdir(parents=True)
    drain = folder / "drain"
    drain.mkdir()
    script = Path(__file__).with_name("saving.py")
    command = [str(BIN / "torchrun"), "--standalone", f"--nproc-per-node={ranks}", str(script), str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TRAINING_CLUSTER_DRAIN": str(drain)}
    done = subprocess.run(
        [*command, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    answers = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not answers:
        raise RuntimeError(f"{' '.join(command)} gave no answer:\n{done.stderr[-3000:]}")
    answer: dict[str, Any] = json.loads(answers[-1])
    return answer
