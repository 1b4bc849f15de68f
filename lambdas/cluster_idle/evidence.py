"""Whether a node is idle: a pure function of what was measured, the policy and the time.

Missing data is never idle. What is not proven idle is busy where a point says so, and unknown otherwise.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from cluster_common.times import format_minutes
from cluster_contract.idle import PERIOD, Policy, Signal, SignalKind

COMPLETE = "Complete"
"""The one status of GetMetricData that makes its points evidence.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_MetricDataResult.html
"""

# How old the newest point may be, in periods: what nodes report arrives within one. EC2's own metrics come once in a
# period, and later: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/manage-detailed-monitoring.html
_LATEST_PERIODS = 2
_LATEST_PERIODS_OF_EC2 = 3


# How many looks at its GPUs a node may have reported of a period: the agent takes one a minute, and one that falls
# beside the period's edge is its neighbour's. Each look has as many samples as there are GPUs. More are of an agent
# that looks more often, where the GPUs that report would stand for those that do not.
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-Agent-NVIDIA-GPU.html
_LEAST_LOOKS, _MAX_LOOKS = 4, 6

BOOT = timedelta(minutes=15)
"""How long a node may take to come up and report."""

# Of the time after that, what EC2 measures may be still to come.
_UNSEEN = BOOT + 2 * PERIOD

# The signals that show what a node does from its first minutes on, most of them measured by EC2.
_OF_HOST = frozenset({SignalKind.CPU, SignalKind.NETWORK})

# What may keep a node though no job runs: a process that spins, an exporter, a session that its user forgot.
_WEAK = frozenset({*_OF_HOST, SignalKind.SESSION})

# A run may fail, or come late: what went dark since the last few counts as just gone dark.
_TICKS_BACK = 3


class EvidenceState(StrEnum):
    """What is known of a node."""

    IDLE = "idle"
    BUSY = "busy"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class Series:
    """The points of one metric of one node.

    Attributes:
        points: When each point's period starts, and its value.
        status: What CloudWatch says of them; only `Complete` ones are evidence.
    """

    points: Sequence[tuple[datetime, float]] = ()
    status: str = COMPLETE


@dataclass(frozen=True, kw_only=True)
class Samples:
    """How many samples the utilization of a node's GPUs had: a GPU that reports none must not hide behind the others.

    In MIG mode a GPU has no utilization, and one that fell off the bus is not there.
    https://docs.nvidia.com/datacenter/tesla/mig-user-guide/

    Attributes:
        counts: How many there were in each period.
        gpus: How many GPUs the node has. None: that is not known.
    """

    counts: Series
    gpus: int | None


@dataclass(frozen=True, kw_only=True)
class NodeReadings:
    """What was measured of one node.

    Attributes:
        utilization: Its busiest accelerator, in percent.
        samples: How many samples that had. None: its accelerators report all together or not at all.
        signals: What the policy's other signals say, but for sessions.
        has_session: Whether a Session Manager session is open on it. None: that could not be read.
    """

    utilization: Series
    samples: Samples | None = None
    signals: Mapping[Signal, tuple[Series, ...]] = field(default_factory=dict)
    has_session: bool | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """What is known of one node, and why.

    Attributes:
        state: What is known.
        reason: Why: the end of a sentence that begins with the node.
        idle_since: Since when it is proven idle, as far as was looked back. None: it is not.
        was_known: Of what is unknown: whether it was known to be idle or busy some ticks ago.
        idle_so_far: Of what is unknown because it came lately: whether it has been idle ever since it came up.
        signal: Of what is busy: the signal that says so. None: its accelerators do.
        is_weak: Of what is busy: whether its accelerators have been idle for the whole window, and only its CPUs, its
            network traffic or a session say that it works.
    """

    state: EvidenceState
    reason: str
    idle_since: datetime | None = None
    was_known: bool = False
    idle_so_far: bool = False
    signal: SignalKind | None = None
    is_weak: bool = False


def describe_threshold(policy: Policy) -> str:
    """Say what the utilization of an idle node has been."""
    return f"below {policy.below:g} % for {format_minutes(policy.window)}"


def unreadable(why: str) -> Evidence:
    """Return the evidence on a node of which nothing could be read, and which may have been known before."""
    return Evidence(state=EvidenceState.UNKNOWN, reason=why, was_known=True)


def weigh(
    readings: NodeReadings, policy: Policy, now: datetime, tick: timedelta, launched: datetime | None = None
) -> Evidence:
    """Say whether a node is idle.

    Args:
        readings: What was measured of it.
        policy: What counts as idle.
        now: The time.
        tick: How much time passes between two runs.
        launched: When it was last started: what it did before proves nothing of what it does now.
    """
    if launched is not None:
        readings = _since(readings, launched)
    found = list(_find(readings, policy, now))
    busy = [one for one in found if one.state is EvidenceState.BUSY]
    if busy:
        of_accelerators = found[: 1 if readings.samples is None else 2]
        is_weak = all(one.state is EvidenceState.IDLE for one in of_accelerators)
        return replace(busy[0], is_weak=is_weak and all(one.signal in _WEAK for one in busy))
    unknown = next((one for one in found if one.state is EvidenceState.UNKNOWN), None)
    if unknown is not None:
        ticks = range(1, _TICKS_BACK + 1)
        return replace(
            unknown,
            was_known=any(_was_known(readings, policy, now - number * tick) for number in ticks),
            idle_so_far=_is_idle_so_far(readings, policy, now, launched),
        )
    since = max(one.idle_since for one in found if one.idle_since is not None)
    return Evidence(
        state=EvidenceState.IDLE,
        reason=f"its utilization has been {describe_threshold(policy)}",
        idle_since=since,
    )


def _was_known(readings: NodeReadings, policy: Policy, before: datetime) -> bool:
    """Say whether the same points were evidence at an earlier time; what is not complete now may have been."""
    return all(
        series.status != COMPLETE or _judge(series, limit, policy, before).state is not EvidenceState.UNKNOWN
        for series, limit in _needed(readings, policy)
    )


def _is_idle_so_far(readings: NodeReadings, policy: Policy, now: datetime, launched: datetime | None) -> bool:
    """Say whether a node that came too lately to be judged has been seen idle ever since it came up."""
    age = now - launched if launched is not None else timedelta(0)
    periods = age // PERIOD + 1
    if age < policy.grace + BOOT or periods * PERIOD >= policy.grace + policy.window:
        return False
    # Its whole life counts, of which nothing need be seen while it comes up.
    coverage = policy.coverage * max(0.0, 1 - _UNSEEN / (periods * PERIOD))
    life = replace(policy, window=periods * PERIOD, coverage=coverage)
    return all(one.state is EvidenceState.IDLE for one in _find(readings, life, now))


def _since(readings: NodeReadings, launched: datetime) -> NodeReadings:
    def later(series: Series, since: datetime = launched) -> Series:
        return replace(series, points=[point for point in series.points if point[0] >= since])

    def up(signal: Signal, every: tuple[Series, ...]) -> tuple[Series, ...]:
        """Leave out what a node does while it comes up, which is no job's work: it loads software."""
        since = launched + BOOT if signal.kind in _OF_HOST else launched
        return tuple(later(series, since) for series in every)

    samples = readings.samples
    return replace(
        readings,
        utilization=later(readings.utilization),
        samples=samples and replace(samples, counts=later(samples.counts)),
        signals={signal: up(signal, every) for signal, every in readings.signals.items()},
    )


def floor(moment: datetime) -> datetime:
    """Return the start of the period that a time is in."""
    seconds = PERIOD.total_seconds()
    return datetime.fromtimestamp(moment.timestamp() // seconds * seconds, tz=UTC)


def _find(readings: NodeReadings, policy: Policy, now: datetime) -> Iterator[Evidence]:
    for series, limit in _needed(readings, policy):
        yield _judge(series, limit, policy, now)
    for signal in policy.signals:
        if signal.kind is SignalKind.SESSION:
            yield _judge_session(readings.has_session, policy, now)
        elif not readings.signals.get(signal):
            yield _unknown(f"nothing was read of its {signal.kind}")
        elif signal.kind is SignalKind.HEARTBEAT:
            yield _judge_heartbeat(readings.signals[signal][0], policy, now)


@dataclass(frozen=True, kw_only=True)
class _Limit:
    """What a series stays below on an idle node.

    Attributes:
        below: The value.
        what: How reasons name the series.
        form: The form of its values.
        latest: How old its newest point may be, in periods.
        averaged: Whether its values are averages over the periods: that of a period that is not over may still fall.
        signal: Which signal it is of. None: it is of the accelerators.
    """

    below: float
    what: str
    form: str
    latest: int = _LATEST_PERIODS
    averaged: bool = False
    signal: SignalKind | None = None


def _needed(readings: NodeReadings, policy: Policy) -> Iterator[tuple[Series, _Limit]]:
    """Yield the series without which nothing is known, and their limits."""
    yield readings.utilization, _Limit(below=policy.below, what="its utilization", form="{:g} %")
    if readings.samples is not None:
        gpus = readings.samples.gpus
        of = "all its GPUs, whose number is not known," if gpus is None else f"all its {gpus} GPUs"
        # The last minute's samples may be still to come.
        what = f"the utilization of {of} once a minute (one in MIG mode or off the bus reports none)"
        yield _complete(readings.samples), _Limit(below=1, what=what, form="", latest=_LATEST_PERIODS_OF_EC2)
    for signal, every in readings.signals.items():
        if signal.kind is not SignalKind.HEARTBEAT:
            for series in every:
                yield series, _limit(signal)


def _complete(samples: Samples) -> Series:
    """Return a point for each period in which every GPU reported at every look, and there was one a minute."""
    complete = {number * samples.gpus for number in range(_LEAST_LOOKS, _MAX_LOOKS + 1)} if samples.gpus else set()
    points = [(when, 0.0) for when, count in samples.counts.points if count in complete]
    return replace(samples.counts, points=points)


def _limit(signal: Signal) -> _Limit:
    if signal.kind is SignalKind.CPU:
        return _Limit(
            below=signal.below,
            what="its CPU use",
            form="{:.2f} vCPUs",
            latest=_LATEST_PERIODS_OF_EC2,
            averaged=True,
            signal=signal.kind,
        )
    if signal.kind is SignalKind.NETWORK:
        return _Limit(
            below=signal.below * PERIOD.total_seconds(),
            what="its network traffic",
            form="{:,.0f} bytes in 5 minutes",
            latest=_LATEST_PERIODS_OF_EC2,
            signal=signal.kind,
        )
    if signal.kind is SignalKind.GPU_MEMORY:
        return _Limit(below=signal.below, what="its GPU memory in use", form="{:,.0f} MiB", signal=signal.kind)
    averaged = signal.statistic == "Average"
    what = f"its {signal.metric}"
    return _Limit(below=signal.below, what=what, form="{:g}", averaged=averaged, signal=signal.kind)


def _judge(series: Series, limit: _Limit, policy: Policy, now: datetime) -> Evidence:
    """Say what one series proves; what comes after `now` proves nothing but work."""
    what = limit.what
    if series.status != COMPLETE:
        return _unknown(f"CloudWatch returned no complete data for {what} ({series.status})")
    seconds, at = PERIOD.total_seconds(), now.timestamp()
    current, periods = at // seconds, policy.window // PERIOD
    idle: set[int] = set()  # Which periods before the current one have idle points only: 1 is the last one.
    busy: dict[int, tuple[float, float]] = {}
    newest: float | None = None
    for when, value in ((moment.timestamp(), value) for moment, value in series.points):
        number = int(current - when // seconds)
        # Of a period that is not over, this much of its average is certain: one busy minute at its start is no work.
        share = at % seconds / seconds if limit.averaged and number == 0 else 1
        if 0 <= value * share < limit.below:
            idle.add(number)
        else:  # Also what is no number at all.
            busy[number] = (when, value)
        if when <= at and (newest is None or when > newest):
            newest = when
    if newest is None:
        return _unknown(f"CloudWatch has no data for {what}")
    if at - newest > limit.latest * seconds:
        return _unknown(f"the newest point of {what} is {format_minutes(timedelta(seconds=at - newest))} old")
    if busy and min(busy) <= periods:
        when, value = busy[min(busy)]
        told = limit.form.format(value)
        return _busy(f"{what} was {told} at {datetime.fromtimestamp(when, UTC):%H:%M} UTC", limit.signal)
    late = limit.latest - _LATEST_PERIODS
    covered, expected = sum(late < number <= periods for number in idle), periods - late
    if covered < policy.coverage * expected:
        return _unknown(f"{what} has points in {covered} of {expected} periods only")
    # The window as a whole is proven, whichever of its periods have no point.
    proven = max(periods, _idle_periods(idle, busy, policy.coverage, late))
    return Evidence(
        state=EvidenceState.IDLE,
        reason="",
        idle_since=floor(now) - proven * PERIOD,
    )


def _idle_periods(idle: Collection[int], busy: Collection[int], coverage: float, late: int) -> int:
    """Return over how many periods up to now idleness is proven: no busy point, and enough idle ones.

    The points of the last `late` periods may be still to come: they are not counted.
    """
    proven = count = 0
    for number in range(late + 1, max(idle) + 1):
        if number in busy:
            break
        if number in idle:
            count += 1
            if count >= coverage * (number - late):
                proven = number
    return proven


def _judge_heartbeat(series: Series, policy: Policy, now: datetime) -> Evidence:
    """Any heartbeat says that a job runs; none says that none does."""
    if series.status != COMPLETE:
        return _unknown(f"CloudWatch returned no complete data for its heartbeat ({series.status})")
    end = floor(now)
    last = max((moment for moment, _ in series.points), default=None)
    if last is None:
        return Evidence(state=EvidenceState.IDLE, reason="", idle_since=end - policy.span)
    if (end - floor(last)) // PERIOD <= policy.window // PERIOD:
        return _busy(f"its job gave a heartbeat at {last:%H:%M} UTC", SignalKind.HEARTBEAT)
    return Evidence(state=EvidenceState.IDLE, reason="", idle_since=floor(last) + PERIOD)


def _judge_session(has_session: bool | None, policy: Policy, now: datetime) -> Evidence:
    if has_session is None:
        return _unknown("its Session Manager sessions could not be read")
    if has_session:
        return _busy("a Session Manager session is open on it", SignalKind.SESSION)
    return Evidence(state=EvidenceState.IDLE, reason="", idle_since=floor(now) - policy.span)


def _busy(reason: str, signal: SignalKind | None) -> Evidence:
    return Evidence(state=EvidenceState.BUSY, reason=reason, signal=signal)


def _unknown(reason: str) -> Evidence:
    return Evidence(state=EvidenceState.UNKNOWN, reason=reason)
