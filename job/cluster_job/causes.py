"""Why a run is slower than it could be: the likely cause, named from what its ranks measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import fmean, median

from cluster_job.stragglers import SlowRank

_DATA_SHARE = 0.2
_EXCHANGE_SHARE = 0.5
_RETRANSMITTED_SHARE = 0.01  # as the alert EfaRetransmissions of the cluster's Prometheus
_MOST_OF_EXCESS = 0.5


class CauseKind(Enum):
    """What slows a run down."""

    ONE_RANK = "one rank"
    DATA = "data"
    THERMAL = "thermal"
    NETWORK = "network"


@dataclass(frozen=True, kw_only=True)
class Cause:
    """What likely slows a run down.

    Attributes:
        kind: Which it is.
        sentence: What was measured, and what to do.
    """

    kind: CauseKind
    sentence: str


@dataclass(frozen=True, kw_only=True)
class RankFacts:
    """What one rank measured in the last minute, each as the median over steps.

    Attributes:
        rank: The rank.
        node: Its node.
        step_seconds: The time of a step.
        data_seconds: From the step's start until its own computing: reading and preparing samples.
        compute_seconds: Its own computing, until the collective.
        throttled_gpus: The GPUs of its node that their temperature slows down.
        retransmitted_share: The share of bytes that its node's adapters sent again. None: it was not read.
    """

    rank: int
    node: str
    step_seconds: float
    data_seconds: float
    compute_seconds: float
    throttled_gpus: tuple[int, ...] = ()
    retransmitted_share: float | None = None


def likely_cause(facts: Sequence[RankFacts], slow: Sequence[SlowRank]) -> Cause | None:
    """Return what most likely slows a run down. None: nothing measured says so.

    Args:
        facts: What the ranks measured.
        slow: The ranks that are slower than the others, the slowest first.
    """
    by_rank = {one.rank: one for one in facts}
    slowest = next((one for one in slow if one.rank in by_rank), None)
    if slowest is not None:
        return _of_one_rank(slowest, by_rank[slowest.rank], facts)
    return _data(facts) or _thermal(facts) or _network(facts)


def _of_one_rank(slowest: SlowRank, own: RankFacts, facts: Sequence[RankFacts]) -> Cause:
    who = f"rank {slowest.rank} on {own.node} takes {slowest.factor:.2f} times as long as the others"
    hot = {gpu for one in facts if one.node == own.node for gpu in one.throttled_gpus}
    if hot:
        return Cause(kind=CauseKind.THERMAL, sentence=f"{who}: {_gpus(hot)} slowed down by temperature there")
    data = own.data_seconds - median(one.data_seconds for one in facts)
    compute = own.compute_seconds - median(one.compute_seconds for one in facts)
    if data > _MOST_OF_EXCESS * (data + compute) > 0:
        return Cause(
            kind=CauseKind.DATA,
            sentence=f"{who} since it waits {data:.2f} s longer for its samples: look at its loaders and its mount",
        )
    return Cause(
        kind=CauseKind.ONE_RANK,
        sentence=f"{who}: verify the node with cluster-node verify, and replace it if it stays slow",
    )


def _data(facts: Sequence[RankFacts]) -> Cause | None:
    share = _share([(one.data_seconds, one.step_seconds) for one in facts])
    if share is None or share <= _DATA_SHARE:
        return None
    return Cause(
        kind=CauseKind.DATA,
        sentence=f"{share:.0%} of a step goes into waiting for samples: give the loaders more workers, or look at "
        "the file system's throughput",
    )


def _thermal(facts: Sequence[RankFacts]) -> Cause | None:
    hot = {(one.node, gpu) for one in facts for gpu in one.throttled_gpus}
    if not hot:
        return None
    nodes = ", ".join(sorted({node for node, _ in hot})[:3])
    return Cause(kind=CauseKind.THERMAL, sentence=f"{len(hot)} GPUs are slowed down by temperature, on {nodes}")


def _network(facts: Sequence[RankFacts]) -> Cause | None:
    exchange = [(one.step_seconds - one.data_seconds - one.compute_seconds, one.step_seconds) for one in facts]
    share = _share(exchange)
    again = [one.retransmitted_share for one in facts if one.retransmitted_share is not None]
    if share is None or share <= _EXCHANGE_SHARE or not again or fmean(again) <= _RETRANSMITTED_SHARE:
        return None
    return Cause(
        kind=CauseKind.NETWORK,
        sentence=f"{share:.0%} of a step goes into the exchange between ranks, and EFA sends {fmean(again):.1%} of "
        "its bytes again: see that all nodes are in one placement group",
    )


def _share(pairs: Sequence[tuple[float, float]]) -> float | None:
    shares = [part / whole for part, whole in pairs if whole > 0]
    return median(shares) if shares else None


def _gpus(indices: set[int]) -> str:
    numbers = ", ".join(str(one) for one in sorted(indices))
    return f"GPU {numbers} is" if len(indices) == 1 else f"GPUs {numbers} are"
