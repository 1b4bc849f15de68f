"""What one node's utilization proves, boundary by boundary; series are drawn as text: see `drawn_series`."""

from datetime import datetime, timedelta

import pytest

from cluster_idle.evidence import Evidence, EvidenceState, NodeReadings, Series, unreadable, weigh
from cluster_idle.policy import PERIOD, Policy
from drawn_series import CURRENT, NOW, TICK, series

# Of twelve periods, nine tenths are eleven.
POLICY = Policy()


def look(drawn: str, policy: Policy = POLICY, now: datetime = NOW) -> Evidence:
    return weigh(NodeReadings(utilization=series(drawn)), policy, now, TICK)


@pytest.mark.parametrize(
    ("drawn", "state"),
    [
        # Whole windows, with and without the period that is not over.
        ("____________.", "idle"),
        ("_____________", "idle"),
        # The threshold: what is not below it is work.
        ("_____a______.", "idle"),
        ("_____T______.", "busy"),
        # The window: twelve whole periods, and the current one.
        ("B____________.", "idle"),
        ("B___________.", "busy"),
        ("____________B", "busy"),
        ("___________B.", "busy"),
        # What is no number, or no percent, is no idleness.
        ("_____n______.", "busy"),
        ("_____m______.", "busy"),
        # The share of periods that have a point; the current one does not count.
        ("._________a__", "idle"),
        ("_.__________.", "idle"),
        ("_..._________", "unknown"),
        ("..__________.", "unknown"),
        (".__________._", "unknown"),
        # The age of the newest point.
        ("_____________..", "unknown"),
        ("____________....", "unknown"),
        # Work, then silence, is not idleness, and nor is idleness, then silence.
        ("BBBBBBBBBBBB.", "busy"),
        ("BBBBBBBBBBB..", "unknown"),
        ("____________..........", "unknown"),
        ("_____________.........................", "unknown"),
        (".............", "unknown"),
        ("", "unknown"),
        # Work shines through gaps.
        ("B.B.......__.", "busy"),
    ],
)
def test_what_a_series_proves(drawn: str, state: str) -> None:
    assert look(drawn).state.value == state


@pytest.mark.parametrize(
    ("age", "state"),
    [
        (timedelta(minutes=10), EvidenceState.IDLE),
        (timedelta(minutes=10, seconds=1), EvidenceState.UNKNOWN),
    ],
)
def test_the_newest_point_is_two_periods_old_at_most(age: timedelta, state: EvidenceState) -> None:
    assert look("_____________", now=CURRENT + age).state is state


@pytest.mark.parametrize("status", ["PartialData", "InternalError", "Forbidden", "nothing"])
def test_only_complete_series_are_evidence(status: str) -> None:
    for drawn in ("_____________", "BBBBBBBBBBBBB"):
        found = weigh(NodeReadings(utilization=series(drawn, status=status)), POLICY, NOW, TICK)

        assert found.state is EvidenceState.UNKNOWN
        assert found.reason == f"CloudWatch says {status} of its utilization"


@pytest.mark.parametrize("ahead", [1, 2, 24])
def test_points_of_the_future_prove_work_and_nothing_else(ahead: int) -> None:
    for value, state in ((0.0, EvidenceState.UNKNOWN), (60.0, EvidenceState.UNKNOWN)):
        alone = Series(points=((CURRENT + ahead * PERIOD, value),))
        assert weigh(NodeReadings(utilization=alone), POLICY, NOW, TICK).state is state
    idle = series("____________.").points
    for value, state in ((0.0, EvidenceState.IDLE), (60.0, EvidenceState.BUSY)):
        both = Series(points=(*idle, (CURRENT + ahead * PERIOD, value)))
        assert weigh(NodeReadings(utilization=both), POLICY, NOW, TICK).state is state


def test_points_of_the_future_do_not_stand_for_missing_ones() -> None:
    points = (*series("..__________.").points, *((CURRENT + number * PERIOD, 0.0) for number in range(1, 13)))

    assert weigh(NodeReadings(utilization=Series(points=points)), POLICY, NOW, TICK).reason == (
        "its utilization has points in 10 of 12 periods only"
    )


def test_the_order_of_the_points_does_not_matter() -> None:
    points = series("_.____a____B.").points

    assert weigh(NodeReadings(utilization=Series(points=points[::-1])), POLICY, NOW, TICK) == look("_.____a____B.")


@pytest.mark.parametrize(
    ("drawn", "reason"),
    [
        ("____________.", "its utilization has been below 5 % for 60 minutes"),
        ("____________B", "its utilization was 87 % at 12:00 UTC"),
        # The last work is the one to tell.
        ("_T__B_______.", "its utilization was 87 % at 11:20 UTC"),
        ("_n__________.", "its utilization was nan % at 11:05 UTC"),
        ("", "there is no point of its utilization"),
        ("____________...", "the newest point of its utilization is 17 minutes old"),
        ("_..._________", "its utilization has points in 9 of 12 periods only"),
    ],
)
def test_the_reason_is_said(drawn: str, reason: str) -> None:
    assert look(drawn).reason == reason


@pytest.mark.parametrize(
    ("drawn", "since"),
    [
        ("____________.", "11:00"),
        ("_____________", "11:00"),
        ("B____________.", "11:00"),
        ("B________________.", "10:40"),
        # A gap is bridged as long as enough of the periods up to it have a point.
        ("_____._____________.", "10:25"),
        ("___....____________.", "11:00"),
        # A whole window is proven whether or not its first period has a point.
        (".___________.", "11:00"),
    ],
)
def test_since_when_a_node_is_idle(drawn: str, since: str) -> None:
    moment = look(drawn).idle_since

    assert moment is not None
    assert f"{moment:%H:%M}" == since


@pytest.mark.parametrize("drawn", ["____________B", "__________...", "."])
def test_what_is_not_idle_is_so_since_never(drawn: str) -> None:
    assert look(drawn).idle_since is None


def test_the_window_and_the_share_are_the_policys() -> None:
    policy = Policy(window=timedelta(minutes=15), coverage=0.5, below=50)

    assert look("B_._.", policy).state is EvidenceState.IDLE
    assert look("B..__", policy).state is EvidenceState.UNKNOWN
    assert look("B_._.", policy).reason == "its utilization has been below 50 % for 15 minutes"


@pytest.mark.parametrize(
    ("drawn", "state"), [("_._._._._._.", EvidenceState.IDLE), ("_._._._..._.", EvidenceState.UNKNOWN)]
)
def test_just_the_share_is_enough(drawn: str, state: EvidenceState) -> None:
    assert look(drawn, Policy(window=timedelta(minutes=50), coverage=0.5)).state is state


@pytest.mark.parametrize(
    ("drawn", "was_known"),
    [
        # It went dark a moment ago: fifteen minutes ago, its newest point was young enough.
        ("____________..", True),
        ("BBBBBBBBBBB..", True),
        ("____________....", True),
        ("____________.....", False),
        ("B........", False),
        (".", False),
        # Points enough fifteen minutes ago, and not now.
        ("______._____._", True),
        ("____._._._.___._", False),
    ],
)
def test_it_is_said_whether_it_was_known_some_ticks_ago(drawn: str, was_known: bool) -> None:
    found = look(drawn)

    assert (found.state, found.was_known) == (EvidenceState.UNKNOWN, was_known)


def test_what_could_not_be_read_may_have_been_known() -> None:
    assert unreadable("why") == Evidence(state=EvidenceState.UNKNOWN, reason="why", was_known=True)
    forbidden = NodeReadings(utilization=Series(status="Forbidden"))
    assert weigh(forbidden, POLICY, NOW, TICK).was_known
