"""Which policy holds for a node group's idle nodes, and what of it the group's nodes cannot be asked for."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cdk_training_cluster.capacity.kinds import SpotFleet
from cdk_training_cluster.instance_types import InstanceTypeInfo, instance_type_info
from cdk_training_cluster.nodes.idle_policy import DEFAULT_IDLE_POLICY, IdlePolicy
from cdk_training_cluster.nodes.layouts import wants_efa
from cdk_training_cluster.nodes.node_group import NodeGroup


@dataclass(frozen=True, kw_only=True)
class IdleSituation:
    """What the rules about a node group's idle nodes look at.

    Attributes:
        group: The node group.
        infos: The facts about its types.
        policy: The policy that holds for it.
    """

    group: NodeGroup
    infos: Sequence[InstanceTypeInfo]
    policy: IdlePolicy


def idle_policies(
    groups: Sequence[NodeGroup], policy: IdlePolicy | None, facts: Sequence[InstanceTypeInfo] = ()
) -> Mapping[str, IdlePolicy]:
    """Return the policy that holds for each node group, by its name.

    It is off for nodes that report no utilization: nothing can be known of them.

    Args:
        groups: The node groups, each of which can be made.
        policy: The cluster's. None: the library's default.
        facts: Facts about types that the catalog does not have. Default: - none.
    """
    whole = (policy or IdlePolicy()).over(DEFAULT_IDLE_POLICY)
    found = {}
    for group in groups:
        infos = [instance_type_info(name, facts) for name in group.instance_types]
        given = group.idle_policy if is_measured(infos) else IdlePolicy.off()
        found[group.name] = whole if given is None else given.over(whole)
    return found


def is_measured(infos: Sequence[InstanceTypeInfo]) -> bool:
    """Say whether nodes report the utilization of their accelerators: NVIDIA GPUs and Neuron devices do.

    Args:
        infos: The facts about their types.
    """
    return all(info.has_nvidia_gpus or info.has_neuron_devices for info in infos)


def idle_problems(
    groups: Sequence[NodeGroup], policy: IdlePolicy | None, facts: Sequence[InstanceTypeInfo] = ()
) -> list[str]:
    """Say why nodes cannot be stopped as their policy says, a sentence each; none if they can.

    Args:
        groups: The node groups, each of which can be made.
        policy: The cluster's. None: the library's default.
        facts: Facts about types that the catalog does not have. Default: - none.
    """
    policies = idle_policies(groups, policy, facts)
    return [
        f"node group {group.name!r}: {problem}"
        for group in groups
        for rule in IDLE_RULES
        for problem in rule(
            IdleSituation(
                group=group,
                infos=[instance_type_info(name, facts) for name in group.instance_types],
                policy=policies[group.name],
            )
        )
    ]


def idle_warnings(
    groups: Sequence[NodeGroup], policy: IdlePolicy | None, facts: Sequence[InstanceTypeInfo] = ()
) -> Iterator[str]:
    """Say which accelerated nodes nobody watches, though the cluster's policy is on.

    Args:
        groups: The node groups, each of which can be made.
        policy: The cluster's. None: the library's default.
        facts: Facts about types that the catalog does not have. Default: - none.
    """
    if policy is not None and policy.is_off:
        return
    for group in groups:
        infos = [instance_type_info(name, facts) for name in group.instance_types]
        unmeasured = [info.name for info in infos if info.is_accelerated and not is_measured([info])]
        if unmeasured and group.idle_policy is None:
            yield (
                f"node group {group.name!r}: the accelerators of {' and '.join(unmeasured)} report no utilization: "
                "idle nodes are neither told of nor stopped; say that you know with idle_policy=IdlePolicy.off()"
            )


TOO_LONG_A_WARNING = (
    "must be at most its window: a node that now and then misses a report would be warned of again and again; give a "
    "shorter warning or a longer window"
)
"""What is wrong with a warning that is longer than the window before it."""

_UNKNOWN = (
    "its nodes report no such metric and would never be known to be idle; give the group an idle_policy with other "
    "signals"
)


def _something_to_go_by(situation: IdleSituation) -> Iterator[str]:
    given = situation.group.idle_policy
    if given is not None and not given.is_off and not is_measured(situation.infos):
        yield (
            f"idle_policy must be IdlePolicy.off() or left out for {_names(situation.infos)}, which reports no "
            "utilization of accelerators: nobody could say when it is idle"
        )


def _a_warning_fits_the_window(situation: IdleSituation) -> Iterator[str]:
    if situation.policy.is_too_long_a_warning:
        yield f"warning of idle_policy {TOO_LONG_A_WARNING}"


def _a_fleet_is_one(situation: IdleSituation) -> Iterator[str]:
    if situation.policy.takes_single_nodes and isinstance(situation.group.capacity, SpotFleet):
        yield (
            f"scope of idle_policy must be IdleScope.GANG for {situation.group.capacity.call}, got IdleScope.NODE: "
            "the fleet, and nobody else, chooses which of its nodes goes; give the group an idle_policy of its own"
        )


def _neuron_reports_no_gpu_memory(situation: IdleSituation) -> Iterator[str]:
    without = [info for info in situation.infos if not info.has_nvidia_gpus]
    if _looks_at("gpu_memory", situation) and without:
        yield (
            f"signals of idle_policy must not include IdleSignal.gpu_memory() for {_names(without)}, got "
            f"{_signals(situation)}: {_UNKNOWN}"
        )


def _efa_needs_adapters(situation: IdleSituation) -> Iterator[str]:
    without = [info for info in situation.infos if not wants_efa(situation.group, info)]
    if _looks_at("efa", situation) and without:
        yield (
            f"signals of idle_policy must not include IdleSignal.efa() for {_names(without)} without Elastic Fabric "
            f"Adapters, got {_signals(situation)}: {_UNKNOWN}"
        )


def _looks_at(signal: str, situation: IdleSituation) -> bool:
    return situation.policy.has_signal(signal) and not situation.policy.is_off


def _signals(situation: IdleSituation) -> str:
    return ", ".join(signal.name for signal in situation.policy.signals or ())


def _names(infos: Sequence[InstanceTypeInfo]) -> str:
    return " and ".join(info.name for info in infos)


IDLE_RULES: tuple[Callable[[IdleSituation], Iterator[str]], ...] = (
    _something_to_go_by,
    _a_warning_fits_the_window,
    _a_fleet_is_one,
    _neuron_reports_no_gpu_memory,
    _efa_needs_adapters,
)
"""What a group's nodes cannot be asked for."""
