"""The batch scripts that come with the library, as they are filled for node groups."""

import re
import subprocess
from pathlib import Path

import pytest

from cdk_training_cluster import GpuSharing, NodeGroup
from cdk_training_cluster.instance_types import instance_type_info
from cdk_training_cluster.orchestrators.slurm.job_scripts import job_scripts
from cdk_training_cluster.orchestrators.slurm.settings import SlurmQueue, SlurmSettings

_GROUPS = [
    NodeGroup("workers", instance_types=["p5.48xlarge"], count=8),
    NodeGroup("trainium", instance_types=["trn2.48xlarge"], count=4),
    NodeGroup("older", instance_types=["trn1.32xlarge"], count=2),
    NodeGroup("shared", instance_types=["g6.12xlarge"], count=1, gpu_sharing=GpuSharing.mps(4)),
    NodeGroup("data", instance_types=["c7i.48xlarge"], count=1),
]
_SLURM = SlurmSettings(queues=[SlurmQueue("neuron", node_groups=["trainium", "older"]), SlurmQueue("rest")])
_OWN_QUEUE = SlurmSettings(queues=[SlurmQueue("all"), SlurmQueue("gangs", node_groups=["workers"])])
SCRIPTS = job_scripts(
    _SLURM,
    [(group, instance_type_info(group.instance_types[0])) for group in _GROUPS],
    mount_point="/fsx",
    datasets=["/fsx/tokens", "/fsx/eval"],
)


def test_node_groups_whose_jobs_have_whole_accelerators_get_scripts() -> None:
    assert list(SCRIPTS) == [
        "workers/torchrun.sbatch",
        "workers/nccl-tests.sbatch",
        "trainium/neuron.sbatch",
        "older/neuron.sbatch",
    ]


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_shows_how_it_is_submitted_by_its_own_name(name: str) -> None:
    file = name.partition("/")[2]
    assert set(re.findall(r"[\w-]+\.sbatch", SCRIPTS[name])) == {file}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_filled_and_sound(name: str, tmp_path: Path) -> None:
    assert re.findall(r"@[A-Z_]+@", SCRIPTS[name]) == []
    script = tmp_path / "job.sh"
    script.write_text(SCRIPTS[name])
    # The variables' file is on nodes; the inner shell of a step expands; a trap calls a function.
    checked = subprocess.run(
        ["shellcheck", "--exclude=SC1091,SC2016,SC2329", str(script)], capture_output=True, text=True, check=False
    )
    assert checked.stdout == ""


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "workers/torchrun.sbatch",
            ["#SBATCH --partition=rest", "#SBATCH --nodes=8", "#SBATCH --gpus-per-node=8", "--nproc-per-node 8 "],
        ),
        ("workers/torchrun.sbatch", ["wait-for-dataset /fsx/tokens /fsx/eval --timeout 4h"]),
        (
            "trainium/neuron.sbatch",
            ["#SBATCH --partition=neuron", "--gres=neuron:16", "--nproc-per-node 64 "],
        ),
        ("older/neuron.sbatch", ["#SBATCH --constraint=older", "--nproc-per-node 32 "]),
        ("workers/nccl-tests.sbatch", ["#SBATCH --ntasks-per-node=8", '-np "$SLURM_NTASKS" -N 8 ']),
    ],
)
def test_a_script_asks_for_what_its_node_group_has(name: str, lines: list[str]) -> None:
    assert [line for line in lines if line not in SCRIPTS[name]] == []


def test_a_cluster_without_file_system_waits_for_nothing() -> None:
    workers = [(_GROUPS[0], instance_type_info("p5.48xlarge"))]
    assert "wait-for-dataset" not in job_scripts(_SLURM, workers, mount_point=None)["workers/torchrun.sbatch"]


@pytest.mark.parametrize(
    ("status", "drained", "requeued"), [(0, "", False), (0, "n1", False), (9, "", False), (75, "n1", True)]
)
def test_a_training_that_ends_on_a_drained_node_runs_again(
    tmp_path: Path, *, status: int, drained: str, requeued: bool
) -> None:
    stubs = {"wait-for-dataset": "", "sleep": "", "srun": f'echo "$*" >{tmp_path}/step; exit {status}'}
    stubs |= {"sinfo": f"echo {drained}", "scontrol": f'echo "$*" >{tmp_path}/asked'}
    for name, does in stubs.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{does}\n")
        (tmp_path / name).chmod(0o755)
    job = {"SLURM_JOB_NAME": "train", "SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_JOB_NUM_NODES": "2"}
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "MIN_NODES": "1", **job}
    command = ["bash", "-c", SCRIPTS["workers/torchrun.sbatch"], "", "train.py"]
    ended = subprocess.run(command, env=env, capture_output=True, check=False)
    assert ended.returncode == status
    asked = tmp_path / "asked"
    assert (asked.read_text() if asked.exists() else "") == ("requeue 7\n" if requeued else "")
    assert (tmp_path / "step").read_text() == (
        "--wait=0 --no-kill cluster-run --nnodes 1:2 --drain-seconds 4m torchrun --nproc-per-node 8 train.py\n"
    )


def test_a_training_takes_no_compiled_graph_of_another_user(tmp_path: Path) -> None:
    """Homes are on the file system, and each is its user's own."""
    [line] = [line for line in SCRIPTS["trainium/neuron.sbatch"].splitlines() if "NEURON_COMPILE_CACHE_URL" in line]
    said = subprocess.run(
        ["bash", "-uc", f"{line}; echo $NEURON_COMPILE_CACHE_URL"],
        env={"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said == f"{tmp_path}/neuron-cache\n"


def test_an_image_without_nccl_tests_is_named(tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text(SCRIPTS["workers/nccl-tests.sbatch"])
    env = {"PATH": "/usr/bin:/bin", "MPIRUN": "/bin/true"}
    said = subprocess.run(["bash", str(script)], env=env, capture_output=True, text=True, check=False).stderr
    assert "give their paths with MPIRUN= and NCCL_TEST=" in said


def test_a_queue_of_one_node_group_goes_without_constraint() -> None:
    """Slurm holds jobs with the feature of nodes that a stop took away; without nodes a queue keeps its jobs."""
    groups = [(group, instance_type_info(group.instance_types[0])) for group in _GROUPS]
    made = job_scripts(_OWN_QUEUE, groups, mount_point=None)
    assert "#SBATCH --partition=gangs\n" in made["workers/torchrun.sbatch"]
    assert ["#SBATCH --constraint" in made[f"{name}.sbatch"] for name in ("workers/torchrun", "trainium/neuron")] == [
        False,
        True,
    ]
