"""Checkpoints that are damaged, do not fit into shared memory, or hold no numbers: `make test-torch`."""

import io
import json
import math
import os
import shutil
import subprocess
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")

import numpy as np
import torch

from cluster_job import Run
from cluster_job.checkpoints import MARKER, CheckpointFolder
from cluster_job.digests import DIGESTS
from cluster_job.plain_values import from_json, to_json
from cluster_job.rank_values import RankValues, UntrustedError
from cluster_job.staging import Need, too_small

pytestmark = pytest.mark.torch

SHARD = "__0_0.distcp"


def train(folder: Path, *, losses: list[float], **settings: Any) -> None:
    """Do a step a loss, with weights that are the loss of the step, and save after each."""
    run = Run(global_batch=1, name="run", checkpoints=str(folder), **settings)
    state = {"weights": torch.zeros(50_000), "cursor": {"step": 0}}
    for step in run.steps(len(losses)):
        state["weights"].fill_(losses[step])
        state["cursor"]["step"] = step + 1
        run.report(loss=losses[step], samples=1)
        run.checkpoint(state)
        assert run._saver._storage.wait()


def restored(folder: Path, **arguments: Any) -> tuple[int, float, int]:
    """Return the step with which a new start goes on, its weights and its small value."""
    state: dict[str, Any] = {"weights": torch.zeros(50_000), "cursor": {"step": 0}}
    run = Run(global_batch=1, name="run", checkpoints=str(folder))
    assert run.restore(state, **arguments)
    (weight,) = set(state["weights"].tolist())
    return run._saver.next_step, weight, state["cursor"]["step"]


def shortened(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def zeroed(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def flipped(path: Path) -> None:
    contents = bytearray(path.read_bytes())
    middle = len(contents) // 2
    contents[middle : middle + 4096] = (one ^ 0xFF for one in contents[middle : middle + 4096])
    path.write_bytes(contents)


def without_digests(directory: Path) -> None:
    """Give a checkpoint the marker of an earlier release."""
    marker = json.loads((directory / MARKER).read_text())
    del marker[DIGESTS]
    (directory / MARKER).write_text(json.dumps(marker))


@pytest.mark.parametrize("damage", [shortened, zeroed, flipped])
@pytest.mark.parametrize("name", [".metadata", SHARD])
def test_a_damaged_checkpoint_is_kept_and_the_one_before_is_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, damage: Callable[[Path], None]
) -> None:
    train(tmp_path, losses=[1, 2, 3])
    newest = CheckpointFolder(tmp_path / "run").all()[-1]
    damage(newest.path / name)
    capsys.readouterr()
    assert restored(tmp_path) == (2, 2, 2)
    (line,) = [one for one in capsys.readouterr().err.splitlines() if "is not used" in one]
    assert line.endswith(f"kept in {newest.path}.damaged")
    assert (newest.path.with_name(f"{newest.path.name}.damaged") / name).is_file()


@pytest.mark.parametrize("name", [".metadata", SHARD])
def test_a_damaged_checkpoint_of_an_earlier_release_is_noticed_where_torch_cannot_read_it(
    tmp_path: Path, name: str
) -> None:
    train(tmp_path, losses=[1, 2, 3])
    newest = CheckpointFolder(tmp_path / "run").all()[-1].path
    without_digests(newest)
    zeroed(newest / name)
    assert restored(tmp_path) == (2, 2, 2)


def test_a_checkpoint_without_digests_is_loaded_and_a_line_says_what_is_not_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train(tmp_path, losses=[1, 2])
    without_digests(CheckpointFolder(tmp_path / "run").all()[-1].path)
    capsys.readouterr()
    assert restored(tmp_path) == (2, 2, 2)
    assert "holds no digests: the contents of the checkpoint are not compared" in capsys.readouterr().err


def test_every_file_has_a_digest_and_each_is_right_where_nothing_can_be_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "rename", refuse)
    train(tmp_path, losses=[1])
    (checkpoint,) = CheckpointFolder(tmp_path / "run").all()
    assert json.loads(checkpoint.marker.read_text())[DIGESTS]["files"].keys() == {".metadata", SHARD}
    assert restored(tmp_path) == (1, 1, 1)


def test_a_run_goes_back_to_a_step_and_goes_on_from_there(tmp_path: Path) -> None:
    train(tmp_path, losses=[1, 2, 3], keep=3)
    assert restored(tmp_path, step=2) == (2, 2, 2)
    assert [one.step for one in CheckpointFolder(tmp_path / "run").all()] == [1, 2]


def test_a_run_whose_loss_is_no_number_keeps_its_last_good_checkpoint_and_reports_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nan = math.nan
    train(tmp_path, losses=[0.5, 0.4, nan, nan, nan], keep=1, keep_hourly=0, keep_daily=0)
    said = capsys.readouterr()
    assert said.err.count("no checkpoint is written until it is one") == 1
    report = json.loads([line for line in said.out.splitlines() if line.startswith("{")][-1])
    assert report["NonFiniteLoss"] == 1
    step, weight, cursor = restored(tmp_path)
    assert (step, cursor) == (2, 2)
    assert weight == pytest.approx(0.4)


RANKS_SCRIPT = """
import sys
import torch
import torch.distributed as dist
from torch.distributed.checkpoint import FileSystemReader
from cluster_job import Run, torch_storage
from cluster_job.digests import Unreadable

dist.init_process_group("gloo")
rank = dist.get_rank()
loss, state = [1.0, 2.0, 3.0, 4.0], {"weights": torch.zeros(50_000), "rank": 0}

def new_run():
    return Run(global_batch=2, name="run", checkpoints=sys.argv[1], keep=3)

run = new_run()
for step in run.steps(4):
    state["weights"].fill_(loss[step])
    state["rank"] = rank
    run.report(loss=float("nan") if (rank, step) == (1, 3) else 0.5, samples=1)
    run.checkpoint(state)  # not the fourth: the loss of rank 1 is no number
    run._saver._storage.wait()

compare, read = torch_storage.unreadable, FileSystemReader.read_data

def stale(marker, **of):
    if rank == 1 and "step-000000003" in str(marker):
        return Unreadable(reason="rank 1 cannot read it (stale)", damaged=False)
    return compare(marker, **of)

def broken(self, *of):
    if rank == 1 and "step-000000002" in str(self.path):
        raise OSError(5, "Input/output error")
    return read(self, *of)

torch_storage.unreadable, FileSystemReader.read_data = stale, broken
run = new_run()
run.restore(state)
found = f"restored {rank} {run._saver.next_step} {state['weights'].unique().tolist()} {state['rank']}"
sys.stdout.write(found + "\\n")  # at once, or the lines of two ranks mix
sys.stdout.flush()
"""


def test_all_ranks_fall_back_when_one_of_them_cannot_read_a_checkpoint(tmp_path: Path) -> None:
    """Rank 1 cannot read the newest one to compare it, and the next one to load it."""
    done = torchrun(tmp_path, RANKS_SCRIPT)
    found = sorted(line for line in done.stdout.splitlines() if line.startswith("restored"))
    assert found == ["restored 0 1 [1.0] 0", "restored 1 1 [1.0] 1"], done.stderr
    falls = [line for line in done.stderr.splitlines() if "the run falls back to" in line]
    assert [line.partition(";")[2].partition(".")[0] for line in falls] == [
        " the run falls back to step 2",
        " the run falls back to step 1",
    ]
    assert "The loss of step 4 is no finite number (on another rank)" in done.stderr
    assert [one.step for one in CheckpointFolder(tmp_path / "run").all()] == [1, 2, 3], "other nodes can read them"


SHARED_MEMORY_SCRIPT = """
import os
import sys
import torch
import torch.distributed as dist
from cluster_job import Run, staging

dist.init_process_group("gloo")
if sys.argv[2] == "unseen":
    staging.too_small = lambda _: None
run = Run(global_batch=2, name="run", checkpoints=sys.argv[1])
for step in run.steps(3):
    run.checkpoint({"weights": torch.full((1_500_000,), float(step)), "more": torch.ones(10)})
    # One write a line: two ranks write to one pipe.
    line = f"whole {run._saver._storage.wait()} {run._saver._storage._stage.shared}\\n"
    os.write(1, line.encode())
"""


@pytest.mark.parametrize("room", ["seen", "unseen"])
def test_ranks_that_find_no_room_together_in_shared_memory_write_with_threads(tmp_path: Path, room: str) -> None:
    """Two ranks copy 6 MB each, and there are 10: it is seen before, or when memory is allocated."""
    small = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=10m none /dev/shm && exec "$@"', "sh"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*small, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip(reason="a small /dev/shm cannot be mounted without namespaces of users and mounts")
    done = torchrun(tmp_path, SHARED_MEMORY_SCRIPT, room, before=small)
    assert [line for line in done.stdout.splitlines() if line.startswith("whole")] == 6 * ["whole True False"]
    (line,) = [one for one in done.stderr.splitlines() if "a thread of each rank writes checkpoints" in one]
    assert line.startswith("/dev/shm")
    assert "Give the container more shared memory" in line
    assert [one.step for one in CheckpointFolder(tmp_path / "run").all()] == [1, 2, 3]


def torchrun(folder: Path, text: str, *arguments: str, before: list[str] | None = None) -> Any:
    script = folder / "script.py"
    script.write_text(text)
    torchrun = [str(Path(sys.executable).with_name("torchrun")), "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [*(before or []), *torchrun, str(script), str(folder), *arguments],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize(
    ("sizes", "problem"),
    [
        ([(("a", 1), 40, 100), (("a", 1), 50, 100)], None),
        ([(("a", 1), 50, 100), (("a", 1), 50, 100)], "of its 2 ranks need"),
        ([(("a", 1), 50, 100), (("b", 1), 50, 100)], None),
        ([(("a", 1), 50, 100), (("a", 2), 50, 100)], None),
        ([(("a", 1), 10, 100), (("b", 1), 10, 0)], "/dev/shm of b has 0.0 GB free"),
    ],
    ids=["both fit", "neither", "of two nodes", "of two containers", "no shared memory"],
)
def test_ranks_share_the_memory_of_their_node_or_container(
    sizes: list[tuple[tuple[str, int], int, int]], problem: str | None
) -> None:
    found = too_small([Need(place, size * 10**6, free * 10**6) for place, size, free in sizes])
    assert found is problem is None or (found is not None and problem is not None and problem in found)


PLAIN: list[Any] = [
    None,
    True,
    -1.5,
    math.inf,
    2**80,
    "word",
    b"\x00\xff",
    1 + 2j,
    [1, [2]],
    (1, ("a",)),
    {"a": 1, 7: (2,), (1, 2): None},
    {"tuple": [1]},
    {},
    {3, 1},
    frozenset({"x"}),
    OrderedDict(b=1, a=2),
    Counter({30: 1}),
    torch.Size([2, 3]),
    torch.bfloat16,
    torch.device("cpu"),
]


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_plain_values_come_back_as_they_were(value: object) -> None:
    found = from_json(to_json(value))
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool, torch.int64, torch.complex64])
@pytest.mark.parametrize("shape", [(), (0, 2), (2, 3)])
def test_tensors_come_back_as_they_were(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    value = torch.arange(math.prod(shape)).reshape(shape).to(dtype)
    found = from_json(to_json(value))
    assert (found.dtype, found.shape) == (value.dtype, value.shape)
    assert torch.equal(found, value)


def test_the_states_of_generators_of_numpy_come_back() -> None:
    saved: Any = np.random.get_state()
    _, key, *rest = from_json(to_json(saved))
    assert np.array_equal(key, saved[1])
    assert rest == list(saved[2:])
    generator = np.random.default_rng(7)
    state = from_json(to_json(generator.bit_generator.state))
    assert state == generator.bit_generator.state
    assert from_json(to_json(np.float64(0.5))) == 0.5


class Config:
    """What only a pickle can keep."""


def test_what_only_a_pickle_can_keep_is_refused_when_it_is_saved(tmp_path: Path) -> None:
    run = Run(global_batch=1, name="run", checkpoints=str(tmp_path))
    for _ in run.steps(1):
        with pytest.raises(TypeError, match=r"loader\.config in the state .* holds a .*Config, which only a pickle"):
            run.checkpoint({"loader": {"config": Config(), "step": 3}})
        break


class Opens:
    """Runs code when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return os.makedirs, (str(self.file), 0o700, True)


def test_a_pickle_of_an_earlier_release_is_read_only_where_the_script_trusts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def to_pickle(self: RankValues) -> bytes:
        stream = io.BytesIO()
        values = {**self.values, ("opened",): Opens(tmp_path / "opened")}
        torch.save((list(self.paths), values), stream)
        return stream.getvalue()

    monkeypatch.setattr(RankValues, "to_tensor", to_pickle)
    train(tmp_path, losses=[1])
    with pytest.raises(UntrustedError, match=r"call run.restore\(state, trusted=True\)"):
        restored(tmp_path)
    assert not (tmp_path / "opened").exists()
    assert restored(tmp_path, trusted=True) == (1, 1, 1)
    assert (tmp_path / "opened").exists()
