"""Why a run is slower than it could be: the likely cause, named from what its ranks measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import median

from cluster_job.stragglers import SlowRank

_DATA_SHARE = 0.2
_EXCHANGE_SHARE = 0.5
_RETRANSMITTED_SHARE = 0.01  # as the alert EfaRetransmissions of the cluster's Prometheus
_MOST_OF_EXCESS = 0.5
_SHOWN_NODES = 3


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
        data_seconds: From the step's start until its own computing: reading and preparing samples. None: the script
            does not say where it computes.
        compute_seconds: Its own computing, until the collective. None: as above.
        throttled_gpus: The GPUs of its node that their temperature slows down.
        retransmitted_share: The share of bytes that its node's adapters sent again. None: it was not read.
        gpu_percent: The utilization of its node's GPUs. None: it was not read.
    """

    rank: int
    node: str
    step_seconds: float
    data_seconds: float | None = None
    compute_seconds: float | None = None
    throttled_gpus: tuple[int, ...] = ()
    retransmitted_share: float | None = None
    gpu_percent: float | None = None


def likely_cause(facts: Sequence[RankFacts], slow: Sequence[SlowRank], *, is_low: bool = False) -> Cause | None:
    """Return what most likely slows a run down. None: nothing measured says so.

    Args:
        facts: What the ranks measured.
        slow: The ranks that are slower than the others, the slowest first.
        is_low: Whether the GPUs are used too little.
    """
    by_rank = {one.rank: one for one in facts}
    known = [one for one in slow if one.rank in by_rank]
    if known:
        return _of_slow_ranks(known[0].factor, [by_rank[one.rank] for one in known], facts)
    return _data(facts) or _thermal(facts) or _network(facts, is_low=is_low)


def _of_slow_ranks(factor: float, slow: Sequence[RankFacts], facts: Sequence[RankFacts]) -> Cause:
    own = slow[0]
    who = f"rank {own.rank} on {own.node} takes {factor:.2f} times as long as the others"
    if len(slow) > 1 and {one.node for one in slow} == {own.node}:
        who = f"{len(slow)} ranks, all on {own.node}, take up to {factor:.2f} times as long as the others"
    hot = {gpu for one in facts if one.node == own.node for gpu in one.throttled_gpus}
    if hot:
        return Cause(kind=CauseKind.THERMAL, sentence=f"{who}: {_gpus(hot)} slowed down by temperature there")
    data = _excess(own.data_seconds, [one.data_seconds for one in facts])
    compute = _excess(own.compute_seconds, [one.compute_seconds for one in facts])
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
    share = _share([(one.data_seconds, one.step_seconds) for one in facts if one.data_seconds is not None])
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
    nodes = _nodes({node for node, _ in hot})
    return Cause(kind=CauseKind.THERMAL, sentence=f"{len(hot)} GPUs are slowed down by temperature, on {nodes}")


def _network(facts: Sequence[RankFacts], *, is_low: bool) -> Cause | None:
    """Return that adapters send bytes again; one node is enough, since all wait for its part of each exchange."""
    read = {one.node: one.retransmitted_share for one in facts if one.retransmitted_share is not None}
    again = {node: part for node, part in read.items() if part > _RETRANSMITTED_SHARE}
    share = _share(
        [
            (one.step_seconds - one.data_seconds - one.compute_seconds, one.step_seconds)
            for one in facts
            if one.data_seconds is not None and one.compute_seconds is not None
        ]
    )
    if not again or not (is_low or (share is not None and share > _EXCHANGE_SHARE)):
        return None
    worst = f"EFA sends up to {max(again.values()):.1%} of its bytes again on {_nodes(set(again))}"
    of_step = "" if share is None else f"{share:.0%} of a step goes into the exchange between ranks, and "
    return Cause(kind=CauseKind.NETWORK, sentence=f"{of_step}{worst}: see that all nodes are in one placement group")


def _share(pairs: Sequence[tuple[float, float]]) -> float | None:
    shares = [part / whole for part, whole in pairs if whole > 0]
    return median(shares) if shares else None


def _excess(own: float | None, all_: Sequence[float | None]) -> float:
    known = [one for one in all_ if one is not None]
    return own - median(known) if own is not None and known else 0.0


def _nodes(names: set[str]) -> str:
    shown = sorted(names)[:_SHOWN_NODES]
    rest = len(names) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")


def _gpus(indices: set[int]) -> str:
    numbers = ", ".join(str(one) for one in sorted(indices))
    return f"GPU {numbers} is" if len(indices) == 1 else f"GPUs {numbers} are"
