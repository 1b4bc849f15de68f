import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_job.sharing import ANY_SIZE, active_replicas, share

batches = st.integers(1, 200)
worlds = st.integers(1, 300)


@given(st.lists(st.tuples(worlds, st.booleans()), min_size=1, max_size=12), batches)
def test_each_sample_is_taken_once_whatever_the_world_sizes(attempts: list[tuple[int, bool]], batch: int) -> None:
    """Each attempt has its world size, and succeeds or is done again with that of the next."""
    step, taken = 0, []
    for world, succeeds in attempts:
        shares = [share(step, global_batch=batch, rank=rank, world_size=world) for rank in range(world)]
        assert max(map(len, shares)) - min(map(len, shares)) <= 1
        if succeeds:
            taken += [sample for one in shares for sample in one]
            step += 1
    assert sorted(taken) == list(range(step * batch))


@pytest.mark.parametrize(
    ("step", "rank", "message"),
    [
        (-1, 0, "step must be 0 or more, got -1"),
        (0, 4, "rank must be from 0 to 3 among 4 ranks, got 4"),
        (0, -1, "rank must be from 0 to 3 among 4 ranks, got -1"),
    ],
)
def test_impossible_numbers_are_refused(step: int, rank: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        share(step, global_batch=8, rank=rank, world_size=4)


@pytest.mark.parametrize(
    ("sizes", "active"),
    [
        (ANY_SIZE, [0, 1, 2, 3, 4, 5, 6]),
        (range(2, 6, 2), [0, 0, 2, 2, 4, 4, 4]),  # what is more follows as a hot spare
        (range(3, 4), [0, 0, 0, 3, 3, 3, 3]),
    ],
)
def test_the_largest_allowed_number_of_replicas_takes_samples(sizes: range, active: list[int]) -> None:
    assert [active_replicas(present, sizes) for present in range(7)] == active
