"""A job of 500 MB that saves: in turns by `torch.save` and `Run.checkpoint`, or when its node is drained.

`torchrun saving.py FOLDER [drain]` prints what it took as a line of JSON on rank 0.
"""

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist

from cluster_job import Run

BYTES = 500 * 10**6
PARTS = 30
SAVES = 4
DRAIN_AT = 10


def save_in_turns(run: Run, state: dict[str, torch.Tensor], folder: Path) -> dict[str, list[float]]:
    """Return the seconds of each way, and until the checkpoint was durable."""
    times: dict[str, list[float]] = {"save": [], "checkpoint": [], "durable": []}
    saver = run._saver
    for step in range(1, SAVES + 1):
        times["save"].append(seconds(partial(torch.save, state, folder / "plain.pt")))
        times["checkpoint"].append(seconds(partial(saver.checkpoint, state, step, last=False)))
        times["durable"].append(times["checkpoint"][-1] + seconds(saver._storage.wait))
    return times


def save_on_drain(run: Run, state: dict[str, torch.Tensor], folder: Path) -> dict[str, float]:
    """Return the seconds from the file that drains the node until the checkpoint is durable."""
    for step in run.steps(10**6):
        time.sleep(0.1)
        if step == DRAIN_AT:
            asked = time.time()
            (folder / "drain" / "spot").touch()
        if run.should_checkpoint():
            run.checkpoint(state)
            break
    return {"drained": time.time() - asked}


def seconds(call: Callable[[], object]) -> float:
    """Return how long a call takes."""
    begun = time.monotonic()
    call()
    return time.monotonic() - begun


def main() -> None:
    """Save as the arguments say."""
    folder, measure = Path(sys.argv[1]), save_on_drain if sys.argv[2:] else save_in_turns
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    state = {f"part {number}": torch.randn(BYTES // 4 // PARTS) for number in range(PARTS)}
    times = measure(Run(global_batch=2, name="bench", checkpoints=str(folder)), state, folder)
    if dist.get_rank() == 0:
        print(json.dumps(times), flush=True)
    dist.barrier()


if __name__ == "__main__":
    main()
