"""When a Capacity Block lets nodes run, to the second."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from cluster_common.reservations import COMING, ENDED, Absence, Reservation
from cluster_contract.power import PowerFunctionSettings, PowerGroupSettings
from cluster_power.groups import Group
from cluster_power.launch_failures import ProblemKind
from cluster_power.windows import Phase, Window, find_phase, find_window

STARTS = datetime(2026, 11, 2, 11, 30, tzinfo=UTC)
ENDS = datetime(2026, 11, 4, 11, 30, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
BLOCK = Reservation(id="cr-1", state="active", instances=8, zone="us-east-1b", starts=STARTS, ends=ENDS)
SCHEDULED = replace(BLOCK, state="scheduled", instances=0)
OWN = PowerGroupSettings(count=8, block="cr-1", block_ends_early=30 * MINUTE)
SETTINGS = PowerFunctionSettings(cluster="base-pod", groups={"pod": OWN}, launch_grace=10 * MINUTE)


def phase(block: Reservation | Absence, now: datetime, minutes: int = 30) -> Phase:
    return find_phase(block, now=now, ends_early=minutes * MINUTE, notice=30 * MINUTE)


def window(block: Reservation | Absence, now: datetime, zones: tuple[str, ...] = ("us-east-1b",)) -> Window:
    group = Group(name="pod-asg", node_group="pod", desired=0, minimum=0, maximum=8, in_service=0, zones=zones)
    return find_window("pod", OWN, block, group=group, settings=SETTINGS, now=now)


@pytest.mark.parametrize(
    ("minutes", "now", "expected"),
    [
        (30, STARTS - SECOND, Phase.BEFORE),
        (30, STARTS, Phase.OPEN),
        (30, ENDS - 70 * MINUTE - SECOND, Phase.OPEN),
        (30, ENDS - 70 * MINUTE, Phase.CLOSING),
        (30, ENDS - 40 * MINUTE - SECOND, Phase.CLOSING),
        (30, ENDS - 40 * MINUTE, Phase.OVER),
        (30, ENDS - 30 * MINUTE, Phase.OVER),
        (30, ENDS, Phase.OVER),
        (30, ENDS + timedelta(days=1), Phase.OVER),
        (60, ENDS - 100 * MINUTE - SECOND, Phase.OPEN),
        (60, ENDS - 100 * MINUTE, Phase.CLOSING),
        (60, ENDS - 70 * MINUTE - SECOND, Phase.CLOSING),
        (60, ENDS - 70 * MINUTE, Phase.OVER),
    ],
)
def test_the_phase_of_an_active_block(minutes: int, now: datetime, expected: Phase) -> None:
    assert phase(BLOCK, now, minutes) is expected


@pytest.mark.parametrize("state", sorted(COMING))
@pytest.mark.parametrize("late", [-SECOND, timedelta(0), timedelta(hours=3)])
def test_a_block_that_is_not_active_has_not_started_whatever_the_clock_says(state: str, late: timedelta) -> None:
    assert phase(replace(BLOCK, state=state), STARTS + late) is Phase.BEFORE


def test_a_block_that_has_no_instances_yet_has_not_started() -> None:
    assert phase(replace(BLOCK, instances=0), STARTS + SECOND) is Phase.BEFORE


def test_a_block_that_never_started_is_over_when_its_time_is() -> None:
    assert phase(SCHEDULED, ENDS - 40 * MINUTE) is Phase.OVER


@pytest.mark.parametrize("state", sorted(ENDED))
@pytest.mark.parametrize("now", [STARTS - SECOND, STARTS, ENDS - 40 * MINUTE, ENDS + MINUTE])
def test_a_block_that_is_no_more_cannot_be_used_at_any_time(state: str, now: datetime) -> None:
    assert phase(replace(BLOCK, state=state, starts=None), now) is Phase.UNUSABLE


def test_a_plain_reservation_is_no_block() -> None:
    assert phase(replace(BLOCK, plain=True, starts=None, ends=None), STARTS) is Phase.UNUSABLE


@pytest.mark.parametrize(
    "block",
    [
        Absence.UNREAD,
        Absence.NOT_FOUND,
        replace(BLOCK, state="unavailable"),
        replace(BLOCK, state="a state of the future"),
        replace(BLOCK, starts=None),
        replace(BLOCK, ends=None),
    ],
)
@pytest.mark.parametrize("now", [STARTS, ENDS - 40 * MINUTE - SECOND])
def test_of_what_is_not_known_nothing_is_guessed(block: Reservation | Absence, now: datetime) -> None:
    assert phase(block, now) is Phase.UNSEEN


@pytest.mark.parametrize("state", ["unavailable", "a state of the future", "active", "scheduled"])
@pytest.mark.parametrize("now", [ENDS - 40 * MINUTE, ENDS + MINUTE])
def test_the_end_of_a_block_is_its_end_in_any_state_that_may_hold_nodes(state: str, now: datetime) -> None:
    assert phase(replace(BLOCK, state=state), now) is Phase.OVER


def test_a_block_that_was_extended_is_open_again() -> None:
    now = ENDS - 40 * MINUTE

    assert phase(BLOCK, now) is Phase.OVER
    assert phase(replace(BLOCK, ends=ENDS + timedelta(days=1)), now) is Phase.OPEN


def test_every_state_that_ec2_knows_is_known_or_left_alone() -> None:
    assert not COMING & ENDED
    assert "active" not in COMING | ENDED


REPLACE = "put the id of another one into the cluster's file (capacity_block) and deploy, or remove the node group"


@pytest.mark.parametrize(
    ("block", "sentence"),
    [
        (
            replace(BLOCK, state="payment-failed"),
            f"was never paid, and EC2 has released it (payment-failed): {REPLACE}.",
        ),
        (replace(BLOCK, state="cancelled"), f"was cancelled (cancelled): {REPLACE}."),
        (replace(BLOCK, state="failed"), f"could not be made (failed): {REPLACE}."),
        (replace(BLOCK, state="unsupported"), f"could not be made (unsupported): {REPLACE}."),
        (replace(BLOCK, state="expired"), f"has ended (expired): {REPLACE}."),
        (
            replace(BLOCK, plain=True),
            f"is an On-Demand Capacity Reservation: give it as from_reservation, or {REPLACE}.",
        ),
        (
            replace(BLOCK, zone="us-east-1d"),
            "is in us-east-1d and its nodes launch in us-east-1b: none is started or terminated; use a network in "
            f"us-east-1d, or {REPLACE}.",
        ),
        (
            Absence.NOT_FOUND,
            f"cannot be found in this account and region: its size is left alone. If the id is wrong, {REPLACE}.",
        ),
        (
            replace(BLOCK, state="unavailable"),
            "has the state 'unavailable', which this function does not know: its size is left alone. If the id is "
            f"wrong, {REPLACE}.",
        ),
        (
            replace(BLOCK, ends=None),
            "has no start or no end, which this function does not know: its size is left alone. If the id is wrong, "
            f"{REPLACE}.",
        ),
    ],
)
def test_what_keeps_a_block_from_being_used_is_a_problem_in_plain_words(
    block: Reservation | Absence, sentence: str
) -> None:
    found = window(block, STARTS)

    assert found.problem is not None
    assert found.problem.kind is ProblemKind.BLOCK
    assert found.problem.sentence == f"pod: its Capacity Block cr-1 {sentence}"


def test_every_end_of_a_block_has_words() -> None:
    for state in ENDED:
        assert f"({state})" in window(replace(BLOCK, state=state), STARTS).sentence


def test_a_block_that_is_not_delivered_within_the_grace_is_a_problem() -> None:
    late = window(SCHEDULED, STARTS + 10 * MINUTE)

    assert late.phase is Phase.BEFORE
    assert late.problem is not None
    assert late.problem.sentence == (
        "pod waits for its Capacity Block cr-1, which should have started at 2026-11-02T11:30:00Z and is scheduled: "
        "ask AWS Support why it is not delivered."
    )
    assert window(SCHEDULED, STARTS + 10 * MINUTE - SECOND).problem is None
    empty = window(replace(BLOCK, instances=0), STARTS + 10 * MINUTE)
    assert empty.sentence.endswith("and is active without instances")


def test_a_block_in_another_zone_is_told_before_anything_launches() -> None:
    """A launch there would fail only when the block, paid for long ago, has begun."""
    elsewhere = replace(SCHEDULED, zone="us-east-1d")

    assert window(elsewhere, STARTS - timedelta(days=7)).phase is Phase.UNUSABLE
    assert window(elsewhere, STARTS, zones=()).phase is Phase.BEFORE
    assert window(replace(BLOCK, zone=""), STARTS).phase is Phase.OPEN
    assert window(replace(BLOCK, zone="us-east-1d"), ENDS - 40 * MINUTE).phase is Phase.OVER


def test_a_window_says_when_nodes_go() -> None:
    assert window(BLOCK, STARTS).down_at == ENDS - 40 * MINUTE
    assert window(SCHEDULED, STARTS - MINUTE).down_at is None
