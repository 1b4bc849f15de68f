"""How a rehearsal ends, whatever it meets: an exit status, a file, and one sentence."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cdk_training_cluster_file.problems import ClusterFileError, Problem
from examples import PROJECT
from local_aws import LocalAwsError
from local_aws.functions import FunctionFailedError
from max_seconds import MAX_SECONDS
from rehearsal import report
from rehearsal.cdk_cli import CdkFailedError
from rehearsal.outcome import Findings, conduct

_REFUSED = ClientError({"Error": {"Code": "AccessDenied", "Message": "no\nwith [brackets]"}}, "CreateBucket")


def _conduct(rehearse: Callable[[Findings], None], directory: Path) -> tuple[int, Mapping[str, Any], str]:
    file = io.StringIO()
    results = directory / "build" / "rehearsal.json"
    status = conduct(rehearse, results, report.make_console(file, width=80))
    return status, json.loads(results.read_text()), file.getvalue()


def test_a_rehearsal_that_finds_nothing_wrong_passes(tmp_path: Path) -> None:
    status, results, shown = _conduct(lambda findings: findings.results.update(cluster="pod"), tmp_path)
    assert status == 0
    assert results == {"status": "passed", "error": None, "differences": [], "cluster": "pod"}
    assert shown == "Everything is as the cluster file says.\n"


def test_what_is_left_out_is_listed_with_its_reason(tmp_path: Path) -> None:
    said = "an idle stop: the file turns it off, or no node reports its use"
    status, results, shown = _conduct(lambda findings: findings.not_rehearsed.append(said), tmp_path)
    assert (status, results["not_rehearsed"]) == (0, [said])
    assert shown == f"not rehearsed: {said}\nEverything is as the cluster file says.\n"


def test_one_difference_is_enough(tmp_path: Path) -> None:
    status, results, shown = _conduct(lambda findings: findings.differences.append("dataset /a is absent"), tmp_path)
    assert status == 1
    assert results == {"status": "differs", "error": None, "differences": ["dataset /a is absent"]}
    assert shown == "differs: dataset /a is absent\n"


@pytest.mark.parametrize(
    ("failure", "sentence"),
    [
        (CdkFailedError("cdk deploy failed: no; see cdk.log"), "cdk deploy failed: no; see cdk.log"),
        (FunctionFailedError("the function f failed"), "the function f failed"),
        (LocalAwsError("the local AWS did not start"), "the local AWS did not start"),
        (
            _REFUSED,
            "An error occurred (AccessDenied) when calling the CreateBucket operation: no with [brackets]",
        ),
        (subprocess.TimeoutExpired("cdk", 240), "cdk did not end within 240 s"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_can_go_wrong_is_one_sentence(tmp_path: Path, failure: Exception, sentence: str) -> None:
    def rehearse(findings: Findings) -> None:
        findings.results["cluster"] = "pod"
        findings.differences.append("something differs")
        raise failure

    status, results, shown = _conduct(rehearse, tmp_path)
    assert status == 1
    assert results["status"] == "failed"
    assert results["error"] == sentence
    assert results["differences"] == ["something differs"]
    assert shown == f"failed: {sentence}\ndiffers: something differs\n"


def test_a_wrong_file_is_told_as_the_check_command_tells_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def rehearse(_: Findings) -> None:
        raise ClusterFileError("pod.yaml", [Problem(message="is wrong", line=2), Problem(message="is [x] too")])

    status, results, shown = _conduct(rehearse, tmp_path)
    assert (status, results["status"]) == (1, "failed")
    assert shown == ""
    assert capsys.readouterr().err == "error: pod.yaml:2: is wrong\nerror: pod.yaml: is [x] too\n"


def test_a_defect_keeps_its_traceback_and_is_in_the_file(tmp_path: Path) -> None:
    def rehearse(_: Findings) -> None:
        raise KeyError("stacks")

    with pytest.raises(KeyError, match="stacks"):
        _conduct(rehearse, tmp_path)
    results = json.loads((tmp_path / "build" / "rehearsal.json").read_text())
    assert results["status"] == "failed"
    assert results["error"] == "the rehearsal was cut off by a defect of its own or by its user"


def _run(file: Path, build: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rehearsal", "--cluster", str(file), "--build", str(build)]
    return subprocess.run(
        command, cwd=PROJECT, env={**os.environ}, capture_output=True, text=True, timeout=MAX_SECONDS, check=False
    )


_FILE = """
name: pod
availability_zone: {zone}
node_groups:
  - {{name: workers, instance_types: [{type}], count: 1, image: latest}}
"""


@pytest.mark.parametrize(
    ("zone", "instance_type", "sentence"),
    [
        ("us-east-1b", "p5.48xlarg", "error: {file}:5: node_groups[0].instance_types[0]: unknown instance type"),
        ("eusc-de-east-1a", "p5.48xlarge", "failed: the local AWS has no region eusc-de-east-1: "),
    ],
)
def test_a_real_run_that_cannot_go_on_ends_with_1_and_leaves_no_older_results(
    tmp_path: Path, zone: str, instance_type: str, sentence: str
) -> None:
    file, results = tmp_path / "pod.yaml", tmp_path / "rehearsal.json"
    file.write_text(_FILE.format(zone=zone, type=instance_type))
    results.write_text('{"status": "passed"}')
    ended = _run(file, tmp_path)
    assert ended.returncode == 1
    assert sentence.format(file=file) in ended.stdout + ended.stderr
    assert "Traceback" not in ended.stdout + ended.stderr
    assert json.loads(results.read_text())["status"] == "failed"
