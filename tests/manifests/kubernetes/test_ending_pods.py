"""What Kubernetes does when a pod of a training ends, and how a pod waits on a node that is drained."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cluster_contract.node_files import DRAIN
from cluster_job.exits import Exit
from kubernetes_folder import WORKERS, objects, wanted

_AGAIN = "RestartJobSetAndIgnoreMaxRestarts"
_AT_MOST_TEN_TIMES = "RestartJobSet"
_ENDS = "FailJobSet"


def _job_set() -> dict[str, Any]:
    (runtime,) = objects(wanted(WORKERS), "TrainingRuntime")
    found: dict[str, Any] = runtime["spec"]["template"]["spec"]
    return found


@pytest.mark.parametrize(
    ("container", "code", "disrupted", "action"),
    [
        ("node", Exit.USAGE, False, _ENDS),
        ("node", Exit.NO_DATA, False, _ENDS),
        ("node", Exit.BUDGET, False, _ENDS),
        ("node", Exit.UNFIT, False, _AT_MOST_TEN_TIMES),  # nothing keeps the pod from the same node
        ("node", Exit.AGAIN, False, _AGAIN),
        ("verification", 1, False, _AGAIN),  # it has waited
        ("verification", 255, False, _AGAIN),  # its node has rebooted
        ("node", 137, True, _AGAIN),  # its node is gone
        ("node", 1, False, _AT_MOST_TEN_TIMES),  # torchrun without cluster-run
        ("node", 137, False, _AT_MOST_TEN_TIMES),  # out of memory
    ],
)
def test_what_jobset_does_when_a_container_ends(container: str, code: int, disrupted: bool, action: str) -> None:
    """Read as Kubernetes and JobSet do.

    https://github.com/kubernetes/kubernetes/blob/v1.34.0/pkg/controller/job/pod_failure_policy.go
    https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/pkg/controllers/failure_policy.go
    """
    job_set = _job_set()
    (replicated,) = job_set["replicatedJobs"]
    job = replicated["template"]["spec"]
    assert (job["backoffLimit"], job["template"]["spec"]["restartPolicy"]) == (0, "Never")
    assert job_set["failurePolicy"]["maxRestarts"] == 10
    reason, message = "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    for index, rule in enumerate(job["podFailurePolicy"]["rules"]):
        codes = rule.get("onExitCodes", {"containerName": "", "operator": "In", "values": []})
        listed = (code in codes["values"]) is (codes["operator"] == "In")
        if codes["containerName"] == container and listed:
            text = f"Container {container} for pod a/b failed with exit code {int(code)}"
        elif disrupted and {"type": "DisruptionTarget", "status": "True"} in rule.get("onPodConditions", ()):
            text = "Pod a/b has condition DisruptionTarget"
        else:
            continue
        reason, message = "PodFailurePolicy", f"{text} matching {rule['action']} rule at index {index}"
        break
    found = next(
        (
            rule["action"]
            for rule in job_set["failurePolicy"]["rules"]
            if reason in rule["onJobFailureReasons"]
            and any(re.search(pattern, message) for pattern in rule["onJobFailureMessagePatterns"])
        ),
        _AT_MOST_TEN_TIMES,  # "If no matching rule is found, the RestartJobSet action is applied."
    )
    assert found == action


def _run_first(drains: Path, sleep: str) -> "subprocess.CompletedProcess[str]":
    """Run the first container on a node with these drain files, and `sleep` as given."""
    (replicated,) = _job_set()["replicatedJobs"]
    (first,) = replicated["template"]["spec"]["template"]["spec"]["initContainers"]
    assert DRAIN.startswith(first["volumeMounts"][0]["mountPath"])
    program = drains.parent / "bin/sleep"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{sleep}\n")
    program.chmod(0o755)
    shell, option, script = first["command"]
    script = script.replace(DRAIN, str(drains)).replace("/dev/termination-log", "/dev/null")
    path = f"{program.parent}:{os.environ['PATH']}"
    return subprocess.run(
        [shell, option, script], env={"PATH": path}, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("drained", [False, True])
def test_a_pod_on_a_drained_node_says_why_and_ends_when_its_taint_is_there(drained: bool, tmp_path: Path) -> None:
    drains, slept = tmp_path / "drain", tmp_path / "slept"
    if drained:
        drains.mkdir()
        (drains / "xid-79").write_text("Xid 79 of GPU 3\n{}\n")
    done = _run_first(drains, f"echo $1 > {slept}")
    said = "The node is drained: Xid 79 of GPU 3\n" if drained else ""
    assert (done.returncode, done.stdout, done.stderr) == (int(drained), said, "")
    assert not drained or slept.read_text() == "60\n"


def test_a_pod_that_waits_ends_when_it_is_deleted(tmp_path: Path) -> None:
    """The first process of a container gets no signal that it has no handler for."""
    drains = tmp_path / "drain"
    drains.mkdir()
    (drains / "xid-79").write_text("Xid 79 of GPU 3\n{}\n")
    assert _run_first(drains, "kill -TERM $PPID").returncode == 143
