"""Measures an all-reduce over all GPUs; runs in a container with PyTorch, started by torchrun."""

import os
import sys
import time

import torch
import torch.distributed as dist

ROUNDS = 20


def main() -> None:
    """Print the bus bandwidth for each size, as NCCL's own tests count it: 2 (n - 1) / n times the bytes."""
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    ranks, is_first = dist.get_world_size(), dist.get_rank() == 0
    for mebibytes in (1, 16, 256, 1024):
        data = torch.ones(mebibytes * 2**20 // 4, device="cuda")
        dist.all_reduce(data)
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(ROUNDS):
            dist.all_reduce(data)
        torch.cuda.synchronize()
        seconds = (time.perf_counter() - start) / ROUNDS
        if is_first:
            gigabytes = data.numel() * 4 / 1e9 * 2 * (ranks - 1) / ranks / seconds
            sys.stdout.write(f"{mebibytes} MiB over {ranks} GPUs: {seconds * 1e6:.0f} us, {gigabytes:.1f} GB/s\n")
            sys.stdout.flush()
    dist.destroy_process_group()


main()
