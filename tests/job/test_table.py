"""The items of a run under clients that race, answers that are lost, and a DynamoDB that refuses."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

import boto3
import pytest
from moto import mock_aws

from cluster_job.table import RunTable, TableError
from fake_runs_table import TABLE, FakeRunsTable

CLIENTS = 64
Found = TypeVar("Found")


def race(task: Callable[[int], Found]) -> list[Found]:
    start = Barrier(CLIENTS)

    def run(number: int) -> Found:
        start.wait()
        return task(number)

    with ThreadPoolExecutor(CLIENTS) as pool:
        return list(pool.map(run, range(CLIENTS)))


def table_of(client: object, run: str = "llama") -> RunTable:
    return RunTable(client, TABLE, run)  # type: ignore[arg-type]


@pytest.mark.parametrize("faults", [{}, {"lost_answers": 0.3}, {"lost_answers": 0.3, "throttled": 0.2}])
def test_of_clients_that_race_each_joins_once(faults: dict[str, float]) -> None:
    client = FakeRunsTable(**faults)
    table = table_of(client)

    def join(number: int) -> None:
        """Join as torch's rendezvous does: add oneself to what was read last, until that was put."""
        version, members = None, list[int]()
        while number not in members:
            try:
                found, _ = table.replace("state", json.dumps([*members, number]).encode(), version)
            except TableError:
                assert "throttled" in faults
                continue
            assert found is not None
            version, members = found.version, json.loads(found.value)

    race(join)
    client.throttled = 0
    state = table.read("state")
    assert state is not None
    assert sorted(json.loads(state.value)) == list(range(CLIENTS))
    assert state.version == CLIENTS


def test_a_counter_counts_each_client_once_where_answers_are_lost() -> None:
    table = table_of(FakeRunsTable(lost_answers=0.3))
    found = race(lambda _: table.add("members", 1))
    assert sorted(found) == list(range(1, CLIENTS + 1))
    assert table.add("members", 2) == CLIENTS + 2


def test_a_put_whose_answer_was_lost_is_known_as_our_own() -> None:
    table = table_of(FakeRunsTable(lost_answers=1))
    assert [table.replace("state", b"a", None)[1], table.replace("state", b"b", 1)[1]] == [True, True]


def test_runs_do_not_see_one_another_and_pages_are_read_to_the_end() -> None:
    client = FakeRunsTable()
    for number in range(10):
        table_of(client).put(f"history/{number}", b"x")
    table_of(client, "other").put("history/11", b"y")
    assert len(table_of(client).list("history/")) == 10
    assert list(table_of(client).list("history/", since="8")) == ["history/8", "history/9"]
    assert table_of(client, "other").list("") == {"history/11": b"y"}
    assert all(int(item["expires"]["N"]) > 0 for item in client.items.values())


@pytest.mark.parametrize(
    ("code", "call"),
    [
        ("ProvisionedThroughputExceededException", lambda table: table.replace("state", b"", None)),
        ("InternalServerError", lambda table: table.put("a", b"")),
        ("AccessDeniedException", lambda table: table.list("a")),
        ("ThrottlingException", lambda table: table.add("a", 1)),
        ("ResourceNotFoundException", lambda table: table.read("a")),
    ],
)
def test_a_refusal_is_one_sentence_with_its_code(code: str, call: Callable[[RunTable], object]) -> None:
    client = FakeRunsTable()
    for operation in ("PutItem", "GetItem", "UpdateItem", "Query"):
        client.fail_next(operation, code)
    with pytest.raises(TableError, match=f"^DynamoDB's table runs refused .*{code}"):
        call(table_of(client))


def test_silence_is_one_sentence() -> None:
    client = FakeRunsTable()
    client.down = True
    with pytest.raises(TableError, match=r"^DynamoDB's table runs did not answer get_item"):
        table_of(client).read("state")


def test_dynamodb_itself_takes_what_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    with mock_aws():
        client = boto3.client("dynamodb", region_name="us-east-1")
        client.create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "run", "KeyType": "HASH"}, {"AttributeName": "key", "KeyType": "RANGE"}],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("run", "key")],
            BillingMode="PAY_PER_REQUEST",
        )
        table = RunTable(client, TABLE, "llama")
        assert table.replace("state", b"a", None)[1]
        found, ours = table.replace("state", b"b", None)
        assert (found, ours) == (table.read("state"), False)
        assert table.replace("state", b"b", 1)[1]
        assert [table.add("n", 1), table.add("n", 2)] == [1, 3]
        table.put("history/a", b"c")
        assert (table.list("history/"), table.read("none")) == ({"history/a": b"c"}, None)
