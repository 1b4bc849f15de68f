"""The command lines that `cluster-run` starts, under Slurm, on EKS, on plain nodes and without a cluster."""

import shlex
import stat
import sys
from pathlib import Path

import pytest

from cluster_job import launch
from cluster_job.environment import read_environment
from cluster_job.exits import Exit
from cluster_job.flight_recorder import own_folder
from cluster_job.membership import FIXED_SIZE

CLUSTER = {
    "TRAINING_CLUSTER_CLUSTER": "pod",
    "TRAINING_CLUSTER_NODE_GROUP": "workers",
    "TRAINING_CLUSTER_REGION": "eu-north-1",
    "TRAINING_CLUSTER_RUNS_TABLE": "runs",
}
SLURM = {"SLURM_JOB_ID": "42", "SLURM_JOB_NAME": "train", "SLURM_NNODES": "4", "SLURM_STEP_ID": "0"}
BATCH = {
    "AWS_BATCH_JOB_ID": "8f1c#0",
    "AWS_BATCH_JOB_ATTEMPT": "2",
    "AWS_BATCH_JOB_NODE_INDEX": "0",
    "AWS_BATCH_JOB_NUM_NODES": "2",
}
GPU_NODE = launch.Machine(address="10.0.0.7", has_gpus=True, torch_options="--numa-binding --shutdown-timeout")
OLD_CPU_NODE = launch.Machine(address="10.0.0.7", has_gpus=False, torch_options="--rdzv-id")
MEET = "--rdzv-backend=cluster-table --rdzv-endpoint=runs --rdzv-id={} --local-addr=10.0.0.7 --max-restarts=1000000"
FIRST = "--rdzv-backend=c10d --rdzv-id={} --rdzv-endpoint={}:29500 --rdzv-conf=is_host={} --max-restarts=5"
NEW = "--numa-binding=node --shutdown-timeout=10"


def command(line: str, variables: dict[str, str], machine: launch.Machine = GPU_NODE) -> str:
    given = launch._parser().parse_args(shlex.split(line))
    environment = read_environment(variables, job_file=Path("/nonexistent"))
    return shlex.join(launch.torchrun_command(given, variables, environment, machine))


@pytest.mark.parametrize(
    ("line", "variables", "started"),
    [
        # Slurm: its nodes, and a new attempt with each requeue.
        ("torchrun train.py -x", CLUSTER | SLURM, f"--nnodes=4 {NEW} {MEET.format('train-42@42-0-0')} train.py -x"),
        (
            "torchrun --nproc-per-node 8 train.py",
            CLUSTER | SLURM | {"SLURM_RESTART_COUNT": "2", "RUN_NAME": "llama"},
            f"--nnodes=4 {NEW} {MEET.format('llama@42-0-2')} --nproc-per-node 8 train.py",
        ),
        # EKS: what Kubeflow Trainer says of the nodes.
        (
            "--run llama torchrun train.py",
            CLUSTER | {"PET_NNODES": "2", "JOB_COMPLETION_INDEX": "1", "TRAINING_CLUSTER_ATTEMPT": "uid-0"},
            f"--nnodes=2 {NEW} {MEET.format('llama@uid-0')} train.py",
        ),
        ("torchrun train.py", {"PET_NNODES": "2", "PET_MASTER_ADDR": "node-0-0"}, f"--nnodes=2 {NEW} train.py"),
        # AWS Batch: its nodes, and a new attempt with each retry.
        ("torchrun train.py", CLUSTER | BATCH, f"--nnodes=2 {NEW} {MEET.format('8f1c@8f1c-2')} train.py"),
        (
            "torchrun train.py",
            BATCH,
            f"--nnodes=2 {NEW} {FIRST.format('8f1c@8f1c-2', '10.0.0.7', 1)} train.py",
        ),
        (
            "torchrun train.py",
            BATCH | {"AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS": "10.0.0.1"},
            f"--nnodes=2 {NEW} {FIRST.format('8f1c@8f1c-2', '10.0.0.1', 0)} train.py",
        ),
        # Plain nodes: the user says how many.
        (
            "--nnodes 3:4 --run llama torchrun train.py",
            CLUSTER,
            f"--nnodes=3:4 {NEW} {MEET.format('llama@')} train.py",
        ),
        (
            "torchrun --nnodes=2 train.py",
            CLUSTER | SLURM,
            f"{NEW} {MEET.format('train-42@42-0-0')} --nnodes=2 train.py",
        ),
        # What the user gives torchrun stays as it is.
        ("torchrun --standalone train.py", CLUSTER, f"{NEW} --max-restarts=5 --standalone train.py"),
        ("torchrun --standalone train.py", SLURM, f"--nnodes=1 {NEW} --max-restarts=5 --standalone train.py"),
        ("torchrun --standalone --max-restarts 0 a", {}, f"{NEW} --max-restarts=5 --standalone --max-restarts 0 a"),
        (
            "--nnodes 2 torchrun --rdzv-backend=c10d --rdzv-endpoint h:1 train.py",
            {},
            f"--nnodes=2 {NEW} --rdzv-backend=c10d --rdzv-endpoint h:1 train.py",
        ),
        # The script's own arguments are not torchrun's.
        *(
            (
                f"--nnodes 4 --run llama torchrun {own} --nnodes 2 --standalone",
                CLUSTER,
                f"--nnodes=4 {NEW} {MEET.format('llama@')} {own} --nnodes 2 --standalone",
            )
            for own in (
                "train.py",
                "--nproc_per_node 8 -r3 -t 3 train.py",
                "--virtual_local_rank -m train",
                "--role=a -- train.py",
            )
        ),
        # No cluster: one machine needs no table.
        ("--restarts 2 torchrun train.py", {}, f"{NEW} --standalone --max-restarts=2 train.py"),
    ],
)
def test_the_command_has_what_survives_a_lost_node(line: str, variables: dict[str, str], started: str) -> None:
    assert command(line, variables) == f"torchrun {started}"


def test_under_slurm_nodes_that_cannot_meet_in_the_table_meet_on_the_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    variables = SLURM | {"SLURM_LAUNCH_NODE_IPADDR": "10.0.0.1", "SLURM_NODEID": "0"}
    meet = FIRST.format("train-42@42-0-0", "10.0.0.1", 1)
    assert command("torchrun train.py", variables) == f"torchrun --nnodes=4 {NEW} {meet} train.py"
    poor = launch.Machine(address="", has_gpus=False, torch_options="", obstacle="pip install boto3")
    found = command("torchrun train.py", CLUSTER | variables | {"SLURM_NODEID": "1"}, poor)
    assert "--rdzv-conf=is_host=0" in found
    assert "whose loss ends the job: pip install boto3\n" in capsys.readouterr().err


def test_a_pod_that_reaches_no_role_has_no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    assert not launch._has_credentials()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    assert launch._has_credentials()


def test_a_role_of_which_there_are_no_credentials_ends_the_start_and_says_where_to_look(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in (
        "AWS_PROFILE",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    ):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "token").write_text("token")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:1/v1/credentials")
    with pytest.raises(SystemExit, match=r"^1$"):
        launch._has_credentials()
    assert "look whether the add-on eks-pod-identity-agent runs on the node" in capsys.readouterr().err


def test_an_older_torchrun_and_a_node_without_gpus_get_only_what_they_know() -> None:
    assert command("torchrun train.py", {}, OLD_CPU_NODE) == "torchrun --standalone --max-restarts=5 train.py"


@pytest.mark.parametrize(
    ("line", "variables", "message"),
    [
        (
            "python train.py",
            {},
            "the command must be torchrun with its script, got python train.py: cluster-run torc",
        ),
        ("", {}, "the command must be torchrun with its script, got nothing"),
        (
            "torchrun train.py",
            SLURM,
            "4 nodes have no place to meet: .* knows no table of runs: set TRAINING_CLUSTER_RUNS_T",
        ),
        ("torchrun train.py", CLUSTER, "the run has no name, and would join any other without one: give --run NAME"),
        ("--nnodes two torchrun train.py", CLUSTER, "--nnodes must be a number of nodes or MIN:MAX, got 'two'"),
    ],
)
def test_what_cannot_start_is_refused_in_one_sentence(line: str, variables: dict[str, str], message: str) -> None:
    with pytest.raises(launch.UsageError, match=message):
        command(line, variables)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the whole path, with a torchrun that says what it got and ends as the test asks."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in (*CLUSTER, "RUN_NAME"):
        monkeypatch.delenv(name, raising=False)
    program(tmp_path / "torchrun", "print(sys.argv[-1], os.environ['RUN_NAME'], flush=True); sys.exit(7)")
    return tmp_path


def program(file: Path, source: str) -> None:
    file.write_text(f"#!{sys.executable}\nimport os, sys\n{source}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["cluster-run", *arguments])
    with pytest.raises(SystemExit) as ended:
        launch.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_it_ends_as_torchrun_ends(
    node: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    program(node / "cluster-node", "sys.exit(sys.argv[1:] != ['verify', '--at', 'job-start'])")
    program(node / "wait-for-dataset", "sys.exit(sys.argv[1:] != ['/fsx/data', '--timeout', '4h'])")
    arguments = ("--run", "llama", "--wait-for-dataset", "/fsx/data", "torchrun", "train.py")
    assert run(monkeypatch, *arguments) == 7
    assert capfd.readouterr().out == "train.py llama\n"
    assert run(monkeypatch, "--dry-run", "--restarts", "1000000", *arguments) == 0
    started = capfd.readouterr().out
    assert "RUN_NAME=llama" in started
    assert "TRAINING_CLUSTER_RESTARTS=1000000 " in started


@pytest.mark.parametrize(
    ("fails", "arguments", "code", "sentence"),
    [
        ("cluster-node", (), Exit.UNFIT, "failed its verification: see `cluster-node verify --at job-start`"),
        ("wait-for-dataset", ("--wait-for-dataset", "/fsx/data"), Exit.NO_DATA, ""),
        ("", ("--wait-for-dataset", "/fsx/data"), Exit.USAGE, "wait-for-dataset is not on the path"),
        ("torchrun", ("--no-verify",), 1, ""),
    ],
)
def test_a_node_that_is_not_ready_starts_nothing(
    node: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    *,
    fails: str,
    arguments: tuple[str, ...],
    code: int,
    sentence: str,
) -> None:
    if fails:
        program(node / fails, "sys.exit(1)")
    assert run(monkeypatch, *arguments, "torchrun", "train.py") == code
    found = capfd.readouterr()
    assert sentence in found.err
    assert found.out == ""


@pytest.mark.parametrize(
    ("line", "variables", "is_fixed"),
    [
        ("torchrun train.py --nnodes 2:4", SLURM, True),
        ("torchrun --nnodes 2:4 train.py", SLURM, False),
        ("--nnodes 2:4 torchrun train.py", SLURM, False),
        ("--nnodes 4 torchrun train.py", CLUSTER, False),
        ("torchrun train.py", {"PET_NNODES": "2"}, True),
    ],
)
def test_a_job_that_needs_all_of_its_nodes_waits_for_no_others(
    line: str, variables: dict[str, str], is_fixed: bool
) -> None:
    given = launch._parser().parse_args(shlex.split(line))
    found = launch._variables(given, read_environment(variables, job_file=Path("/nonexistent")), variables)
    assert (FIXED_SIZE in found) is is_fixed


def test_without_torchrun_it_says_so(
    node: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (node / "torchrun").unlink()
    assert run(monkeypatch, "torchrun", "train.py") == Exit.USAGE
    assert capfd.readouterr().err == (
        "cluster-run: torchrun is not on the path: activate the environment that has torch\n"
    )


@pytest.mark.parametrize(
    ("own", "added"),
    [
        ({}, {"TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_DUMP_ON_TIMEOUT", "TORCH_FR_DUMP_TEMP_FILE"}),
        ({"TORCH_NCCL_TRACE_BUFFER_SIZE": "0"}, {"TORCH_NCCL_DUMP_ON_TIMEOUT", "TORCH_FR_DUMP_TEMP_FILE"}),
        (
            {"TORCH_NCCL_DUMP_ON_TIMEOUT": "0", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": "/fsx/fr-"},
            {"TORCH_FR_BUFFER_SIZE"},
        ),
        ({"TORCH_FR_BUFFER_SIZE": "9", "TORCH_FR_DUMP_TEMP_FILE": "/fsx/fr-"}, {"TORCH_NCCL_DUMP_ON_TIMEOUT"}),
    ],
)
def test_the_flight_recorder_writes_at_a_timeout_unless_the_user_has_set_it(
    own: dict[str, str], added: set[str]
) -> None:
    given = launch._parser().parse_args(["--run", "llama", "torchrun", "train.py"])
    found = launch._variables(given, read_environment(own, job_file=Path("/nonexistent")), own)
    assert {name for name in found if name.startswith(("TORCH_FR", "TORCH_NCCL"))} == added
    assert found.get("TORCH_FR_DUMP_TEMP_FILE", "/llama/flight-recorder-rank-").endswith(
        "/llama/flight-recorder-rank-"
    )


@pytest.mark.parametrize(
    ("own", "folder"), [({}, str(own_folder() / "inductor")), ({"TORCHINDUCTOR_CACHE_DIR": "/fsx/cache"}, None)]
)
def test_torch_loads_compiled_code_from_no_folder_that_another_user_can_make_first(
    own: dict[str, str], folder: str | None
) -> None:
    given = launch._parser().parse_args(["--run", "llama", "torchrun", "train.py"])
    found = launch._variables(given, read_environment(own, job_file=Path("/nonexistent")), own)
    assert found.get("TORCHINDUCTOR_CACHE_DIR") == folder
