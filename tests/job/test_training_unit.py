"""The unit that trains on plain node groups: its exit codes, drain and times are those of `cluster-run`."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from cluster_contract import node_files
from cluster_job import launch, lease, membership
from cluster_job.drain import DRAIN_FOLDER
from cluster_job.exits import Exit

PROJECT = Path(__file__).parents[2]
UNIT = (PROJECT / "examples/jobs/training.service").read_text(encoding="utf-8")
BOOT = "cdk-training-cluster-boot.service"
SETTINGS = dict(re.findall(r"^(\w+)=(.*)$", UNIT.replace("\\\n", " "), re.MULTILINE))
GIVEN = launch._parser().parse_args(shlex.split(SETTINGS["ExecStart"])[1:])
ENDED = {0, Exit.BUDGET}


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("RestartPreventExitStatus", " ".join(str(code.value) for code in Exit if code is not Exit.AGAIN)),
        ("Restart", "on-failure"),
        ("KillMode", "mixed"),
        ("TimeoutStartSec", "infinity"),
        ("After", f"network-online.target remote-fs.target {BOOT}"),
        ("WantedBy", BOOT),
    ],
)
def test_it_says(setting: str, value: str) -> None:
    assert SETTINGS[setting] == value


def test_its_times_go_with_those_of_a_run() -> None:
    assert float(SETTINGS["RestartSec"]) > max(lease.LEASE_SECONDS, membership._CLOSED_SECONDS)
    assert float(SETTINGS["TimeoutStopSec"]) >= GIVEN.term_seconds + launch._SHUTDOWN_SECONDS


def test_the_node_has_what_it_names() -> None:
    scripts = PROJECT / "constructs/cdk_training_cluster/nodes/bootstrap/scripts"
    assert f"systemctl enable {BOOT}" in (scripts / "nvme.sh").read_text(encoding="utf-8")
    assert "/usr/local/bin/cluster-run" in (scripts / "commands.sh").read_text(encoding="utf-8")
    assert {str(DRAIN_FOLDER), node_files.SET_UP} <= set(re.findall(r"/\w+[\w./-]+\w", SETTINGS["ExecCondition"]))


def shell(setting: str, folder: Path, **variables: str) -> int:
    """Run the shell of a setting on a node in a folder; 9: it waits."""
    (*_, line) = shlex.split(SETTINGS[setting])
    assert not re.search(r"\$\{|%", line)  # systemd would replace them
    for path in (str(DRAIN_FOLDER), node_files.SET_UP):
        line = line.replace(path, str(folder / Path(path).name))
    line = line.replace("/fsx/job", str(folder / "job"))
    line = line.replace("sleep 10", "exit 9")
    environment = {"PATH": os.environ["PATH"], "RUN_NAME": "llama", **variables}
    return subprocess.run(["/bin/sh", "-c", line], env=environment, check=False).returncode


@pytest.mark.parametrize(
    ("state", "files", "status"),
    [
        ("ready", [], 0),
        ("ready", ["drain/"], 0),
        ("ready", ["drain/", "drain/.xid-79"], 0),  # is being written
        ("ready", ["drain/", "drain/xid-79"], 9),
        ("running", [], 9),
        ("failed", [], 9),
        (None, [], 9),
        ("ready", ["job/llama.ended"], 1),
        ("ready", ["job/other.ended"], 0),
    ],
)
def test_it_starts_on_a_node_that_is_verified_and_not_drained(
    state: str | None, files: list[str], status: int, tmp_path: Path
) -> None:
    (tmp_path / "job").mkdir()
    for name in files:
        path = tmp_path / name
        path.mkdir() if name.endswith("/") else path.touch()
    if state is not None:
        said = f'{{"state": "{state}", "step": "", "message": ""}}\n'
        (tmp_path / Path(node_files.SET_UP).name).write_text(said)
    assert shell("ExecCondition", tmp_path) == status


@pytest.mark.parametrize("status", ["", "TERM", 0, 1, 2, *Exit])
def test_a_run_that_has_ended_is_not_started_on_a_new_node(status: str | int, tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    shell("ExecStopPost", tmp_path, EXIT_STATUS=str(status))
    assert [path.name for path in (tmp_path / "job").iterdir()] == (["llama.ended"] if status in ENDED else [])


def test_a_run_is_not_started_while_the_file_system_that_says_whether_it_ended_is_not_there(tmp_path: Path) -> None:
    (tmp_path / Path(node_files.SET_UP).name).write_text('{"state": "ready"}\n')
    assert shell("ExecCondition", tmp_path) == 1


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_takes_it(tmp_path: Path) -> None:
    unit = tmp_path / "training.service"
    unit.write_text(UNIT.replace("/usr/local/bin/cluster-run", "/bin/true"))
    said = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False
    )
    assert "training.service" not in said.stderr


@pytest.mark.parametrize("has_unit", [True, False])
def test_a_node_that_is_set_up_does_not_wait_for_it(*, has_unit: bool, tmp_path: Path) -> None:
    job, commands, calls = tmp_path / "fsx/job", tmp_path / "bin", tmp_path / "calls"
    job.mkdir(parents=True)
    commands.mkdir()
    if has_unit:
        (job / "training.service").write_text(UNIT)
    for name in ("id", "useradd", "install", "dnf", "systemctl"):
        status = int(name == "id")
        (commands / name).write_text(f'#!/bin/sh\necho "{name} $*" >>{calls}\nexit {status}\n')
        (commands / name).chmod(0o755)
    environment = {"PATH": f"{commands}:{os.environ['PATH']}", "TRAINING_FILE_SYSTEM": str(tmp_path / "fsx")}
    script = PROJECT / "examples/jobs/training.sh"
    subprocess.run(["bash", str(script)], env=environment, check=True, capture_output=True)
    done = calls.read_text().splitlines() if calls.exists() else []
    made = [line.split()[-1] for line in done if line.startswith("useradd")]
    assert made == ([SETTINGS["User"]] if has_unit else [])
    assert done[-1:] == (["systemctl start --no-block training.service"] if has_unit else [])
