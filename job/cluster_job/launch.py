"""`cluster-run [options] torchrun [torchrun's options] train.py …`: start a training script as it is, on each node.

It adds to torchrun's command what survives the loss of any node, looks at the node first, waits for data sets, and
ends the job in order when the node is drained. What torchrun is given by its user goes before what is added.
"""

import argparse
import importlib.util
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cluster_job.drain import JOB_FOLDER, drain_request
from cluster_job.environment import UNNAMED, Environment, batch_job, read_environment
from cluster_job.exits import Exit
from cluster_job.failures import RestartPolicy
from cluster_job.flight_recorder import make_folder, own_folder, recorder_variables
from cluster_job.heartbeat import beating
from cluster_job.membership import FIXED_SIZE, POLICY_VARIABLES
from cluster_job.sending import Heartbeat
from cluster_job.stuck import GRACE_SECONDS
from cluster_job.stuck_watch import GRACE_VARIABLE
from cluster_job.supervision import Limits, supervise
from cluster_job.torch_version import TESTED_SERIES, untested_torch

_ENDLESS = 1_000_000  # the rendezvous counts: torchrun's own limit knows no window
_SHUTDOWN_SECONDS = 10
_PORT = 29500
_NVIDIA = Path("/dev/nvidia0")
_COMPILED = "TORCHINDUCTOR_CACHE_DIR"
_VERIFY = ("cluster-node", "verify", "--at", "job-start")
_FLAGS = ("--standalone", "-m", "--module", "--no-python", "--run-path", "--virtual-local-rank", "-h", "--help")
"""torchrun's options without a value: https://docs.pytorch.org/docs/stable/elastic/run.html"""
_COUNTS = ("SLURM_NNODES", "PET_NNODES", "AWS_BATCH_JOB_NUM_NODES")
"""Where launchers say how many nodes a job has. All of these start a job again as a whole: no other nodes come."""


class UsageError(Exception):
    """The arguments or the environment are wrong; the message is one sentence."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What the command depends on beside arguments and variables.

    Attributes:
        address: The node's address, as the others reach it.
        has_gpus: Whether there are NVIDIA GPUs to bind processes to.
        torch_options: The source of torchrun's options, which differ between versions of torch.
        obstacle: Why torchrun cannot meet in a table: what its environment lacks. Default: - nothing.
    """

    address: str
    has_gpus: bool
    torch_options: str
    obstacle: str = ""


def main() -> None:
    """Run the command, and end as it ends."""
    try:
        sys.exit(_run(sys.argv[1:]))
    except (UsageError, ValueError) as error:
        _say(str(error))
        sys.exit(Exit.USAGE)


def _run(arguments: Sequence[str]) -> int:
    given = _parser().parse_args(arguments)
    environment = read_environment()
    command = torchrun_command(given, os.environ, environment, _machine(environment))
    variables = _variables(given, environment, os.environ)
    if given.dry_run:
        added = [f"{name}={shlex.quote(value)}" for name, value in variables.items()]
        sys.stdout.write(" ".join([*added, shlex.join(command)]) + "\n")
        return 0
    if shutil.which(command[0]) is None:
        raise UsageError(f"{command[0]} is not on the path: activate the environment that has torch")
    drained = drain_request()
    if drained is not None:
        _say(f"{environment.node} is drained: {drained.sentence}; start the job on another node")
        return Exit.AGAIN
    if given.verify and shutil.which(_VERIFY[0]) and subprocess.run(_VERIFY, check=False).returncode != 0:  # noqa: S603
        _say(
            f"{environment.node} failed its verification: see `{shlex.join(_VERIFY)}`; start the job on another node"
        )
        return Exit.UNFIT
    named = replace(environment, run=variables["RUN_NAME"])
    make_folder(variables["RUN_NAME"])
    with (
        tempfile.TemporaryDirectory(prefix="cluster-run-") as folder,
        beating(Heartbeat(named).send, Path(folder)),
    ):
        if given.wait_for_dataset and not _wait_for(given.wait_for_dataset, given.dataset_timeout):
            return Exit.NO_DATA
        limits = Limits(
            drain_seconds=given.drain_seconds, term_seconds=given.term_seconds, shutdown_seconds=_SHUTDOWN_SECONDS
        )
        return supervise(command, {**os.environ, **variables, JOB_FOLDER: folder}, Path(folder), limits)


def _parser() -> argparse.ArgumentParser:
    policy = RestartPolicy()
    parser = argparse.ArgumentParser(
        prog="cluster-run",
        usage="cluster-run [options] torchrun [torchrun's options] train.py [its arguments]",
        description="Start a training script under torchrun so that the loss of a node costs seconds.",
        epilog="Exit status: torchrun's own, or " + "; ".join(_exits()) + ".",
    )
    add = parser.add_argument
    add("--nnodes", metavar="MIN:MAX", help="how many nodes train; those of the Slurm job if left out")
    add(
        "--run", metavar="NAME", help="the run's name, the same after each restart; RUN_NAME or the job's if left out"
    )
    add("--restarts", type=_count, default=policy.restarts, help="failures within the window; %(default)s")
    add(
        "--restart-window", type=_seconds, default=policy.window_seconds, metavar="TIME", help="such as 30m or 6h; 1h"
    )
    add("--first-failures", type=_count, default=policy.first_failures, help="leave a node out after; %(default)s")
    add(
        "--no-progress-restarts",
        type=_count,
        default=policy.no_progress_restarts,
        help="end after so many failures in a row without a new step; 0: never; %(default)s",
    )
    add(
        "--hang-seconds",
        type=_seconds,
        default=GRACE_SECONDS,
        metavar="TIME",
        help="what a step may take more than the longest of the last ones; 0: no limit; 30s",
    )
    add(
        "--drain-seconds",
        type=_seconds,
        default=600,
        metavar="TIME",
        help="to save in, where a drain sets no end; 10m",
    )
    add("--term-seconds", type=_seconds, default=25, metavar="TIME", help="to end in after SIGTERM; 25s")
    add("--wait-for-dataset", action="append", metavar="DIRECTORY", help="wait for a data set first")
    add("--dataset-timeout", default="4h", metavar="TIME", help="how long; %(default)s")
    add("--no-verify", dest="verify", action="store_false", help="start without `cluster-node verify`")
    add("--dry-run", action="store_true", help="print what would be started")
    add("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def _exits() -> Sequence[str]:
    sentences = {
        Exit.USAGE: "the arguments or the environment are wrong, or another start trains the run, or took it over",
        Exit.NO_DATA: "the data set did not come",
        Exit.UNFIT: "the node failed its verification, or its processes failed first too often",
        Exit.BUDGET: "the run failed more often than --restarts allows",
        Exit.AGAIN: "the node is drained or the run was closed, so that the job is to be started again elsewhere",
    }
    return [f"{code.value}: {sentence}" for code, sentence in sentences.items()]


def torchrun_command(
    given: argparse.Namespace, variables: Mapping[str, str], environment: Environment, machine: Machine
) -> list[str]:
    """Return the command that is started.

    Args:
        given: `cluster-run`'s own arguments.
        variables: The environment variables.
        environment: What the cluster says.
        machine: What the node has.

    Raises:
        UsageError: There is no such command, or its nodes have no way to meet.
    """
    command = list(given.command)
    if not command or Path(command[0]).name != "torchrun":
        found = shlex.join(command) or "nothing"
        raise UsageError(f"the command must be torchrun with its script, got {found}: cluster-run torchrun train.py")
    program, *options = command
    added: list[str] = []
    own, nodes = _torchrun_options(options), _nodes(given, variables)
    if nodes is not None and "--nnodes" not in own:
        added += [f"--nnodes={nodes}"]
    if machine.has_gpus and "--numa-binding" in machine.torch_options:
        added += ["--numa-binding=node"]
    if "--shutdown-timeout" in machine.torch_options:
        added += [f"--shutdown-timeout={_SHUTDOWN_SECONDS}"]
    if "--standalone" in own:
        added += [_max_restarts(given)]
    elif "--rdzv-backend" not in own:
        added += _rendezvous(given, variables, environment, machine, _most(nodes or "1"))
    return [program, *added, *options]


def _rendezvous(
    given: argparse.Namespace, variables: Mapping[str, str], environment: Environment, machine: Machine, nodes: int
) -> list[str]:
    table = environment.cluster.runs_table if environment.cluster is not None else None
    named = f"--rdzv-id={given.run or environment.run}@{_attempt(variables)}"
    if table is not None and not machine.obstacle:
        if (given.run or environment.run) == UNNAMED:
            raise UsageError("the run has no name, and would join any other without one: give --run NAME")
        meet = ["--rdzv-backend=cluster-table", f"--rdzv-endpoint={table}", named, f"--local-addr={machine.address}"]
        return [*meet, f"--max-restarts={_ENDLESS}"]
    if nodes == 1:
        return ["--standalone", _max_restarts(given)]
    obstacle = machine.obstacle or (f"{environment.node} knows no table of runs: set TRAINING_CLUSTER_RUNS_TABLE")
    if "PET_MASTER_ADDR" in variables:
        _say(f"the nodes meet as Kubeflow Trainer says, on one whose loss ends the job: {obstacle}")
        return []
    host, is_host = _first_node(variables, machine)
    if not host:
        raise UsageError(f"{nodes} nodes have no place to meet: {obstacle}; or give torchrun a --rdzv-backend")
    _say(f"the nodes meet on the job's first one, whose loss ends the job: {obstacle}")
    meet = ["--rdzv-backend=c10d", named, f"--rdzv-endpoint={host}:{_PORT}", f"--rdzv-conf=is_host={int(is_host)}"]
    return [*meet, _max_restarts(given)]


def _max_restarts(given: argparse.Namespace) -> str:
    """Return torchrun's own budget, which knows no window, for nodes that do not meet in the table."""
    return f"--max-restarts={given.restarts}"


def _first_node(variables: Mapping[str, str], machine: Machine) -> tuple[str, bool]:
    """Return the address of the job's first node, and whether this is it; empty: the launcher does not say."""
    if "AWS_BATCH_JOB_NUM_NODES" in variables:
        # Batch tells it to the other nodes only.
        # https://docs.aws.amazon.com/batch/latest/userguide/mnp-env-vars.html
        main = variables.get("AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS")
        return main or machine.address, not main
    return variables.get("SLURM_LAUNCH_NODE_IPADDR", ""), variables.get("SLURM_NODEID") == "0"


def _attempt(variables: Mapping[str, str]) -> str:
    """Return the name of this start of the run, the same on all nodes; empty where the table counts them."""
    job = batch_job(variables)
    if job:
        return f"{job}-{variables.get('AWS_BATCH_JOB_ATTEMPT', '1')}"
    if not variables.get("SLURM_JOB_ID"):
        return variables.get("TRAINING_CLUSTER_ATTEMPT", "")
    # https://slurm.schedmd.com/srun.html#SECTION_OUTPUT-ENVIRONMENT-VARIABLES
    parts = (variables.get(name) or "0" for name in ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"))
    return "-".join(parts)


def _variables(given: argparse.Namespace, environment: Environment, variables: Mapping[str, str]) -> dict[str, str]:
    policy = {
        name: str(getattr(given, argument))
        for (name, _), argument in zip(
            POLICY_VARIABLES.values(),
            ("restarts", "restart_window", "first_failures", "no_progress_restarts"),
            strict=True,
        )
    }
    keeps = any(name in variables for name in ("SLURM_JOB_ID", *_COUNTS))
    fixed = {FIXED_SIZE: "1"} if keeps and ":" not in (_nodes(given, variables) or "") else {}
    return {
        "RUN_NAME": given.run or environment.run,
        "TRAINING_CLUSTER_NODE": environment.node,
        **recorder_variables(given.run or environment.run, variables),
        # torch's own default is a name in /tmp that any user can take first, and torch runs what lies there.
        **({} if variables.get(_COMPILED) else {_COMPILED: str(own_folder() / "inductor")}),
        # A store that agents and workers share keeps the keys of the last round: restarted workers wait for ever.
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        GRACE_VARIABLE: str(given.hang_seconds),
        **policy,
        **fixed,
    }


def _nodes(given: argparse.Namespace, variables: Mapping[str, str]) -> str | None:
    """Return how many nodes train: torchrun's own option, else `cluster-run`'s, else what the launcher says."""
    own = _torchrun_options(given.command[1:])
    said = next((variables[name] for name in _COUNTS if variables.get(name)), None)
    # Each node of the job is one by itself, and would wait for the others for ever.
    return own.get("--nnodes") or given.nnodes or ("1" if said and "--standalone" in own else said)


def _torchrun_options(words: Sequence[str]) -> dict[str, str]:
    """Return torchrun's own options with their values: those before the script."""
    found: dict[str, str] = {}
    left = iter(words)
    for word in left:
        if word == "--" or not word.startswith("-"):
            break
        name, equals, value = word.partition("=")
        name = name.replace("_", "-")
        has_value = equals or re.match(r"-\w.", word)  # such as -r3
        if not has_value and name not in _FLAGS:
            value = next(left, "")
        found[name] = value
    return found


def _most(nodes: str) -> int:
    if not re.fullmatch(r"\d+(:\d+)?", nodes):
        raise UsageError(f"--nnodes must be a number of nodes or MIN:MAX, got {nodes!r}")
    return int(nodes.rpartition(":")[2])


def _machine(environment: Environment) -> Machine:
    spec = importlib.util.find_spec("torch")
    package = Path(spec.origin).parent if spec is not None and spec.origin else Path("/nonexistent")
    torch, obstacle = package / "distributed", ""
    untested = untested_torch(package)
    if untested:
        _say(untested)
    if "torchrun.handlers" not in _text(torch / "elastic/rendezvous/registry.py"):
        obstacle = f"this torch takes no rendezvous from another package: use torch {TESTED_SERIES}"
    elif importlib.util.find_spec("boto3") is None:
        obstacle = "pip install boto3 in the environment of torchrun"
    elif environment.cluster is not None and not _has_credentials():
        obstacle = "the job has no AWS credentials: give its pods or containers a role that may use the table of runs"
    return Machine(
        address=_address(), has_gpus=_NVIDIA.exists(), torch_options=_text(torch / "run.py"), obstacle=obstacle
    )


def _has_credentials() -> bool:
    """Return whether AWS's calls can be signed: pods reach no role of their node where it answers one hop only.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-options.html
    """
    from botocore.exceptions import CredentialRetrievalError  # noqa: PLC0415 - boto3 brings it
    from botocore.session import Session  # noqa: PLC0415

    session = Session()
    # A node that is slow to answer must not meet elsewhere than the others.
    session.set_config_variable("metadata_service_timeout", 3)
    session.set_config_variable("metadata_service_num_attempts", 5)
    try:
        return session.get_credentials() is not None
    except CredentialRetrievalError as error:
        # A later start may get them: the agent of a new node may start after its first pod.
        _say(
            f"the pod or container has a role, and gets no credentials of it ({error}): on EKS, look whether the "
            "add-on eks-pod-identity-agent runs on the node"
        )
        sys.exit(1)


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def _address() -> str:
    # Sends nothing: the kernel only says from which address it would. Names of pods do not resolve elsewhere.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("169.254.169.254", 80))
        except OSError:  # there is no network
            return "127.0.0.1"
        return str(probe.getsockname()[0])


def _wait_for(datasets: Sequence[str], timeout: str) -> bool:
    program = shutil.which("wait-for-dataset")
    if program is None:
        raise UsageError("wait-for-dataset is not on the path: this node has no file system of the cluster's")
    return subprocess.run([program, *datasets, "--timeout", timeout], check=False).returncode == 0  # noqa: S603


_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"must be a time such as 90s, 30m or 6h, got {text!r}")
    return float(found[1]) * _UNITS[found[2]]


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a number, got {text!r}")
    return int(text)


def _say(sentence: str) -> None:
    sys.stderr.write(f"cluster-run: {sentence}\n")


if __name__ == "__main__":
    main()
