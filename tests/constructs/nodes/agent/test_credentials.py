"""What users of a node get of the service that has the credentials of the jobs' role."""

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cdk_training_cluster.nodes.agent.cluster_node import connections
from cdk_training_cluster.nodes.agent.cluster_node import credentials as service
from cdk_training_cluster.nodes.agent.cluster_node.credentials import JobCredentials, serve
from cdk_training_cluster.nodes.agent.cluster_node.programs import Answer
from local_aws import LocalAws
from max_seconds import MAX_SECONDS
from node_sandbox import NodeSandbox

_HOUR = 3600


class _Sts:
    """STS and the time of day."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.asked = 0
        self.answers: list[Answer] = []

    def assume_role(self) -> Answer:
        self.asked += 1
        return self.answers.pop(0) if self.answers else self.given()

    def given(self, **more: Any) -> Answer:
        end = datetime.fromtimestamp(self.now + _HOUR, UTC).isoformat()
        keys = {"AccessKeyId": f"ASIA{self.asked}", "SecretAccessKey": "secret", "SessionToken": "token"}
        return Answer(0, json.dumps({**keys, "Expiration": end, **more}), "")

    def pass_time(self, seconds: float, credentials: JobCredentials) -> None:
        """Let the time pass as the service does, which looks at the credentials every five seconds."""
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + 5)
            credentials.turn()


@pytest.fixture
def sts() -> _Sts:
    return _Sts()


@pytest.fixture
def credentials(sts: _Sts) -> JobCredentials:
    return JobCredentials(sts.assume_role, clock=lambda: sts.now)


def test_credentials_are_renewed_long_before_their_end(sts: _Sts, credentials: JobCredentials) -> None:
    for _ in range(5 * 12):
        credentials.turn()
        status, document = credentials.answer()
        end = datetime.fromisoformat(document["Expiration"]).timestamp()
        # SDKs ask again and again from fifteen minutes before the end.
        assert (status, end - sts.now > 900) == (200, True)
        sts.pass_time(300, credentials)
    assert set(document) == {"AccessKeyId", "SecretAccessKey", "Token", "Expiration"}
    assert 9 <= sts.asked <= 11


def test_without_an_answer_of_sts_a_sentence_says_so_and_it_is_asked_again(
    sts: _Sts, credentials: JobCredentials, capsys: pytest.CaptureFixture[str]
) -> None:
    trouble = "aws ended with exit status 255: Could not connect to the endpoint URL"
    sts.answers = [Answer(255, "", trouble)] * 3
    assert "AWS STS was not asked yet" in credentials.answer()[1]["message"]
    credentials.turn()
    assert credentials.answer() == (
        503,
        {
            "code": "NoCredentials",
            "message": f"this node has no credentials of the jobs' role, and asks AWS STS again: {trouble}",
        },
    )
    sts.pass_time(5 + 10 + 20, credentials)
    assert (credentials.answer()[0], sts.asked) == (200, 4)
    assert capsys.readouterr().err.count(trouble) == 3


def test_sts_is_asked_at_least_once_a_minute_and_expired_credentials_are_given_to_nobody(
    sts: _Sts, credentials: JobCredentials
) -> None:
    credentials.turn()
    sts.answers = [Answer(None, "", "aws did not answer in 30 seconds", is_late=True)] * 1000
    sts.pass_time(_HOUR - 5, credentials)
    assert credentials.answer()[0] == 200
    before = sts.asked
    sts.pass_time(600, credentials)
    assert credentials.answer()[0] == 503
    assert 9 <= sts.asked - before <= 11
    # A machine that slept wakes with credentials that are past their end.
    sts.answers = []
    sts.pass_time(60, credentials)
    sts.now += 2 * _HOUR
    assert credentials.answer()[0] == 503


@pytest.mark.parametrize("end", ["2026-11-28T17:01:36+00:00", "2026-11-28T18:01:36+01:00", "2026-11-28T17:01:36Z"])
def test_the_end_is_written_as_amazon_ecs_writes_it(sts: _Sts, credentials: JobCredentials, end: str) -> None:
    # The second version of the AWS CLI writes an offset, which the SDK for Rust refuses.
    # https://github.com/smithy-lang/smithy-rs/blob/main/aws/rust-runtime/aws-config/src/json_credentials.rs
    sts.answers = [sts.given(Expiration=end)]
    credentials.turn()
    assert credentials.answer()[1]["Expiration"] == "2026-11-28T17:01:36Z"


@pytest.mark.parametrize("text", ["secret-of-aws", '["secret-of-aws"]', '{"SecretAccessKey": "secret-of-aws"}', "{}"])
def test_nothing_of_an_answer_that_cannot_be_read_is_written_down(
    sts: _Sts, credentials: JobCredentials, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    sts.answers = [Answer(0, text, "")]
    credentials.turn()
    status, document = credentials.answer()
    assert (status, "the answer of AWS STS holds no credentials" in document["message"]) == (503, True)
    assert "secret-of-aws" not in f"{capsys.readouterr().err}{document}"


def _ask(url: str, method: str = "GET", path: str | None = None, **headers: str) -> http.client.HTTPResponse:
    address = http.client.urlsplit(url)  # type: ignore[attr-defined] # it imports it
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=MAX_SECONDS)
    connection.request(method, path or address.path, headers=headers)
    return connection.getresponse()


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", None, {}, 200),
        # The Common Runtime, of which Mountpoint and s3torchconnector are made, leaves the port out.
        # https://github.com/awslabs/aws-c-auth/blob/main/source/credentials_provider_ecs.c
        ("GET", None, {"Host": "127.0.0.1"}, 200),
        ("GET", None, {"Host": "127.0.0.1:1"}, 404),
        ("GET", "/", {}, 404),
        ("GET", "/job-role/", {}, 404),
        ("GET", None, {"Host": "rebound.example.com"}, 404),
        ("GET", None, {"X-Forwarded-For": "192.0.2.1"}, 404),
        ("POST", None, {}, 501),
        ("PUT", None, {}, 501),
        ("HEAD", None, {}, 501),
    ],
)
def test_only_a_plain_get_of_the_one_path_is_answered(
    credentials: JobCredentials, method: str, path: str | None, headers: dict[str, str], status: int
) -> None:
    credentials.turn()
    url = serve("http://127.0.0.1:0/job-role", credentials)
    answer = _ask(url, method, path, **headers)
    assert answer.status == status
    assert (b"secret" in answer.read()) == (status == 200)


def test_connections_that_say_nothing_are_few(monkeypatch: pytest.MonkeyPatch, credentials: JobCredentials) -> None:
    monkeypatch.setattr(connections, "_MAX_CONNECTIONS_OF_A_USER", 3)
    url = serve("http://127.0.0.1:0/job-role", credentials)
    address = http.client.urlsplit(url)  # type: ignore[attr-defined] # it imports it
    kept = [socket.create_connection((address.hostname, address.port), timeout=MAX_SECONDS) for _ in range(3)]
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        _ask(url)
    # Those of many users make room: a user may act as many.
    monkeypatch.setattr(connections, "_MAX_CONNECTIONS", 3)
    monkeypatch.setattr(connections, "_MAX_CONNECTIONS_OF_A_USER", 100)
    assert _ask(url).status == 503
    assert not kept[0].recv(1)
    for one in kept:
        one.close()


# As Java connects, to an address of IPv4 with a socket of IPv6.
_MAPPED = "::ffff:127.0.0.1"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can connect as another user")
@pytest.mark.parametrize("is_asked", [True, False])
@pytest.mark.parametrize("address_of_server", ["127.0.0.1", _MAPPED])
def test_a_user_who_takes_all_that_he_may_keeps_nothing_from_another(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    credentials: JobCredentials,
    address_of_server: str,
    is_asked: bool,
) -> None:
    """The list of all sockets, which takes seconds if a user has opened 100,000, is read only without sock_diag."""
    monkeypatch.setattr(connections, "_MAX_CONNECTIONS_OF_A_USER", 3)
    no_protocol = 31
    without = ("_SOCKETS", tmp_path) if is_asked else ("_SOCK_DIAG", no_protocol)
    monkeypatch.setattr(service, *without)
    url = serve("http://127.0.0.1:0/job-role", credentials)
    address = http.client.urlsplit(url)  # type: ignore[attr-defined] # it imports it
    hold = (
        "import os, socket, sys; 'loads it before'.encode('idna'); os.setuid(65534); "
        f"kept = [socket.create_connection(('{address_of_server}', {address.port})) for _ in range(10)]; "
        "print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", hold]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        mapped = url.replace("127.0.0.1", f"[{_MAPPED}]") if address_of_server == _MAPPED else url
        assert _ask(mapped, Host=address.netloc).status == 503
        other.communicate("")


def test_a_connection_whose_user_is_not_known_is_answered_and_ends_no_service(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, credentials: JobCredentials
) -> None:
    """As on a kernel without sock_diag and IPv6, or one that has no memory for an answer."""
    monkeypatch.setattr(service, "_SOCK_DIAG", 31)
    monkeypatch.setattr(service, "_SOCKETS", tmp_path)
    url = serve("http://127.0.0.1:0/job-role", credentials)
    assert [_ask(url).status for _ in range(2)] == [503, 503]


# What the AWS CLI does with these arguments, and with the instance's credentials.
_CLI = """#!{python}
import json, sys
import boto3

given = dict(zip(sys.argv[1:], sys.argv[2:]))
assert sys.argv[1:].count("assume-role") == 1 and given["--query"] == "Credentials", sys.argv
answer = boto3.client("sts", region_name=given["--region"], endpoint_url={endpoint!r}, **{keys!r}).assume_role(
    RoleArn=given["--role-arn"],
    RoleSessionName=given["--role-session-name"],
    DurationSeconds=int(given["--duration-seconds"]),
)
print(json.dumps(answer["Credentials"], default=lambda time: time.isoformat()))
"""

_JOB = """
import json, boto3
from botocore.exceptions import ClientError

session = boto3.Session()
method = session.get_credentials().method
who = session.client("sts").get_caller_identity()["Arn"]
try:
    session.client("events").put_events(Entries=[{"Source": "pod/x", "DetailType": "Node report", "Detail": "{}"}])
    said = "taken"
except ClientError as error:
    said = error.response["Error"]["Code"]
print(json.dumps([method, who, said]))
"""


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[LocalAws]:
    with LocalAws(tmp_path / "local-aws.log") as running:
        yield running


def _make_role(aws: LocalAws, name: str, principal: dict[str, str], action: str) -> str:
    iam = aws.client("iam")
    trust = {"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"}
    role = iam.create_role(
        RoleName=name, AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    )
    allowed = {"Effect": "Allow", "Action": action, "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
    iam.put_role_policy(RoleName=name, PolicyName="own", PolicyDocument=policy)
    return str(role["Role"]["Arn"])


def test_boto3_takes_the_role_of_jobs_from_the_service_of_a_node(aws: LocalAws, tmp_path: Path) -> None:
    nodes = _make_role(aws, "nodes", {"Service": "ec2.amazonaws.com"}, "sts:AssumeRole")
    jobs = _make_role(aws, "jobs", {"AWS": nodes}, "dynamodb:GetItem")
    endpoint = aws.client("sts").meta.endpoint_url
    given = aws.instance_credentials("nodes", "i-0a1b2c3d4e5f67890")
    keys = {f"aws_{name}": given[key] for name, key in _NAMES.items()}
    node = NodeSandbox(tmp_path / "node")
    node.install_scripts()
    node.write("sys/devices/virtual/dmi/id/board_asset_tag", "i-0a1b2c3d4e5f67890\n")
    assert node.step("commands.sh").returncode == 0
    cli = node.sandbox / "bin/aws"
    cli.write_text(_CLI.format(python=sys.executable, endpoint=endpoint, keys=keys))
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}/job-role"
    # systemd starts it so; the variable of users changes nothing for root.
    command = [str(node.root / "usr/local/bin/cluster-node"), "credentials", "--role", jobs, "--url", url]
    own = {"PATH": f"{node.sandbox}/bin:{os.defpath}", "SANDBOX": str(node.sandbox)}
    with subprocess.Popen(command, env=own, stderr=subprocess.PIPE, text=True) as service:
        try:
            _wait_for(url)
            variables = {
                "AWS_CONTAINER_CREDENTIALS_FULL_URI": url,
                "AWS_ENDPOINT_URL": endpoint,
                "AWS_DEFAULT_REGION": aws.region,
                "HOME": str(tmp_path),
                "PATH": os.defpath,
            }
            job = subprocess.run(
                [sys.executable, "-c", _JOB], env=variables, capture_output=True, text=True, check=False
            )
        finally:
            service.terminate()
            _, said = service.communicate(timeout=MAX_SECONDS)
    assert job.stderr == ""
    arn = "arn:aws:sts::123456789012:assumed-role/jobs/i-0a1b2c3d4e5f67890"
    assert json.loads(job.stdout) == ["container-role", arn, "AccessDeniedException"]
    assert said == ""


_NAMES = {"access_key_id": "AccessKeyId", "secret_access_key": "SecretAccessKey", "session_token": "SessionToken"}


def _wait_for(url: str) -> None:
    end = time.monotonic() + MAX_SECONDS
    while time.monotonic() < end:
        try:
            if _ask(url).status == 200:
                return
        except ConnectionError:
            pass
        time.sleep(0.05)
    pytest.fail("the service gives no credentials")
