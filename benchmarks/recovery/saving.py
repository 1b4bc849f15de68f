"""A job of 500 MB that saves: in turns by `torch.save` and `Run.checkpoint`, for a drain, or with digests.

`torchrun saving.py FOLDER [drain|digests]` prints what it took as a line of JSON on rank 0.
"""

import json
import shutil
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

from cluster_job import Run
from cluster_job.checkpoints import Checkpoint, CheckpointFolder
from cluster_job.digests import unreadable
from cluster_job.torch_files import CommittingWriter

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


def save_with_digests(_: Run, state: dict[str, torch.Tensor], folder: Path) -> dict[str, list[float]]:
    """Return the seconds of torch's writer, of the one with digests, and of comparing them, in turns.

    Both write as the process that writes checkpoints does. CPU seconds do not count the wait for the disk.
    """
    times: dict[str, list[float]] = {"torch": [], "digests": [], "compare": [], "torch cpu": [], "digests cpu": []}
    checkpoints = CheckpointFolder(folder / "digests")
    for turn in range(2 * SAVES):
        checkpoint = Checkpoint(path=checkpoints.path(turn, "0" * 8), step=turn)
        ours = CommittingWriter(checkpoints, checkpoint)
        ours._made_by = -1  # another process has made it
        writers = {"torch": dcp.FileSystemWriter(folder / f"torch-{turn}", sync_files=True), "digests": ours}
        for name, writer in writers.items() if turn % 2 else reversed(writers.items()):
            torch.serialization.set_crc32_options(True)
            begun = time.process_time()
            times[name].append(seconds(partial(dcp.save, state, storage_writer=writer)))
            times[f"{name} cpu"].append(time.process_time() - begun)
        times["compare"].append(seconds(partial(unreadable, checkpoint.marker)))
        for written in (checkpoint.path, folder / f"torch-{turn}"):  # both write new files, and delete none
            shutil.rmtree(written)
    return times


MEASURES = {"drain": save_on_drain, "digests": save_with_digests}


def seconds(call: Callable[[], object]) -> float:
    """Return how long a call takes."""
    begun = time.monotonic()
    call()
    return time.monotonic() - begun


def main() -> None:
    """Save as the arguments say."""
    folder, measure = Path(sys.argv[1]), MEASURES[sys.argv[2]] if sys.argv[2:] else save_in_turns
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    state = {f"part {number}": torch.randn(BYTES // 4 // PARTS) for number in range(PARTS)}
    times = measure(Run(global_batch=2, name="bench", checkpoints=str(folder)), state, folder)
    if dist.get_rank() == 0:
        print(json.dumps(times), flush=True)
    dist.barrier()


if __name__ == "__main__":
    main()
