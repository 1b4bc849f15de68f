"""Every example is rehearsed as its comments tell: by the command, with the real CDK CLI."""

from pathlib import Path

import pytest

from cdk_training_cluster_stacks.cluster_file import read_cluster_file
from examples import EXAMPLES, PROJECT
from rehearsing import rehearse


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: Path(example).stem)
def test_an_example_is_deployed_and_taken_down(example: str, tmp_path: Path) -> None:
    ended, results = rehearse(example, tmp_path)
    assert (results["status"], results["error"], results["differences"]) == ("passed", None, []), ended.stdout
    assert ended.returncode == 0
    running = {group["name"]: group["count_running"] for group in results["node_groups"]}
    assert running == {group.name: group.count for group in read_cluster_file(PROJECT / example).node_groups}
