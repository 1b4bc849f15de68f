"""The tags by which people keep nodes, and those by which the function remembers that it warned them."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_idle.idle_tags import NO_IDLE_TAGS, NOTICE_TAGS, IdleTags, notice_tags, refusal_tags, warned_tags

IDLE = "cdk-training-cluster:idle-"
NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)

moments = st.datetimes(datetime(2020, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)).map(  # noqa: DTZ001 (the zone is added)
    lambda moment: moment.replace(microsecond=0)
)


@given(st.text(max_size=30))
def test_no_value_of_a_tag_is_too_strange(value: str) -> None:
    idle_tags = IdleTags.from_tags({f"{IDLE}warned-at": value, f"{IDLE}stop-at": value})

    assert idle_tags.warned_at is None or idle_tags.warned_at.tzinfo is not None


@given(moments, moments, st.text(max_size=400))
def test_what_was_written_is_read_back_and_fits_tags(warned_at: datetime, stop_at: datetime, note: str) -> None:
    before = notice_tags(warned_at, 8, stop_at, note)
    tags = before | warned_tags(warned_at) | refusal_tags(stop_at, "Unsupported: no")
    idle_tags = IdleTags.from_tags(tags)

    assert set(tags) < set(NOTICE_TAGS)
    assert all(len(key) <= 128 and len(value) <= 256 for key, value in tags.items())
    assert (idle_tags.warned_at, idle_tags.stop_at, idle_tags.noted, idle_tags.told) == (
        warned_at,
        stop_at,
        True,
        False,
    )
    assert IdleTags.from_tags(tags | before).warned_at is None
    assert (idle_tags.idle_since, idle_tags.nodes) == (warned_at, 8)
    assert (idle_tags.refused_at, idle_tags.refusal) == (stop_at, "Unsupported: no")


@pytest.mark.parametrize("key", NOTICE_TAGS)
def test_each_of_the_functions_own_tags_is_a_trace_of_it(key: str) -> None:
    assert key.startswith(IDLE)
    assert IdleTags.from_tags({key: "x"}).noted


@pytest.mark.parametrize("tags", [{}, {"Name": "node"}, {"cdk-training-cluster:cluster": "base-pod"}])
def test_other_tags_say_nothing(tags: dict[str, str]) -> None:
    assert IdleTags.from_tags(tags) == NO_IDLE_TAGS


@pytest.mark.parametrize("value", ["", "soon", "2026-11-02", "2026-11-02T20:00Z", "2026-11-02T20:00:00+01:00"])
def test_a_time_that_the_function_never_writes_is_no_warning(value: str) -> None:
    idle_tags = IdleTags.from_tags({f"{IDLE}warned-at": value})

    assert (idle_tags.warned_at, idle_tags.noted) == (None, True)


@pytest.mark.parametrize("value", ["9999-12-31T23:59:59Z", "9999-12-31", "", "monday", "2026-W48"])
def test_a_stop_that_is_put_off_for_ever_leaves_room_to_reckon_with(value: str) -> None:
    stop_at = IdleTags.from_tags({f"{IDLE}stop-at": value}).stop_at

    assert stop_at is not None
    assert NOW + timedelta(days=9999) < stop_at < stop_at + timedelta(days=30)
