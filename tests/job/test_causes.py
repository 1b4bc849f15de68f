from dataclasses import replace

import pytest

from cluster_job.causes import CauseKind, RankFacts, likely_cause
from cluster_job.stragglers import SlowRank

_USUAL = [
    RankFacts(rank=rank, node=f"i-{rank // 8}", step_seconds=1.0, data_seconds=0.05, compute_seconds=0.6)
    for rank in range(16)
]


def _with(**changes: object) -> list[RankFacts]:
    return [replace(one, **changes) for one in _USUAL]  # type: ignore[arg-type]


def _but(rank: int, **changes: object) -> list[RankFacts]:
    return [replace(one, **changes) if one.rank == rank else one for one in _USUAL]  # type: ignore[arg-type]


_SLOW = (SlowRank(rank=9, factor=1.3),)


@pytest.mark.parametrize(
    ("facts", "slow", "kind", "says"),
    [
        (_USUAL, (), None, ""),
        (_but(9, compute_seconds=0.8), _SLOW, CauseKind.ONE_RANK, "rank 9 on i-1 takes 1.30 times as long"),
        (_but(9, data_seconds=0.3), _SLOW, CauseKind.DATA, "rank 9 on i-1 takes 1.30 times as long as the others"),
        (_but(8, throttled_gpus=(3,)), _SLOW, CauseKind.THERMAL, "GPU 3 is slowed down by temperature there"),
        (_but(0, throttled_gpus=(3,)), _SLOW, CauseKind.ONE_RANK, "rank 9"),
        (_but(0, throttled_gpus=(3, 4)), (), CauseKind.THERMAL, "2 GPUs are slowed down by temperature, on i-0"),
        (_with(data_seconds=0.3), (), CauseKind.DATA, "30% of a step goes into waiting for samples"),
        (_with(compute_seconds=0.3, retransmitted_share=0.02), (), CauseKind.NETWORK, "65% of a step"),
        # A long exchange alone may be what the model needs.
        (_with(compute_seconds=0.3, retransmitted_share=0.001), (), None, ""),
        (_with(compute_seconds=0.3), (), None, ""),
        ([], _SLOW, None, ""),
        (
            [replace(one, compute_seconds=0.8) if one.node == "i-1" else one for one in _USUAL],
            tuple(SlowRank(rank=rank, factor=1.3) for rank in range(8, 16)),
            CauseKind.ONE_RANK,
            "8 ranks, all on i-1, take up to 1.30 times as long as the others: verify the node",
        ),
        # One node's adapter is enough: all wait for its part of each exchange.
        (
            [replace(one, compute_seconds=0.3, retransmitted_share=0.03 * (one.node == "i-1")) for one in _USUAL],
            (),
            CauseKind.NETWORK,
            "65% of a step goes into the exchange between ranks, and EFA sends up to 3.0% of its bytes again on i-1",
        ),
    ],
)
def test_the_likely_cause_is_named(
    facts: list[RankFacts], slow: tuple[SlowRank, ...], kind: CauseKind | None, says: str
) -> None:
    cause = likely_cause(facts, slow)

    assert (cause and cause.kind) is kind
    assert says in (cause.sentence if cause else "")


_SILENT = {"data_seconds": None, "compute_seconds": None}


@pytest.mark.parametrize(
    ("facts", "kind", "says"),
    [
        (_with(**_SILENT), None, ""),
        (_with(**_SILENT, retransmitted_share=0.02), CauseKind.NETWORK, "EFA sends up to 2.0% of its bytes again on"),
        (_with(**_SILENT, throttled_gpus=(3,)), CauseKind.THERMAL, "2 GPUs are slowed down by temperature"),
        (_with(data_seconds=0.3, retransmitted_share=0.02), CauseKind.DATA, "30% of a step"),
    ],
)
def test_low_utilization_has_a_cause_though_no_step_says_where_it_computes(
    facts: list[RankFacts], kind: CauseKind | None, says: str
) -> None:
    cause = likely_cause(facts, (), is_low=True)

    assert (cause and cause.kind) is kind
    assert (cause.sentence if cause else "").startswith(says)
