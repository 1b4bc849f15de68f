"""How small values come back into the state that a script has: `make test-torch`."""

import copy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")

import torch
from torch.distributed.checkpoint.api import CheckpointException

from cluster_job import Run

pytestmark = pytest.mark.torch

LARGE = 20_000
"""Floats of a tensor that torch keeps itself."""


def save(folder: Path, state: dict[str, Any]) -> None:
    run = Run(global_batch=1, name="run", checkpoints=str(folder))
    for _ in run.steps(1):
        run.checkpoint(state)


def restore(folder: Path, state: dict[str, Any]) -> None:
    assert Run(global_batch=1, name="run", checkpoints=str(folder)).restore(state)


class Averages:
    """As an optimizer keeps its buffers."""

    def __init__(self, value: float) -> None:
        self.buffers = [torch.full((3,), value, dtype=torch.float64), torch.full((2,), value, dtype=torch.float64)]
        self.groups = ({"decay": torch.tensor(value, dtype=torch.float64), "name": f"of {value}"},)
        self.loaded: Any = None

    def state_dict(self) -> dict[str, Any]:
        return {"buffers": self.buffers, "groups": self.groups}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.loaded = state


def test_tensors_in_lists_and_tuples_come_back_where_the_script_has_them(tmp_path: Path) -> None:
    saved, own = Averages(2), Averages(0)
    saved.groups[0]["name"] = saved.groups[0].pop("name")
    saved.buffers[1] = saved.buffers[1].to(torch.float32)
    save(tmp_path, {"averages": saved, "grown": [torch.ones(2)], "resized": [torch.ones(2)]})
    state = {"averages": own, "grown": [], "resized": [torch.zeros(1)]}
    restore(tmp_path, state)
    assert [given is mine for given, mine in zip(own.loaded["buffers"], own.buffers, strict=True)] == [True, True]
    assert own.loaded["groups"][0]["decay"] is own.groups[0]["decay"], "whatever the order of its keys"
    assert own.loaded["groups"][0]["name"] == "of 2"
    assert [buffer.dtype for buffer in own.buffers] == [torch.float64] * 2
    assert [float(buffer.sum()) for buffer in own.buffers] == [6, 4]
    assert isinstance(own.loaded["groups"], tuple)
    assert [float(state[name][0].sum()) for name in ("grown", "resized")] == [2, 2]  # type: ignore[index]


def test_a_checkpoint_that_cannot_be_read_leaves_the_state_as_it_was(tmp_path: Path) -> None:
    save(tmp_path, {"loader": {"cursor": 7, "weights": torch.ones(LARGE)}, "epoch": 3})
    state = {"loader": {"cursor": 1, "weights": torch.zeros(LARGE + 1)}, "epoch": 0}
    before = copy.deepcopy(state)
    with pytest.raises(CheckpointException, match="Size mismatch"):
        restore(tmp_path, state)
    weights = before["loader"].pop("weights"), state["loader"].pop("weights")  # type: ignore[attr-defined]
    assert torch.equal(*weights)
    assert state == before


def test_large_tensors_that_the_script_has_no_place_for_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = torch.nn.Linear(LARGE, 1)
    loader = {"weights": torch.ones(LARGE), "order": torch.ones(LARGE), "small": torch.ones(1)}
    save(tmp_path, {"model": model, "loader": loader, "ema": {"a": torch.ones(LARGE), "b": torch.ones(LARGE)}})
    order = torch.zeros(LARGE)
    capsys.readouterr()
    state = {"model": torch.nn.Linear(LARGE, 1, bias=False), "loader": {"order": order}}
    restore(tmp_path, state)
    assert state["loader"].keys() == {"order", "small"}
    assert order.sum() == LARGE
    assert "holds ema, loader.weights, which the state given to run.restore lacks" in capsys.readouterr().err
    restore(tmp_path, {"loader": {"order": order, "weights": order}, "ema": {"a": order}})
    assert "holds ema.b, model, which" in capsys.readouterr().err
