"""A training script with `Run` whose rank 2 takes twice as long as others for its own work; reports come often."""

import os
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import torch
import torch.distributed as dist

from cluster_job import Run, reporter

FOLDER, MODE = Path(sys.argv[1]), sys.argv[2]


def main() -> None:
    """Train until a file says that it is enough."""
    reporter.LOOK_EVERY, reporter.REPORT_EVERY = 1.0, 2.0
    dist.init_process_group("gloo")
    run = Run(global_batch=4, checkpoints=str(FOLDER / "checkpoints"))
    run._reporter._look_seconds = reporter.LOOK_EVERY
    for _ in run.steps(10**6):
        with run.computing() if MODE == "computing" else nullcontext():
            time.sleep(0.1 if dist.get_rank() == 2 else 0.05)
        ends = torch.tensor(float(dist.get_rank() == 0 and (FOLDER / "end").exists()))
        dist.all_reduce(ends)
        run.report(loss=0.0, samples=1)
        if dist.get_rank() == 0:
            with (FOLDER / "steps").open("a") as file:
                file.write(".")
        if ends:
            break
    dist.destroy_process_group()
    os.write(1, b"ended\n")


main()
