"""What must agree that a node is idle, beside its utilization; series are drawn as text: see `drawn_series`."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from cluster_contract.idle import PERIOD, Policy, Signal, SignalKind
from cluster_idle.evidence import Evidence, EvidenceState, NodeReadings, Series, weigh
from drawn_series import CURRENT, NOW, TICK, series

CPU = Signal(kind=SignalKind.CPU, below=0.5)
NETWORK = Signal(kind=SignalKind.NETWORK, below=1000)
MEMORY = Signal(kind=SignalKind.GPU_MEMORY, below=2048)
HEARTBEAT = Signal(kind=SignalKind.HEARTBEAT)
SESSION = Signal(kind=SignalKind.SESSION)
EFA = Signal(kind=SignalKind.METRIC, below=5, metric="efa_rx_bytes", statistic="Sum")

IDLE = series("____________.")


def agree(signal: Signal, *every: Series, has_session: bool | None = None) -> Evidence:
    """Weigh an idle node with one more signal."""
    readings = NodeReadings(utilization=IDLE, signals={signal: every} if every else {}, has_session=has_session)
    return weigh(readings, Policy(signals=(signal,)), NOW, TICK)


@pytest.mark.parametrize(
    ("received", "sent", "state", "reason"),
    [
        # 1,000 bytes a second are 300,000 in five minutes: 60,000 times 4.9 and 5.
        ("aaaaaaaaaaaaa", "_____________", "idle", "its utilization has been below 5 % for 60 minutes"),
        ("aaaaaaaaaaaaa", "___T_________", "busy", "its network traffic was 300,000 bytes in 5 minutes at 11:15 UTC"),
        (
            "____________B",
            "____________.",
            "busy",
            "its network traffic was 5,220,000 bytes in 5 minutes at 12:00 UTC",
        ),
        ("____________.", "", "unknown", "CloudWatch has no data for its network traffic"),
        ("____________.", "_______......", "unknown", "the newest point of its network traffic is 32 minutes old"),
    ],
)
def test_network_traffic_must_agree_both_ways(received: str, sent: str, state: str, reason: str) -> None:
    found = agree(NETWORK, series(received, scale=60_000), series(sent, scale=60_000))

    assert (found.state.value, found.reason) == (state, reason)


@pytest.mark.parametrize(
    ("minutes", "late", "state"),
    [
        # Points of EC2 that come one period late are no gap, however short the window is.
        (15, "____________..", "idle"),
        (60, "____________..", "idle"),
        (60, "____________...", "unknown"),
        (60, "___._.______..", "unknown"),
    ],
)
def test_ec2s_own_metrics_may_come_a_period_late(minutes: int, late: str, state: str) -> None:
    policy = Policy(window=timedelta(minutes=minutes), signals=(NETWORK,))
    readings = NodeReadings(utilization=IDLE, signals={NETWORK: (series(late), series(late))})

    assert weigh(readings, policy, NOW, TICK).state.value == state


def test_work_in_the_last_period_is_seen_though_ec2_may_be_late() -> None:
    readings = NodeReadings(utilization=IDLE, signals={NETWORK: (IDLE, series("___________B", scale=1e6))})

    assert weigh(readings, Policy(signals=(NETWORK,)), NOW, TICK).state is EvidenceState.BUSY


@pytest.mark.parametrize(
    ("age", "state"),
    [
        (timedelta(minutes=15), EvidenceState.IDLE),
        (timedelta(minutes=15, seconds=1), EvidenceState.UNKNOWN),
    ],
)
def test_the_newest_point_of_ec2_is_three_periods_old_at_most(age: timedelta, state: EvidenceState) -> None:
    now = CURRENT + age
    readings = NodeReadings(
        utilization=series("______________"), signals={NETWORK: (series("_____________"), series("_____________"))}
    )
    utilization = Series(points=[(when + 2 * PERIOD, value) for when, value in readings.utilization.points])

    assert weigh(replace(readings, utilization=utilization), Policy(signals=(NETWORK,)), now, TICK).state is state


@pytest.mark.parametrize(
    ("drawn", "state", "reason"),
    [
        ("aaaaaaaaaaaa.", "idle", "its utilization has been below 5 % for 60 minutes"),
        ("aaaaaaTaaaaa.", "busy", "its GPU memory in use was 2,048 MiB at 11:30 UTC"),
        ("", "unknown", "CloudWatch has no data for its GPU memory in use"),
    ],
)
def test_gpu_memory_must_agree(drawn: str, state: str, reason: str) -> None:
    found = agree(MEMORY, series(drawn, scale=2048 / 5))

    assert (found.state.value, found.reason) == (state, reason)


@pytest.mark.parametrize(
    ("drawn", "state", "reason"),
    [
        ("", "idle", "its utilization has been below 5 % for 60 minutes"),
        ("B............", "busy", "its job gave a heartbeat at 11:00 UTC"),
        ("B.............", "idle", "its utilization has been below 5 % for 60 minutes"),
        ("B...........B", "busy", "its job gave a heartbeat at 12:00 UTC"),
        # Any beat counts, whatever its value.
        ("..........._.", "busy", "its job gave a heartbeat at 11:55 UTC"),
    ],
)
def test_a_heartbeat_in_the_window_is_work_and_none_is_not(drawn: str, state: str, reason: str) -> None:
    found = agree(HEARTBEAT, series(drawn))

    assert (found.state.value, found.reason) == (state, reason)


def test_heartbeats_that_were_not_all_read_prove_nothing() -> None:
    found = agree(HEARTBEAT, series("", status="PartialData"))

    assert (found.state.value, found.reason) == (
        "unknown",
        "CloudWatch returned no complete data for its heartbeat (PartialData)",
    )


def test_an_old_heartbeat_bounds_since_when_a_node_is_idle() -> None:
    long = NodeReadings(utilization=series("_" * 19), signals={HEARTBEAT: (series("B.............."),)})

    found = weigh(long, Policy(signals=(HEARTBEAT,)), NOW, TICK)

    assert found.idle_since == datetime(2026, 11, 2, 10, 55, tzinfo=UTC)


@pytest.mark.parametrize(
    ("has_session", "state", "reason"),
    [
        (False, "idle", "its utilization has been below 5 % for 60 minutes"),
        (True, "busy", "a Session Manager session is open on it"),
        (None, "unknown", "its Session Manager sessions could not be read"),
    ],
)
def test_a_session_is_work(has_session: bool | None, state: str, reason: str) -> None:
    found = agree(SESSION, has_session=has_session)

    assert (found.state.value, found.reason) == (state, reason)


@pytest.mark.parametrize(
    ("drawn", "state", "reason"),
    [
        ("aaaaaaaaaaaa.", "idle", "its utilization has been below 5 % for 60 minutes"),
        ("aaaaaaaaaaaT.", "busy", "its efa_rx_bytes was 5 at 11:55 UTC"),
        ("_..._________", "unknown", "its efa_rx_bytes has points in 9 of 12 periods only"),
    ],
)
def test_a_metric_of_ones_own_must_agree(drawn: str, state: str, reason: str) -> None:
    found = agree(EFA, series(drawn))

    assert (found.state.value, found.reason) == (state, reason)


AVERAGE = replace(EFA, statistic="Average")


@pytest.mark.parametrize(
    ("signal", "drawn", "value", "state"),
    [
        # Two of the current period's five minutes are over. An average of 0.6 vCPUs may become one of 0.24,
        (CPU, "____________T", 0.6, "idle"),
        # and one of 1.25 does not fall below 0.5. A period that is over counts as it is.
        (CPU, "____________T", 1.24, "idle"),
        (CPU, "____________T", 1.25, "busy"),
        (CPU, "___________T.", 0.6, "busy"),
        (CPU, "____________n", 1.0, "busy"),
        (AVERAGE, "____________T", 12.4, "idle"),
        (AVERAGE, "____________T", 12.5, "busy"),
        # A sum only grows.
        (EFA, "____________T", 5.0, "busy"),
    ],
)
def test_of_a_period_that_is_not_over_its_certain_part_counts(
    signal: Signal, drawn: str, value: float, state: str
) -> None:
    assert agree(signal, series(drawn, scale=value / 5)).state.value == state


KIB, MIB = 1024, 1024 * 1024
HOST = (CPU, Signal(kind=SignalKind.NETWORK, below=128 * KIB))
_BELOW = "its utilization has been below 5 % for 60 minutes"


@pytest.mark.parametrize(
    ("vcpus", "received", "sent", "reason"),
    [
        # A node that is not used: agents, one with an hourly job, and one in the middle of a Lustre client's pings.
        # Plausible series, not measured; AWS Compute Optimizer calls 5 MB a day of traffic idle.
        ([0.2] * 12, [90 * KIB] * 12, [400 * KIB] * 12, _BELOW),
        ([0.1, 0.1, 0.1, 0.4] * 3, [90 * KIB, 90 * KIB, 20 * MIB] * 4, [400 * KIB] * 12, _BELOW),
        ([0.25] * 12, [3 * MIB] * 12, [3 * MIB] * 12, _BELOW),
        # Work that accelerators do not show, plausible series likewise: one process that tokenises for ten minutes,
        ([0.2] * 9 + [1.2, 1.2, 0.2], [90 * KIB] * 12, [400 * KIB] * 12, "CPU use was 1.20 vCPUs at 11:50 UTC"),
        # torch.compile or neuronx-cc,
        ([0.2] * 4 + [31.0] * 6 + [0.2] * 2, [0] * 12, [0] * 12, "CPU use was 31.00 vCPUs at 11:45 UTC"),
        # a download at 2 MiB a second, which takes next to no CPU,
        ([0.3] * 12, [600 * MIB] * 12, [9 * MIB] * 12, "network traffic was 629,145,600 bytes"),
        # and a checkpoint of 40 GiB on its way to S3.
        ([0.4] * 12, [MIB] * 12, [0] * 11 + [40_960 * MIB], "network traffic was 42,949,672,960 bytes"),
    ],
)  # fmt: skip
def test_the_host_shows_what_accelerators_do_not(
    vcpus: list[float], received: list[float], sent: list[float], reason: str
) -> None:
    cpu, got, gave = (
        Series(points=[(CURRENT - (12 - place) * PERIOD, float(value)) for place, value in enumerate(values)])
        for values in (vcpus, received, sent)
    )
    readings = NodeReadings(utilization=IDLE, signals={HOST[0]: (cpu,), HOST[1]: (got, gave)})

    assert reason in weigh(readings, Policy(signals=HOST), NOW, TICK).reason


@pytest.mark.parametrize(
    ("drawn", "reason"),
    [
        ("", "CloudWatch has no data for its CPU use"),
        ("_________....", "the newest point of its CPU use is 22 minutes old"),
        ("____.._______", "its CPU use has points in 9 of 11 periods only"),
    ],
)
def test_a_host_that_is_not_seen_is_unknown(drawn: str, reason: str) -> None:
    found = agree(CPU, series(drawn))

    assert (found.state.value, found.reason) == ("unknown", reason)


@pytest.mark.parametrize(
    ("minutes", "gpus", "cpu", "state", "idle_so_far"),
    [
        # It came up 47 minutes ago, and loaded software: EC2 shows that from the first minute on.
        (47, "....._______.", "...TTT_____..", "unknown", True),
        (52, "....________.", "..TTT______..", "unknown", True),
        # It has worked since: on the host after it came up, or on its GPUs at any time.
        (47, "....._______.", "...TTTTTT__..", "busy", False),
        (47, "....T_______.", "...TTT_____..", "busy", False),
        # Too little is known of it yet.
        (42, "......______.", "....TTT____..", "unknown", False),
        (47, ".........___.", "...TTT_____..", "unknown", False),
        (47, "....._______.", "...TTT.......", "unknown", False),
    ],
)
def test_what_a_node_does_while_it_comes_up_is_no_work(
    minutes: int, gpus: str, cpu: str, state: str, idle_so_far: bool
) -> None:
    readings = NodeReadings(utilization=series(gpus), signals={CPU: (series(cpu, scale=0.1),)})

    found = weigh(readings, Policy(signals=(CPU,)), NOW, TICK, NOW - timedelta(minutes=minutes))
    assert (found.state.value, found.idle_so_far) == (state, idle_so_far)


@pytest.mark.parametrize("signal", [CPU, NETWORK, MEMORY, HEARTBEAT, EFA])
def test_a_signal_that_was_not_read_is_not_agreement(signal: Signal) -> None:
    found = agree(signal)

    assert (found.state.value, found.reason) == ("unknown", f"nothing was read of its {signal.kind}")


def test_work_is_said_before_what_is_not_known() -> None:
    readings = NodeReadings(
        utilization=Series(status="Forbidden"), signals={MEMORY: (series("B___________.", scale=100),)}
    )

    assert weigh(readings, Policy(signals=(SESSION, MEMORY)), NOW, TICK).state is EvidenceState.BUSY


def test_all_signals_together_say_since_when() -> None:
    readings = NodeReadings(
        utilization=series("_" * 19),
        signals={MEMORY: (series("B_______________.", scale=100),), HEARTBEAT: (series(""),)},
        has_session=False,
    )

    found = weigh(readings, Policy(signals=(MEMORY, HEARTBEAT, SESSION)), NOW, TICK)

    assert (found.state.value, found.idle_since) == ("idle", datetime(2026, 11, 2, 10, 45, tzinfo=UTC))
