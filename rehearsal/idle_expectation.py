"""What has to become of idle nodes, by what they run in and by the settings of the deployed function."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from cdk_training_cluster.instance_types import InstanceTypeInfo, instance_type_info
from cluster_contract.idle import IdleFunctionSettings, IdleScope, Policy
from cluster_contract.metrics import NODE_METRICS

# An interruptible reservation is one too, but its lifecycle says so where CapacityReservationId does not.
_RESERVED_LIFECYCLES = ("capacity-block", "interruptible-capacity-reservation")


class Fate(StrEnum):
    """What has to become of a node that stays idle."""

    STOPPED = "stopped"
    """It is stopped, together with its node group or by itself."""

    RESERVED = "reserved"
    """It runs on, since what it runs in is billed all the same."""

    KEEP = "keep"
    """It runs on, since its policy is off."""

    ORCHESTRATOR = "orchestrator"
    """It runs on, since the scheduler that launched it alone takes it out again."""

    DRY_RUN = "dry run"
    """It runs on, and a message says that it would have been stopped."""


# Whose accelerators nodes report without a command of the node group's own.
_MEASURED = frozenset({"NVIDIA", "AWS", "Habana"})


@dataclass(frozen=True, kw_only=True)
class IdleNode:
    """A node, as far as what becomes of it depends on it.

    Attributes:
        id: The instance's id.
        instance_type: Its type.
        node_group: The node group's name.
        reserved: Whether it runs in a reservation or a Capacity Block.
    """

    id: str
    instance_type: str
    node_group: str
    reserved: bool = False

    @property
    def utilization(self) -> str | None:
        """The metric of its accelerators' use. None: they report none."""
        info = instance_type_info(self.instance_type)
        if not _is_measured(info):
            return None
        if info.has_nvidia_gpus:
            return NODE_METRICS.gpu_utilization
        is_neuron = info.has_neuron_devices
        return NODE_METRICS.neuron_core_utilization if is_neuron else NODE_METRICS.accelerator_utilization

    @property
    def accelerators(self) -> int:
        """How many accelerators it has."""
        info = instance_type_info(self.instance_type)
        return sum(accelerator.count for accelerator in info.accelerators)

    @property
    def vcpus(self) -> int:
        """How many vCPUs it has."""
        return instance_type_info(self.instance_type).vcpus


def idle_nodes(groups: Sequence[Mapping[str, Any]], instances: Iterable[Mapping[str, Any]]) -> list[IdleNode]:
    """Return the nodes of node groups.

    Args:
        groups: The node groups, as `node_groups` reads them.
        instances: Their instances, as DescribeInstances tells of them.
    """
    names = {one: str(group["name"]) for group in groups for one in group["instance_ids"]}
    return [
        IdleNode(
            id=one["InstanceId"],
            instance_type=one["InstanceType"],
            node_group=names[one["InstanceId"]],
            reserved=bool(one.get("CapacityReservationId") or one.get("CapacityBlockId"))
            or one.get("InstanceLifecycle") in _RESERVED_LIFECYCLES,
        )
        for one in instances
    ] + [
        # Nodes of HyperPod are no instances of EC2's, and SageMaker names their types in its own way.
        IdleNode(id=one, instance_type=group["instance_type"][3:], node_group=str(group["name"]), reserved=False)
        for group in groups
        if group.get("on_hyperpod")
        for one in group["instance_ids"]
    ]


class IdleExpectation:
    """The settings of the deployed function, and what has to become of each node by them."""

    def __init__(self, settings: IdleFunctionSettings, nodes: Sequence[IdleNode]) -> None:
        """Take in what is known before the function runs.

        Args:
            settings: The function's settings.
            nodes: The cluster's nodes.
        """
        self._settings = settings
        self.nodes = tuple(sorted(nodes, key=lambda node: (self.policy(node).off, node.node_group, node.id)))

    @classmethod
    def of_function(cls, configuration: Mapping[str, Any], nodes: Sequence[IdleNode]) -> "IdleExpectation":
        """Read the settings out of what GetFunctionConfiguration says.

        Args:
            configuration: That of the idle function.
            nodes: The cluster's nodes.
        """
        return cls(IdleFunctionSettings.from_environment(configuration["Environment"]["Variables"]), nodes)

    @property
    def preloads(self) -> bool:
        """Whether data sets are restored, which keeps nodes running."""
        return self._settings.preloads

    @property
    def max_stops(self) -> int:
        """How many nodes one run stops at most."""
        return self._settings.max_stops

    @property
    def namespace(self) -> str:
        """Where the nodes' metrics are."""
        return self._settings.node_namespace

    def policy(self, node: IdleNode) -> Policy:
        """Return the policy that holds for a node.

        Args:
            node: The node.
        """
        return self._settings.policy_of(node.node_group)

    def together(self, node: IdleNode) -> tuple[IdleNode, ...]:
        """Return the nodes that are stopped together with a node, itself included.

        Args:
            node: The node.
        """
        if self._is_alone(node):
            return (node,)
        return tuple(one for one in self.nodes if one.node_group == node.node_group)

    def units(self) -> Iterator[tuple[IdleNode, ...]]:
        """Yield the nodes that are stopped together."""
        yield from dict.fromkeys(self.together(node) for node in self.nodes)

    def fate(self, node: IdleNode) -> Fate:
        """Return what has to become of a node that stays idle with all its peers.

        Args:
            node: The node.
        """
        policy = self.policy(node)
        if policy.off:
            return Fate.KEEP
        # What is lowered with the group is so only when the whole group goes.
        releases = self._releases(node) and not self._is_alone(node)
        if all(one.reserved for one in self.together(node)) and not releases:
            return Fate.RESERVED
        group = self._settings.groups.get(node.node_group)
        if group is not None and group.owner is not None and group.owner.scheduler_sized:
            return Fate.ORCHESTRATOR
        return Fate.DRY_RUN if policy.dry_run else Fate.STOPPED

    def _is_alone(self, node: IdleNode) -> bool:
        return self.policy(node).scope is IdleScope.NODE

    def _releases(self, node: IdleNode) -> bool:
        group = self._settings.groups.get(node.node_group)
        return group is not None and group.release


def _is_measured(info: InstanceTypeInfo) -> bool:
    return any(accelerator.manufacturer in _MEASURED for accelerator in info.accelerators)
