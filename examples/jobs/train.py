"""Train a small model on any number of nodes, and go on where it was after a failure.

    cluster-run torchrun --nproc-per-node 8 train.py --steps 1000

Everything but the model is what a real job has: shares of one global batch, checkpoints, reports. Without a cluster
it runs on one machine: `cluster-run torchrun --nproc-per-node 2 train.py`.
"""

import argparse
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from cluster_job import Run

FEATURES, SAMPLES = 16, 4096


def main() -> None:
    """Fit a plane to noisy points."""
    parser = argparse.ArgumentParser(description="Train a small model.")
    parser.add_argument("--steps", type=int, default=100)
    steps = parser.parse_args().steps

    dist.init_process_group()  # on GPUs: "cpu:gloo,cuda:nccl"
    torch.manual_seed(7)
    data = torch.randn(SAMPLES, FEATURES)
    target = data.sum(dim=1, keepdim=True)
    model = torch.nn.Linear(FEATURES, 1)
    replica = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    state = {"model": model, "optimizer": optimizer}

    run = Run(global_batch=64)
    run.restore(state)
    for step in run.steps(steps):
        indices = torch.tensor(run.share(step)) % SAMPLES
        losses = (replica(data[indices]) - target[indices]).square()
        # DDP averages gradients over the ranks, and the batch is the same at any number of them.
        loss = losses.sum() / run.global_batch
        optimizer.zero_grad()
        (loss * dist.get_world_size()).backward()
        optimizer.step()
        run.report(loss=loss.item(), samples=len(indices))
        if dist.get_rank() == 0:
            sys.stdout.write(f"step {step}\n")
        if run.should_checkpoint():
            run.checkpoint(state)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
