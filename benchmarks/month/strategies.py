"""What an interruption costs a job, by what is done about it."""

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Protocol

from benchmarks.month.published import DAY, HOUR, INTERRUPTIONS, Kind
from benchmarks.month.repairs import RepairShop
from cluster_job.hangs import FLOOR_SECONDS
from cluster_job.intervals import best_interval

_MINUTE = 60.0
RESTART_SECONDS = 22.5 * _MINUTE
"""From an interruption until the next step from a checkpoint: AWS says 15 to 30 minutes of 2,304 GPUs.

https://aws.amazon.com/blogs/machine-learning/checkpointless-training-on-amazon-sagemaker-hyperpod-production-scale-training-with-faster-fault-recovery/
"""
CHECKPOINT_STALL = 5.0
"""For how many seconds the job stands still for a checkpoint: a parameter."""

_AT_WORK, _WORKDAYS = range(9, 18), range(5)


@dataclass(frozen=True, kw_only=True)
class Interruption:
    """An interruption of the job.

    Attributes:
        at: When, in seconds since the month began.
        kind: What it is.
        code: The code in the kernel's log. Empty: there is none.
    """

    at: float
    kind: Kind
    code: str


@dataclass(frozen=True, kw_only=True)
class Loss:
    """What an interruption costs the whole job.

    Attributes:
        stalled: For how many seconds it does no step.
        redone: How many seconds of steps it does again.
    """

    stalled: float
    redone: float


class Strategy(Protocol):
    """What is done about interruptions.

    Attributes:
        name: What it is called.
        interval: The seconds between two checkpoints.
    """

    name: str
    interval: float

    def handle(self, one: Interruption, random: Random) -> Loss:
        """Return what one costs."""

    def missing_seconds(self, until: float) -> Iterable[float]:
        """Return for how long nodes were missing while the others trained."""


@dataclass(frozen=True, kw_only=True)
class Operators:
    """How long an operator takes from the interruption until the job trains again: parameters.

    Attributes:
        at_work: On weekdays from 9 to 18: AWS says that recovery takes up to an hour on self-managed clusters
            (https://aws.amazon.com/blogs/aws/introducing-checkpointless-and-elastic-training-on-amazon-sagemaker-hyperpod/).
        otherwise: At night and at weekends.
    """

    at_work: float = HOUR
    otherwise: float = 2 * HOUR

    def seconds(self, at: float) -> float:
        """Return how long one takes who is needed at a time."""
        day, hour = int(at // DAY) % 7, int(at % DAY // HOUR)
        return self.at_work if day in _WORKDAYS and hour in _AT_WORK else self.otherwise


@dataclass(kw_only=True)
class ByHand:
    """An operator finds the node, takes it out, and starts the job from its last checkpoint, which is hourly.

    Attributes:
        operators: How long they take.
        interval: The seconds between two checkpoints.
    """

    name = "restart by hand"
    operators: Operators = Operators()
    interval: float = HOUR

    def handle(self, one: Interruption, random: Random) -> Loss:
        """Return what one costs."""
        return Loss(stalled=self.operators.seconds(one.at), redone=random.uniform(0, self.interval))

    def missing_seconds(self, until: float) -> Iterable[float]:  # noqa: ARG002 - as for Strategy
        """Return nothing: the job waits until all nodes are there."""
        return ()


@dataclass(kw_only=True)
class FromCheckpoint:
    """Something starts the job again from its last checkpoint, and has another node at hand; no one is needed.

    That favours it: it says nothing of a node that stays in the job and breaks it again.

    Attributes:
        interval: The seconds between two checkpoints.
        restart: From the interruption until the next step.
        operators: How long they take, where corrupt data is to be found.
    """

    name = "restart from checkpoint"
    interval: float
    restart: float = RESTART_SECONDS
    operators: Operators = Operators()

    def handle(self, one: Interruption, random: Random) -> Loss:
        """Return what one costs."""
        stalled = self.operators.seconds(one.at) if one.kind is Kind.CORRUPTION else self.restart
        return Loss(stalled=stalled, redone=random.uniform(0, self.interval))

    def missing_seconds(self, until: float) -> Iterable[float]:  # noqa: ARG002 - as for Strategy
        """Return nothing: the job has all its nodes again at once."""
        return ()


@dataclass(kw_only=True)
class ThisCluster:
    """The other nodes go on at once, while the health function repairs the node.

    The node's absence is charged, and no node waits as a spare.

    Attributes:
        name: What it is called.
        recovery: For how long all stall when a node goes, and again when it comes back.
        peers: Whether the others hold the state; if not, it is read from the last checkpoint.
        between: The mean seconds between two interruptions.
        shop: The nodes under repair.
        operators: How long they take, where they are needed.
    """

    name: str
    recovery: float
    peers: bool
    between: float
    shop: RepairShop
    operators: Operators = Operators()

    def __post_init__(self) -> None:
        """Begin without announced maintenance."""
        self._announced = 0
        self.interval = best_interval(CHECKPOINT_STALL, self.between)

    def handle(self, one: Interruption, random: Random) -> Loss:
        """Return what one costs."""
        self.shop.advance(one.at)
        redone = random.uniform(0, self.interval)
        match one.kind:
            case Kind.GPU | Kind.NODE:
                self.shop.fail(one.at, one.code)
                # Without peers a node that comes back makes the others begin at the last checkpoint once more.
                return Loss(
                    stalled=2 * self.recovery, redone=0 if self.peers else redone + random.uniform(0, self.interval)
                )
            case Kind.PLANNED:
                # It is announced: the job saves, the node leaves, and another comes.
                self._announced += 1
                return Loss(stalled=2 * self.recovery, redone=0)
            case Kind.NETWORK:
                return Loss(stalled=FLOOR_SECONDS + RESTART_SECONDS, redone=redone)
            case Kind.SOFTWARE:
                return Loss(stalled=RESTART_SECONDS, redone=redone)
            case Kind.CORRUPTION:
                return Loss(stalled=self.operators.seconds(one.at), redone=redone)

    def missing_seconds(self, until: float) -> Iterable[float]:
        """Return for how long nodes were missing while the others trained."""
        announced = self._announced * self.shop.times.launch.total_seconds()
        return (announced, *self.shop.missing_seconds(until))


@dataclass(frozen=True, kw_only=True)
class Month:
    """What a month came to.

    Attributes:
        interruptions: How many there were.
        goodput: The share of all GPU time that was training.
        lost_node_hours: The rest, in hours of nodes.
    """

    interruptions: int
    goodput: float
    lost_node_hours: float


def simulate(strategy: Strategy, *, between: float, nodes: int, seconds: float, random: Random) -> Month:
    """Return what some time comes to under a strategy.

    Args:
        strategy: What is done about interruptions.
        between: The mean seconds of training between two interruptions.
        nodes: How many nodes the job has.
        seconds: The time.
        random: What draws interruptions.
    """
    kinds = [(kind, code) for _, kind, code in INTERRUPTIONS.values()]
    weights = [count for count, _, _ in INTERRUPTIONS.values()]
    at = stalled = redone = 0.0
    count = 0
    while (at := at + random.expovariate(1 / between)) < seconds:
        ((kind, code),) = random.choices(kinds, weights)
        loss = strategy.handle(Interruption(at=at, kind=kind, code=code), random)
        count, stalled, redone = count + 1, stalled + loss.stalled, redone + loss.redone
        at += loss.stalled
    stalled += CHECKPOINT_STALL * (seconds - stalled) / strategy.interval
    lost = (stalled + redone) * nodes + sum(strategy.missing_seconds(seconds))
    return Month(interruptions=count, goodput=1 - lost / (nodes * seconds), lost_node_hours=lost / HOUR)
