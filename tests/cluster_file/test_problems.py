"""What ends a program in one sentence, and what is a defect."""

import errno
import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import jsii
import pytest
import typer
from aws_cdk import App, Duration, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from botocore.exceptions import ClientError
from constructs import IValidation
from typer.testing import CliRunner

from cdk_training_cluster import IdlePolicy
from cdk_training_cluster_cli.core.aws_errors import explained
from cdk_training_cluster_cli.main import training_cluster
from cdk_training_cluster_file.problems import DEFECT, ClusterFileError, Problem, plain_errors


@jsii.implements(IValidation)
class Refusal:
    def validate(self) -> list[str]:
        return ["the one thing is wrong: mend it", "so is the other"]


@jsii.implements(IValidation)
class Broken:
    def validate(self) -> list[str]:
        return [os.environ["NO_SUCH_VARIABLE"]]


def test_a_problem_says_where_it_is() -> None:
    problems = [
        Problem(message="is wrong", where=("node_groups", 1, "environment", "A"), line=7),
        Problem(message="has no value", where=("tags", "a key")),
        Problem(message="is empty"),
    ]
    assert str(ClusterFileError("a.yaml", problems)) == (
        'a.yaml:7: node_groups[1].environment.A: is wrong\na.yaml: tags["a key"]: has no value\na.yaml: is empty'
    )


def test_each_sentence_of_a_construct_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end, plain_errors():
        IdlePolicy(coverage=2, window=Duration.minutes(1))
    assert end.value.code == 1
    assert capsys.readouterr().err == (
        "error: window must be from 15 minutes to 12 hours, in steps of 5 minutes, got 1 minute\n"
        "error: coverage must be from 0.5 to 1, got 2\n"
    )


def test_what_cdk_refuses_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit), plain_errors():
        ec2.Peer.ipv4("10.0.0/8")
    assert capsys.readouterr().err == 'error: Invalid IPv4 CIDR: "10.0.0/8"\n'


def test_what_cdk_finds_in_the_whole_is_a_sentence_each(capsys: pytest.CaptureFixture[str]) -> None:
    app = App()
    Stack(app, "Pod").node.add_validation(Refusal())
    with pytest.raises(SystemExit), plain_errors():
        app.synth()
    assert capsys.readouterr().err == ("error: [Pod] the one thing is wrong: mend it\nerror: [Pod] so is the other\n")


def test_what_aws_refuses_is_a_sentence_with_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end, plain_errors(explain=explained):
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "DescribeInstances")
    assert end.value.code == 2
    assert capsys.readouterr().err.startswith("error: AWS denies DescribeInstances (AccessDenied): ")


def test_what_the_system_refuses_is_a_sentence_with_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end, plain_errors():
        tmp_path.read_text()
    assert end.value.code == 2
    assert capsys.readouterr().err == f"error: Is a directory: {tmp_path}\n"


@pytest.mark.parametrize(
    "end", [BrokenPipeError(errno.EPIPE, "Broken pipe"), typer.Exit(3), typer.BadParameter("it")]
)
def test_what_the_command_line_ends_with_is_left_to_it(end: Exception) -> None:
    with pytest.raises(type(end)), plain_errors():
        raise end


def _raise() -> None:
    raise ValueError("it")


def _unpack() -> None:
    _, _ = (1, 2, 3)  # type: ignore[misc]


def _call_back() -> None:
    app = App()
    Stack(app, "Pod").node.add_validation(Broken())
    app.synth()


DEFECTS: dict[str, tuple[Callable[[], object], str]] = {
    "Python refuses a value": (_unpack, "ValueError: too many values to unpack (expected 2)"),
    "the standard library refuses a value": (lambda: json.loads("{"), "JSONDecodeError: Expecting property name"),
    "a test, and not the library, refuses a value": (_raise, "ValueError: it"),
    "a key is missing": (lambda: os.environ["NO_SUCH_VARIABLE"], "KeyError: 'NO_SUCH_VARIABLE'"),
    "a program other than CDK": (lambda: subprocess.run(["false"], check=True), "CalledProcessError: Command"),
    "code that CDK calls back": (_call_back, "RuntimeError: 'NO_SUCH_VARIABLE'"),
    "JavaScript itself": (lambda: iam.PolicyDocument.from_json(None), "RuntimeError: TypeError: Cannot read"),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_says_so_and_leaves_its_traceback_in_a_file(
    defect: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    act, said = DEFECTS[defect]
    with pytest.raises(SystemExit) as end, plain_errors(status=2):
        act()
    assert end.value.code == DEFECT
    (file,) = tmp_path.iterdir()
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(f"error: this is a defect of cdk-training-cluster, and no mistake of yours: {said}")
    assert second == (
        f"error: report it with {file}, your cluster file, the command and what training-cluster --version prints"
    )
    assert "Traceback (most recent call last)" in file.read_text()


def test_a_defect_outside_of_what_a_command_guards_says_so_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    app = typer.Typer(cls=training_cluster.info.cls, pretty_exceptions_enable=False)
    app.command("it")(_unpack)
    app.command("other")(_raise)
    result = CliRunner().invoke(app, ["it"])
    assert (result.exit_code, result.stdout) == (DEFECT, "")
    assert result.stderr.startswith("error: this is a defect of cdk-training-cluster, and no mistake of yours: ")


def test_debugging_shows_all_tracebacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDK_DEBUG", "true")
    with pytest.raises(ValueError, match="wrong"), plain_errors():
        raise ValueError("wrong")
