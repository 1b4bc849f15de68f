"""Every example is rehearsed as its comments tell: by the command, with the real CDK CLI."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cdk_training_cluster_stacks.cluster_file import read_cluster_file
from examples import EXAMPLES, PROJECT


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: Path(example).stem)
def test_an_example_is_deployed_and_taken_down(example: str, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "rehearsal", "--cluster", example, "--build", str(tmp_path)],
        cwd=PROJECT,
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    results = json.loads((tmp_path / "rehearsal.json").read_text())
    assert (results["status"], results["error"], results["differences"]) == ("passed", None, []), ended.stdout
    assert ended.returncode == 0
    running = {group["name"]: group["count_running"] for group in results["node_groups"]}
    assert running == {group.name: group.count for group in read_cluster_file(PROJECT / example).node_groups}
