from datetime import UTC, datetime, timedelta, timezone

import pytest

from cluster_common.times import parse_time, time_text

MOMENT = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)


def test_a_time_is_written_to_the_second_and_in_utc() -> None:
    east = timezone(timedelta(hours=2))

    assert time_text(MOMENT.replace(microsecond=999)) == "2026-11-21T20:00:00Z"
    assert time_text(MOMENT.astimezone(east)) == "2026-11-21T20:00:00Z"


def test_what_was_written_is_read_back() -> None:
    assert parse_time(time_text(MOMENT)) == MOMENT


@pytest.mark.parametrize("text", ["", "none", "2026-11-21", "2026-11-21T20:00:00+02:00"])
def test_nothing_else_is_read(text: str) -> None:
    with pytest.raises(ValueError, match="does not match format"):
        parse_time(text)
