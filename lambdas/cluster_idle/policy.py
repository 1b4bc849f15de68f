"""When a node counts as idle, and what is done then: what the construct writes, read once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TypeGuard

from cluster_common.errors import InvalidSettingsError

PERIOD = timedelta(minutes=5)
"""How much time one point of a metric covers."""


class Scope(StrEnum):
    """What is stopped together."""

    GANG = "gang"
    """A node group, when all of its nodes are idle: a rank that waits for its peers is not idle."""

    NODE = "node"
    """Each node by itself."""


class SignalKind(StrEnum):
    """What else must agree that a node is idle."""

    CPU = "cpu"
    NETWORK = "network"
    GPU_MEMORY = "gpu_memory"
    HEARTBEAT = "heartbeat"
    SESSION = "session"
    METRIC = "metric"


@dataclass(frozen=True, kw_only=True)
class Signal:
    """One more thing that must agree that a node is idle.

    Attributes:
        kind: What is looked at.
        below: What it stays below on an idle node: vCPUs, bytes per second, MiB, or the metric's own unit.
        namespace: Of `METRIC`: the metric's namespace.
        metric: Of `METRIC`: its name; its one dimension is `InstanceId`.
        statistic: Of `METRIC`: the statistic over a period.
    """

    kind: SignalKind
    below: float = 0.0
    namespace: str = ""
    metric: str = ""
    statistic: str = ""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """When a node counts as idle, and what is done then.

    Attributes:
        below: The utilization, in percent, that every period of an idle window stays below.
        window: For how long.
        coverage: The share of the window's periods that must have a point.
        grace: How long after its launch a node is left alone.
        warning: How long before the stop people are warned.
        scope: What is stopped together.
        signals: What else must agree.
        dry_run: Whether everything is said and nothing is stopped.
        off: Whether it is never stopped, nor looked at.
        most_stops: How many nodes one run stops at most; of the cluster's policy only.
        blind_share: If more than this share of the cluster turns unknown within three ticks, nothing is done; of the
            cluster's policy only.
    """

    below: float = 5.0
    window: timedelta = timedelta(minutes=60)
    coverage: float = 0.9
    grace: timedelta = timedelta(minutes=30)
    warning: timedelta = timedelta(minutes=30)
    scope: Scope = Scope.GANG
    signals: tuple[Signal, ...] = ()
    dry_run: bool = False
    off: bool = False
    most_stops: int = 100
    blind_share: float = 0.5

    @property
    def span(self) -> timedelta:
        """How far back metrics are read: as far as a warning and the window before it reach."""
        return self.window + self.warning + PERIOD

    @property
    def words(self) -> str:
        """What an idle node has done, as people are told."""
        return f"below {self.below:g} % for {minutes(self.window)}"


def minutes(time: timedelta) -> str:
    """Return a time as people read it."""
    count = round(time.total_seconds() / 60)
    return "1 minute" if count == 1 else f"{count} minutes"


def read_policy(raw: object, base: Policy, *, of: str) -> Policy:
    """Read a policy over another one, of which what is not written stays.

    Args:
        raw: A JSON object.
        base: What holds where nothing is written.
        of: Whose policy it is, for the error.

    Raises:
        InvalidSettingsError: It is not what the construct writes.
    """
    if not isinstance(raw, dict):
        raise InvalidSettingsError(f"the policy of {of} must be an object, got {raw!r}")
    unknown = sorted(set(raw) - set(_READERS))
    if unknown:
        raise InvalidSettingsError(f"the policy of {of} takes {', '.join(_READERS)}, got {', '.join(unknown)}")
    values = {}
    for key, value in raw.items():
        try:
            values[key] = _READERS[key](value)
        except (TypeError, ValueError) as error:
            raise InvalidSettingsError(f"{key} of the policy of {of} cannot be {value!r}") from error
    return Policy(**{**vars(base), **values})


def _number(value: object) -> float:
    if not _is_number(value):
        raise TypeError(value)
    return value


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise TypeError(value)
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(value)
    return value


def _time(value: object) -> timedelta:
    return timedelta(seconds=_number(value))


def _window(value: object) -> timedelta:
    """Read a window: without a period in it, nothing would have to be seen to call a node idle."""
    window = _time(value)
    if window < PERIOD:
        raise ValueError(value)
    return window


def _share(value: object) -> float:
    share = _number(value)
    if not 0 < share <= 1:
        raise ValueError(value)
    return share


def _scope(value: object) -> Scope:
    return Scope(str(value))


def _signals(value: object) -> tuple[Signal, ...]:
    if not isinstance(value, list):
        raise TypeError(value)
    return tuple(_signal(one) for one in value)


def _signal(raw: object) -> Signal:
    if not isinstance(raw, list) or not raw:
        raise TypeError(raw)
    kind, *rest = raw
    kind = SignalKind(kind)
    if kind in (SignalKind.HEARTBEAT, SignalKind.SESSION):
        if rest:
            raise ValueError(raw)
        return Signal(kind=kind)
    if kind is SignalKind.METRIC:
        namespace, metric, statistic, below = rest
        if not all(isinstance(text, str) and text for text in (namespace, metric, statistic)):
            raise TypeError(raw)
        return Signal(kind=kind, below=_number(below), namespace=namespace, metric=metric, statistic=statistic)
    (below,) = rest
    return Signal(kind=kind, below=_number(below))


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")


_READERS: Mapping[str, Callable[[object], object]] = {
    "below": _number,
    "window": _window,
    "coverage": _share,
    "grace": _time,
    "warning": _time,
    "scope": _scope,
    "signals": _signals,
    "dry_run": _flag,
    "off": _flag,
    "most_stops": _whole,
    "blind_share": _share,
}
