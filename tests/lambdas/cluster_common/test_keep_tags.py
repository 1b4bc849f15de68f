"""The tags by which operators keep nodes running."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_common.keep_tags import NO_KEEP_TAGS, KeepTags

KEEP, KEEP_UNTIL = "cdk-training-cluster:keep", "cdk-training-cluster:keep-until"
NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)


def kept(tags: dict[str, str], now: datetime = NOW) -> str | None:
    return KeepTags.from_tags(tags).kept(now)


@pytest.mark.parametrize("value", ["true", "True", "yes", "1", "2", "job 17", "nope", "none", "-", "until Monday"])
def test_nearly_any_value_of_keep_keeps(value: str) -> None:
    assert kept({KEEP: value}) == f"has the tag {KEEP}"


@pytest.mark.parametrize("value", ["", "false", "no", "0", " ", "False", "NO", " no "])
def test_some_values_of_keep_say_no(value: str) -> None:
    assert kept({KEEP: value}) is None


@pytest.mark.parametrize(
    ("value", "until"),
    [
        ("2026-11-30T18:00:00Z", "2026-11-30T18:00:00Z"),
        ("2026-11-30T18:00Z", "2026-11-30T18:00:00Z"),
        (" 2026-11-30T18:00Z ", "2026-11-30T18:00:00Z"),
        ("2026-11-30T18:00:30.5Z", "2026-11-30T18:00:30Z"),
        ("20261130T1800Z", "2026-11-30T18:00:00Z"),
        # Another zone.
        ("2026-11-30T18:00+02:00", "2026-11-30T16:00:00Z"),
        ("2026-11-30T18:00-0800", "2026-12-01T02:00:00Z"),
        # What names no zone ends where it ends last: its author may live there.
        ("2026-11-30 18:00", "2026-12-01T06:00:00Z"),
        ("2026-11-30t18", "2026-12-01T06:00:00Z"),
        # A date is kept to its end; midnight, written out, is midnight.
        ("2026-11-30", "2026-12-01T12:00:00Z"),
        ("20261130", "2026-12-01T12:00:00Z"),
        ("2026-11-30T00:00", "2026-11-30T12:00:00Z"),
        ("2026-12-31", "2027-01-01T12:00:00Z"),
        # For ever.
        ("9999-12-30", "9999-12-31T12:00:00Z"),
        ("9999-12-31", "9999-12-31T23:59:59Z"),
        ("9999-12-31T23:59:59-05:00", "9999-12-31T23:59:59Z"),
    ],
)
def test_keep_until_keeps_until_then(value: str, until: str) -> None:
    assert kept({KEEP_UNTIL: value}) == f"has the tag {KEEP_UNTIL}, which ends at {until}"


@pytest.mark.parametrize(
    "value",
    ["2026-11-01", "2026-11-02T11:59Z", "2026-11-02T12:00Z", "2026-11-02T13:00+01:00", "0001-01-01T00:00+14:00"],
)
def test_keep_until_ends_by_itself(value: str) -> None:
    assert kept({KEEP_UNTIL: value}) is None


@pytest.mark.parametrize(
    ("now", "is_kept"),
    [
        (datetime(2026, 11, 3, 11, 59, 59, tzinfo=UTC), True),
        (datetime(2026, 11, 3, 12, tzinfo=UTC), False),
    ],
)
def test_a_date_ends_with_its_last_second_on_earth(now: datetime, is_kept: bool) -> None:
    assert (kept({KEEP_UNTIL: "2026-11-02"}, now) is not None) == is_kept


@pytest.mark.parametrize(
    "value",
    [
        "next Monday",
        "",
        "30.11.2026",
        "2026-W48",
        "2026-W48-3",
        "2026-11-31",
        "2026-13-01",
        "18:00",
        "2026-11-30T25:00Z",
        "12h",
        "true",
    ],
)
def test_a_keep_until_that_is_no_time_keeps_and_says_so(value: str) -> None:
    assert kept({KEEP_UNTIL: value}) == (
        f"has the tag {KEEP_UNTIL} with {value!r}, which is not a time such as 2026-11-30T18:00Z: it is kept until "
        "the tag is corrected"
    )


def test_keep_goes_before_a_keep_until_that_has_ended() -> None:
    assert kept({KEEP: "true", KEEP_UNTIL: "2026-11-01"}) == f"has the tag {KEEP}"
    assert kept({KEEP: "false", KEEP_UNTIL: "2026-11-03"}) is not None


@given(st.text(max_size=30))
def test_no_value_of_a_tag_is_too_strange(value: str) -> None:
    tags = KeepTags.from_tags({KEEP: "no", KEEP_UNTIL: value})

    assert (tags.kept(NOW) is None) == (tags.kept_until is not None and tags.kept_until <= NOW)


@pytest.mark.parametrize("tags", [{}, {"Name": "node"}, {"cdk-training-cluster:cluster": "base-pod"}])
def test_other_tags_say_nothing(tags: dict[str, str]) -> None:
    assert KeepTags.from_tags(tags) == NO_KEEP_TAGS
