"""A training script that knows nothing of the cluster: steps with an all-reduce, and a file with the last one."""

import json
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist


def main() -> None:
    """Add up a tensor over all processes in each step; go on from the step in the file."""
    folder, count = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10**9
    node, saved = os.environ["TRAINING_CLUSTER_NODE"], folder / "step"
    dist.init_process_group("gloo")
    step = int(saved.read_text()) if saved.exists() else 0
    while step < count:
        total = torch.ones(1)
        dist.all_reduce(total)
        step += 1
        if dist.get_rank() == 0:
            saved.with_suffix(".new").write_text(str(step))
            saved.with_suffix(".new").replace(saved)
            event = {"step": step, "world": int(total.item()), "rank_0": node, "at": time.time()}
            event["lease"] = os.environ.get("TRAINING_CLUSTER_LEASE")
            event["token"] = os.environ.get("TRAINING_CLUSTER_LEASE_TOKEN")
            with (folder / "events").open("a") as file:
                file.write(json.dumps(event) + "\n")
        time.sleep(0.1)
        if (folder / f"fail-{node}").exists():
            (folder / f"fail-{node}").unlink()
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
    dist.destroy_process_group()


main()
