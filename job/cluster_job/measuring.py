"""How long a rank takes for its own work of a step, and how long for the whole step.

The script says where its own work is with `run.computing()`; what lies before it in a step is reading samples, what
lies behind it is the exchange with the other ranks. Where torch computes on a GPU, the computing is timed there by
events, since the script only queues it.
"""

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

_RECENT = 100


@dataclass(frozen=True, kw_only=True)
class StepTimes:
    """The times of one step, in seconds.

    Attributes:
        step: Its number.
        data: Until its own computing began.
        compute: Its own computing.
    """

    step: int
    data: float
    compute: float


class Stopwatch:
    """Times the steps of one rank."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter, cuda: Any = None) -> None:  # noqa: ANN401 - torch.cuda
        self._clock = clock
        self._cuda = cuda
        self._step: int | None = None
        self._began = 0.0
        self._ended: float | None = None
        self._entered: float | None = None
        self._host = 0.0
        self._events: list[tuple[Any, Any]] = []
        self._pending: deque[tuple[int, float, float, list[tuple[Any, Any]]]] = deque(maxlen=_RECENT)

    def begin(self, step: int) -> None:
        """Start a step."""
        self._step, self._began, self._entered, self._host, self._events = step, self._clock(), None, 0.0, []
        self._ended = self._began if self._ended is None else self._ended  # what lies before the first is no step

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Time what is done inside as the rank's own work; more than once in a step adds up."""
        start = self._clock()
        self._entered = start if self._entered is None else self._entered
        cuda = self._cuda or _cuda_in_use()
        events = None if cuda is None else tuple(cuda.Event(enable_timing=True) for _ in range(2))
        if events is not None:
            events[0].record()
        try:
            yield
        finally:
            if events is not None:
                events[1].record()
                self._events.append((events[0], events[1]))
            self._host += self._clock() - start

    def end(self, step: int) -> float:
        """End a step, and return its seconds, from the end of the one before it."""
        now = self._clock()
        seconds, self._ended = now - (now if self._ended is None else self._ended), now
        if self._step == step and self._entered is not None:
            self._pending.append((step, self._entered - self._began, self._host, self._events))
        self._step = None
        return seconds

    def finished(self) -> Iterator[StepTimes]:
        """Yield the steps whose computing is over; a GPU may still be at the last ones."""
        while self._pending:
            step, data, host, events = self._pending[0]
            if not all(end.query() for _, end in events):
                return
            self._pending.popleft()
            # https://docs.pytorch.org/docs/stable/generated/torch.cuda.Event.html: milliseconds
            device = sum(start.elapsed_time(end) for start, end in events) / 1000
            yield StepTimes(step=step, data=data, compute=device if events else host)


class Recent:
    """The medians of the last steps of one rank."""

    def __init__(self) -> None:
        self._steps: deque[StepTimes] = deque(maxlen=_RECENT)

    def add(self, times: StepTimes) -> None:
        """Add a step."""
        self._steps.append(times)

    @property
    def data_seconds(self) -> float | None:
        """The median time until computing. None: no step has said where it computes."""
        return median(one.data for one in self._steps) if self._steps else None

    @property
    def compute_seconds(self) -> float | None:
        """The median time of computing. None: as above."""
        return median(one.compute for one in self._steps) if self._steps else None


def _cuda_in_use() -> Any:  # noqa: ANN401 - torch.cuda
    """Return torch's CUDA where the script computes on it; torch is not imported for that."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() else None
