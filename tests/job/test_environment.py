"""What a process of a job reads under each launcher and under none, with a cluster and without."""

import json
import os
from pathlib import Path

import pytest

from cluster_job import Launcher, read_environment

TORCHRUN = {
    "RANK": "11",
    "WORLD_SIZE": "16",
    "LOCAL_RANK": "3",
    "LOCAL_WORLD_SIZE": "8",
    "GROUP_RANK": "1",
    "GROUP_WORLD_SIZE": "2",
    "TORCHELASTIC_RUN_ID": "llama",
}
SLURM = {
    "SLURM_JOB_ID": "42",
    "SLURM_JOB_NAME": "train",
    "SLURM_PROCID": "1",
    "SLURM_NTASKS": "2",
    "SLURM_LOCALID": "0",
    "SLURM_NODEID": "1",
    "SLURM_NNODES": "2",
}
KUBERNETES = {"JOB_COMPLETION_INDEX": "2", "PET_NNODES": "4", "JOB_NAME": "llama-node-0"}
BATCH = {"AWS_BATCH_JOB_ID": "8f1c#1", "AWS_BATCH_JOB_NODE_INDEX": "1", "AWS_BATCH_JOB_NUM_NODES": "2"}
NO_FILE = Path("/nonexistent/job.json")


@pytest.mark.parametrize(
    ("variables", "launcher", "run", "place"),
    [
        (TORCHRUN, Launcher.TORCHRUN, "llama", (11, 16, 3, 8, 1, 2)),
        (SLURM | TORCHRUN, Launcher.TORCHRUN, "llama", (11, 16, 3, 8, 1, 2)),
        (SLURM, Launcher.SLURM, "train-42", (1, 2, 0, 1, 1, 2)),
        (SLURM | {"RUN_NAME": "llama"}, Launcher.SLURM, "llama", (1, 2, 0, 1, 1, 2)),
        (KUBERNETES, Launcher.KUBERNETES, "llama-node-0", (2, 4, 0, 1, 2, 4)),
        (KUBERNETES | TORCHRUN, Launcher.TORCHRUN, "llama", (11, 16, 3, 8, 1, 2)),
        (BATCH, Launcher.BATCH, "8f1c", (1, 2, 0, 1, 1, 2)),
        ({"AWS_BATCH_JOB_ID": "8f1c"}, Launcher.NONE, "8f1c", (0, 1, 0, 1, 0, 1)),
        ({}, Launcher.NONE, "run", (0, 1, 0, 1, 0, 1)),
        (TORCHRUN | {"TORCHELASTIC_RUN_ID": "llama@7-0-1"}, Launcher.TORCHRUN, "llama", (11, 16, 3, 8, 1, 2)),
        ({"TORCHELASTIC_RUN_ID": "none"}, Launcher.NONE, "run", (0, 1, 0, 1, 0, 1)),
    ],
)
def test_a_process_knows_its_run_and_its_place(
    variables: dict[str, str], launcher: Launcher, run: str, place: tuple[int, ...]
) -> None:
    found = read_environment(variables, job_file=NO_FILE)
    assert (found.launcher, found.run, found.cluster) == (launcher, run, None)
    ranks = (found.rank, found.world_size, found.local_rank, found.local_world_size, found.node_rank, found.nodes)
    assert ranks == place


def test_variables_go_before_the_file_of_the_node(tmp_path: Path) -> None:
    file = tmp_path / "job.json"
    file.write_text(json.dumps({"cluster": "pod", "node_group": "workers", "region": "eu-north-1", "runs_table": ""}))
    cluster = read_environment({"TRAINING_CLUSTER_NODE_HOUR_USD": "55.04"}, job_file=file).cluster
    assert cluster is not None
    assert (cluster.cluster, cluster.runs_table, cluster.node_hour_usd) == ("pod", None, 55.04)
    names = {f"TRAINING_CLUSTER_{name}": "x" for name in ("CLUSTER", "NODE_GROUP", "REGION", "RUNS_TABLE")}
    assert (read_environment(names, job_file=NO_FILE).cluster or cluster).runs_table == "x"


@pytest.mark.parametrize(
    ("variables", "content", "message"),
    [
        ({"RANK": "first"}, "{}", "RANK must be a number, got 'first'"),
        ({}, "[]", r"must be a JSON object, got \[\]. Set the node up again."),
        ({}, "{", "must be JSON: .* Set the node up again."),
        (
            {"TRAINING_CLUSTER_NODE_HOUR_USD": "dear"},
            '{"cluster": "a", "node_group": "b", "region": "c"}',
            "node_hour_usd must be a number of USD an hour, got 'dear'",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(
    tmp_path: Path, variables: dict[str, str], content: str, message: str
) -> None:
    file = tmp_path / "job.json"
    file.write_text(content)
    with pytest.raises(ValueError, match=message):
        read_environment(variables, job_file=file)


def test_a_process_and_its_children_take_the_credentials_of_jobs_where_nothing_names_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "job.json"
    url = "http://127.0.0.1:301/job-role"
    place = {"cluster": "pod", "node_group": "workers", "region": "eu-north-1"}
    name = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
    monkeypatch.setattr(os, "environ", {})
    file.write_text(json.dumps(place))
    read_environment(job_file=file)
    assert name not in os.environ
    file.write_text(json.dumps({**place, "credentials_url": url}))
    read_environment({}, job_file=file)
    assert name not in os.environ
    read_environment(job_file=file)
    assert os.environ[name] == url
    os.environ[name] = "http://127.0.0.1:1/own"
    read_environment(job_file=file)
    assert os.environ[name] == "http://127.0.0.1:1/own"
