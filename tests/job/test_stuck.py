"""When a step is overdue, and which rank a run waits for."""

from dataclasses import replace

import pytest

from cluster_job.stuck import GRACE_SECONDS, Lag, Sign, StepLimit, behind, find_stuck


@pytest.mark.parametrize(
    ("steps", "limit"),
    [
        ([], None),
        # The first five compile and warm up.
        ([300.0, 60.0, 1.0, 1.0, 1.0], None),
        ([300.0, 60.0, 1.0, 1.0, 1.0, 1.0], 31.0),
        # A checkpoint or an evaluation that a step has waited for is known from then on, for 100 steps.
        ([1.0] * 20 + [90.0] + [1.0] * 99, 120.0),
        ([1.0] * 20 + [90.0] + [1.0] * 100, 31.0),
        ([40.0] * 10, 70.0),
    ],
)
def test_a_step_is_overdue_after_the_longest_of_the_last_ones_and_a_grace(
    steps: list[float], limit: float | None
) -> None:
    watched = StepLimit(GRACE_SECONDS)
    for seconds in steps:
        watched.add(seconds)
    assert watched.seconds == limit


def sign(
    rank: int,
    step: int = 310,
    *,
    world: int = 3,
    still: float = 10.0,
    quiet: float = 10.0,
    torch: bool = True,
    work: bool = False,
    **counts: int,
) -> Sign:
    return Sign(
        rank=rank, node=f"node-{rank}", world=world, beat="a", silent=45.0, step=step, counts=counts,
        collective="gloo:all_reduce" if torch else "", where="train.py:17 in __getitem__", in_torch=torch,
        still=still, counts_still=quiet, at_work=work,
    )  # fmt: skip


def _mesh(step: int, late: int) -> list[Sign]:
    """Two tensor-parallel groups of two ranks; rank 3 has begun no collective where its peers have."""
    first = [sign(0, step, tp0=4, dp0=2), sign(1, step, tp0=4, dp1=2)]
    return [*first, sign(2, late, tp1=4, dp0=1), sign(3, late, tp1=3, dp1=1)]


@pytest.mark.parametrize(
    ("signs", "ranks", "lag"),
    [
        ([sign(0), sign(1, 309), sign(2)], [1], Lag.STEP),
        ([sign(0, g0=7), sign(1, g0=6), sign(2, g0=7)], [1], Lag.COLLECTIVE),
        ([sign(0, g0=7), sign(1, g0=6, torch=False), sign(2, g0=6)], [1, 2], Lag.COLLECTIVE),
        ([sign(0, g0=7), sign(1, g0=7, torch=False), sign(2, g0=7)], [1], Lag.THREAD),
        # Rank 3 hangs: rank 2 waits for it in their tensor-parallel group, and both are behind in data-parallel ones.
        (_mesh(9, 9), [3], Lag.COLLECTIVE),
        (_mesh(9, 8), [3], Lag.STEP),
        # All wait in the same collective, as when the network is gone; or none does.
        ([sign(0, g0=7), sign(1, g0=7), sign(2, g0=7)], [], None),
        ([sign(0, torch=False), sign(1, torch=False)], [], None),
        # Each waits for another one.
        ([sign(0, a=2, b=1), sign(1, a=1, b=2)], [], None),
    ],
)  # fmt: skip
def test_the_rank_is_named_that_the_others_wait_for(signs: list[Sign], ranks: list[int], lag: Lag | None) -> None:
    found, shown = behind(signs)
    assert ([one.rank for one in found], shown) == (ranks, lag)


_WAIT = [sign(0, g0=7, still=60.0, quiet=60.0), sign(2, g0=7, still=60.0, quiet=60.0)]


@pytest.mark.parametrize(
    ("late", "others", "ends"),
    [
        (sign(1, g0=6, still=10.0), _WAIT, False),
        (sign(1, g0=6, still=59.0), _WAIT, False),
        (sign(1, g0=6, still=60.0), _WAIT, True),
        # It computes or reads; it evaluates or saves; others go on; a rank has not said that its step is overdue.
        (sign(1, g0=6, still=9.0), _WAIT, None),
        (sign(1, g0=6, work=True), _WAIT, None),
        (sign(1, g0=6), [_WAIT[0], replace(_WAIT[1], at_work=True)], None),
        (sign(1, g0=6), [_WAIT[0], replace(_WAIT[1], counts_still=5.0)], None),
        (sign(1, g0=6), _WAIT[:1], None),
        # A file system does not answer it.
        (replace(sign(1, g0=6, still=60.0), in_kernel=True), _WAIT, False),
        (
            replace(sign(1, g0=6, still=600.0), in_kernel=True),
            [replace(one, counts_still=600.0) for one in _WAIT],
            True,
        ),
        # Nobody is behind.
        (sign(1, g0=7, still=60.0), _WAIT, None),
    ],
)
def test_a_rank_is_stuck_that_is_behind_and_does_not_move(late: Sign, others: list[Sign], ends: bool | None) -> None:
    found = find_stuck([*others, late], 3, GRACE_SECONDS)
    assert (None if found is None else found.ends) is ends
    assert found is None or found.ranks == (1,)
    assert found is None or ("waits in the kernel" in found.sentence) is late.in_kernel


def test_the_sentence_names_rank_node_step_collective_and_line() -> None:
    found = find_stuck([*_WAIT, sign(1, g0=6, torch=False)], 3, GRACE_SECONDS)
    assert found is not None
    assert found.sentence == (
        "rank 1 on node-1 hangs: it has begun fewer collectives than others; its last step is 310, 45 s ago, its "
        "last collective number 6 of group g0, where others wait in number 7 (gloo:all_reduce); its main thread is "
        "at train.py:17 in __getitem__"
    )
    many = [sign(rank, 309, world=8) for rank in range(1, 8)]
    found = find_stuck([sign(0, world=8), *many], 8, GRACE_SECONDS)
    assert found is not None
    assert found.sentence.startswith(
        "rank 1 on node-1 (and rank 2 on node-2, rank 3 on node-3, rank 4 on node-4, 3 more) hangs: it has done fewer"
    )
    long = [replace(one, node="n" * 253) for one in many]
    found = find_stuck([sign(0, world=8), *long], 8, GRACE_SECONDS)
    assert found is not None
    assert len(found.sentence) == 900
