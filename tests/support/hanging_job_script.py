"""A training script with `Run` whose rank 1 hangs in its data set, evaluates for long, or which fails at a step."""

import json
import os
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from cluster_job import Run

FOLDER, MODE, AT, SECONDS = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4])


class Words(torch.utils.data.Dataset):  # type: ignore[misc]
    """Samples of which one is never read."""

    def __getitem__(self, index: int) -> torch.Tensor:
        """Return a sample."""
        mark = FOLDER / "hung"
        if MODE == "hang" and dist.get_rank() == 1 and index >= 6 * AT and not mark.exists():
            mark.write_text(os.environ["TRAINING_CLUSTER_NODE"])
            while True:
                time.sleep(3600)
        return torch.full((4,), float(index % 7))


def evaluate() -> None:
    """Use the CPU while the other ranks wait in a barrier."""
    end = time.monotonic() + SECONDS
    if dist.get_rank() == 1:
        while time.monotonic() < end:
            torch.rand(100, 100).sum()
        (FOLDER / "evaluated").touch()
    dist.barrier()


def main() -> None:
    """Train."""
    timeout = {"timeout": timedelta(seconds=SECONDS)} if MODE == "hang" and SECONDS else {}
    dist.init_process_group("gloo", **timeout)
    net = nn.Linear(4, 1)
    model, optimizer = DistributedDataParallel(net), torch.optim.SGD(net.parameters(), lr=0.01)
    run, data, state = Run(global_batch=6), Words(), {"model": net, "optimizer": optimizer}
    run.restore(state)
    for step in run.steps(AT + 60):
        samples = run.share(step)
        batch = torch.stack([data[index] for index in samples])
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.05)
        run.report(loss=loss, samples=len(samples))
        if dist.get_rank() == 0:
            event = {"step": step, "world": dist.get_world_size(), "at": time.time()}
            with (FOLDER / "events").open("a") as file:
                file.write(json.dumps(event) + "\n")
        if step == AT and MODE == "evaluate":
            evaluate()
        if step == AT and MODE == "fail":
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        if run.should_checkpoint():
            run.checkpoint(state)
    dist.destroy_process_group()


main()
