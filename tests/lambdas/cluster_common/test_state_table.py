"""One part of a cluster's state, against moto's DynamoDB."""

from collections.abc import Iterator
from datetime import UTC, datetime

import boto3
import pytest
from moto import mock_aws

from cluster_common.state_table import NO_ITEM, StateChangedError, StateTable
from cluster_contract.state import StatePart
from fake_dynamodb import TABLE

VALUES = {"state": "stopped", "owners": {"asg": {"size": 8, "told": ["a", "b"], "done": True}}, "by": ""}


@pytest.fixture
def table() -> Iterator[StateTable]:
    with mock_aws():
        client = boto3.client("dynamodb")
        client.create_table(
            TableName=TABLE,
            AttributeDefinitions=[
                {"AttributeName": "part", "AttributeType": "S"},
                {"AttributeName": "name", "AttributeType": "S"},
            ],
            KeySchema=[{"AttributeName": "part", "KeyType": "HASH"}, {"AttributeName": "name", "KeyType": "RANGE"}],
            BillingMode="PAY_PER_REQUEST",
        )
        yield StateTable(client, TABLE, StatePart.POWER.key("base-pod"))


def test_what_is_written_is_read_back(table: StateTable) -> None:
    written = table.write("workers", VALUES, seen=NO_ITEM)

    assert (table.read("workers"), table.read_all()) == (written, {"workers": written})
    assert written.values == VALUES
    assert (table.read("eval"), NO_ITEM.values) == (NO_ITEM, {})


def test_who_has_not_seen_the_newest_item_is_refused(table: StateTable) -> None:
    first = table.write("workers", VALUES, seen=NO_ITEM)
    second = table.write("workers", {"state": "running"}, seen=first)

    for seen in (NO_ITEM, first):
        with pytest.raises(StateChangedError, match="power#base-pod workers was changed by another run"):
            table.write("workers", VALUES, seen=seen)
    assert table.read("workers") == second
    table.write("workers", VALUES, seen=second)


def test_all_pages_are_read(table: StateTable) -> None:
    text = "x" * 300_000
    for number in range(5):  # A page holds a megabyte.
        table.write(f"group-{number}", {"text": text}, seen=NO_ITEM)

    assert list(table.read_all()) == [f"group-{number}" for number in range(5)]


def test_an_item_that_expires_says_when(table: StateTable) -> None:
    table.write("workers", {}, seen=NO_ITEM, expires=datetime(2026, 11, 2, tzinfo=UTC))

    item = boto3.client("dynamodb").scan(TableName=TABLE)["Items"][0]
    assert item["expires"] == {"N": "1793577600"}
    assert table.read("workers").values == {}


@pytest.mark.parametrize("version", [None, {"S": "mine"}, {"N": "7"}])
def test_an_item_that_an_operator_has_written_can_be_overwritten(
    table: StateTable, version: dict[str, str] | None
) -> None:
    raw = {"part": {"S": "power#base-pod"}, "name": {"S": "workers"}, "state": {"S": "stoped"}}
    boto3.client("dynamodb").put_item(TableName=TABLE, Item=raw | ({"version": version} if version else {}))

    table.write("workers", VALUES, seen=table.read("workers"))

    assert table.read("workers").values == VALUES
