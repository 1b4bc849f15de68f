"""When nodes are idle, and what becomes of them then."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Annotated, cast

from aws_cdk import Duration

from cdk_training_cluster.core.times import to_duration, to_time
from cdk_training_cluster.nodes.idle_signal import IdleSignal
from cdk_training_cluster.validation.bounds import Minutes, Number, Whole
from cdk_training_cluster.validation.checks import milliseconds
from cdk_training_cluster.validation.kinds import checked
from cluster_contract.idle import IdleFunctionSettings, IdleScope, Policy

UTILIZATION = Number(above=0, maximum=50)
WINDOW = Minutes(minimum=15, maximum=12 * 60, step=5)
COVERAGE = Number(minimum=0.5, maximum=1)
GRACE = Minutes(minimum=0, maximum=24 * 60)
WARNING = Minutes(minimum=10, maximum=11 * 60)
MAX_STOPS = Whole(minimum=1, advice=": to stop nothing, use dry_run or IdlePolicy.off()")
UNKNOWN_SHARE = Number(above=0, maximum=1)


@checked
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
        warning: How long before the stop the alert topic gets a warning: 10 minutes to 11 hours, and at most the
            window. Default: - 30 minutes.
        scope: What is stopped together. Default: - `IdleScope.GANG`.
        host_activity: Whether CPUs and network must say it, too: with the thresholds of `IdleSignal.host()`, or
            with those of one in `signals`. Default: - yes.
        signals: What else must say that a node is idle. Default: - nothing.
        dry_run: Whether everything is done but the stop: evaluate, warn and report. Default: - no: nodes are stopped.
        max_stops: The most nodes that one run stops; those idle for longest go first. The cluster's only.
            Default: - 100.
        max_unknown_share: The share of the cluster's nodes above which nothing is stopped if so many become unknown
            within three runs: above 0 and at most 1. The cluster's only. Default: - 0.5.
        is_off: Whether these nodes are neither measured nor stopped; `IdlePolicy.off()` says it in short. `False`
            measures a node group though the cluster's policy is off. Default: - no.

    Raises:
        ValueError: A setting is wrong; every reason, a line each.
    """

    utilization_below_percent: Annotated[float, UTILIZATION] | None = None
    window: Annotated[Duration, WINDOW] | None = None
    coverage: Annotated[float, COVERAGE] | None = None
    grace: Annotated[Duration, GRACE] | None = None
    warning: Annotated[Duration, WARNING] | None = None
    scope: IdleScope | None = None
    host_activity: bool | None = None
    signals: Sequence[IdleSignal] | None = None
    dry_run: bool | None = None
    max_stops: Annotated[int, MAX_STOPS] | None = None
    max_unknown_share: Annotated[float, UNKNOWN_SHARE] | None = None
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

    def to_contract(self) -> Policy:
        """Return the policy as the idle function takes it; what is left out is as the library's default says."""
        policy = self.over(default_idle_policy())
        return Policy(
            below=cast(float, policy.utilization_below_percent),
            window=to_time(cast(Duration, policy.window)),
            coverage=cast(float, policy.coverage),
            grace=to_time(cast(Duration, policy.grace)),
            warning=to_time(cast(Duration, policy.warning)),
            scope=cast(IdleScope, policy.scope),
            signals=tuple(row for signal in policy._looked_at for row in signal.settings),
            dry_run=bool(policy.dry_run),
            off=bool(policy.is_off),
        )

    @property
    def is_too_long_a_warning(self) -> bool:
        """Whether the warning lasts longer than the idleness that is proven when it is sent."""
        window, warning = (None if one is None else milliseconds(one) for one in (self.window, self.warning))
        return not self.is_off and window is not None and warning is not None and warning > window

    @property
    def long_warning_problem(self) -> str:
        """What is wrong with a warning that is longer than the window before it. Empty: it is not."""
        if not self.is_too_long_a_warning:
            return ""
        window, warning = (cast(Duration, one).to_minutes(integral=False) for one in (self.window, self.warning))
        return (
            f"must be at most its window, {window:g} minutes, got {warning:g}: a node that now and then misses a "
            "report would be warned of again and again; give a shorter warning or a longer window"
        )

    @property
    def takes_single_nodes(self) -> bool:
        """Whether nodes go one by one."""
        return self.scope is IdleScope.NODE and not self.is_off

    def has_signal(self, name: str) -> bool:
        """Say whether one of its signals uses something.

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


_DEFAULT = Policy()


@cache
def default_idle_policy() -> IdlePolicy:
    """Return the policy that holds for what no other says."""
    return IdlePolicy(
        utilization_below_percent=_DEFAULT.below,
        window=to_duration(_DEFAULT.window),
        coverage=_DEFAULT.coverage,
        grace=to_duration(_DEFAULT.grace),
        warning=to_duration(_DEFAULT.warning),
        scope=_DEFAULT.scope,
        host_activity=True,
        signals=(),
        dry_run=_DEFAULT.dry_run,
        max_stops=IdleFunctionSettings.max_stops,
        max_unknown_share=IdleFunctionSettings.max_unknown_share,
        is_off=_DEFAULT.off,
    )


"""What holds for a cluster that says nothing else."""


def _minutes(duration: Duration | None) -> str:
    minutes = 0 if duration is None else round(duration.to_minutes())
    return f"{minutes} minute{'' if minutes == 1 else 's'}"
