"""A newcomer's way from a clone to the bill, with the commands that people type, on the local AWS.

`make test-newcomer` shows each command and how long it took.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from cdk_training_cluster_file import read_cluster_file
from examples import PROJECT
from local_aws import LocalAws
from max_seconds import MAX_SECONDS
from recorded_costs import bill_yesterday
from rehearsal.preparation import prepare

_FILE, _NAME = "first.yaml", "first"


def _clone(place: Path) -> Path:
    """Copy what a clone has; what is set up in the project serves it too."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ":!releases"],
        cwd=PROJECT,
        capture_output=True,
        check=True,
    ).stdout
    for name in filter(None, listed.decode().split("\0")):
        if (PROJECT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(PROJECT / name, place / name)
    return place


@dataclass(frozen=True)
class _Terminal:
    """Where commands are typed."""

    place: Path
    environment: Mapping[str, str]

    def run(self, line: str, *, status: int = 0) -> str:
        """Run a command, say how long it took, and return what it wrote to standard output."""
        started = monotonic()
        ended = subprocess.run(
            shlex.split(line),
            cwd=self.place,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=MAX_SECONDS,
            check=False,
        )
        sys.stdout.write(f"{monotonic() - started:6.1f} s  {line}\n")
        assert ended.returncode == status, f"{line}\n{ended.stdout}\n{ended.stderr}"
        return ended.stdout

    def told(self, line: str, *, status: int = 0) -> Any:
        """Run a command of which a program reads the output."""
        return json.loads(self.run(f"{line} --output json", status=status))


@pytest.mark.sweep("docs")
def test_a_newcomer_gets_from_a_clone_to_the_bill(tmp_path: Path) -> None:
    started = monotonic()
    with LocalAws(tmp_path / "local-aws.log") as aws:
        _go(aws, tmp_path)
    sys.stdout.write(f"{monotonic() - started:6.1f} s  in all\n")


def _go(aws: LocalAws, tmp_path: Path) -> None:
    clone = _clone(tmp_path / "clone")
    tools = f"{Path(sys.executable).parent}:{PROJECT / 'node_modules' / '.bin'}"
    roots = ":".join(
        str(clone / root) for root in ("constructs", "cluster_file", "cli", "manifests", "stacks", "lambdas")
    )
    own = {"PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": roots, "XDG_CACHE_HOME": str(tmp_path)}
    terminal = _Terminal(clone, {**os.environ, **aws.environment(), **own})

    terminal.run(f"training-cluster init {_FILE} --instance-type g5.xlarge --nodes 1 --buy on_demand")
    terminal.run(f"training-cluster check {_FILE}")
    assert terminal.told(f"training-cluster plan {_FILE} --hours 24")["lines"]
    prepare(read_cluster_file(clone / _FILE), aws)
    bare = terminal.run(f"training-cluster preflight {_FILE}", status=1)
    (fails,) = (line for line in bare.splitlines() if line.startswith("fail"))
    assert fails.endswith(f"-> training-cluster bootstrap {_FILE}")
    terminal.run(f"{sys.executable} -m rehearsal --cluster {_FILE}")

    terminal.run(f"training-cluster bootstrap {_FILE}")
    terminal.run(f"training-cluster preflight {_FILE}")
    terminal.run(f"training-cluster deploy {_FILE} --method=direct --require-approval=never")
    terminal.run(f"training-cluster start {_NAME} --wait")
    assert "workers, 1 of 1, running" in terminal.run(f"training-cluster status {_NAME}")
    (workers,) = terminal.told(f"training-cluster stop {_NAME} --wait --yes")["node_groups"]
    assert (workers["state"], workers["alive"]) == ("stopped", 0)
    bill_yesterday(aws.environment()["AWS_ENDPOINT_URL"])
    assert "24.14" in terminal.run(f"training-cluster costs {_FILE}")
    terminal.run(f"training-cluster destroy {_FILE} --force")
