"""Which engine a cluster file names, and how."""

from pathlib import Path

import pytest

from cdk_training_cluster_stacks.cluster_file.orchestrators.batch import BatchJobSettings
from cluster_files import RIGHT, problems

_FORMS = (
    "must be none, slurm, eks, hyperpod or batch, or one key with its settings, such as {hyperpod: {engine: eks}}"
)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        pytest.param("sulrm", f'orchestrator: {_FORMS}, got "sulrm"; did you mean slurm?', id="misspelt"),
        pytest.param("3", f"orchestrator: {_FORMS}, got 3", id="number"),
        pytest.param(
            "{slurm: {}, eks: {}}",
            "orchestrator: must name one engine, got slurm and eks; make a cluster for each",
            id="two",
        ),
        pytest.param("{}", "orchestrator: must name one engine, got none; make a cluster for each", id="empty"),
        pytest.param("{slurm: }", "orchestrator.slurm: has no value; write one, or leave the key out", id="no value"),
        pytest.param(
            "{hyperpod: {engine: x}}", 'orchestrator.hyperpod.engine: must be slurm or eks, got "x"', id="setting"
        ),
    ],
)
def test_an_engine_is_one_word_or_one_key(tmp_path: Path, written: str, said: str) -> None:
    assert problems(tmp_path, f"{RIGHT}orchestrator: {written}\n") == [f"cluster.yaml:12: {said}"]


def test_no_engine_may_be_said(tmp_path: Path) -> None:
    assert problems(tmp_path, f"{RIGHT}orchestrator: none\n", legal=True) == []


@pytest.mark.parametrize("script", [None, "/fsx/train.py"])
def test_a_file_says_how_often_batch_starts_a_job(script: str | None) -> None:
    job = BatchJobSettings(name="train", image="my/image:1", script=script, attempts=1).to_job()
    assert job.attempts == 1
