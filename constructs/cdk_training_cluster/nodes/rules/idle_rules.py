"""What of a policy about idle nodes a group's nodes cannot be asked for."""

from collections.abc import Iterator, Sequence

from cdk_training_cluster.instance_types import InstanceTypeInfo
from cdk_training_cluster.nodes.layouts import wants_efa
from cdk_training_cluster.nodes.rules.rule import NodeGroupRule, Situation, is_measured
from cdk_training_cluster.validation.rule import Rule
from cluster_contract.idle import IdleScope

TOO_LONG_A_WARNING = (
    "must be at most its window: a node that now and then misses a report would be warned of again and again; give a "
    "shorter warning or a longer window"
)
"""What is wrong with a warning that is longer than the window before it."""

_UNKNOWN = (
    "its nodes report no such metric and would never be known to be idle; give the group {idle} with other signals"
)


def _something_to_go_by(situation: Situation) -> Iterator[str]:
    given = situation.group.idle_policy
    if situation.policy is not None and given is not None and not given.is_off and not is_measured(situation.infos):
        yield (
            f"idle_policy must be {situation.words.idle_off} or left out for {_names(situation.infos)}, which "
            "reports no utilization of accelerators: the idle function could not judge it"
        )


def _a_warning_fits_the_window(situation: Situation) -> Iterator[str]:
    if situation.policy is not None and situation.policy.is_too_long_a_warning:
        yield f"{situation.words.part('warning', 'idle_policy')} {TOO_LONG_A_WARNING}"


def _a_fleet_is_one(situation: Situation) -> Iterator[str]:
    policy, capacity, words = situation.policy, situation.group.capacity, situation.words
    if policy is not None and policy.takes_single_nodes and capacity.owned_by_spot_fleet:
        yield (
            f"{words.part('scope', 'idle_policy')} must be {words.value(IdleScope.GANG)} for {situation.call}, got "
            f"{words.value(IdleScope.NODE)}: the fleet itself chooses which of its nodes goes; give the "
            f"group {words.idle} of its own"
        )


def _neuron_reports_no_gpu_memory(situation: Situation) -> Iterator[str]:
    without = [info for info in situation.infos if not info.has_nvidia_gpus]
    if _looks_at("gpu_memory", situation) and without:
        yield (
            f"{_may_not_include('gpu_memory', situation)} for {_names(without)}, got {_signals(situation)}: "
            f"{_UNKNOWN.format(idle=situation.words.idle)}"
        )


def _efa_needs_adapters(situation: Situation) -> Iterator[str]:
    without = [info for info in situation.infos if not wants_efa(situation.group, info)]
    if _looks_at("efa", situation) and without:
        yield (
            f"{_may_not_include('efa', situation)} for {_names(without)} without Elastic Fabric Adapters, got "
            f"{_signals(situation)}: {_UNKNOWN.format(idle=situation.words.idle)}"
        )


def _may_not_include(signal: str, situation: Situation) -> str:
    words = situation.words
    return f"{words.part('signals', 'idle_policy')} must not include {words.call(f'IdleSignal.{signal}()')}"


def _looks_at(signal: str, situation: Situation) -> bool:
    policy = situation.policy
    return policy is not None and policy.has_signal(signal) and not policy.is_off


def _signals(situation: Situation) -> str:
    return ", ".join(signal.name for signal in (situation.policy.signals if situation.policy else None) or ())


def _names(infos: Sequence[InstanceTypeInfo]) -> str:
    return " and ".join(info.name for info in infos)


_IDLE = "https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring"

IDLE_RULES: tuple[NodeGroupRule, ...] = (
    Rule(
        id="idleMeasured",
        source=f"{_IDLE}/CloudWatch-Agent-NVIDIA-GPU.html",
        setting=("idle_policy",),
        find=_something_to_go_by,
    ),
    Rule(
        id="idleWarning",
        source=f"{_IDLE}/alarms-and-missing-data.html",
        setting=("idle_policy", "warning"),
        find=_a_warning_fits_the_window,
    ),
    Rule(
        id="idleScope",
        source="https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_ModifySpotFleetRequest.html",
        setting=("idle_policy", "scope"),
        find=_a_fleet_is_one,
    ),
    Rule(
        id="idleGpuMemory",
        source=f"{_IDLE}/CloudWatch-Agent-NVIDIA-GPU.html",
        setting=("idle_policy", "signals"),
        find=_neuron_reports_no_gpu_memory,
    ),
    Rule(
        id="idleEfa",
        source=f"{_IDLE}/CloudWatch-Agent-EFA.html",
        setting=("idle_policy", "signals"),
        find=_efa_needs_adapters,
    ),
)
