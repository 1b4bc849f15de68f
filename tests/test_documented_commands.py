"""Each command that a document shows ends with exit status 0, with the arguments and on the file that it shows.

What needs no account runs as it is. What needs one runs on the local AWS, to which its cluster is deployed. The rest
is `ELSEWHERE`.
"""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cdk_training_cluster_cli.main import training_cluster
from cdk_training_cluster_file import read_cluster_file
from deployed_cluster import deploy_file
from documented_commands import Shown, shown_commands
from documents import blocks_of
from examples import PROJECT, swept
from local_aws import LocalAws
from recorded_costs import bill_yesterday
from rehearsal.checkpoint_run import exported_place
from rehearsal.preparation import prepare

ELSEWHERE = {
    "cdk": "the real CDK CLI: tests/rehearsal deploys, destroys and imports with it",
    "make": "what CI and people run; tests/test_documents.py looks its targets up",
    "training-cluster --install-completion": "it changes the shell's own files",
    "training-cluster bootstrap": "the real CDK CLI: tests/rehearsal/test_tutorial.py",
    "training-cluster connect": "it opens a terminal on a node, with the Session Manager plugin",
    "training-cluster deploy": "the real CDK CLI: test_tutorial.py and test_examples.py in tests/rehearsal",
    "training-cluster destroy": "the real CDK CLI: tests/rehearsal/test_tutorial.py",
    "training-cluster diff": "the real CDK CLI: tests/cli/core/test_cdk_cli.py",
    "training-cluster exec": "it runs programs of a node: tests/test_first_job.py reads them",
    "training-cluster import-map": "it reads what cdk synth wrote: tests/rehearsal/test_kept_again.py",
    "training-cluster init mine.yaml": "without options it asks: tests/cli/prepare/init/test_init.py answers",
    "training-cluster preflight": "it asks for what the real CDK CLI bootstraps: tests/rehearsal/test_newcomer.py",
}
"""The beginnings of commands that neither this machine nor the local AWS runs here, and why."""

_OFFLINE = (
    *("--version", "check", "diagram", "grafana", "hyperpod-job", "init", "key-policy", "manifests", "plan"),
    *("sbatch", "schema", "storage", "synth"),
)
# Those that change what others look at come last.
_ON_AWS = (
    *("status", "events", "logs", "why", "dashboard", "manifests", "costs", "checkpoints", "keep"),
    *("terminate", "stop", "start"),
)
_ASKS_AWS = {"--from-deployed", "--live"}
# Where nodes mount the file system.
_MOUNT_POINT = "/fsx/"


def _is(shown: Shown, beginning: str) -> bool:
    words = tuple(beginning.split())
    return shown.words == words if words[-1].endswith(".yaml") else shown.words[: len(words)] == words


_SHOWN = {(shown.document, shown.words): shown for shown in shown_commands() if not shown.is_only_named}.values()
_HERE = [shown for shown in _SHOWN if not any(_is(shown, each) for each in ELSEWHERE)]
_LOCAL = [shown for shown in _HERE if shown.words[1] in _OFFLINE and not _ASKS_AWS & set(shown.words)]
_DEPLOYED = [shown for shown in _HERE if shown not in _LOCAL]


def test_each_command_runs_somewhere_and_no_reason_is_out_of_date() -> None:
    shown = shown_commands()
    assert [each for each in ELSEWHERE if not any(_is(one, each) for one in shown)] == []
    assert [one.text for one in _DEPLOYED if one.words[1] not in _ON_AWS] == []
    assert len(_SHOWN) > 100


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what a clone has, as far as commands read it."""
    for folder in ("clusters", "examples"):
        shutil.copytree(PROJECT / folder, tmp_path / folder)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def _run(words: Sequence[str]) -> None:
    # People answer what a terminal asks them, and what is on the file system is in this folder.
    confirmed = ["--yes"] if words[1] in ("stop", "terminate") and "--yes" not in words else []
    here = [word.replace(_MOUNT_POINT, "") if word.startswith(_MOUNT_POINT) else word for word in words[1:]]
    ended = CliRunner().invoke(training_cluster, [*here, *confirmed])
    assert ended.exit_code == 0, f"{' '.join(words)}: {ended.stdout}{ended.stderr}{ended.exc_info}"


def _prepare_page(document: str) -> None:
    """Write the cluster files that a page shows, each named for its cluster, and run what needs no account."""
    for block in blocks_of(document, "yaml") if document.endswith(".md") else ():
        name = re.search(r"^name: (\S+)$", block.text, re.MULTILINE)
        if name:
            Path(f"{name[1]}.yaml").write_text(block.text)
    for shown in _LOCAL:
        if shown.document == document:
            _run(shown.words)


@pytest.mark.parametrize(
    "document", [swept(each, ("README", "first-job")) for each in dict.fromkeys(one.document for one in _LOCAL)]
)
def test_what_needs_no_account_runs_as_it_is_shown(document: str) -> None:
    _prepare_page(document)


def _cluster_of(shown: Shown) -> str:
    """Return the name of the deployed cluster that a command is about; copies between buckets need none."""
    named = shown.words[3 if shown.words[1] == "checkpoints" else 2]
    return Path(named).stem if not named.startswith("s3://") else "base-pod"


@pytest.mark.parametrize(
    "name", [swept(each, ("two-groups",)) for each in dict.fromkeys(map(_cluster_of, _DEPLOYED))]
)
def test_what_needs_an_account_runs_on_the_deployed_cluster(
    name: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = [shown for shown in _DEPLOYED if _cluster_of(shown) == name]
    file = place / "clusters" / f"{name}.yaml"
    if not file.exists():
        _prepare_page(mine[0].document)
        file = place / f"{name}.yaml"
    with LocalAws(place / "local-aws.log") as aws:
        cluster = read_cluster_file(file).model_copy(update={"account": aws.account})
        prepare(cluster, aws)
        deploy_file(cluster, aws, place / "cdk.out")
        for variable, value in aws.environment().items():
            if variable.startswith("AWS_"):
                monkeypatch.setenv(variable, value)
        _run(["training-cluster", "start", name, "--wait"])
        bill_yesterday(aws.environment()["AWS_ENDPOINT_URL"])
        _save_checkpoints(aws, name)
        node = aws.client("ec2").describe_instances()["Reservations"][0]["Instances"][0]["InstanceId"]
        for shown in sorted(mine, key=lambda one: _ON_AWS.index(one.words[1])):
            _run([node if word.startswith("i-") else word for word in shown.words])


def _save_checkpoints(aws: LocalAws, name: str) -> None:
    """Save the checkpoint that documents name where the cluster exports its own, and in the bucket that one shows."""
    places = [("my-runs", "checkpoints/")]
    s3 = aws.client("s3")
    for bucket in ("my-runs", "my-archive"):
        s3.create_bucket(Bucket=bucket)
    place = exported_place(aws, name)
    if place is not None:
        places.append((place.bucket, place.prefix))
        Path("restored").mkdir()
    for bucket, prefix in places:
        for file in ("model-0.pt", ".complete"):
            s3.put_object(Bucket=bucket, Key=f"{prefix}step-1000/{file}", Body=b"")
