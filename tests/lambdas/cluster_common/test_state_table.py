"""One part of a cluster's state, against moto's DynamoDB."""

from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from cluster_common.state_table import NO_ITEM, StateChangedError, StateTable
from cluster_contract.state import StatePart
from fake_dynamodb import TABLE, FakeDynamoDb

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

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


def test_many_items_are_written_and_deleted_with_a_request_for_25(table: StateTable) -> None:
    before = {f"node-{number:02}": VALUES for number in range(60)}
    after = {name: None if number % 2 else {"by": "ana"} for number, name in enumerate(before)}

    table.write_many(before, list[float]().append)
    assert {name: item.values for name, item in table.read_all().items()} == before
    table.write_many(after, list[float]().append)

    assert {name: item.values for name, item in table.read_all().items()} == {
        name: values for name, values in after.items() if values
    }
    kept = table.read("node-00")
    assert table.write("node-00", VALUES, seen=kept).values == VALUES


@pytest.mark.parametrize(("times", "pauses"), [(1, [0.05]), (3, [0.05, 0.2, 1.0])])
def test_items_that_dynamodb_leaves_are_written_again_or_raised(times: int, pauses: list[float]) -> None:
    fake, waited = FakeDynamoDb(), list[float]()
    table = StateTable(cast("DynamoDBClient", fake), TABLE, "idle#base-pod")
    fake.leaves = 2

    def wait(seconds: float) -> None:
        waited.append(seconds)
        fake.leaves = 2 if len(waited) < times else 0

    with pytest.raises(ClientError, match="2 items were not written") if times == 3 else nullcontext():
        table.write_many({f"node-{number}": VALUES for number in range(4)}, wait)

    assert (waited, len(fake.items)) == (pauses, 2 if times == 3 else 4)
