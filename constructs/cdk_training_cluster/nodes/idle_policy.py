"""When nodes are idle, and what becomes of them then."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum

from aws_cdk import Duration

from cdk_training_cluster.checks import (
    choice_problems,
    duration_problems,
    kinds_problems,
    number_problems,
    whole_number_problems,
)
from cdk_training_cluster.nodes.idle_signal import IdleSignal


class IdleScope(Enum):
    """What is stopped together."""

    GANG = "gang"
    """A node group, when all its nodes are idle: one that waits for its peers is not idle."""

    NODE = "node"
    """Each node by itself: right for nodes that work alone, such as a lab's or an inference group's."""


@dataclass(frozen=True, kw_only=True)
class IdlePolicy:
    """Say when nodes are idle and what becomes of them; what is left out is as the cluster's policy says.

    A node is idle only if that is known: each period of five minutes in the window, below the threshold on the
    busiest of its accelerators, with a sample of every GPU, and below those of `IdleSignal.host()`. A node of which
    too little is known is unknown: it is reported and never stopped. That is so for every GPU in MIG mode, whose
    utilization neither NVML nor the CloudWatch agent has.

    Attributes:
        utilization_below_percent: Idle is a node whose busiest accelerator is below that, in percent: above 0 and at
            most 50. Default: - 5.
        window: How long it must have been so: 15 minutes to 12 hours, in steps of 5 minutes. Default: - 60 minutes.
        coverage: The share of the window of which there must be data: 0.5 to 1. Default: - 0.9.
        grace: How long after its launch a node is left alone: at most 24 hours. Default: - 30 minutes.
        warning: How long before the stop people are warned: 10 minutes to 11 hours, and at most the window.
            Default: - 30 minutes.
        scope: What is stopped together. Default: - `IdleScope.GANG`.
        host_activity: Whether CPUs and network must say it, too: with the thresholds of `IdleSignal.host()`, or
            with those of one in `signals`. Default: - yes.
        signals: What else must say that a node is idle. Default: - nothing.
        dry_run: Whether everything is done but the stop: evaluate, warn and report. Default: - no: nodes are stopped.
        most_stops: The most nodes that one run stops; those idle for longest go first. The cluster's only.
            Default: - 100.
        blind_share: The share of the cluster's nodes above which nothing is stopped if so many become unknown
            within three runs: above 0 and at most 1. The cluster's only. Default: - 0.5.
        is_off: Whether these nodes are neither measured nor stopped; `IdlePolicy.off()` says it in short. `False`
            measures a node group though the cluster's policy is off. Default: - no.

    Raises:
        ValueError: A setting is wrong; every reason, a line each.
    """

    utilization_below_percent: float | None = None
    window: Duration | None = None
    coverage: float | None = None
    grace: Duration | None = None
    warning: Duration | None = None
    scope: IdleScope | None = None
    host_activity: bool | None = None
    signals: Sequence[IdleSignal] | None = None
    dry_run: bool | None = None
    most_stops: int | None = None
    blind_share: float | None = None
    is_off: bool | None = None

    def describe(self) -> str:
        """Say in a few words what becomes of idle nodes; nothing of the policy is left out."""
        if self.is_off:
            return "never stopped"
        stopped = "not stopped (dry run)" if self.dry_run else f"stopped {_minutes(self.warning)} later"
        each = ", each by itself" if self.takes_single_nodes else ""
        signals = " and ".join(signal.name for signal in self.signals or ())
        accelerators = "; accelerators alone say it" if self.host_activity is False and not signals else ""
        agreeing = f"; {signals} must agree" if signals else accelerators
        return f"warned after {_minutes(self.window)}, {stopped}{each}{agreeing}"

    def __post_init__(self) -> None:
        """Check the settings."""
        problems = list(self._problems())
        if problems:
            raise ValueError("\n".join(problems))

    @staticmethod
    def off() -> "IdlePolicy":
        """Return the policy under which nodes are neither measured nor stopped."""
        return IdlePolicy(is_off=True)

    def over(self, base: "IdlePolicy") -> "IdlePolicy":
        """Return this policy with what it leaves out as another says.

        Args:
            base: The policy of the whole of which this one's nodes are a part.
        """
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(base, **{name: value for name, value in given.items() if value is not None})

    @property
    def settings(self) -> Mapping[str, object]:
        """What the function's environment, which is small, says of it: what is given."""
        found: dict[str, object] = {
            "below": self.utilization_below_percent,
            "window": _seconds(self.window),
            "coverage": self.coverage,
            "grace": _seconds(self.grace),
            "warning": _seconds(self.warning),
            "scope": None if self.scope is None else self.scope.value,
            "signals": None
            if self.signals is None
            else [list(row) for each in self._looked_at for row in each.settings],
            "dry_run": self.dry_run,
            "off": self.is_off,
            "most_stops": self.most_stops,
            "blind_share": self.blind_share,
        }
        return {key: value for key, value in found.items() if value is not None}

    def settings_beside(self, base: "IdlePolicy") -> Mapping[str, object]:
        """Return what the settings say that those of another policy do not.

        Args:
            base: The policy that holds for what this one leaves out.
        """
        told = base.settings
        return {
            key: value for key, value in self.over(base).settings.items() if key not in told or told[key] != value
        }

    @property
    def is_too_long_a_warning(self) -> bool:
        """Whether people are warned for longer than idleness has been proven when they are."""
        times = (self.window, self.warning)
        if self.is_off or any(one is None or one.is_unresolved() for one in times):
            return False
        window, warning = (0 if one is None else one.to_seconds() for one in times)
        return warning > window

    @property
    def takes_single_nodes(self) -> bool:
        """Whether nodes go one by one."""
        return self.scope is IdleScope.NODE and not self.is_off

    def has_signal(self, name: str) -> bool:
        """Say whether one of its signals looks at something.

        Args:
            name: The signal's name.
        """
        return any(signal.name == name for signal in self.signals or ())

    @property
    def _looked_at(self) -> Iterator[IdleSignal]:
        """Its signals, with or without that of the host."""
        if self.host_activity and not self.has_signal(IdleSignal.HOST):
            yield IdleSignal.host()
        for signal in self.signals or ():
            if self.host_activity is not False or signal.name != IdleSignal.HOST:
                yield signal

    def _problems(self) -> Iterator[str]:
        if self.utilization_below_percent is not None:
            yield from number_problems(
                "utilization_below_percent", self.utilization_below_percent, above=0, maximum=50
            )
        if self.window is not None:
            yield from duration_problems(
                "window", self.window, minimum_minutes=15, maximum_minutes=12 * 60, step_minutes=5
            )
        if self.coverage is not None:
            yield from number_problems("coverage", self.coverage, minimum=0.5, maximum=1)
        if self.grace is not None:
            yield from duration_problems("grace", self.grace, minimum_minutes=0, maximum_minutes=24 * 60)
        if self.warning is not None:
            yield from duration_problems("warning", self.warning, minimum_minutes=10, maximum_minutes=11 * 60)
        if self.scope is not None:
            yield from choice_problems("scope", self.scope, IdleScope)
        if self.signals is not None:
            yield from kinds_problems("signals", self.signals, IdleSignal, "IdleSignal.network()")
        if self.most_stops is not None:
            yield from whole_number_problems(
                "most_stops", self.most_stops, minimum=1, advice=": to stop nothing, use dry_run or IdlePolicy.off()"
            )
        if self.blind_share is not None:
            yield from number_problems("blind_share", self.blind_share, above=0, maximum=1)
        flags = {"host_activity": self.host_activity, "dry_run": self.dry_run, "is_off": self.is_off}
        for setting, value in flags.items():
            if value is not None and not isinstance(value, bool):
                yield f"{setting} must be True or False, got {value!r}"


DEFAULT_IDLE_POLICY = IdlePolicy(
    utilization_below_percent=5,
    window=Duration.minutes(60),
    coverage=0.9,
    grace=Duration.minutes(30),
    warning=Duration.minutes(30),
    scope=IdleScope.GANG,
    host_activity=True,
    signals=(),
    dry_run=False,
    most_stops=100,
    blind_share=0.5,
    is_off=False,
)
"""What holds for a cluster that says nothing else."""


def _seconds(duration: Duration | None) -> float | None:
    if duration is None:
        return None
    seconds = duration.to_seconds()
    return seconds if duration.is_unresolved() else int(seconds)


def _minutes(duration: Duration | None) -> str:
    minutes = 0 if duration is None else round(duration.to_minutes())
    return f"{minutes} minute{'' if minutes == 1 else 's'}"
