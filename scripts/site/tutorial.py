"""Runs the commands of docs/first-cluster.md, one after another, against the local AWS, and keeps what they say."""

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from cdk_training_cluster_file import read_cluster_file
from local_aws import LocalAws
from rehearsal.preparation import prepare

PROJECT = Path(__file__).resolve().parents[2]
PAGE = PROJECT / "docs/first-cluster.md"
_COMMAND = re.compile(r"^\$ (.+)$", re.MULTILINE)
_SECONDS = 180
_SOURCES = (
    "manifests",
    "cli",
    "cluster_file",
    "clusters",
    "constructs",
    "lambdas",
    "local_aws",
    "rehearsal",
    "stacks",
)
_SUFFIXES = (".json", ".py", ".sh", ".yaml")
# What the CDK CLI says of each resource as it goes is long, and never twice the same.
_CDK = re.compile(r"^ *✅ .*$", re.MULTILINE)
_USES_CDK = ("bootstrap", "deploy", "destroy")


class TutorialError(Exception):
    """A command of the page failed."""


def outputs() -> dict[str, str]:
    """Return what each command of the page says: as of the last run, where nothing has changed since.

    Raises:
        TutorialError: A command failed.
    """
    page = PAGE.read_text(encoding="utf-8")
    sources = sorted(
        path for folder in _SOURCES for path in (PROJECT / folder).rglob("*") if path.suffix in _SUFFIXES
    )
    digest = hashlib.sha256(b"".join([page.encode(), *(path.read_bytes() for path in sources)])).hexdigest()
    kept = PROJECT / f"build/tutorial/{digest}.json"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(_run(page)), encoding="utf-8")
    found: dict[str, str] = json.loads(kept.read_text(encoding="utf-8"))
    return found


def _run(page: str) -> dict[str, str]:
    """Run the page's commands; return what each says.

    Args:
        page: The page's text.

    Raises:
        TutorialError: A command failed.
    """
    said: dict[str, str] = {}
    cluster = read_cluster_file(PROJECT / "clusters/dev-box.yaml")
    with tempfile.TemporaryDirectory() as directory, LocalAws(Path(directory, "local-aws.log")) as aws:
        prepare(cluster, aws)
        tools = f"{Path(sys.executable).parent}:{PROJECT / 'node_modules/.bin'}"
        environment = {
            **aws.environment(),
            "PATH": f"{tools}:{os.environ['PATH']}",
            "COLUMNS": "80",
            "NO_COLOR": "1",
            "CDK_OUTDIR": str(Path(directory, "cdk.out")),
        }
        for command in _COMMAND.findall(page):
            words = shlex.split(command)
            # Direct: the local AWS evaluates no outputs in change sets.
            extra = ["--method=direct"] if words[1] == "deploy" else []
            ran = subprocess.run(
                [*words, *extra],
                env=environment,
                cwd=PROJECT,
                capture_output=True,
                text=True,
                check=False,
                timeout=_SECONDS,
            )
            if ran.returncode != 0:
                raise TutorialError(f"{command} ended with {ran.returncode}: {ran.stderr[-2000:]}{ran.stdout[-500:]}")
            _pass_a_minute(aws)
            text = "\n".join(_CDK.findall(ran.stdout + ran.stderr)) if words[1] in _USES_CDK else ran.stdout
            said[command] = "\n".join(line.rstrip() for line in text.strip("\n").splitlines())
    return said


def _pass_a_minute(aws: LocalAws) -> None:
    """Run the power function twice, as EventBridge Scheduler does each minute."""
    functions = aws.client("lambda")
    for function in functions.list_functions()["Functions"]:
        if function["Handler"].startswith("cluster_power."):
            for _ in range(2):
                functions.invoke(FunctionName=function["FunctionName"], Payload=json.dumps({"action": "tick"}))


def with_outputs(page: str, said: Mapping[str, str]) -> str:
    """Return the page with what each command says below it.

    Args:
        page: The page's text.
        said: What each command says.
    """
    return _COMMAND.sub(lambda command: f"{command[0]}\n{said[command[1]]}".rstrip(), page)


if __name__ == "__main__":
    outputs()
