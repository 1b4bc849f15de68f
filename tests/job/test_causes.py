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
    ],
)
def test_the_likely_cause_is_named(
    facts: list[RankFacts], slow: tuple[SlowRank, ...], kind: CauseKind | None, says: str
) -> None:
    cause = likely_cause(facts, slow)

    assert (cause and cause.kind) is kind
    assert says in (cause.sentence if cause else "")
