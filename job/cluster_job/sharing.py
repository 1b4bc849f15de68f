"""Which samples a rank takes of a step: each sample exactly once, at any world size and after any change of it.

Step `s` takes the samples from `s * global_batch` on, whatever happened before, and rank `r` of `w` takes each `w`-th
of them. So nothing has to be remembered of a data loader but the step: what was left out by a lost rank is taken by
the others when the step is done again. The batch stays the same, and so the learning rate does.
"""


def share(step: int, *, global_batch: int, rank: int, world_size: int) -> range:
    """Return the indices of the samples that a rank takes of a step.

    The shares of two ranks differ by one sample at most. A rank beyond the global batch has none.

    Args:
        step: The step's number, from 0.
        global_batch: The samples of one step over all ranks.
        rank: The number of the rank.
        world_size: How many ranks there are.

    Raises:
        ValueError: A number is not possible.
    """
    if step < 0:
        raise ValueError(f"step must be 0 or more, got {step}")
    if not 0 <= rank < world_size:
        raise ValueError(f"rank must be from 0 to {world_size - 1} among {world_size} ranks, got {rank}")
    first = step * global_batch
    return range(first + rank, first + global_batch, world_size)


ANY_SIZE = range(1, 2**31)
"""Any number of replicas."""


def active_replicas(present: int, sizes: range) -> int:
    """Return how many replicas take samples: the largest size that is allowed. 0: there are too few.

    Args:
        present: How many replicas there are.
        sizes: The sizes that are allowed.
    """
    if present < sizes[0]:
        return 0
    return sizes[min((present - sizes[0]) // sizes.step, len(sizes) - 1)]
