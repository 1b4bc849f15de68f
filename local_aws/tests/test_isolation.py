"""It runs on localhost only, uses nothing of the user's, and leaves nothing running."""

import ast
import os
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError

from local_aws import LocalAws, LocalAwsError
from max_seconds import MAX_SECONDS

USERS_OWN = {
    "AWS_PROFILE": "company",
    "AWS_ACCESS_KEY_ID": "users-own",
    "AWS_SESSION_TOKEN": "users-own",
    "AWS_ENDPOINT_URL_EC2": "https://ec2.example.com",
    "AWS_CA_BUNDLE": "/nowhere/bundle.pem",
    "AWS_CONFIG_FILE": "/nowhere/config",
    "AWS_USE_FIPS_ENDPOINT": "true",
    "AWS_MAX_ATTEMPTS": "9",
    "CDK_DEFAULT_ACCOUNT": "999999999999",
    "HTTP_PROXY": "http://proxy.example.com:3128",
    "https_proxy": "http://proxy.example.com:3128",
    "NO_PROXY": "example.org",
}


def test_it_imports_nothing_of_the_product() -> None:
    project = Path(__file__).parents[2]
    folders = (
        "constructs",
        "cluster_file",
        "cli",
        "manifests",
        "stacks",
        "lambdas",
        "rehearsal",
        "tests",
        "benchmarks",
    )
    product = {"rehearsal", "benchmarks"} | {path.stem for folder in folders for path in (project / folder).iterdir()}
    imported = set()
    for path in (project / "local_aws").rglob("*.py"):
        if "tests" not in path.parts:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom):
                    imported.add(str(node.module).split(".")[0])
                elif isinstance(node, ast.Import):
                    imported |= {alias.name.split(".")[0] for alias in node.names}
    assert imported & product == set()


def test_the_endpoint_is_localhost_and_nothing_else_listens(aws: LocalAws) -> None:
    address = urlsplit(aws.endpoint_url)
    assert address.hostname == "localhost"
    own = socket.gethostbyname(socket.gethostname())
    if not own.startswith("127."):
        with socket.socket() as probe:
            assert probe.connect_ex((own, address.port)) != 0


def test_the_server_reaches_no_other_machine(aws: LocalAws) -> None:
    sns = aws.client("sns")
    topic = sns.create_topic(Name="outward")["TopicArn"]
    sns.subscribe(TopicArn=topic, Protocol="https", Endpoint="https://example.com/hook")
    with pytest.raises(ClientError, match=r"never leaves this machine, and example\.com is not on it"):
        sns.publish(TopicArn=topic, Message="hello")
    sns.delete_topic(TopicArn=topic)


def test_a_child_gets_an_environment_without_the_users_aws_settings(aws: LocalAws) -> None:
    environment = aws.environment({**USERS_OWN, "PATH": "/bin", "HOME": "/home/user"})
    assert environment["PATH"] == "/bin"
    assert environment["AWS_ENDPOINT_URL"] == aws.endpoint_url
    assert environment["AWS_CONFIG_FILE"] == environment["AWS_SHARED_CREDENTIALS_FILE"] == os.devnull
    assert environment["CDK_DISABLE_CLI_TELEMETRY"] == environment["CDK_DISABLE_VERSION_CHECK"] == "true"
    assert environment["NO_PROXY"] == environment["no_proxy"] == "localhost,127.0.0.1"
    assert Path(environment["CDK_HOME"]) != Path.home() / ".cdk"
    for name, value in USERS_OWN.items():
        assert environment.get(name) != value


def test_the_users_environment_leads_neither_server_nor_clients_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in USERS_OWN.items():
        monkeypatch.setenv(name, value)
    with LocalAws(tmp_path / "log.txt", region="us-west-2") as aws:
        assert aws.client("sts").get_caller_identity()["Account"] == aws.account
        zones = aws.client("ec2").describe_availability_zones()["AvailabilityZones"]
        assert {zone["RegionName"] for zone in zones} == {"us-west-2"}
        process_id = aws.process_id
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)
    with pytest.raises(LocalAwsError, match="is not running"):
        _ = aws.endpoint_url


def test_the_server_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    script = (
        "import os, pathlib, sys\n"
        "from local_aws import LocalAws\n"
        "aws = LocalAws(pathlib.Path(sys.argv[1]))\n"
        "aws.__enter__()\n"
        "print(aws.process_id, aws.endpoint_url, flush=True)\n"
        "os._exit(1)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "log.txt")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    answer = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=MAX_SECONDS, check=False
    )
    process_id = int(answer.stdout.split()[0])
    for _ in range(200):
        if not Path(f"/proc/{process_id}").exists() or "Z" in Path(f"/proc/{process_id}/stat").read_text().split()[2]:
            break
        subprocess.run(["sleep", "0.05"], check=True)
    else:
        pytest.fail("the server outlived the process that started it")
