"""What the prolog, the epilog and the health check of a Slurm node find, and what they do then."""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cdk_training_cluster.nodes.bootstrap.agent import AcceleratorVendor
from cdk_training_cluster.nodes.bootstrap.asset import write_scripts
from cdk_training_cluster.nodes.bootstrap.node_bootstrap import failure_metric
from cdk_training_cluster.nodes.bootstrap.shell import shell_assignments
from cdk_training_cluster.orchestrators.slurm import node_scripts
from cdk_training_cluster.orchestrators.slurm.node_scripts import NodeFacts, install_script
from cdk_training_cluster.orchestrators.slurm.paths import EPILOG, HEALTH_CHECK, PROLOG
from cluster_contract.node_files import DRAIN, VERIFICATION
from max_seconds import MAX_SECONDS
from verified_node import MODULES, START, nvml

REASONS = "var/lib/cdk-training-cluster/slurm-reasons"
_SCONTROL = """#!/bin/bash
printf '%s\\n' "$SLURM_CONF $*" >>"$ROOT/scontrol"
if [[ $* == *show* ]]; then cat "$ROOT/shown"; fi
"""


# Nobody on the machine of the test.
_USER = 987_654


class Node:
    """A node in a directory, with a GPU, an EFA device and a file system."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.user, self.job = _USER, 1
        self.write("sys/class/infiniband/rdma0/ports/1/state", "4: ACTIVE")
        self.command("stat", "echo lustre")
        self.gpus()
        self.command("scontrol", _SCONTROL)
        self.command("pgrep", "exit 1")
        expected = json.dumps({"p5.4xlarge": {"gpus": 1, "gpu": "H100", "efa_devices": 1}})
        settings = {"MOUNT_POINT": "/fsx", "EXPECTED": expected, "REGION": "us-east-1", "METRIC_NAMESPACE": "N"}
        settings |= {"FAILURE_METRIC": failure_metric("llama", "workers")}
        self.write("opt/cdk-training-cluster/settings", shell_assignments(settings))
        self.write("shown", "NodeName=n1 State=IDLE")
        self.facts = NodeFacts(slurm_bin=str(root / "usr/local/bin"))
        self.install()

    def install(self, **changes: Any) -> subprocess.CompletedProcess[str]:
        return self.run("-c", install_script(replace(self.facts, **changes)))

    def write(self, path: str, text: str = "") -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def command(self, name: str, does: str) -> None:
        self.write(f"usr/local/bin/{name}", does if does.startswith("#!") else f"#!/bin/bash\n{does}\n")
        (self.root / "usr/local/bin" / name).chmod(0o755)

    def gpus(self, state: str = "") -> None:
        start = f"exec /usr/bin/python3 -I -c '{START}' {MODULES}:{nvml()} \"$@\""
        self.command("cluster-node", f"export LD_LIBRARY_PATH={nvml()} NVML_GPUS=1 {state}\n{start}")

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        # The scripts that Slurm runs set a search path themselves.
        environment = {
            "ROOT": str(self.root),
            "SLURMD_NODENAME": "n1",
            "SLURM_JOB_UID": str(self.user),
            "SLURM_JOB_ID": str(self.job),
            "PATH": f"{self.root}/usr/local/bin:/usr/bin:/bin",
        }
        return subprocess.run(
            ["/bin/bash", *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=MAX_SECONDS,
            check=False,
        )

    def slurm_runs(self, script: str) -> int:
        assert os.access(f"{self.root}{script}", os.X_OK)
        return self.run(f"{self.root}{script}").returncode

    @property
    def asked(self) -> list[str]:
        path = self.root / "scontrol"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def _failed_set_up(node: Node) -> None:
    report = {"state": "failed", "step": "mount", "message": "no answer"}
    node.write("var/lib/cdk-training-cluster/bootstrap.json", json.dumps(report))


ALL, AFTER, UNDER_A_JOB = {PROLOG, EPILOG, HEALTH_CHECK}, {PROLOG, EPILOG}, {PROLOG}
FAULTS: list[tuple[Callable[[Node], object], set[str], str]] = [
    (lambda node: node.write(f"{DRAIN}/xid"[1:], "Xid 79 of GPU 3\nmore"), ALL, "Xid 79 of GPU 3"),
    (lambda node: node.write(f"{DRAIN}/by-hand"[1:]), ALL, "by-hand"),
    (
        lambda node: shutil.rmtree(node.root / "sys/class/infiniband/rdma0"),
        ALL,
        "the node has 0 EFA devices, and its launch template asks for 1",
    ),
    (lambda node: node.gpus("NVML_DEAD=1"), AFTER, "NVIDIA's driver does not answer: Driver Not Loaded"),
    (lambda node: node.command("stat", "echo tmpfs"), UNDER_A_JOB, "/fsx is tmpfs, not lustre: the file system is"),
    (_failed_set_up, UNDER_A_JOB, "the set-up of the node failed at mount: no answer"),
    (
        lambda node: node.command("cluster-node", "exit 1"),
        UNDER_A_JOB,
        "cluster-node verify ended with exit status 1 and said nothing",
    ),
]


@pytest.mark.parametrize(("breaks", "found_by", "reason"), FAULTS)
def test_a_node_with_a_fault_is_drained_with_one_sentence(
    node: Node, breaks: Callable[[Node], object], found_by: set[str], reason: str
) -> None:
    breaks(node)
    for script in (PROLOG, EPILOG, HEALTH_CHECK):
        before = len(node.asked)
        assert (node.slurm_runs(script) != 0) == (script in found_by)
        asked = node.asked[before:]
        if script in found_by:
            assert asked[-1].startswith(f"/run/slurm/conf/slurm.conf update nodename=n1 state=drain reason={reason}")
        else:
            assert asked == []


def test_a_node_without_a_fault_changes_nothing_and_does_not_ask_the_controller_each_minute(node: Node) -> None:
    assert [node.slurm_runs(script) for script in (PROLOG, EPILOG)] == [0, 0]
    assert node.asked == []
    for _ in range(3):
        assert node.slurm_runs(HEALTH_CHECK) == 0
    assert node.asked == ["/run/slurm/conf/slurm.conf --oneliner show node n1"]


def test_a_node_that_is_drained_keeps_its_reason(node: Node) -> None:
    node.write("shown", "NodeName=n1 State=IDLE+DRAIN Reason=rack moves")
    node.write(f"{DRAIN}/xid"[1:], "Xid 79")
    assert node.slurm_runs(HEALTH_CHECK) != 0
    assert not any("update" in line for line in node.asked)


_XID = "Xid 79 of 0000:05:00: The GPU has fallen off the bus (reboot)"
_SHOWN = "NodeName=n1 State=IDLE+DRAIN Reason={} [root@2026-11-23T08:00:00] Comment=(null)"


_PASSED = {"passed": True, "boot_id": "boot-2"}


@pytest.mark.parametrize(
    ("changes", "resumed"),
    [
        ({}, True),
        ({"verified": None}, True),
        ({"shown": _SHOWN.format(_XID).replace("IDLE", "DOWN")}, True),
        ({"verified": {**_PASSED, "passed": False}}, False),
        ({"verified": {**_PASSED, "boot_id": "boot-1"}}, False),
        ({"minutes": 4}, False),
        ({"shown": _SHOWN.format(_XID).replace("IDLE", "MIXED")}, False),
        ({"shown": _SHOWN.format("rack moves")}, False),
        ({"shown": "NodeName=n1 State=IDLE"}, False),
        ({"drained_by": "operator"}, False),
    ],
)
def test_a_node_that_drained_itself_takes_jobs_again_when_it_has_all_that_a_job_needs(
    node: Node, changes: dict[str, Any], resumed: bool
) -> None:
    usual = {"drained_by": "xid-79", "verified": _PASSED, "shown": _SHOWN.format(_XID), "minutes": 6}
    drained_by, verified, shown, minutes = {**usual, **changes}.values()
    node.write(f"{DRAIN}/{drained_by}"[1:], _XID)
    assert node.slurm_runs(HEALTH_CHECK) != 0
    shutil.rmtree(node.root / DRAIN[1:])
    node.write("proc/sys/kernel/random/boot_id", "boot-2\n")
    if verified:
        node.write(VERIFICATION[1:], json.dumps(verified))
    node.write("shown", shown)
    reasons = node.root / REASONS
    if reasons.exists():
        os.utime(reasons, (then := time.time() - minutes * 60, then))
    gpu = node.root / "sys/class/infiniband/rdma0"
    gpu.rename(node.root / "gone")
    node.slurm_runs(HEALTH_CHECK)
    assert not any("resume" in line for line in node.asked)
    (node.root / "gone").rename(gpu)
    assert [node.slurm_runs(HEALTH_CHECK) for _ in range(2)] == [0, 0]
    asked = [line for line in node.asked if line.endswith("state=resume")]
    assert asked == ["/run/slurm/conf/slurm.conf update nodename=n1 state=resume"] * resumed


def _minutes_pass(node: Node, minutes: int = 6) -> None:
    for path in (*node.root.glob("run/cdk-training-cluster/slurm-*"), node.root / REASONS):
        if path.exists():
            os.utime(path, (then := time.time() - minutes * 60, then))


def _resumes(node: Node) -> int:
    return len([line for line in node.asked if line.endswith("state=resume")])


def test_a_drain_for_a_prolog_of_which_slurm_heard_nothing_is_taken_back_twice_and_then_counted(node: Node) -> None:
    """As where slurmd is restarted just then. Nobody else would take it back, and the node is billed."""
    node.write("proc/sys/kernel/random/boot_id", "boot-2\n")
    node.write(VERIFICATION[1:], json.dumps(_PASSED))
    (node.root / "opt/cdk-training-cluster/scripts").mkdir()
    write_scripts(node.root / "opt/cdk-training-cluster/scripts", AcceleratorVendor.NVIDIA)
    node.command("aws", 'echo "$*" >>"$ROOT/aws"')
    node.write("dev/console")
    for drained in range(1, 4):
        node.write("shown", _SHOWN.format("Prolog error"))
        for _ in range(2):
            _minutes_pass(node)
            assert node.slurm_runs(HEALTH_CHECK) == 0
        assert _resumes(node) == min(drained, 2)
        node.write("shown", "NodeName=n1 State=IDLE")
        _minutes_pass(node)
        assert node.slurm_runs(HEALTH_CHECK) == 0
    [counted] = (node.root / "aws").read_text().splitlines()
    assert counted.startswith("cloudwatch put-metric-data --region us-east-1")
    assert "BootstrapFailed" in counted
    sentence = "Slurm drained the node 3 times for 'Prolog error': see slurmd's log"
    assert f"bootstrap failed at Slurm's prolog: {sentence}" in (node.root / "dev/console").read_text()
    # A job that comes all the same is sent elsewhere, with that reason.
    assert node.slurm_runs(PROLOG) != 0
    assert sentence in node.asked[-1]
    for _ in range(3):
        node.write("shown", _SHOWN.format("Prolog error"))
        _minutes_pass(node)
        node.slurm_runs(HEALTH_CHECK)
    assert (_resumes(node), len((node.root / "aws").read_text().splitlines())) == (2, 1)


@pytest.mark.parametrize(
    ("shown", "breaks"),
    [
        (_SHOWN.format("Prolog error"), lambda node: node.command("stat", "echo tmpfs")),
        (_SHOWN.format("Prolog error").replace("IDLE", "MIXED"), lambda _: None),
        (_SHOWN.format("Prolog error, said an operator"), lambda _: None),
        (_SHOWN.format("Prolog error").replace("IDLE+DRAIN", "IDLE"), lambda _: None),
    ],
)
def test_a_node_that_would_fail_its_prolog_again_or_works_is_not_taken_back(
    node: Node, shown: str, breaks: Callable[[Node], object]
) -> None:
    breaks(node)
    node.write("shown", shown)
    for _ in range(3):
        _minutes_pass(node)
        node.slurm_runs(HEALTH_CHECK)
    assert _resumes(node) == 0


def test_a_node_is_refused_where_the_controller_does_not_answer(node: Node) -> None:
    node.command("scontrol", "exit 1")
    node.gpus("NVML_DEAD=1")
    assert node.slurm_runs(PROLOG) != 0


_LEFT = ("tmp/a/b", "var/tmp/c", "dev/shm/torch_1", "tmp/cdk-training-cluster-987654/r1/flight-recorder-rank-0")
_OTHERS = ("tmp/cdk-training-cluster-987655/r1/x", "tmp/of-root", "dev/shm/of-another", "tmp/a/of-another")


def _leave_files(node: Node) -> None:
    for path in (*_LEFT, *_OTHERS):
        node.write(path)
        os.chown(node.root / path, 0 if "root" in path else _USER + (path in _OTHERS), 0)
    for path in ("tmp/a", "tmp/cdk-training-cluster-987654"):
        os.chown(node.root / path, _USER, 0)
    (node.root / "tmp/link").symlink_to(node.root / "home")
    node.write("home/kept")
    for path in ("tmp/link", "home/kept"):
        os.chown(node.root / path, _USER, 0, follow_symlinks=False)


def _files(node: Node) -> set[str]:
    return {path for path in (*_LEFT, *_OTHERS, "tmp/link", "home/kept") if os.path.lexists(node.root / path)}


def _jobs_run(node: Node, *script_of_job: tuple[str, int]) -> None:
    for script, node.job in script_of_job:
        assert node.slurm_runs(script) == 0


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files to users")
def test_the_files_of_a_user_go_with_the_last_job_of_the_user_on_the_node(node: Node) -> None:
    _leave_files(node)
    everything = _files(node)
    _jobs_run(node, (PROLOG, 1), (PROLOG, 2), (EPILOG, 2), (PROLOG, 3), (EPILOG, 1))
    assert _files(node) == everything
    _jobs_run(node, (EPILOG, 3))
    # What a hang left for its user stays, and all that is not the user's or not in these places.
    assert _files(node) == {*_OTHERS, _LEFT[-1], "home/kept"}


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files to users")
@pytest.mark.parametrize("stays", ["a process", "an unknown process", "a service", "no prolog"])
def test_files_stay_while_their_user_is_on_the_node_and_those_of_services_always(node: Node, stays: str) -> None:
    _leave_files(node)
    everything = _files(node)
    if stays == "a process":
        node.command("pgrep", '[[ "$*" == "--uid 987654" ]]')
    if stays == "an unknown process":
        node.command("pgrep", "exit 3")
    if stays == "a service":
        node.user = 0
    if stays != "no prolog":
        _jobs_run(node, (PROLOG, 1))
    _jobs_run(node, (EPILOG, 1))
    assert _files(node) == everything


def test_no_user_holds_up_the_jobs_of_another_with_a_lock(node: Node) -> None:
    """Whoever may open a file for reading may lock it."""
    _jobs_run(node, (PROLOG, 1), (EPILOG, 1))
    [lock] = node.root.rglob(f"{_USER}.lock")
    assert lock.parent.stat().st_mode & 0o077 == 0


def test_gpus_are_partitioned_before_slurm_looks_for_them_and_again_at_each_boot(node: Node) -> None:
    node.write("etc/systemd/system/others.service")
    node.command("systemctl", 'echo "$*" >>"$ROOT/systemctl"')
    node.command("nvidia-smi", 'echo "$*" >>"$ROOT/smi"; if [[ $* == *mode.current* ]]; then echo Enabled; fi')
    assert node.install(mig_profiles=("3g.40gb", "1g.10gb")).returncode == 0
    made = (node.root / "smi").read_text()
    assert made.splitlines()[-1] == "mig --create-gpu-instance 3g.40gb,1g.10gb --default-compute-instance"
    assert "enable cdk-training-cluster-mig.service" in (node.root / "systemctl").read_text()
    unit = (node.root / "etc/systemd/system/cdk-training-cluster-mig.service").read_text()
    assert "Before=slurmd.service cdk-training-cluster-boot.service" in unit
    [script] = re.findall("ExecStart=/bin/bash (.*)", unit)
    (node.root / "smi").unlink()
    assert node.run(f"{node.root}{script}").returncode == 0
    assert (node.root / "smi").read_text() == made
    node.command("nvidia-smi", "echo Disabled")
    refused = node.install(mig_profiles=("3g.40gb",))
    assert (refused.returncode, "not in MIG mode" in refused.stderr) == (1, True)


def test_a_node_whose_jobs_share_gpus_runs_the_server_of_mps(node: Node) -> None:
    node.write("etc/systemd/system/others.service")
    node.command("systemctl", 'echo "$*" >>"$ROOT/systemctl"')
    assert node.install(mps=True).returncode == 0
    assert "enable --now cdk-training-cluster-mps.service" in (node.root / "systemctl").read_text()
    assert (
        "nvidia-cuda-mps-control -d"
        in (node.root / "etc/systemd/system/cdk-training-cluster-mps.service").read_text()
    )


def test_nodes_that_start_together_share_complete_homes(node: Node) -> None:
    node.write("etc/fstab")
    for number in range(40):
        node.write(f"home/ubuntu/{number}/.profile", "image")
    node.write("home/alice/.profile", "image")
    node.write("fsx/home/alice/work", "kept")
    node.command("mountpoint", "exit 1")
    node.command("mount", 'echo "$*" >>"$ROOT/mounted"')
    script = Path(node_scripts.__file__).parent / "scripts/home.sh"
    with ThreadPoolExecutor() as pool:
        ended = list(pool.map(lambda _: node.run(str(script)), range(8)))
    assert [(each.returncode, each.stderr) for each in ended] == [(0, "")] * 8
    homes = node.root / "fsx/home"
    assert len(list(homes.glob("ubuntu/*/.profile"))) == 40
    assert sorted(path.name for path in homes.iterdir()) == ["alice", "ubuntu"]
    assert [path.name for path in (homes / "alice").iterdir()] == ["work"]
    assert len((node.root / "mounted").read_text().splitlines()) == 8
