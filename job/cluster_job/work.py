"""What a run does, and the place of a process in it, as its script says."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Work:
    """What a run does, as the script says.

    Attributes:
        name: The run's name.
        global_batch: The samples of one step over all ranks.
        flops_per_sample: The floating-point operations for one sample. None: no MFU is reported.
        cost_cap_usd: What the run may cost. None: there is no cap.
    """

    name: str
    global_batch: int
    flops_per_sample: float | None = None
    cost_cap_usd: float | None = None


@dataclass(frozen=True, kw_only=True)
class Place:
    """The place of a process among all of its run, which may change while replicas come and go.

    Attributes:
        rank: Its number.
        world_size: How many processes take samples.
        nodes: How many nodes there are, those of hot spares included: they are paid for.
    """

    rank: int
    world_size: int
    nodes: int


@dataclass(kw_only=True)
class Steps:
    """What the script did since the last report."""

    last: int | None = None
    samples: int = 0
    share: int = 0
    loss: float | None = None
