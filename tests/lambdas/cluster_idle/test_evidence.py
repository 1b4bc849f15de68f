"""What one node's utilization proves, boundary by boundary; series are drawn as text: see `drawn_series`."""

from datetime import datetime, timedelta

import pytest

from cluster_contract.idle import PERIOD, Policy, Signal, SignalKind
from cluster_idle.evidence import Evidence, EvidenceState, NodeReadings, Samples, Series, unreadable, weigh
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
        assert found.reason == f"CloudWatch returned no complete data for its utilization ({status})"


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
        ("", "CloudWatch has no data for its utilization"),
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


_ALL = "the utilization of all its 8 GPUs once a minute (one in MIG mode or off the bus reports none)"
_IDLE = "its utilization has been below 5 % for 60 minutes"


@pytest.mark.parametrize(
    ("counts", "gpus", "reason"),
    [
        # How many samples there were in each of 12 periods: five looks at eight GPUs, and what a late one shifts.
        ([40] * 12, 8, _IDLE),
        ([40, 32, 48] * 4, 8, _IDLE),
        ([40] * 11 + [24], 8, _IDLE),
        ([40] * 10 + [24, 40], 8, _IDLE),
        # One of eight is in MIG mode, or fell off the bus, at once or at last; four are, or all but one.
        ([35] * 12, 8, f"CloudWatch has no data for {_ALL}"),
        ([40] * 9 + [35] * 3, 8, f"the newest point of {_ALL} is 22 minutes old"),
        ([40] * 8 + [35] * 2 + [40] * 2, 8, f"{_ALL} has points in 9 of 11 periods only"),
        ([20] * 12, 8, f"CloudWatch has no data for {_ALL}"),
        ([5] * 12, 8, f"CloudWatch has no data for {_ALL}"),
        # A node that is looked at half as often as it should be, and one whose looks come in bursts.
        ([16, 24] * 6, 8, f"CloudWatch has no data for {_ALL}"),
        # More looks than one a minute prove nothing: those at some GPUs would count for the others.
        ([80] * 12, 8, f"CloudWatch has no data for {_ALL}"),
        ([56] * 12, 8, f"CloudWatch has no data for {_ALL}"),
        ([48, 0] * 6, 8, f"{_ALL} has points in 6 of 11 periods only"),
        ([5] * 12, 1, _IDLE),
        ([3] * 12, 1, f"CloudWatch has no data for {_ALL.replace('8', '1')}"),
        (
            [40] * 12,
            None,
            "CloudWatch has no data for "
            f"{_ALL.replace('all its 8 GPUs', 'all its GPUs, whose number is not known,')}",
        ),
    ],
)
def test_every_gpu_must_have_reported(counts: list[int], gpus: int | None, reason: str) -> None:
    points = [(CURRENT - (len(counts) - place) * PERIOD, float(count)) for place, count in enumerate(counts)]
    readings = NodeReadings(
        utilization=series("____________."), samples=Samples(counts=Series(points=points), gpus=gpus)
    )

    found = weigh(readings, POLICY, NOW, TICK)

    assert found.reason == reason
    assert found.state is (EvidenceState.IDLE if reason == _IDLE else EvidenceState.UNKNOWN)


def test_work_is_seen_on_those_gpus_that_report() -> None:
    some = Samples(counts=series("B" * 12, scale=35 / 87), gpus=8)

    assert weigh(NodeReadings(utilization=series("___B________."), samples=some), POLICY, NOW, TICK).reason == (
        "its utilization was 87 % at 11:15 UTC"
    )


def test_numbers_of_samples_that_were_not_all_read_prove_nothing() -> None:
    forbidden = Samples(counts=series("____________.", status="Forbidden"), gpus=8)

    found = weigh(NodeReadings(utilization=series("____________."), samples=forbidden), POLICY, NOW, TICK)

    assert (found.state, found.was_known) == (EvidenceState.UNKNOWN, True)
    assert found.reason == f"CloudWatch returned no complete data for {_ALL} (Forbidden)"


def test_samples_from_before_a_restart_prove_nothing() -> None:
    counts = Samples(counts=series("B" * 13, scale=40 / 87), gpus=8)
    readings = NodeReadings(utilization=series("_____________"), samples=counts)

    assert weigh(readings, POLICY, NOW, TICK, CURRENT - 3 * PERIOD).state is EvidenceState.UNKNOWN


def test_what_could_not_be_read_may_have_been_known() -> None:
    assert unreadable("why") == Evidence(state=EvidenceState.UNKNOWN, reason="why", was_known=True)
    forbidden = NodeReadings(utilization=Series(status="Forbidden"))
    assert weigh(forbidden, POLICY, NOW, TICK).was_known


def test_a_node_was_known_only_if_every_signal_was() -> None:
    utilization, cpu = series("_____________..."), Signal(kind=SignalKind.CPU, below=0.5)
    policy = Policy(signals=(cpu,))

    def was_known(drawn: str) -> bool:
        readings = NodeReadings(utilization=utilization, signals={cpu: (series(drawn),)})
        found = weigh(readings, policy, NOW, TICK)
        assert found.state is EvidenceState.UNKNOWN
        return found.was_known

    assert was_known("_____________...")
    assert not was_known("................")
