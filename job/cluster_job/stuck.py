"""Which rank the others wait for when no rank does a step any more.

A step is **overdue** when it takes longer than the longest of the last 100 steps of its process and a grace of 30
seconds. The first five steps of a process are not measured, since they compile and warm up. Each rank whose step is
overdue says where it stands: its last step, how many collectives it has begun in each process group, whether its
main thread waits in torch, and for how long the process has not moved.

A rank **is stuck** when all of these hold:

- the step of every rank is overdue, and no rank evaluates (`run.alive()`) or writes a checkpoint;
- the rank is behind, and waits for none itself: it has done fewer steps than others, or as many and begun fewer
  collectives of a process group, or as many of both and its main thread is not in torch while that of others is;
- it has not moved for a third of the grace: the same lines of Python, no CPU, no reading and writing;
- the other ranks have begun no collective in that time.

Then the run **reports** it. When it has not moved for two times the grace, it **ends**. A rank that waits in the
kernel ends after 10 minutes: file systems have maintenance, after which it continues.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

GRACE_SECONDS = 30.0
"""The default of the one setting: what a step may take more than the longest of the last ones."""

LOOK_SHARE, REPORT_SHARE, END_SHARE = 1 / 6, 1 / 3, 2.0
"""How often a process looks, and after how long without movement the run reports and ends a rank, in graces."""

KERNEL_SECONDS = 600.0
"""After how long a rank ends that waits in the kernel, for a file system or a device."""

_IN_KERNEL = ", and it waits in the kernel for a file system or a device"
_FIRST_STEPS = 5
_RECENT_STEPS = 100
_SHOWN_RANKS = 3
_LONGEST = 900  # `training-cluster status` shows no report with a longer text


class StepLimit:
    """How long a step of this process may take."""

    def __init__(self, grace: float) -> None:
        """Begin with no step.

        Args:
            grace: What a step may take more than the longest of the last ones, in seconds.
        """
        self._grace = grace
        self._first = 0
        self._recent: deque[float] = deque(maxlen=_RECENT_STEPS)

    def add(self, seconds: float) -> None:
        """Add a step.

        Args:
            seconds: How long it took, from the end of the step before it.
        """
        if self._first < _FIRST_STEPS:
            self._first += 1
        else:
            self._recent.append(seconds)

    @property
    def seconds(self) -> float | None:
        """After how many seconds without a step the next one is overdue. None: too few steps were done."""
        longest = max(tuple(self._recent), default=None)
        return None if longest is None else longest + self._grace


@dataclass(frozen=True, kw_only=True)
class Sign:
    """What a rank says of itself while its step is overdue.

    Attributes:
        rank: The rank.
        node: Its node.
        world: How many ranks there are.
        beat: Differs from look to look and from process to process.
        silent: For how many seconds it has done no step.
        step: Its last step.
        counts: How many collectives it has begun, by process group.
        collective: Its last collective that is not over. Empty: there is none, or it is not known.
        where: Where its main thread is.
        in_torch: Whether that is in torch.
        still: For how many seconds the process has not moved.
        counts_still: For how many seconds it has begun no collective.
        at_work: Whether it evaluates or writes a checkpoint.
        in_kernel: Whether it waits in the kernel, as for a file system in maintenance.
    """

    rank: int
    node: str
    world: int
    beat: str
    silent: float
    step: int
    counts: Mapping[str, int] = field(default_factory=dict)
    collective: str = ""
    where: str = ""
    in_torch: bool = False
    still: float = 0.0
    counts_still: float = 0.0
    at_work: bool = False
    in_kernel: bool = False


class Lag(Enum):
    """What tells ranks that are behind from the others."""

    STEP = "has done fewer steps than others"
    COLLECTIVE = "has begun fewer collectives than others"
    THREAD = "is not in torch, where others wait"


def behind(signs: Sequence[Sign]) -> tuple[tuple[Sign, ...], Lag | None]:
    """Return the ranks that the others wait for, and what shows it; none where nothing tells ranks apart.

    A rank that waits for another one itself, as in its tensor-parallel group, may be behind ranks of other groups:
    the rank at the beginning of that chain waits for none.

    Args:
        signs: What all ranks say.
    """
    last = max((one.step for one in signs), default=0)
    least, most = _bounds(signs)
    fewer = [one for one in signs if one.step < last]
    begun = [one for one in signs if any(count < most[group] for group, count in one.counts.items())]
    for late, lag in ((fewer, Lag.STEP), (begun, Lag.COLLECTIVE)):
        first = [one for one in late if all(count == least[group] for group, count in one.counts.items())]
        if first:
            return tuple(first), lag
    outside = [one for one in signs if not one.in_torch]
    is_clear = not begun and not fewer and outside and len(outside) < len(signs)
    return (tuple(outside), Lag.THREAD) if is_clear else ((), None)


def _bounds(signs: Sequence[Sign]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the fewest and the most collectives that ranks have begun, by process group."""
    least: dict[str, int] = {}
    most: dict[str, int] = {}
    for one in signs:
        for group, count in one.counts.items():
            least[group] = min(count, least.get(group, count))
            most[group] = max(count, most.get(group, count))
    return least, most


@dataclass(frozen=True, kw_only=True)
class Stuck:
    """The ranks that a run waits for.

    Attributes:
        ranks: Their numbers.
        sentence: What shows it, for people.
        ends: Whether they are to end.
    """

    ranks: tuple[int, ...]
    sentence: str
    ends: bool


def find_stuck(signs: Sequence[Sign], world_size: int, grace: float) -> Stuck | None:
    """Return the ranks that are stuck. None: none is, or it is not known.

    Args:
        signs: What ranks say whose step is overdue.
        world_size: How many ranks there are.
        grace: The grace in seconds.
    """
    if {one.rank for one in signs} != set(range(world_size)) or any(one.at_work for one in signs):
        return None
    late, lag = behind(signs)
    others = [one for one in signs if one not in late]
    still = min((one.still for one in late), default=0.0)
    quiet = min((one.counts_still for one in others), default=0.0)
    if lag is None or min(still, quiet) < REPORT_SHARE * grace:
        return None
    end = KERNEL_SECONDS if any(one.in_kernel for one in late) else END_SHARE * grace
    return Stuck(
        ranks=tuple(sorted(one.rank for one in late)),
        sentence=_sentence(sorted(late, key=lambda one: one.rank), others, lag)[:_LONGEST],
        ends=min(still, quiet) >= max(end, END_SHARE * grace),
    )


def _sentence(late: Sequence[Sign], others: Sequence[Sign], lag: Lag) -> str:
    first = late[0]
    more = f" (and {_names(late[1:])})" if late[1:] else ""
    group, own = _group(first, others)
    most = max((one.counts.get(group, 0) for one in others), default=0)
    collectives = f", its last collective number {own} of group {group}" if group else ""
    if group and most > own:
        collectives += f", where others wait in number {most}{_named(others)}"
    in_kernel = _IN_KERNEL if first.in_kernel else ""
    return (
        f"rank {first.rank} on {first.node}{more} hangs: it {lag.value}; its last step is {first.step}, "
        f"{first.silent:.0f} s ago{collectives}; its main thread is at {first.where}{in_kernel}"
    )


def _names(late: Sequence[Sign]) -> str:
    names = ", ".join(f"rank {one.rank} on {one.node}" for one in late[:_SHOWN_RANKS])
    return names + (f", {len(late) - _SHOWN_RANKS} more" if len(late) > _SHOWN_RANKS else "")


def _named(others: Sequence[Sign]) -> str:
    name = next((one.collective for one in others if one.collective), "")
    return f" ({name})" if name else ""


def _group(first: Sign, others: Sequence[Sign]) -> tuple[str, int]:
    """Return the group in which a rank is furthest behind, and how many of its collectives the rank has begun."""
    lags = {
        group: max((one.counts.get(group, 0) for one in others), default=0) - count
        for group, count in first.counts.items()
    }
    group = max(lags, key=lambda name: lags[name], default="")
    return group, first.counts.get(group, 0)
