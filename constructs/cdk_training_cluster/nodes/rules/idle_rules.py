"""What of a policy about idle nodes a group's nodes cannot be asked for."""

from collections.abc import Iterator, Sequence

from cdk_training_cluster.instance_types import AcceleratorKind, InstanceTypeInfo
from cdk_training_cluster.nodes.layouts import wants_efa
from cdk_training_cluster.nodes.rules.context import NodeGroupContext, is_measured
from cdk_training_cluster.nodes.utilization import accelerator_count, utilization_command
from cdk_training_cluster.validation.rule import Rules
from cluster_contract.idle import IdleScope

_UNKNOWN = (
    "its nodes report no such metric and would never be known to be idle; give the group {idle} with other signals"
)


_IDLE = "https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring"

IDLE_RULES: Rules[NodeGroupContext] = Rules()


def measuring(context: NodeGroupContext) -> str:
    """Return the end of a sentence on accelerators without utilization, if a command could measure all of them."""
    could = all(not (info.has_nvidia_gpus or info.has_neuron_devices) for info in context.infos)
    return "; utilization_command names a command that measures it" if could else ""


@IDLE_RULES.rule("idleMeasured", f"{_IDLE}/CloudWatch-Agent-NVIDIA-GPU.html", "idle_policy")
def _something_to_go_by(context: NodeGroupContext) -> Iterator[str]:
    given = context.group.idle_policy
    if (
        context.policy is not None
        and given is not None
        and not given.is_off
        and not is_measured(context.group, context.infos)
    ):
        yield (
            f"idle_policy must be {context.words.idle_off} or left out for {_names(context.infos)}, which "
            "reports no utilization of accelerators: the idle function could not judge it"
            f"{measuring(context)}"
        )


@IDLE_RULES.rule("utilizationCommand", f"{_IDLE}/CloudWatch-Agent-custom-metrics-statsd.html", "utilization_command")
def _a_command_for_what_nothing_else_measures(context: NodeGroupContext) -> Iterator[str]:
    given, infos = context.group.utilization_command, context.infos
    if given is None:
        return
    measured = [info for info in infos if not utilization_command(context.group, info)]
    if measured:
        yield (
            f"utilization_command must be left out for {_names(measured)}, got {given!r}: it is for accelerators of "
            "makers other than NVIDIA and AWS, whose use nodes report without it"
        )
    elif len({accelerator_count(info) for info in infos}) > 1:
        yield (
            f"utilization_command must be left out for {_names(infos)}, which have different numbers of "
            f"accelerators, got {given!r}: make a node group of each"
        )


# Neither the agent nor AWS's tools for FPGAs (https://github.com/aws/aws-fpga) have a counter of their use.
@IDLE_RULES.rule("idleFpga", f"{_IDLE}/metrics-collected-by-CloudWatch-agent.html", "idle_policy", "signals")
def _a_design_works_without_a_process(context: NodeGroupContext) -> Iterator[str]:
    """Ask for a second signal: no counter of an FPGA says how busy a design is, and it needs no CPU."""
    policy = context.policy
    fpgas = [info for info in context.infos if any(each.kind is AcceleratorKind.FPGA for each in info.accelerators)]
    if fpgas and policy is not None and not policy.is_off and not policy.has_signal("heartbeat"):
        yield (
            f"{context.words.part('signals', 'idle_policy')} must include "
            f"{context.words.call('IdleSignal.heartbeat()')} for {_names(fpgas)}, got {_signals(context) or 'none'}: "
            "a design on an FPGA works without CPU or network, and no counter of AWS's says how busy it is"
        )


@IDLE_RULES.rule("idleWarning", f"{_IDLE}/alarms-and-missing-data.html", "idle_policy", "warning")
def _a_warning_fits_the_window(context: NodeGroupContext) -> Iterator[str]:
    if context.policy is not None and context.policy.is_too_long_a_warning:
        yield f"{context.words.part('warning', 'idle_policy')} {context.policy.long_warning_problem}"


@IDLE_RULES.rule(
    "idleScope",
    "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_ModifySpotFleetRequest.html",
    "idle_policy",
    "scope",
)
def _a_fleet_is_one(context: NodeGroupContext) -> Iterator[str]:
    policy, capacity, words = context.policy, context.group.capacity, context.words
    if policy is not None and policy.takes_single_nodes and capacity.owned_by_spot_fleet:
        yield (
            f"{words.part('scope', 'idle_policy')} must be {words.value(IdleScope.GANG)} for {context.call}, got "
            f"{words.value(IdleScope.NODE)}: the fleet itself chooses which of its nodes goes; give the "
            f"group {words.idle} of its own"
        )


@IDLE_RULES.rule("idleGpuMemory", f"{_IDLE}/CloudWatch-Agent-NVIDIA-GPU.html", "idle_policy", "signals")
def _neuron_reports_no_gpu_memory(context: NodeGroupContext) -> Iterator[str]:
    without = [info for info in context.infos if not info.has_nvidia_gpus]
    if _looks_at("gpu_memory", context) and without:
        yield (
            f"{_may_not_include('gpu_memory', context)} for {_names(without)}, got {_signals(context)}: "
            f"{_UNKNOWN.format(idle=context.words.idle)}"
        )


@IDLE_RULES.rule("idleEfa", f"{_IDLE}/CloudWatch-Agent-EFA.html", "idle_policy", "signals")
def _efa_needs_adapters(context: NodeGroupContext) -> Iterator[str]:
    without = [info for info in context.infos if not wants_efa(context.group, info)]
    if _looks_at("efa", context) and without:
        yield (
            f"{_may_not_include('efa', context)} for {_names(without)} without Elastic Fabric Adapters, got "
            f"{_signals(context)}: {_UNKNOWN.format(idle=context.words.idle)}"
        )


def _may_not_include(signal: str, context: NodeGroupContext) -> str:
    words = context.words
    return f"{words.part('signals', 'idle_policy')} must not include {words.call(f'IdleSignal.{signal}()')}"


def _looks_at(signal: str, context: NodeGroupContext) -> bool:
    policy = context.policy
    return policy is not None and policy.has_signal(signal) and not policy.is_off


def _signals(context: NodeGroupContext) -> str:
    return ", ".join(signal.name for signal in (context.policy.signals if context.policy else None) or ())


def _names(infos: Sequence[InstanceTypeInfo]) -> str:
    return " and ".join(info.name for info in infos)
