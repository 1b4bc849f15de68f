"""The handler as Lambda calls it, against moto's services in this process."""

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import boto3
import pytest
from aws_lambda_powertools.utilities.typing import LambdaContext
from moto import mock_aws
from moto.ec2.models import ec2_backends

from cluster_common import clients
from cluster_common.actions import parse_action
from cluster_common.errors import InvalidEventError
from cluster_contract.codec import InvalidSettingsError
from cluster_idle.handler import handler, logger
from fake_dynamodb import TABLE

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client

CONTEXT = cast(
    "LambdaContext",
    SimpleNamespace(
        function_name="idle",
        memory_limit_in_mb=256,
        invoked_function_arn="arn:aws:lambda:us-east-1:111122223333:function:idle",
        aws_request_id="11111111-2222-3333-4444-555555555555",
    ),
)
NOTE = "cdk-training-cluster:idle-note"


@pytest.fixture
def ec2(monkeypatch: pytest.MonkeyPatch) -> Iterator["EC2Client"]:
    settings = {"cluster": "base-pod"}
    monkeypatch.setenv("CLUSTER_IDLE_SETTINGS", json.dumps(settings))
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("STATE_TABLE", TABLE)
    monkeypatch.delenv("POWER_FUNCTION", raising=False)
    _forget_clients()
    with mock_aws():
        monkeypatch.setenv("ALERT_TOPIC_ARN", boto3.client("sns").create_topic(Name="alerts")["TopicArn"])
        keys = {"part": "HASH", "name": "RANGE"}
        boto3.client("dynamodb").create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys.items()],  # type: ignore[typeddict-item]  # text
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in keys],
            BillingMode="PAY_PER_REQUEST",
        )
        yield boto3.client("ec2")
    _forget_clients()


def _forget_clients() -> None:
    for client in (clients.ec2, clients.cloudwatch, clients.dynamodb, clients.sns):
        client.cache_clear()


def _launch(ec2: "EC2Client", load: float, cluster: str = "base-pod") -> str:
    """Launch an instance that has had a load for more than an hour."""
    tags: Any = [
        {
            "ResourceType": "instance",
            "Tags": [{"Key": "cdk-training-cluster:cluster", "Value": cluster}, {"Key": "Name", "Value": "node"}],
        }
    ]
    answer = ec2.run_instances(
        ImageId="ami-1", InstanceType="p5.48xlarge", MinCount=1, MaxCount=1, TagSpecifications=tags
    )
    launched = answer["Instances"][0]["InstanceId"]
    now = datetime.now(UTC)
    made = ec2_backends["123456789012"]["us-east-1"].get_instance(launched)
    made.launch_time = now.replace(tzinfo=None) - timedelta(days=1)
    boto3.client("cloudwatch").put_metric_data(
        Namespace=f"CdkTrainingCluster/Nodes/{cluster}",
        MetricData=[
            {
                "MetricName": "nvidia_smi_utilization_gpu",
                "Dimensions": [{"Name": "InstanceId", "Value": launched}],
                "Timestamp": now - timedelta(minutes=5 * number),
                # A sample of each of eight GPUs, five times.
                "Values": [load],
                "Counts": [40],
            }
            for number in range(20)
        ],
    )
    return launched


def _tags(ec2: "EC2Client", id: str) -> dict[str, str]:
    found = ec2.describe_tags(Filters=[{"Name": "resource-id", "Values": [id]}])["Tags"]
    return {tag["Key"]: tag["Value"] for tag in found if tag["Key"] == NOTE}


def _state(ec2: "EC2Client", id: str) -> str:
    return ec2.describe_instances(InstanceIds=[id])["Reservations"][0]["Instances"][0]["State"]["Name"]


def _invoke(event: dict[str, Any]) -> dict[str, str]:
    summary: Any = handler(event, CONTEXT)
    return {node["instance_id"]: node["verdict"] for node in summary["nodes"]}


def test_ticks_warn_of_idle_nodes_and_stop_them_when_their_time_has_come(ec2: "EC2Client") -> None:
    idle, busy, foreign = _launch(ec2, 0), _launch(ec2, 80), _launch(ec2, 0, cluster="other")

    assert _invoke({}) == {idle: "warn", busy: "busy"}
    assert _tags(ec2, idle).keys() == {NOTE}
    (item,) = boto3.client("dynamodb").scan(TableName=TABLE)["Items"]
    boto3.client("dynamodb").put_item(TableName=TABLE, Item={**item, "stop_at": {"S": "2026-01-01T00:00:00Z"}})
    assert _invoke({"action": "tick"}) == {idle: "stop", busy: "busy"}

    assert [_state(ec2, one) for one in (idle, busy, foreign)] == ["stopped", "running", "running"]
    assert _tags(ec2, foreign) == {}
    assert _invoke({}) == {busy: "busy"}


def test_a_question_changes_nothing(ec2: "EC2Client") -> None:
    idle = _launch(ec2, 0)

    assert _invoke({"action": "status"}) == {idle: "warn"}
    assert _tags(ec2, idle) == {}


def test_every_record_names_the_cluster_and_the_one_on_an_instance_names_it(
    ec2: "EC2Client", capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    idle = _launch(ec2, 0)
    log = io.StringIO()
    monkeypatch.setattr(logger.registered_handler, "stream", log)

    _invoke({})

    # Beside it there is one of each message that was sent.
    (record,) = [one for line in log.getvalue().splitlines() if "instance_id" in (one := json.loads(line))]
    metrics = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (record["cluster"], record["instance_id"], record["verdict"]) == ("base-pod", idle, "warn")
    assert record["function_request_id"] == CONTEXT.aws_request_id
    assert [one["_aws"]["CloudWatchMetrics"][0]["Dimensions"] for one in metrics] == [[["Cluster"]], [["Cluster"]]]
    assert (metrics[0]["IdleWarnedNodes"], metrics[0]["IdleEvaluations"]) == ([1.0], [1.0])


def test_a_wrong_event_does_nothing(ec2: "EC2Client") -> None:
    idle = _launch(ec2, 0)

    with pytest.raises(InvalidEventError, match="action must be one of tick, status, got 'stop'"):
        _invoke({"action": "stop"})

    assert _tags(ec2, idle) == {}


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"action": None}, "action must be one of tick, status, got None"),
        ({"action": ["tick"]}, "action must be one of tick, status, got ['tick']"),
        ({"node_groups": ["workers"], "action": "tick"}, "the event takes the key action only, got node_groups"),
        (["tick"], "the event must be a JSON object, got ['tick']"),
        (None, "the event must be a JSON object, got None"),
    ],
)
def test_what_an_event_may_not_say(event: object, message: str) -> None:
    with pytest.raises(InvalidEventError) as caught:
        parse_action(event)

    assert str(caught.value) == message


def test_a_function_without_settings_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLUSTER_IDLE_SETTINGS", raising=False)

    with pytest.raises(InvalidSettingsError, match="CLUSTER_IDLE_SETTINGS is missing"):
        _invoke({})
