"""What a user gives wrongly: one sentence on standard error, exit status 2, nothing on standard output."""

import os
import re
import shlex
from pathlib import Path

import boto3
import pytest
from typer.testing import CliRunner

from cdk_training_cluster_cli.core.options import names_file
from cdk_training_cluster_cli.main import training_cluster
from cdk_training_cluster_file.regions import REGION

_FILE = """name: pod
availability_zone: us-east-1b
node_groups:
  - {name: workers, instance_types: [g5.xlarge], count: 1, image: ami-0123456789abcdef0}
"""
# Of the files: pod.yaml is right, wrong.yaml names no zone, broken.yaml is no YAML, and none.yaml is not there.
_WRONG = _FILE.replace("us-east-1b", "us-east-1")
_BROKEN = "name: [pod\n"

# What is given, and how its sentence begins, without `error: `.
_CASES = {
    # Commands, arguments and options that there are not.
    "chekc pod.yaml": "no such command 'chekc'; did you mean 'check'",
    "--verison": "no such option: --verison",
    "checkpoints verfy s3://runs step-1": "no such command 'verfy'; did you mean 'verify'",
    "check": "missing argument 'FILE'; see training-cluster check --help",
    "check pod.yaml more": "got unexpected extra argument(s) (more); see",
    "schema more": "got unexpected extra argument(s) (more); see",
    "plan pod.yaml --hour 3": "no such option: --hour",
    "plan pod.yaml --hours": "option '--hours' requires an argument; see training-cluster --help",
    "status": "missing argument 'FILE_OR_NAME'; see",
    "stop pod --forse": "no such option: --forse",
    "terminate pod": "missing argument 'NODE...'; see",
    "connect pod": "missing argument 'NODE'; see",
    "exec pod": "missing argument '-- COMMAND...'; see",
    "storage": "missing option '--dataset'; see",
    "import-map": "missing argument 'TEMPLATE'; see",
    "checkpoints verify s3://runs": "missing argument 'NAME'; see",
    "checkpoints restore s3://runs step-1": "missing argument 'DESTINATION'; see",
    # Names of clusters where a file is needed.
    "check llama": "invalid value for 'FILE': check reads a cluster file, whose name ends in .yaml, and",
    "plan llama": "invalid value for 'FILE': plan reads a cluster file",
    "costs llama": "invalid value for 'FILE': costs reads a cluster file",
    "key-policy llama": "invalid value for 'FILE': key-policy reads a cluster file",
    "deploy llama": "invalid value for 'FILE': deploy reads a cluster file",
    "preflight llama": "invalid value for 'FILE': preflight reads a cluster file",
    "diagram llama": "invalid value for 'FILE': diagram reads a cluster file",
    "grafana llama": "invalid value for 'FILE': grafana reads a cluster file",
    "sbatch llama": "invalid value for 'FILE': sbatch reads a cluster file",
    "sbatch pod.yaml": "pod has no Slurm on AWS PCS that runs batch scripts: add orchestrator: slurm",
    # Files that cannot be read, or are wrong.
    "plan none.yaml": "none.yaml: there is no such file",
    "costs none.yaml": "none.yaml: there is no such file",
    "status none.yaml": "none.yaml: there is no such file",
    "start ./none": "none: there is no such file",
    "key-policy wrong.yaml": "wrong.yaml:2: availability_zone: must be the name of an Availability Zone",
    "plan broken.yaml": "broken.yaml:2: ",
    "diagram wrong.yaml": "wrong.yaml:2: availability_zone: ",
    "stop wrong.yaml": "wrong.yaml:2: availability_zone: ",
    "synth wrong.yaml": "wrong.yaml:2: availability_zone: ",
    "preflight wrong.yaml": "wrong.yaml:2: availability_zone: ",
    "key-policy pod.yaml": "encryption_key is required for a key's policy",
    "import-map none.json": "none.json is no template of a stack (No such file or directory): run cdk synth",
    # Values that cannot be.
    "plan pod.yaml --hours x": "--hours must be a number, such as 336 or 70e9, got 'x'",
    "plan pod.yaml --hours 0": "--hours must be ",
    "plan pod.yaml --checkpoints 1.5": "--checkpoints must be a whole number, got '1.5'",
    "plan pod.yaml --price p5=cheap": "--price p5 must be a number",
    "plan pod.yaml --cost nothing=1": "--cost ",
    "plan pod.yaml --output xml": "--output must be table, json or markdown, got 'xml'",
    "plan pod.yaml --format xml": "--output must be table, json or markdown, got 'xml'",
    "plan pod.yaml --plot plan.pdf": "--plot must be a file that ends with .png or .svg, got 'plan.pdf'",
    "costs pod.yaml --days x": "invalid value for '--days': ",
    "costs pod.yaml --days 0": "--days must be 1 to 393",
    "storage --dataset 40 --gbps 10 --nodes 8": "--dataset must be ",
    "storage --dataset 40TiB --gbps x --nodes 8": "--gbps must be ",
    "storage --dataset 40TiB --gbps 10 --nodes 8 --instance-type p9.large": "unknown instance type 'p9.large'",
    "status pod --output markdown": "--output must be table or json, got 'markdown'",
    "start pod --output xml": "--output must be table or json, got 'xml'",
    "start pod --timeout 30": "--timeout must be a number of seconds, minutes, hours or days, such as 90s, 30m, 12h",
    "stop pod --timeout 2d": "--timeout must be a number of seconds, minutes, hours or days",
    "terminate pod worker-1": "invalid value for 'NODE...': a node must be an instance id such as i-01",
    "connect pod i-xyz": "invalid value for 'NODE': a node must be an instance id",
    "keep pod": "keep takes either --until TIME, such as --until 12h, or --off",
    "keep pod --off --until 12h": "keep takes either --until TIME",
    "keep pod --until tomorrow": "--until must be a time ahead with its zone, such as",
    "keep pod --until 2020-01-01T00:00Z": "--until must be a time ahead",
    "keep pod --until 90d": "--until must be a time ahead with its zone",
    "exec pod --node first -- true": "invalid value for '--node': a node must be",
    "events pod --since yesterday": "--since must be a number of seconds, minutes, hours or days",
    "logs pod --since 1w": "--since must be ",
    "init out.yaml --accelerators 8 --nodes many": "--nodes must be ",
    "init pod.yaml --accelerators 8": "pod.yaml ",
    "dashboard pod --output xml": "--output must be table or json, got 'xml'",
    # Credentials and regions that there are not.
    "start pod": "start asks AWS, and there are no credentials: set AWS_PROFILE",
    "dashboard pod": "dashboard asks AWS, and there are no credentials",
    "status pod.yaml": "status asks AWS, and there are no credentials",
    "why pod workers/0": "why asks AWS, and there are no credentials",
    "deploy pod.yaml --profile nobody": "deploy cannot ask AWS: The config profile (nobody) could not be found",
    "checkpoints list pod": "checkpoints asks AWS, and there are no credentials",
    "exec pod -- true": "exec asks AWS, and there are no credentials",
    "import-map template.json": "import-map asks AWS, and there are no credentials",
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory with cluster files, a CDK CLI that only says its release, and neither credentials nor a region."""
    for name, text in {"pod": _FILE, "wrong": _WRONG, "broken": _BROKEN}.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    (tmp_path / "template.json").write_text('{"Resources": {}}')
    (tmp_path / "cdk").write_text("#!/bin/sh\necho 2.1148.1\n")
    (tmp_path / "cdk").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_REGION", "AWS_DEFAULT_REGION", "CDK_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    none = {"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}
    for name, value in {
        **none,
        "AWS_EC2_METADATA_DISABLED": "true",
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
    }.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(("given", "said"), _CASES.items(), ids=_CASES)
def test_a_wrong_invocation_is_one_sentence(given: str, said: str) -> None:
    ended = CliRunner().invoke(training_cluster, shlex.split(given), prog_name="training-cluster")
    assert ended.stderr.startswith(f"error: {said}"), ended.stderr or ended.exception
    assert (ended.exit_code, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
    assert not re.search(r"Traceback|[.?!] [A-Z]\w+ \w+.*[.?!]\n", ended.stderr)


@pytest.mark.usefixtures("place")
def test_a_name_without_a_region_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    ended = CliRunner().invoke(training_cluster, ["start", "pod"])
    said = "error: the region of the cluster 'pod' is not known: give it with --region, or set AWS_REGION\n"
    assert (ended.exit_code, ended.stderr) == (2, said)


def test_there_are_sixty() -> None:
    assert len(_CASES) >= 60


@pytest.mark.parametrize(
    ("region", "hint"),
    [("us-esat-1", "; did you mean us-west-1 or us-east-1?"), ("x", ""), ("us-east-1b", "; did you mean")],
)
def test_a_misspelled_region_is_refused_before_aws_is_asked(region: str, hint: str) -> None:
    result = CliRunner().invoke(training_cluster, ["status", "pod", "--region", region])
    assert result.exit_code == 2
    assert f"must be the name of a region, such as us-east-1, got {region!r}{hint}" in " ".join(result.output.split())


def test_each_region_that_botocore_knows_is_taken() -> None:
    session = boto3.session.Session()
    regions = [
        region
        for partition in session.get_available_partitions()
        for region in session.get_available_regions("ec2", partition_name=partition)
    ]
    assert len(regions) > 30
    assert [region for region in regions if re.fullmatch(REGION, region) is None] == []


def test_a_name_that_is_longer_than_the_system_s_file_names_is_one_of_a_cluster() -> None:
    assert not names_file("a" * 5000)
