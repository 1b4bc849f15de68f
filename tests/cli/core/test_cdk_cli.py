"""`training-cluster synth`, `deploy` and their like: what they refuse, and what they have the CDK CLI do."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from moto import mock_aws
from typer.testing import CliRunner

from cdk_training_cluster_cli.core.cdk_cli import CLI_VERSION
from cdk_training_cluster_cli.main import training_cluster

_PROJECT = Path(__file__).parents[3]
_ACCOUNT = "123456789012"  # moto's
_FILE = """name: pod
availability_zone: us-east-1b
node_groups:
  - {name: w, instance_types: [g5.xlarge], count: 1, image: ami-0123456789abcdef0}
"""
_APP = f"{sys.executable} -m cdk_training_cluster_stacks.app"
_COMMON = ["--app", _APP, "--context", "cluster=pod.yaml", "--no-version-reporting"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory with a cluster file and a CDK CLI that writes down its arguments, and an account of moto's."""
    (tmp_path / "pod.yaml").write_text(_FILE)
    (tmp_path / "bin").mkdir()
    _cli(tmp_path, f'echo "{CLI_VERSION} (build 0)"')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    for name, value in {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "CDK_DEBUG": ""}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    with mock_aws():
        yield tmp_path


def _cli(place: Path, version: str, status: int = 0) -> None:
    cli = place / "bin" / "cdk"
    note = f"import json, sys; json.dump(sys.argv[1:], open({str(place / 'asked')!r}, 'w'))"
    cli.write_text(
        f'#!/bin/sh\nif [ "$1" = --version ]; then {version}; exit; fi\n'
        f'{sys.executable} -c "{note}" "$@"\nexit {status}\n'
    )
    cli.chmod(0o755)


def _bootstrap() -> None:
    import boto3  # noqa: PLC0415 - after moto has begun

    boto3.client("ssm", region_name="us-east-1").put_parameter(
        Name="/cdk-bootstrap/hnb659fds/version", Value="28", Type="String"
    )


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        (["synth", "pod.yaml"], ["synth", "--quiet", *_COMMON]),
        (["diff", "pod.yaml"], ["diff", *_COMMON]),
        (["bootstrap", "pod.yaml"], ["bootstrap", *_COMMON]),
        (
            ["deploy", "pod.yaml", "--require-approval", "never", "--outputs-file", "o.json"],
            ["deploy", "--all", *_COMMON, "--require-approval", "never", "--outputs-file", "o.json"],
        ),
        (["deploy", "--only-cluster", "pod.yaml"], ["deploy", "pod-cluster", "--exclusively", *_COMMON]),
        (["destroy", "pod.yaml"], ["destroy", "pod-cluster", "--exclusively", *_COMMON]),
        (["destroy", "--all", "pod.yaml", "--force"], ["destroy", "--all", *_COMMON, "--force"]),
    ],
)
def test_the_cli_runs_the_app_of_the_package(place: Path, given: list[str], asked: list[str]) -> None:
    _bootstrap()
    result = CliRunner().invoke(training_cluster, given)
    assert (result.exit_code, result.stderr) == (0, "")
    assert json.loads((place / "asked").read_text()) == asked


_ENDED = f"{_FILE[:-2]}, capacity: {{reservation: {{end: 2026-11-02T00:00:00Z}}}}}}\n"
_PLACE = "pod.yaml:4: node_groups[0].capacity.reservation.end"


@pytest.mark.parametrize("command", ["diff", "deploy"])
def test_a_new_cluster_whose_reservation_has_ended_is_refused_before_the_cli_runs(place: Path, command: str) -> None:
    """Synthesis reads no clock."""
    _bootstrap()
    (place / "pod.yaml").write_text(_ENDED)
    result = CliRunner().invoke(training_cluster, [command, "pod.yaml"])
    assert result.exit_code == 2
    assert result.stderr == (
        f"error: {_PLACE}: must be in the future, got 2026-11-02 00:00 UTC: EC2 makes no reservation that has ended; "
        "give a later end, or until_cancelled\n"
    )
    assert not (place / "asked").exists()


@pytest.mark.parametrize("command", ["synth", "diff", "deploy"])
def test_a_deployed_cluster_whose_reservation_has_ended_takes_other_changes(place: Path, command: str) -> None:
    import boto3  # noqa: PLC0415 - after moto has begun

    _bootstrap()
    topic = json.dumps({"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}})
    if command != "synth":  # which asks nothing
        boto3.client("cloudformation", region_name="us-east-1").create_stack(
            StackName="pod-cluster", TemplateBody=topic
        )
    (place / "pod.yaml").write_text(_ENDED)
    result = CliRunner().invoke(training_cluster, [command, "pod.yaml"])
    assert result.exit_code == 0
    assert result.stderr.startswith(f"warning: {_PLACE}: 2026-11-02 00:00 UTC is in the past: ")
    assert (place / "asked").exists()


def test_a_cluster_whose_reservation_has_ended_can_be_destroyed(place: Path) -> None:
    (place / "pod.yaml").write_text(_ENDED)
    assert CliRunner().invoke(training_cluster, ["destroy", "pod.yaml"]).exit_code == 0
    assert (place / "asked").exists()


def test_the_exit_status_is_the_cli_s(place: Path) -> None:
    _cli(place, f"echo {CLI_VERSION}", status=3)
    assert CliRunner().invoke(training_cluster, ["synth", "pod.yaml"]).exit_code == 3


def test_the_tested_release_of_the_cli_is_the_one_that_people_are_told_to_install() -> None:
    assert json.loads((_PROJECT / "package.json").read_text())["devDependencies"]["aws-cdk"] == CLI_VERSION


_INSTALL = f"npm install --global aws-cdk@{CLI_VERSION}"
_REFUSED = {
    "no CLI": ("rm bin/cdk", f"the AWS CDK CLI is not installed: run {_INSTALL}, which needs Node.js 22 or newer"),
    "another release": (
        "3.0.0 (build 1)",
        f"the AWS CDK CLI at {{cli}} must be a 2.x release, got 3.0.0 (build 1): run {_INSTALL}",
    ),
    "no Node.js": (
        "echo 'env: node: No such file or directory' >&2; exit 127",
        "the AWS CDK CLI at {cli} does not start (env: node: No such file or directory): install Node.js 22 or newer",
    ),
    "not bootstrapped": (
        "",
        f"the CDK is not bootstrapped in the account {_ACCOUNT} and the region us-east-1: run training-cluster "
        "bootstrap with the same file once",
    ),
    "another account": (
        "account",
        f"the cluster file names the account 444455556666 and the credentials are of {_ACCOUNT}: set AWS_PROFILE or "
        "--profile, or correct account",
    ),
    "no credentials": (
        "credentials",
        "deploy asks AWS, and there are no credentials: set AWS_PROFILE, or run aws configure or aws sso login",
    ),
    "a wrong file": (
        "file",
        "pod.yaml:3: node_groups: has no value; write one, such as node_groups: [{{name: workers, instance_types: "
        "[p5.48xlarge], count: 8, image: latest}}]",
    ),
}


@pytest.mark.parametrize(("fault", "said"), _REFUSED.values(), ids=_REFUSED)
def test_what_is_missing_is_said_before_the_cli_runs(
    place: Path, monkeypatch: pytest.MonkeyPatch, fault: str, said: str
) -> None:
    match fault:
        case "rm bin/cdk":
            (place / "bin" / "cdk").unlink()
        case "account":
            (place / "pod.yaml").write_text(f'{_FILE}account: "444455556666"\n')
        case "file":
            (place / "pod.yaml").write_text("name: pod\navailability_zone: us-east-1b\nnode_groups:\n")
        case "credentials":
            monkeypatch.delenv("AWS_ACCESS_KEY_ID")
            monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
            monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
            monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        case "":
            pass
        case _:
            _cli(place, fault if "echo" in fault else f"echo '{fault}'")
    result = CliRunner().invoke(training_cluster, ["deploy", "pod.yaml"])
    assert (result.exit_code, result.stderr) == (2, f"error: {said.format(cli=place / 'bin' / 'cdk')}\n")
    assert not (place / "asked").exists()
