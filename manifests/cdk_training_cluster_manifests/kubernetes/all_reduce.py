"""Adds up a tensor over all GPUs of a job again and again, and prints how fast: what `jobs/nccl-test` runs.

The bus bandwidth is that of NCCL's own tests:
https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
"""

# The images of jobs have these; the command that writes this file into a manifest does not.
import os
import time

import torch
import torch.distributed as dist


def main() -> None:
    """Run on one GPU of many."""
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    world = dist.get_world_size()
    for mebibytes in (8, 64, 512, 2048):
        values = torch.ones(mebibytes * 2**18, device="cuda")  # floats of 4 bytes
        for _ in range(5):
            dist.all_reduce(values)
        torch.cuda.synchronize()
        dist.barrier()
        start = time.perf_counter()
        for _ in range(20):
            dist.all_reduce(values)
        torch.cuda.synchronize()
        seconds = (time.perf_counter() - start) / 20
        bandwidth = values.nbytes / seconds * 2 * (world - 1) / world / 1e9
        if dist.get_rank() == 0:
            print(f"{world} GPUs, {mebibytes} MiB: {bandwidth:.1f} GB/s", flush=True)  # noqa: T201
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
