"""The cluster, run and rank of a process, as files and what launched it give them."""

import json
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path

JOB_FILE = Path("/etc/cdk-training-cluster/job.json")
"""What the set-up of a node wrote for its jobs."""

PREFIX = "TRAINING_CLUSTER_"
"""A variable with this prefix and the name of a field of `Cluster` goes before the file; containers have no file."""


UNNAMED = "run"
"""What a run is called that has no name."""

_CREDENTIALS = "AWS_CONTAINER_CREDENTIALS_FULL_URI"


class Launcher(Enum):
    """What started the processes of a job, from which they know their places."""

    TORCHRUN = "torchrun"
    SLURM = "slurm"
    KUBERNETES = "kubernetes"
    BATCH = "batch"
    NONE = "none"


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """The cluster, run and rank of a process.

    Attributes:
        cluster: The cluster's name.
        node_group: The node group's name.
        region: The AWS Region.
        runs_table: The DynamoDB table of the runs. Default: - the cluster has none.
        mount_point: Where the file system is mounted. Default: - there is none.
        checkpoint_dir: The directory for checkpoints. Default: - there is none.
        checkpoint_url: The S3 address for checkpoints. Default: - there is none.
        node_hour_usd: The price of a node in USD an hour. Default: - unknown.
        credentials_url: Where the node gives credentials of the jobs' role. Default: - the node gives none.
    """

    cluster: str
    node_group: str
    region: str
    runs_table: str | None = None
    mount_point: str | None = None
    checkpoint_dir: str | None = None
    checkpoint_url: str | None = None
    node_hour_usd: float | None = None
    credentials_url: str | None = None

    @property
    def metric_namespace(self) -> str:
        """The CloudWatch namespace of the cluster's jobs, the only one that their role may write."""
        return f"CdkTrainingCluster/Jobs/{self.cluster}"


@dataclass(frozen=True, kw_only=True)
class Environment:
    """A process's cluster, run and place.

    Attributes:
        launcher: What started the process.
        run: The run's name: the same at each restart of the job.
        cluster: The cluster. None: the job runs without one.
        rank: The number of this process among all.
        world_size: How many processes there are.
        local_rank: The number of this process among those of its node.
        local_world_size: How many processes the node has.
        node_rank: The number of the node.
        nodes: How many nodes there are.
        node: The node's name: its instance id or host name.
    """

    launcher: Launcher
    run: str
    cluster: Cluster | None
    rank: int
    world_size: int
    local_rank: int
    local_world_size: int
    node_rank: int
    nodes: int
    node: str


# For each launcher the variable that shows it, and those of the places in the order of `_PLACES`.
_PLACES = ("rank", "world_size", "local_rank", "local_world_size", "node_rank", "nodes")
_VARIABLES: Mapping[Launcher, tuple[str, ...]] = {
    # https://docs.pytorch.org/docs/stable/elastic/run.html#environment-variables
    Launcher.TORCHRUN: ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE"),
    # https://slurm.schedmd.com/srun.html#SECTION_OUTPUT-ENVIRONMENT-VARIABLES
    Launcher.SLURM: ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "", "SLURM_NODEID", "SLURM_NNODES"),
    # https://kubernetes.io/docs/concepts/workloads/controllers/job/#completion-mode, and PET_* of Kubeflow Trainer
    Launcher.KUBERNETES: ("JOB_COMPLETION_INDEX", "PET_NNODES", "", "", "JOB_COMPLETION_INDEX", "PET_NNODES"),
    # https://docs.aws.amazon.com/batch/latest/userguide/mnp-env-vars.html
    Launcher.BATCH: (
        "AWS_BATCH_JOB_NODE_INDEX",
        "AWS_BATCH_JOB_NUM_NODES",
        "",
        "",
        "AWS_BATCH_JOB_NODE_INDEX",
        "AWS_BATCH_JOB_NUM_NODES",
    ),
}


def read_environment(environ: Mapping[str, str] | None = None, *, job_file: Path = JOB_FILE) -> Environment:
    """Return the environment of this process; a process without a cluster or a launcher is rank 0 of 1.

    The process, and what it starts, take the credentials of the jobs' role from their node, where no variable names
    another place for these: of a root's process too, since the nodes' role may not do what jobs do.

    Args:
        environ: The environment variables. Default: - the process's own.
        job_file: The node's file for jobs.

    Raises:
        ValueError: A variable or the file holds what it cannot hold.
    """
    values = os.environ if environ is None else environ
    launcher = next((one for one, names in _VARIABLES.items() if values.get(names[0])), Launcher.NONE)
    names = _VARIABLES.get(launcher, ("",) * len(_PLACES))
    place = {
        field: _number(values, name, default=int(field in _COUNTS))
        for field, name in zip(_PLACES, names, strict=True)
    }
    cluster = read_cluster(values, job_file=job_file)
    if environ is None and cluster is not None and cluster.credentials_url:
        os.environ.setdefault(_CREDENTIALS, cluster.credentials_url)
    return Environment(
        launcher=launcher,
        run=run_name(values),
        cluster=cluster,
        node=values.get("TRAINING_CLUSTER_NODE") or socket.gethostname(),
        **place,
    )


_COUNTS = ("world_size", "local_world_size", "nodes")


def _number(values: Mapping[str, str], name: str, *, default: int) -> int:
    text = values.get(name, "") if name else ""
    if not text:
        return default
    if not text.isdecimal():
        raise ValueError(f"{name} must be a number, got {text!r}")
    return int(text)


def run_name(values: Mapping[str, str]) -> str:
    """Return the name of the run: the same at each restart of a job.

    Args:
        values: The environment variables.
    """
    job = values.get("SLURM_JOB_ID")
    # Of torchrun's id RUN@ATTEMPT, which the rendezvous reads likewise.
    run, _, attempt = values.get("TORCHELASTIC_RUN_ID", "").rpartition("@")
    named = values.get("RUN_NAME") or run or attempt
    if named and named != "none":  # torchrun's own default
        return named
    if job:
        return f"{values.get('SLURM_JOB_NAME', 'job')}-{job}"
    return values.get("JOB_NAME") or batch_job(values) or UNNAMED


def batch_job(values: Mapping[str, str]) -> str:
    """Return the id of AWS Batch's job, the same on all of its nodes and at each attempt; empty: there is none.

    The id of a node's part is that of the job, `#` and the node's number.
    https://docs.aws.amazon.com/batch/latest/userguide/job_env_vars.html

    Args:
        values: The environment variables.
    """
    return values.get("AWS_BATCH_JOB_ID", "").partition("#")[0]


def read_cluster(values: Mapping[str, str], *, job_file: Path = JOB_FILE) -> Cluster | None:
    """Return what the node's file and the variables say of the cluster. None: they name none.

    Args:
        values: The environment variables.
        job_file: The node's file for jobs.

    Raises:
        ValueError: The file is no JSON object, or a price is no number.
    """
    found: dict[str, object] = {}
    if job_file.is_file():
        try:
            read = json.loads(job_file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{job_file} must be JSON: {error}. Set the node up again.") from error
        if not isinstance(read, dict):
            raise ValueError(f"{job_file} must be a JSON object, got {read!r}. Set the node up again.")
        found = read
    names = [field.name for field in fields(Cluster)]
    known = {name: found[name] for name in names if found.get(name) not in {None, ""}}
    known |= {name: values[PREFIX + name.upper()] for name in names if values.get(PREFIX + name.upper())}
    if not {"cluster", "node_group", "region"} <= known.keys():
        return None
    price = known.pop("node_hour_usd", None)
    texts = {name: str(value) for name, value in known.items()}
    return Cluster(**texts, node_hour_usd=None if price is None else _price(price))


def _price(value: object) -> float:
    try:
        return float(str(value))
    except ValueError as error:
        raise ValueError(f"node_hour_usd must be a number of USD an hour, got {value!r}") from error
