"""The example script under real torchrun, without a cluster: it ends, and goes on where it was."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")

SCRIPT = Path(__file__).parents[2] / "examples/jobs/train.py"
BIN = Path(sys.executable).parent

pytestmark = pytest.mark.torch


def trained(folder: Path, steps: int) -> list[int]:
    """Train on two processes, and return the numbers of the steps that were done."""
    command = [str(BIN / "cluster-run"), "--restarts", "0", "--run", "plane", "torchrun", "--nproc-per-node", "2"]
    variables = {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(folder), "GLOO_SOCKET_IFNAME": "lo"}
    ended = subprocess.run(
        [*command, str(SCRIPT), "--steps", str(steps)],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return [int(step) for step in re.findall(r"^step (\d+)$", ended.stdout, re.MULTILINE)]


def test_a_job_that_is_started_again_goes_on_after_its_last_checkpoint(tmp_path: Path) -> None:
    assert trained(tmp_path, 4) == [0, 1, 2, 3]
    assert trained(tmp_path, 7) == [4, 5, 6]
