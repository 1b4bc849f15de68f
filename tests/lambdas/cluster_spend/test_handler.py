"""The handler as Lambda calls it, against moto in this process."""

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import boto3
import pytest
from aws_lambda_powertools.utilities.typing import LambdaContext
from moto import mock_aws

from cluster_common import clients
from cluster_common.errors import InvalidEventError
from cluster_contract.codec import InvalidSettingsError
from cluster_spend.handler import handler
from spend_scene import SpendScene

ARN = "arn:aws:lambda:us-east-1:123456789012:function:spend"


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An account with a state table, and the function's settings."""
    settings = {"cluster": "base-pod", "monthly_usd": 1000, "fixed": {"network": {"nat-gateway": 2}}}
    monkeypatch.setenv("CLUSTER_SPEND_SETTINGS", json.dumps(settings))
    monkeypatch.setenv("STATE_TABLE", "state")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    made: list[Any] = [clients.ec2, clients.dynamodb]
    for client in made:
        client.cache_clear()
    with mock_aws():
        keys: Any = {"part": "HASH", "name": "RANGE"}
        boto3.client("dynamodb").create_table(
            TableName="state",
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in keys],
            KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys.items()],
            BillingMode="PAY_PER_REQUEST",
        )
        yield
    for client in made:
        client.cache_clear()


def invoke(event: Any) -> dict[str, object]:
    told = {"function_name": "spend", "memory_limit_in_mb": 256, "aws_request_id": "1"}
    return handler(event, cast("LambdaContext", SimpleNamespace(invoked_function_arn=ARN, **told)))


@pytest.mark.usefixtures("account")
def test_a_tick_counts_publishes_and_keeps_the_month(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke({})["usd_per_hour"] == 0.09
    (item,) = boto3.client("dynamodb").scan(TableName="state")["Items"]
    assert item["part"] == {"S": "spend#base-pod"}
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith('{"_aws"')]
    cluster, *parts = lines
    assert (cluster["DollarsPerHour"], cluster["SuccessfulSpendTicks"], cluster["Cluster"]) == (
        [0.09],
        [1],
        "base-pod",
    )
    assert [part["Kind"] for part in parts] == ["network"]
    assert invoke({"action": "status"})["action"] == "status"


@pytest.mark.parametrize("event", [{"action": "stop"}, {"actoin": "tick"}, []])
@pytest.mark.usefixtures("account")
def test_another_event_is_refused_and_counts_nothing(event: Any) -> None:
    with pytest.raises(InvalidEventError, match=r"action|the event must be"):
        invoke(event)
    assert boto3.client("dynamodb").scan(TableName="state")["Items"] == []


@pytest.mark.usefixtures("account")
def test_settings_that_no_construct_writes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLUSTER_SPEND_SETTINGS", '{"cluster": "base-pod"}')
    with pytest.raises(InvalidSettingsError, match="no monthly_usd"):
        invoke({})


def test_two_clusters_of_one_table_count_each_its_own() -> None:
    one, other = SpendScene(), SpendScene(details={"cluster": "other-pod"})
    other.ec2, other.dynamodb = one.ec2, one.dynamodb
    one.add()
    for _ in range(2):
        one.tick(60)
        other.tick(60)
    assert one.spent() > 0
    assert other.run()["month_to_date_usd"] == 0
