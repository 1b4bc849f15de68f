from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_common.power_records import Desired, GroupState, Order, Record, State, Termination

AT = datetime(2026, 11, 2, 8, tzinfo=UTC)
moments = st.datetimes(min_value=datetime(2020, 1, 1), timezones=st.just(UTC)).map(  # noqa: DTZ001 (the zone is added)
    lambda moment: moment.replace(microsecond=0)
)
texts = st.text("abc -.", min_size=1, max_size=20)
counts = st.integers(min_value=0, max_value=10_000)
limits = st.tuples(st.just(State.LIMITED), counts) | st.tuples(
    st.sampled_from([State.RUNNING, State.STOPPED]), st.none()
)
orders = st.builds(
    lambda limit, **texts: Order(state=limit[0], limit=limit[1], **texts),
    limits,
    by=texts,
    reason=texts,
    since=moments,
)
records = st.builds(
    Record,
    size=st.none() | counts,
    since=st.none() | moments,
    told=st.lists(texts, max_size=2).map(tuple),
    terminated=st.none() | st.builds(Termination, at=moments, text=texts, ids=st.lists(texts, max_size=2).map(tuple)),
    desired=st.none()
    | st.builds(Desired, sizes=st.lists(counts, min_size=1).map(tuple), at=moments, goal=st.none() | counts),
    gone=st.none() | moments,
)


@given(st.builds(GroupState, order=st.none() | orders, owners=st.dictionaries(texts, records, max_size=3)))
def test_what_is_recorded_is_read_back(state: GroupState) -> None:
    assert GroupState.from_values(state.to_values()) == state


def test_an_item_without_attributes_is_of_a_group_that_was_never_seen() -> None:
    assert GroupState.from_values({}) == GroupState()


def test_an_attribute_that_a_newer_function_wrote_is_left_out() -> None:
    """It may have been rolled back."""
    assert GroupState.from_values({"drained": True, "owners": {"asg": {"drain": 1}}}).owners == {"asg": Record()}


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"state": "stoped", "by": "a", "reason": "b", "since": "2026-11-02T08:00:00Z"}, "must be one of running, "),
        ({"state": "stopped", "by": "a", "reason": "b"}, "got no since"),
        ({"state": "stopped", "by": "a", "reason": "b", "since": "soon"}, "does not match format"),
        (
            {"state": "limited", "by": "a", "reason": "b", "since": "2026-11-02T08:00:00Z"},
            "limit goes with the state limited, got None with limited",
        ),
        ({"owners": []}, "owners must be an object"),
        ({"owners": {"asg": {"size": -1}}}, "size must be at least 0 and at most 2147483647, got -1"),
        ({"owners": {"asg": {"size": True}}}, "size must be a whole number, got True"),
        ({"owners": {"asg": {"told": "x"}}}, "told must be a list, got 'x'"),
        ({"owners": {"asg": {"desired": {"sizes": ["8"], "at": "2026-11-02T08:00:00Z"}}}}, "got '8'"),
        (
            {"owners": {"asg": {"desired": {"sizes": [], "at": "2026-11-02T08:00:00Z"}}}},
            "at least one size, got none",
        ),
        ({"owners": {"asg": {"size": 10**40}}}, "size must be at least 0 and at most 2147483647, got 1"),
        ({"owners": {"asg": {"terminated": {"at": "x", "text": "y"}}}}, "does not match format"),
    ],
)
def test_what_the_function_never_writes_is_said_and_not_guessed(values: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        GroupState.from_values(values)


def test_an_order_has_every_size_set_again_and_forgets_nothing_else() -> None:
    order = Order(state=State.STOPPED, by="ana", reason="weekend", since=AT, sizes={"kept": 8})
    before = Record(
        size=8, since=AT - timedelta(hours=1), told=("problem/quota",), desired=Desired(sizes=(5,), at=AT)
    )

    after = GroupState(owners={"asg": before, "kept": before}).with_order(order)

    ordered = Record(
        state=State.STOPPED, by="ana", reason="weekend", since=AT, ordered_at=AT, told=("problem/quota",)
    )
    assert after.record("asg") == replace(ordered, desired=before.desired)
    assert after.record("kept") == replace(ordered, size=8)
    assert after.record("its successor").state is State.STOPPED
