"""Checkpoints by real torch.distributed.checkpoint: `make test-torch`."""

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.api import CheckpointException

from cluster_job import Run
from cluster_job.checkpoints import MARKER, CheckpointFolder
from cluster_job.exits import Exit
from cluster_job.hang_watch import group_patience
from cluster_job.torch_ranks import TorchRanks

pytestmark = pytest.mark.torch

# As users write it, without `if __name__ == "__main__":`: the process that writes must not train too.
SCRIPT = """
import os, sys, time
from pathlib import Path
import torch
import torch.distributed as dist
from cluster_job import Run

dist.init_process_group("gloo")
folder, count, drained, wrap = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4] == "ddp"
(folder / f"started-{os.getpid()}").touch()
torch.manual_seed(dist.get_rank())
model = torch.nn.Linear(8, 8)
wrapped = torch.nn.parallel.DistributedDataParallel(model) if wrap else model
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
state = {"model": wrapped, "optimizer": optimizer, "scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 3)}
run = Run(global_batch=6, name="run", checkpoints=str(folder), keep=1, keep_hourly=0, keep_daily=0)
run.restore(state)
world = dist.get_world_size()
for step in run.steps(count):
    optimizer.zero_grad()
    for index in run.share(step):
        x = torch.randn(8, generator=torch.Generator().manual_seed(index))
        (model(x).square().sum() / 6).backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
    optimizer.step()
    state["scheduler"].step()
    if dist.get_rank() == 1 and str(step) == drained:
        (Path(os.environ["TRAINING_CLUSTER_DRAIN"]) / "spot").touch()
    if run.should_checkpoint() or step == 1:
        run.checkpoint(state)
if dist.get_rank() == 0:
    torch.save([p.detach() for p in model.parameters()], folder / f"end-{world}.pt")
"""


def train(folder: Path, ranks: int, count: int, *, drained: str = "never", wrap: str = "plain") -> int:
    drain = folder / "drain"
    drain.mkdir(exist_ok=True)
    for file in drain.iterdir():
        file.unlink()
    script = folder / "script.py"
    script.write_text(SCRIPT)
    command = [str(Path(sys.executable).with_name("torchrun")), "--standalone", f"--nproc-per-node={ranks}"]
    environment = {**os.environ, "TRAINING_CLUSTER_DRAIN": str(drain), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, str(script), str(folder), str(count), drained, wrap],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert len(list(folder.glob("started-*"))) == ranks, "each process trains once"
    for file in folder.glob("started-*"):
        file.unlink()
    if done.returncode and f"exitcode  : {int(Exit.AGAIN)}" not in done.stderr:
        raise AssertionError(done.stderr)
    return done.returncode


def test_a_drained_run_goes_on_at_another_world_size_and_ends_with_the_same_parameters(tmp_path: Path) -> None:
    undisturbed, disturbed = tmp_path / "a", tmp_path / "b"
    undisturbed.mkdir()
    disturbed.mkdir()
    assert train(undisturbed, 1, 8) == 0
    assert train(disturbed, 2, 8, drained="3", wrap="ddp") != 0
    assert not list(disturbed.glob("end-*"))
    latest = CheckpointFolder(disturbed / "run").latest()
    assert latest is not None
    assert latest.ended
    assert latest.step in {4, 5}, "drained in step 3, agreed on at its end or the next one's"
    assert train(disturbed, 1, 8) == 0
    ends = [torch.load(folder / "end-1.pt") for folder in (undisturbed, disturbed)]
    for one, other in zip(*ends, strict=True):
        torch.testing.assert_close(one, other)
    assert [one.step for one in CheckpointFolder(disturbed / "run").all()] == [8]


RANK_SCRIPT = """
import sys
from pathlib import Path
import torch
import torch.distributed as dist
from cluster_job import Run

dist.init_process_group("gloo")
folder, rank = Path(sys.argv[1]), dist.get_rank()
torch.manual_seed(int(sys.argv[2]) + rank)
loader = {"cursor": int(sys.argv[2]) + rank, "epoch": 3, "shards": {}}
state = {"loader": loader, "rng": torch.get_rng_state(), "shared": torch.arange(3), "seen": set(), "read": None}
run = Run(global_batch=2, name="run", checkpoints=str(folder))
restored = run.restore(state)
torch.set_rng_state(state["rng"])
if not restored:  # the same on all ranks are sets, in whatever order their processes keep them
    loader["shards"][f"shard-of-{rank}"] = loader["shards"]["shard-of-both"] = 7
    state["seen"], state["read"] = set("abcdefgh"), [{f"shard-of-{rank}": 7}]
found = [loader["cursor"], loader["epoch"], torch.rand(1).item()]
found += [loader["shards"], sorted(state["seen"]), state["read"]]
torch.save(found, folder / f"found-{restored}-{rank}-of-{dist.get_world_size()}.pt")
for step in run.steps(run._saver.next_step + 2):  # the first is written beside the job
    run.checkpoint(state)
"""


def test_values_that_differ_by_rank_come_back_to_their_rank_and_never_to_two(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(RANK_SCRIPT)
    said = []
    for ranks, seed in ((2, 100), (2, 200), (1, 300)):
        torchrun = [str(Path(sys.executable).with_name("torchrun")), "--standalone", f"--nproc-per-node={ranks}"]
        done = subprocess.run(
            [*torchrun, str(script), str(tmp_path), str(seed)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        said.append("another number of ranks: what differs by rank in loader, read, rng stays" in done.stderr)

    def found(restored: bool, rank: int, of: int) -> Any:
        return torch.load(tmp_path / f"found-{restored}-{rank}-of-{of}.pt")

    for rank in range(2):
        assert found(True, rank, 2) == found(False, rank, 2)
        assert found(True, rank, 2)[:2] == [100 + rank, 3]
        assert found(True, rank, 2)[3] == {f"shard-of-{rank}": 7, "shard-of-both": 7}, "the script had no such keys"
    assert found(True, 0, 2)[2] != found(True, 1, 2)[2]
    torch.manual_seed(300)
    assert found(True, 0, 1) == [300, 3, torch.rand(1).item(), {"shard-of-both": 7}, list("abcdefgh"), None]
    assert said == [False, False, True]


SPAWNING_SCRIPT = """
import multiprocessing, sys
import torch
import torch.distributed as dist
from cluster_job import Run

def double(number):
    return 2 * number

if __name__ == "__main__":
    dist.init_process_group("gloo")
    run = Run(global_batch=1, name="run", checkpoints=sys.argv[1])
    for step in run.steps(2):
        if step == 1:
            break
        run.checkpoint({"x": torch.ones(1)})
        with multiprocessing.get_context("spawn").Pool(1) as pool:  # as a loader with workers does
            print(pool.map_async(double, [21]).get(timeout=120))
"""


def test_a_script_spawns_workers_while_its_first_checkpoint_is_written(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SPAWNING_SCRIPT)
    done = subprocess.run(
        [str(Path(sys.executable).with_name("torchrun")), "--standalone", str(script), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "[42]\n"), done.stderr


KILLING_SCRIPT = """
import multiprocessing, os, signal, sys
import torch
import torch.distributed as dist
from cluster_job import Run

dist.init_process_group("gloo")
run = Run(global_batch=2, name="run", checkpoints=sys.argv[1], keep_hourly=0, keep_daily=0)

def send(name):
    [writer] = multiprocessing.active_children()
    if dist.get_rank() == 1:
        os.kill(writer.pid, name)
        if name == signal.SIGKILL:
            writer.join()
    dist.barrier()

for step in run.steps(6):
    if step == 2:
        send(signal.SIGKILL)
    if step == 3:
        send(signal.SIGSTOP)  # it is killed below, while it writes
    if step == 5:
        [_] = multiprocessing.active_children()
        break
    run.checkpoint({"x": torch.arange(3)})
    if step in {0, 3}:  # the first has only been started, and the other rank's waits for it
        send(signal.SIGKILL)
    is_whole = run._saver._storage.wait()
    if dist.get_rank() == 0:
        print(step, is_whole, flush=True)
"""


def test_checkpoints_are_written_again_after_the_process_that_writes_is_killed(tmp_path: Path) -> None:
    """As the kernel does where memory is short: while it starts, between two checkpoints, and in one."""
    script = tmp_path / "script.py"
    script.write_text(KILLING_SCRIPT)
    done = subprocess.run(
        [str(Path(sys.executable).with_name("torchrun")), "--standalone", "--nproc-per-node=2", script, tmp_path],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    printed = [line for line in done.stdout.splitlines() if not line.startswith("{")]  # the rest are reports
    assert printed == ["0 False", "1 True", "2 True", "3 False", "4 True"], done.stderr
    assert [one.step for one in CheckpointFolder(tmp_path / "run").all()] == [3, 5]


def one_step(run: Run, state: dict[str, Any], count: int = 1) -> None:
    for _ in run.steps(count):
        if run.should_checkpoint():
            run.checkpoint(state)


def test_the_last_checkpoint_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("no directory")
    with pytest.raises(CheckpointException, match="NotADirectoryError"):
        one_step(Run(global_batch=1, name="run", checkpoints=str(tmp_path)), {"x": torch.ones(1)})


def test_a_periodic_checkpoint_that_cannot_be_written_ends_no_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(global_batch=1, name="run", checkpoints=str(tmp_path))
    state = {"x": torch.ones(1)}
    for _ in run.steps(2):
        (tmp_path / "run").write_text("no directory")
        run.checkpoint(state)
        assert not run._saver._storage.wait()
        (tmp_path / "run").unlink()
        run._step = 2
    said = capsys.readouterr()
    assert "could not be written, and the job goes on" in said.err
    assert '"CheckpointFailures": 1.0' in said.out


def test_values_and_objects_come_back_where_nothing_can_be_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "rename", refuse)  # as on Mountpoint for Amazon S3
    words: dict[str, Any] = {"epoch": 3, "read": {7: {"shard": 2}}, "left": {}, "seeds": {"epoch": torch.ones(2)}}
    state: dict[str, Any] = {"tensor": torch.arange(4), "words": words}
    one_step(Run(global_batch=1, name="run", checkpoints=str(tmp_path)), state)
    tensor = torch.zeros(4, dtype=torch.long)
    found: dict[str, Any] = {"tensor": tensor, "words": {"epoch": 0, "read": None, "left": {"x": 1}, "seeds": {}}}
    run = Run(global_batch=1, name="run", checkpoints=str(tmp_path))
    assert run.restore(found)
    assert torch.equal(found["words"].pop("seeds")["epoch"], words.pop("seeds")["epoch"])
    assert found["words"] == words, "whatever keys the script has when it starts"
    assert found["tensor"] is tensor
    assert torch.equal(tensor, state["tensor"])
    assert list(run.steps(1)) == []


def test_an_optimizer_without_its_model_is_refused(tmp_path: Path) -> None:
    optimizer = torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=1)
    with pytest.raises(ValueError, match="an optimizer without its model"):
        one_step(Run(global_batch=1, name="run", checkpoints=str(tmp_path)), {"optimizer": optimizer})
    assert not list(tmp_path.rglob(MARKER))


@pytest.mark.parametrize(
    ("lighthouse", "arguments", "message"),
    [
        ("", {}, "set TORCHFT_LIGHTHOUSE to its address"),
        ("http://127.0.0.1:1", {"sizes": range(0, 3)}, r"sizes must be a rising range .*, got range\(0, 3\)"),
        ("http://127.0.0.1:1", {"sizes": range(4, 1, -1)}, "sizes must be a rising range"),
        ("http://127.0.0.1:1", {"patience": 0.5}, "patience must be at least 1 second, got 0.5"),
    ],
)
def test_impossible_replicas_are_refused(
    lighthouse: str, arguments: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHFT_LIGHTHOUSE", lighthouse)
    with pytest.raises(ValueError, match=message):
        Run(global_batch=1).replicas(dict, lambda _: None, **arguments)


def test_a_bucket_is_no_directory() -> None:
    with pytest.raises(ValueError, match="mount the bucket with Mountpoint for Amazon S3"):
        Run(global_batch=1, checkpoints="s3://bucket/prefix").restore({})


def test_torchs_own_patience_is_that_of_its_longest_group_with_the_accelerator() -> None:
    assert group_patience("cpu") is None
    alone = {"store": dist.HashStore(), "rank": 0, "world_size": 1}
    dist.init_process_group("cpu:gloo", timeout=timedelta(seconds=100), **alone)
    try:
        dist.new_group(timeout=timedelta(hours=2))
        assert group_patience("cpu") == 7200
        assert group_patience("cuda") is None
        TorchRanks()  # its groups wait neither shorter nor longer for a node that says nothing
        assert set(timeouts()) == {100, 7200}
        assert timeouts().count(7200) == 3
    finally:
        dist.destroy_process_group()


def timeouts() -> list[float]:
    groups = dist.distributed_c10d._world.pg_map
    return [group._get_backend(torch.device("cpu")).options._timeout.total_seconds() for group in groups]
