"""The page about the first job: its lines are shell and Python, and use what torchrun has. PyTorch is not here."""

import ast
import re
import subprocess

from cdk_training_cluster_file import read_cluster_file
from documents import blocks, commands, text_of
from examples import PROJECT

_PAGE = "docs/first-job.md"
# https://docs.pytorch.org/docs/stable/elastic/run.html
_OPTIONS = {"--nnodes", "--nproc-per-node", "--rdzv-id", "--rdzv-backend", "--rdzv-endpoint"}
_VARIABLES = {"LOCAL_RANK", "RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}


def _sent() -> list[str]:
    """Return what the nodes' shells get."""
    console = [words for block in blocks("console") if block.page == _PAGE for words in commands(block.text)]
    return [words[-1] for words in console if "exec" in words and " " in words[-1]]


def test_what_nodes_run_is_shell_and_torchrun_has_its_options() -> None:
    started = [line for line in _sent() if "torchrun" in line]
    assert len(started) == 2
    for line in _sent():
        subprocess.run(["bash", "-n", "-c", line], check=True)
        for inner in re.findall(r"bash -lc '(.*)'", line, re.DOTALL):
            subprocess.run(["bash", "-n", "-c", inner], check=True)
    assert {
        option for line in started for option in re.findall(r"--[\w-]+", line.partition("torchrun")[2])
    } == _OPTIONS


def test_the_job_is_python_and_reads_what_torchrun_sets() -> None:
    (job,) = (block.text for block in blocks("py") if block.page == _PAGE)
    ast.parse(job)
    assert set(re.findall(r'environ\["(\w+)"]', job)) <= _VARIABLES


def test_the_page_counts_the_nodes_of_its_example() -> None:
    groups = {group.name: group for group in read_cluster_file(PROJECT / "clusters/two-groups.yaml").node_groups}
    counts = {int(count) for line in _sent() for count in re.findall(r"--nnodes (\d+)", line)}
    assert counts == {groups["trainers"].count}
    assert set(re.findall(r"--node-group (\w+)|--node (\w+)/", text_of(_PAGE))) == {
        ("trainers", ""),
        ("", "trainers"),
    }
