"""The warnings in the state table: what is lost, spoiled or refused never stops a node sooner."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from unittest.mock import Mock

import pytest
from aws_lambda_powertools import Logger
from hypothesis import given
from hypothesis import strategies as st

from cluster_common.errors import PartialFailureError
from cluster_common.failures import Failures
from cluster_common.state_table import StateTable
from cluster_contract.codec import read
from cluster_idle.sent_warnings import IdleRecords, Refusal, SentWarning, UnreportedStop
from fake_dynamodb import TABLE, FakeDynamoDb
from fake_service import refusal
from idle_scene import PART, IdleScene, last_metrics, verdicts

moments = st.datetimes(datetime(2020, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)).map(  # noqa: DTZ001 (the zone is added)
    lambda moment: moment.replace(microsecond=0)
)
texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
sent_warnings = st.builds(
    SentWarning,
    idle_since=moments,
    stop_at=moments,
    nodes=st.integers(0, 10_000),
    owners=st.lists(texts, max_size=3).map(tuple),
    dry_run=st.booleans(),
    idle_until=st.none() | moments,
    reported=st.booleans(),
    refusals=st.dictionaries(texts, st.builds(Refusal, at=moments, code=texts), max_size=2),
    unreported=st.none()
    | st.builds(UnreportedStop, at=moments, ids=st.lists(texts, max_size=3).map(tuple), text=texts),
)


def records(table: FakeDynamoDb) -> IdleRecords:
    """Return what is read of a table."""
    found = IdleRecords(StateTable(cast("Any", table), TABLE, PART), Failures(Logger(service="test")), lambda _: None)
    assert found.read()
    return found


@given(sent_warnings, moments)
def test_what_was_written_is_read_back(sent: SentWarning, at: datetime) -> None:
    table = FakeDynamoDb()
    first = records(table)
    assert first.save({"workers": sent})
    assert first.save_reminders({"instance/i-1": at, "instance/i-2": at})
    assert first.save_reminders({"instance/i-2": None})

    found = records(table)
    assert (found.warnings, found.reminders) == ({"workers": sent}, {"instance/i-1": at})
    writes = len(table.calls)
    assert found.save({"workers": sent})
    assert found.save({})
    assert len(table.calls) == writes


@pytest.mark.parametrize("owners", ["themselves", "a group", "two groups"])
def test_the_warning_of_a_large_group_whose_nodes_are_all_refused_fits_into_its_item(owners: str) -> None:
    at = datetime(2026, 11, 2, tzinfo=UTC)
    ids = tuple(f"i-{number * 0x1F3D5B79A:017x}" for number in range(20_000))
    keys = {
        "themselves": tuple(f"instance/{one}" for one in ids),
        "a group": (f"auto_scaling_group/{'g' * 255}",),
        "two groups": (f"auto_scaling_group/{'g' * 255}", f"auto_scaling_group/{'h' * 255}"),
    }[owners]
    sent = SentWarning(
        idle_since=at,
        stop_at=at,
        nodes=len(ids),
        owners=keys,
        refusals={
            one: Refusal(at=at + timedelta(seconds=n), code="UnsupportedOperation") for n, one in enumerate(ids)
        },
        unreported=UnreportedStop(at=at, ids=ids, text="idle" * 1_000),
    )
    table = FakeDynamoDb()
    assert records(table).save({"n" * 128: sent})

    found = records(table).warnings["n" * 128]
    assert list(found.refusals) == list(ids[-1_000:])
    assert replace(found, refusals=sent.refusals) == sent


_LATEST = {"at": "9999-12-31T23:59:59Z", "code": "x"}
_SPOILED = [None, "", "soon", 7, True, [], ["x"], {}, {"at": "soon"}, {"i-1": "x"}, {"workers": _LATEST}]


@pytest.mark.parametrize("value", _SPOILED, ids=repr)
@pytest.mark.parametrize("key", SentWarning.__dataclass_fields__)
def test_an_item_that_an_operator_spoiled_stops_no_node_and_fails_no_run(key: str, value: object) -> None:
    scene = IdleScene()
    scene.add_group(count=2)
    scene.ticks(20)
    scene.dynamodb.change(PART, "workers", **{key: value})

    scene.ticks(10)
    assert scene.stopped == set()
    assert read(SentWarning, scene.warnings["workers"]).owners
    scene.ticks(30)
    assert len(scene.stopped) == 2


def test_a_lost_table_means_a_new_warning() -> None:
    scene = IdleScene()
    scene.add_group(count=2)
    scene.ticks(30)
    scene.dynamodb.items.clear()

    assert verdicts(scene.ticks(25)) == ["warn", "warn"]
    assert (scene.stopped, len(scene.subjects())) == (set(), 2)
    assert verdicts(scene.ticks(10)) == ["stop", "stop"]


def test_while_the_table_cannot_be_read_no_node_is_warned_of_or_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    scene = IdleScene()
    warned = scene.add(tags={"cdk-training-cluster:keep-until": "2026-11-02T08:05Z"})
    scene.ticks(30)
    scene.add()
    scene.add(90.0, tags={"cdk-training-cluster:keep-until": "soon"})
    for _ in range(6):
        scene.dynamodb.fail_next("Query", "ResourceNotFoundException")
        with pytest.raises(PartialFailureError, match="the state table state-table: could not be read"):
            scene.tick()

    assert (scene.stopped, len(scene.subjects()), last_metrics(capsys)["IdleEvaluations"]) == (set(), 1, 0)
    assert scene.tick()[warned.id]["verdict"] == "stop"


def test_while_the_table_takes_no_write_no_warning_is_sent_and_what_is_due_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = IdleScene()
    due = scene.add()
    scene.ticks(30)
    scene.add()
    error = refusal("BatchWriteItem", "ThrottlingException", "Rate exceeded")
    monkeypatch.setattr(scene.dynamodb, "batch_write_item", Mock(side_effect=error))
    for _ in range(4):
        with pytest.raises(PartialFailureError, match="the state table state-table: could not be written"):
            scene.tick()

    assert scene.stopped == {due.id}
    assert all("1 node idle" not in subject for subject in scene.subjects()[1:])


@pytest.mark.parametrize("service", ["ec2", "auto_scaling"])
@pytest.mark.parametrize("operation", ["create", "delete"])
def test_a_note_that_cannot_be_changed_fails_no_run_and_keeps_no_node(service: str, operation: str) -> None:
    scene = IdleScene()
    node, *gang = scene.add(), *scene.add_group(count=2)
    name = {
        ("ec2", "create"): "CreateTags",
        ("ec2", "delete"): "DeleteTags",
        ("auto_scaling", "create"): "CreateOrUpdateTags",
        ("auto_scaling", "delete"): "DeleteTags",
    }[service, operation]
    for _ in range(3):
        getattr(scene, service).fail_next(name, "TagLimitExceeded")
    scene.tick()
    for one in (node, *gang):
        one.load = 90
    scene.ticks(10)
    for one in (node, *gang):
        one.load = 0

    scene.ticks(100)
    assert scene.stopped == {node.id, *(one.id for one in gang)}


def test_a_run_asks_the_table_as_often_whatever_the_number_of_groups() -> None:
    asked = []
    for count in (1, 8):
        scene = IdleScene()
        for number in range(count):
            scene.add_group(f"group-{number}", count=1)
        scene.ticks(30)
        scene.dynamodb.page_size = 100
        scene.dynamodb.calls.clear()
        scene.tick()
        assert len(scene.stopped) == count
        asked.append([call.action for call in scene.dynamodb.calls])

    assert asked[0] == asked[1] == ["dynamodb:Query", "dynamodb:BatchWriteItem", "dynamodb:BatchWriteItem"]
