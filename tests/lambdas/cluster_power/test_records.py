from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_power.records import Record, State, Termination

PREFIX = "cdk-training-cluster:power-"
moments = st.datetimes(min_value=datetime(2020, 1, 1), timezones=st.just(UTC)).map(  # noqa: DTZ001 (the zone is added)
    lambda moment: moment.replace(microsecond=0)
)
texts = st.text("abc -.", max_size=20)


@given(
    st.builds(
        Record,
        state=st.sampled_from(State),
        size=st.none() | st.integers(min_value=0, max_value=10_000),
        by=texts,
        reason=texts,
        since=st.none() | moments,
    )
)
def test_what_is_remembered_is_read_back(record: Record) -> None:
    assert Record.from_tags(record.to_tags()) == record


def test_a_group_without_tags_was_never_seen() -> None:
    assert Record.from_tags({"Name": "x"}) == Record()


def test_what_people_were_told_is_read_back() -> None:
    assert Record.from_tags({f"{PREFIX}told": "problem/quota"}).told == ("problem/quota",)
    assert Record.from_tags({f"{PREFIX}told": "problem/quota end/1a"}).told == ("problem/quota", "end/1a")
    assert Record.from_tags({f"{PREFIX}told": "none"}).told == ()


@pytest.mark.parametrize(
    ("tag", "value"),
    [
        ("state", "stoped"),
        ("size", "-1"),
        ("size", "eight"),
        ("size", "\N{SUPERSCRIPT TWO}"),
        ("since", "x"),
        ("desired", "x"),
    ],
)
def test_what_the_function_never_writes_is_said_and_not_guessed(tag: str, value: str) -> None:
    tags = Record(state=State.RUNNING, size=8, since=datetime(2026, 1, 1, tzinfo=UTC)).to_tags()

    record = Record.from_tags(tags | {f"{PREFIX}{tag}": value})

    assert record.unreadable == f"the tag {PREFIX}{tag} says {value!r}"


def test_a_size_without_a_state_is_not_a_group_that_was_never_seen() -> None:
    assert Record.from_tags({f"{PREFIX}size": "8"}).unreadable == (
        f"the tag {PREFIX}size is there and {PREFIX}state is not"
    )


@given(moments, texts, st.text(max_size=300))
def test_the_last_termination_is_read_back_as_it_was_written(at: datetime, by: str, reason: str) -> None:
    written = Termination.new(at, by, reason)

    assert Record.from_tags({f"{PREFIX}terminated": written.text}).terminated == written
    assert len(written.text) <= 256


@pytest.mark.parametrize("text", ["", "none", "yesterday", "2026-11-02 by ana: cost"])
def test_a_termination_that_cannot_be_read_is_none_and_spoils_nothing(text: str) -> None:
    record = Record.from_tags({f"{PREFIX}terminated": text})

    assert (record.terminated, record.unreadable) == (None, "")
