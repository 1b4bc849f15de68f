"""A training script with FSDP and `Run`: each rank writes the samples of its steps, and the loss of the whole batch.

On the node `d` the process that writes checkpoints is stopped before the second one, which is then never whole.
"""

import json
import math
import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from cluster_job import Run

SAMPLES, BATCH, EVERY, NAN_AT = 240, 24, 7, 8


def make() -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    """Return the model and the data, which are the same in every process."""
    torch.manual_seed(11)
    inputs = torch.randn(SAMPLES, 16)
    targets = (inputs @ torch.randn(16, 1)).tanh()
    return nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 1)), inputs, targets


def drawn(step: int, share: range) -> list[int]:
    """Return the samples of a share: each epoch has an order of its own."""
    order = torch.randperm(SAMPLES, generator=torch.Generator().manual_seed(step * BATCH // SAMPLES))
    return [int(order[index % SAMPLES]) for index in share]


def write(folder: Path, step: int, ids: list[int], loss: float) -> None:
    """Write an event as one line; other ranks write to the same file."""
    event = {"step": step, "rank": dist.get_rank(), "world": dist.get_world_size(), "ids": ids, "loss": loss}
    line = json.dumps({**event, "at": time.time()}) + "\n"
    file = os.open(folder / "events", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, line.encode())
    os.close(file)


def is_over(folder: Path) -> bool:
    """Say whether the job ends, the same on all ranks."""
    ends = torch.tensor(float(dist.get_rank() == 0 and (folder / "end").exists()))
    dist.all_reduce(ends)
    return bool(ends)


def stop_writer(folder: Path, step: int) -> None:
    """Let the checkpoint that is written next stay without its end."""
    stopped = folder / "stopped"
    if step == 2 * EVERY - 1 and os.environ.get("TRAINING_CLUSTER_NODE") == "d" and not stopped.exists():
        [writer] = multiprocessing.active_children()
        os.kill(int(writer.pid or 0), signal.SIGSTOP)
        stopped.touch()


def main() -> None:
    """Train."""
    folder, mode, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    dist.init_process_group("gloo")
    net, inputs, targets = make()
    fully_shard(net, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 20, 0.5)
    run = Run(global_batch=BATCH, checkpoints=str(folder / "checkpoints"))
    state = {"model": net, "optimizer": optimizer, "schedule": schedule}
    run.restore(state)
    for step in run.steps(count):
        ids = drawn(step, run.share(step))
        loss = (net(inputs[ids]) - targets[ids]).square().sum() / BATCH
        if mode == "nan" and step == NAN_AT:
            loss = loss * math.nan
        optimizer.zero_grad()
        (loss * dist.get_world_size()).backward()  # FSDP averages over the ranks
        optimizer.step()
        schedule.step()
        whole = loss.detach().clone()
        dist.all_reduce(whole)
        write(folder, step, ids, whole.item())
        run.report(loss=whole, samples=len(ids))
        is_due = run.should_checkpoint()
        if is_due or step % EVERY == EVERY - 1:
            stop_writer(folder, step)
            run.checkpoint(state)
            if step == EVERY - 1:
                run._saver._storage.wait()
        if is_over(folder):
            break
        time.sleep(0.05)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
