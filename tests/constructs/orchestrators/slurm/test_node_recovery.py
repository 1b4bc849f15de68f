"""How a Slurm node that was drained takes jobs again by itself, and who hears of one that does not."""

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cdk_training_cluster.nodes.bootstrap.agent import AcceleratorVendor
from cdk_training_cluster.nodes.bootstrap.asset import write_scripts
from cdk_training_cluster.orchestrators.slurm.paths import EPILOG, HEALTH_CHECK, PROLOG
from cluster_contract.node_files import DRAIN, VERIFICATION
from slurm_node import SlurmNode

_REASONS = "var/lib/cdk-training-cluster/slurm-reasons"


@pytest.fixture
def node(tmp_path: Path) -> SlurmNode:
    return SlurmNode(tmp_path)


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
    node: SlurmNode, changes: dict[str, Any], resumed: bool
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
    reasons = node.root / _REASONS
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


def _minutes_pass(node: SlurmNode, minutes: int = 6) -> None:
    for path in (*node.root.glob("run/cdk-training-cluster/slurm-*"), node.root / _REASONS):
        if path.exists():
            os.utime(path, (then := time.time() - minutes * 60, then))


def _resumes(node: SlurmNode) -> int:
    return len([line for line in node.asked if line.endswith("state=resume")])


def _with_reports(node: SlurmNode) -> None:
    node.write("proc/sys/kernel/random/boot_id", "boot-2\n")
    node.write(VERIFICATION[1:], json.dumps(_PASSED))
    (node.root / "opt/cdk-training-cluster/scripts").mkdir()
    write_scripts(node.root / "opt/cdk-training-cluster/scripts", AcceleratorVendor.NVIDIA)
    node.command("aws", 'echo "$*" >>"$ROOT/aws"')
    node.write("dev/console")


def _counted(node: SlurmNode) -> list[str]:
    path = node.root / "aws"
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.parametrize(
    ("reason", "of_job", "step"),
    [
        ("Prolog error", "", "Slurm's prolog"),
        ("Kill task failed", "", "the end of a job"),
        ("Kill task failed", " (JobId=7 StepId=batch)", "the end of a job"),
    ],
)
def test_a_drain_that_slurm_alone_makes_is_taken_back_twice_and_then_counted(
    node: SlurmNode, reason: str, of_job: str, step: str
) -> None:
    """As where slurmd is restarted in a prolog. Nobody else would take it back, and the node is billed."""
    _with_reports(node)
    for drained in range(1, 4):
        node.write("shown", _SHOWN.format(reason + of_job))
        for _ in range(2):
            _minutes_pass(node)
            assert node.slurm_runs(HEALTH_CHECK) == 0
        assert _resumes(node) == min(drained, 2)
        node.write("shown", "NodeName=n1 State=IDLE")
        _minutes_pass(node)
        assert node.slurm_runs(HEALTH_CHECK) == 0
    [counted] = _counted(node)
    assert counted.startswith("cloudwatch put-metric-data --region us-east-1")
    assert "BootstrapFailed" in counted
    sentence = f"Slurm drained the node 3 times for '{reason}': see slurmd's log"
    assert f"bootstrap failed at {step}: {sentence}" in (node.root / "dev/console").read_text()
    # A job that comes all the same is sent elsewhere, with that reason.
    assert node.slurm_runs(PROLOG) != 0
    assert sentence in node.asked[-1]
    for _ in range(3):
        node.write("shown", _SHOWN.format(reason + of_job))
        _minutes_pass(node)
        node.slurm_runs(HEALTH_CHECK)
    assert (_resumes(node), len(_counted(node))) == (2, 1)


_STEP = 'if [[ "$*" == *--full*slurmstepd* ]]; then echo "42 slurmstepd"; else exit 1; fi'
_PROCESS = 'if [[ "$*" == *"--uid 987654" ]]; then echo "43 python"; else exit 1; fi'


@pytest.mark.parametrize(
    ("pgrep", "state", "left"),
    [
        (_STEP, "IDLE", "42 slurmstepd"),
        (_PROCESS, "IDLE", "43 python"),
        (_PROCESS, "ALLOCATED+COMPLETING", "43 python"),
        ("exit 3", "IDLE", "pgrep --full ^slurmstepd: \\[ does not answer pgrep --uid 987654 does not answer"),
        # Of a job that runs.
        (_PROCESS, "MIXED", None),
    ],
)
def test_a_node_is_taken_back_when_the_last_process_of_its_jobs_has_ended_and_an_operator_hears_of_it_until_then(
    node: SlurmNode, pgrep: str, state: str, left: str | None
) -> None:
    _with_reports(node)
    node.jobs_run((PROLOG, 1), (EPILOG, 1))
    node.command("pgrep", pgrep)
    node.write("shown", _SHOWN.format("Kill task failed (JobId=7 StepId=0)").replace("IDLE", state))
    for _ in range(4):
        _minutes_pass(node)
        assert node.slurm_runs(HEALTH_CHECK) == 0
    assert _resumes(node) == 0
    assert len(_counted(node)) == (left is not None)
    said = (node.root / "dev/console").read_text().splitlines()
    assert said == [
        f"cdk-training-cluster: bootstrap failed at the end of a job: Slurm drained the node for 'Kill task failed', "
        f"and processes are left: {each} "
        for each in [left]
        if each
    ]
    node.command("pgrep", "exit 1")
    node.write("shown", _SHOWN.format("Kill task failed (JobId=7 StepId=0)"))
    assert node.slurm_runs(HEALTH_CHECK) == 0
    assert _resumes(node) == 1


@pytest.mark.parametrize(
    ("shown", "breaks"),
    [
        (_SHOWN.format("Prolog error"), lambda node: node.command("stat", "echo tmpfs")),
        (_SHOWN.format("Prolog error").replace("IDLE", "MIXED"), lambda _: None),
        (_SHOWN.format("Prolog error, said an operator"), lambda _: None),
        (_SHOWN.format("Kill task failed, said an operator"), lambda _: None),
        (_SHOWN.format("Kill task failed (again)"), lambda _: None),
        (_SHOWN.format("Kill task failed"), lambda node: node.command("stat", "echo tmpfs")),
        (_SHOWN.format("Prolog error").replace("IDLE+DRAIN", "IDLE"), lambda _: None),
    ],
)
def test_a_node_that_would_fail_its_prolog_again_or_works_is_not_taken_back(
    node: SlurmNode, shown: str, breaks: Callable[[SlurmNode], object]
) -> None:
    breaks(node)
    node.write("shown", shown)
    for _ in range(3):
        _minutes_pass(node)
        node.slurm_runs(HEALTH_CHECK)
    assert _resumes(node) == 0
