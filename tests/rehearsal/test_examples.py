"""Every example is rehearsed as its comments tell: by the command, with the real CDK CLI.

`.ci/run` rehearses base-pod and runs the tutorial with dev-box, and `make test-all` rehearses each of them.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from cdk_training_cluster_file import read_cluster_file
from examples import EXAMPLES, PROJECT, swept
from rehearsing import rehearse


def test_what_is_rehearsed_first_is_the_smallest_example() -> None:
    (named,) = re.findall(r"^CLUSTER \?= (.+)$", (PROJECT / "Makefile").read_text(), re.MULTILINE)
    files = {example: read_cluster_file(PROJECT / example) for example in EXAMPLES}
    counts = {example: sum(group.count for group in file.node_groups) for example, file in files.items()}
    assert counts[named] == min(counts.values()) == 1
    assert (files[named].file_system, files[named].alerts.emails, files[named].network) == (None, (), None)


@pytest.mark.parametrize(
    "example", [swept(each, (), target="rehearse CLUSTER=clusters/base-pod.yaml") for each in EXAMPLES]
)
def test_an_example_is_deployed_and_taken_down(example: str, tmp_path: Path) -> None:
    ended, results = rehearse(example, tmp_path)
    assert (results["status"], results["error"], results["differences"]) == ("passed", None, []), ended.stdout
    assert ended.returncode == 0
    cluster = read_cluster_file(PROJECT / example)
    if cluster.orchestrator.batch is not None:
        _says_that_jobs_brought_their_nodes_up(results)
        return
    running = {group["name"]: group["count_running"] for group in results["node_groups"]}
    assert running == {group.name: group.count for group in cluster.node_groups}
    _says_what_became_of_idle_nodes(results)


def _says_that_jobs_brought_their_nodes_up(results: dict[str, Any]) -> None:
    """AWS Batch has nodes for its jobs alone, so that none is left to be idle."""
    jobs = results["batch"].values()
    assert {job["left"] for job in jobs} == {0}
    assert [job["launched"] for job in jobs if job["statuses"][0] == "RUNNING"] == [2, 2]
    assert (results["node_groups"], results["idle"]["verdicts"]) == ([], {})


def _says_what_became_of_idle_nodes(results: dict[str, Any]) -> None:
    idle, groups = results["idle"], results["node_groups"]
    nodes = {one for group in groups for one in group["instance_ids"]}
    assert idle["wanted"].keys() == idle["verdicts"].keys() == idle["reported"].keys() == nodes
    ends = {"stopped": "stop", "reserved": "reserved", "orchestrator": "unstoppable"}
    assert idle["verdicts"] == {one: ends[wanted] for one, wanted in idle["wanted"].items()}
    assert "busy" in idle["reported"].values()
    assert idle["stopped"] == sorted(one for one, wanted in idle["wanted"].items() if wanted == "stopped")
    bought = {group["name"]: set(group["bought_from"]) for group in groups}
    paid = {name for name, sources in bought.items() if sources and all(one.startswith("cr-") for one in sources)}
    # A group is stopped as a whole, unless it is billed all the same or its scheduler takes its nodes out itself.
    fates = {group["name"]: {idle["wanted"][one] for one in group["instance_ids"]} for group in groups}
    sizes = {group["name"]: 0 if fates[group["name"]] == {"stopped"} else group["count_running"] for group in groups}
    if not idle["stopped"]:
        assert paid == bought.keys()
        assert "resumed" not in idle
        return
    assert idle["sizes"] == idle["sizes_after_deploy"] == sizes
    assert idle["resumed"]["status"] == "Success"
