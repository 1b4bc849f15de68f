"""What the rules about node groups use: settings, with the facts and policies that hold for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from cdk_training_cluster.instance_types import InstanceTypeInfo, instance_type_info
from cdk_training_cluster.nodes.gpu_sharing import SharingMethod
from cdk_training_cluster.nodes.idle_policy import IdlePolicy, default_idle_policy
from cdk_training_cluster.nodes.node_group import NodeGroup, Placement
from cdk_training_cluster.nodes.orchestrator_kind import OrchestratorKind
from cdk_training_cluster.nodes.schedule import Schedule
from cdk_training_cluster.nodes.utilization import utilization_command
from cdk_training_cluster.validation.checks import is_unknown
from cdk_training_cluster.validation.rule import Found
from cdk_training_cluster.validation.words import PYTHON, Words


@dataclass(frozen=True, kw_only=True)
class NodeGroupContext:
    """What the rules about one node group use.

    Attributes:
        group: The node group.
        infos: The facts about its types that there are, in the order the user gave them.
        unknown: What is wrong with its other types.
        availability_zone: The cluster's zone. None: it is not known before the deployment.
        policy: When its nodes are idle. None: that is not decided here.
        schedule: When they run. None: always.
        words: What sentences call settings.
        orchestrator: The orchestrator that launches its nodes.
    """

    group: NodeGroup
    infos: Sequence[InstanceTypeInfo]
    unknown: Sequence[Found] = ()
    availability_zone: str | None = None
    policy: IdlePolicy | None = None
    schedule: Schedule | None = None
    words: Words = PYTHON
    orchestrator: OrchestratorKind = OrchestratorKind.NONE

    @property
    def call(self) -> str:
        """How the nodes are bought, as the reader writes it."""
        return self.words.call(self.group.capacity.call)

    @staticmethod
    def of(
        group: NodeGroup,
        facts: Sequence[InstanceTypeInfo] = (),
        *,
        availability_zone: str | None = None,
        whole_policy: IdlePolicy | None = None,
        schedule: Schedule | None = None,
        words: Words = PYTHON,
        orchestrator: OrchestratorKind = OrchestratorKind.NONE,
    ) -> "NodeGroupContext":
        """Look up what holds for a node group.

        Args:
            group: The settings.
            facts: Facts about types that the catalog does not have. Default: - none.
            availability_zone: The cluster's zone. Default: - not known.
            whole_policy: The cluster's idle policy, with a value for everything. Default: - it is not decided.
            schedule: The cluster's schedule. Default: - it has none.
            words: What sentences call settings. Default: - what Python calls them.
            orchestrator: The orchestrator that launches its nodes. Default: - none: Auto Scaling groups do.
        """
        if orchestrator.traits.is_hyperpod and group.placement is None:
            # It takes no placement group, which some ways to buy would ask for.
            group = replace(group, placement=Placement.NONE)
        infos: list[InstanceTypeInfo] = []
        unknown: list[Found] = []
        for place, name in enumerate(group.instance_types):
            try:
                infos.append(_info(name, facts))
            except ValueError as error:
                unknown.append((("instance_types", place), str(error)))
        own = group.idle_policy if is_measured(group, infos) else IdlePolicy.off()
        policy = whole_policy if own is None or whole_policy is None else own.over(whole_policy)
        schedule = schedule if group.schedule is None else group.schedule
        return NodeGroupContext(
            group=group,
            infos=infos,
            unknown=unknown,
            availability_zone=availability_zone,
            policy=policy,
            schedule=None if schedule is None or schedule.is_off else schedule,
            words=words,
            orchestrator=orchestrator,
        )


def is_measured(group: NodeGroup, infos: Sequence[InstanceTypeInfo]) -> bool:
    """Say whether nodes report the utilization of their accelerators.

    Whole NVIDIA GPUs and Neuron devices do, and others where a command says it.

    Args:
        group: Their group. NVIDIA's driver reports no utilization of a GPU that MIG partitions:
            https://docs.nvidia.com/datacenter/tesla/mig-user-guide/getting-started-with-mig.html
        infos: The facts about their types.
    """
    if group.gpu_sharing is not None and group.gpu_sharing.method is SharingMethod.MIG:
        return False
    return all(info.has_nvidia_gpus or info.has_neuron_devices or utilization_command(group, info) for info in infos)


def _info(name: str, facts: Sequence[InstanceTypeInfo]) -> InstanceTypeInfo:
    if is_unknown(name):
        raise ValueError(
            f"instance_types must be known when the template is made, got {name}: interfaces and image follow from "
            "the type; use a context value instead of a parameter"
        )
    return instance_type_info(name, facts)


@dataclass(frozen=True, kw_only=True)
class ClusterContext:
    """What the rules about a cluster's node groups together use.

    Attributes:
        nodes: What holds for each node group.
        policy: The cluster's idle policy as it was given.
        zone_id: The id of the cluster's zone. None: it is not known before the deployment.
        public_subnet: Whether the nodes' subnet is known to be public.
        existing_network: Whether the VPC was there before the cluster.
        node_range: The IPv4 range of the nodes' subnet. None: it is not known.
        words: What sentences call settings.
        orchestrator: The orchestrator that launches the nodes.
    """

    nodes: Sequence[NodeGroupContext] = field(default_factory=tuple)
    policy: IdlePolicy | None = None
    zone_id: str | None = None
    public_subnet: bool = False
    existing_network: bool = False
    node_range: str | None = None
    words: Words = PYTHON
    orchestrator: OrchestratorKind = OrchestratorKind.NONE

    @staticmethod
    def of(
        groups: Sequence[NodeGroup],
        policy: IdlePolicy | None = None,
        facts: Sequence[InstanceTypeInfo] = (),
        *,
        availability_zone: str | None = None,
        zone_id: str | None = None,
        public_subnet: bool = False,
        existing_network: bool = False,
        node_range: str | None = None,
        schedule: Schedule | None = None,
        words: Words = PYTHON,
        orchestrator: OrchestratorKind = OrchestratorKind.NONE,
    ) -> "ClusterContext":
        """Look up what holds for a cluster's node groups: the facts about their types, and when nodes are idle.

        Nodes that report no utilization have the policy off: nothing can be known of them.

        Args:
            groups: The node groups.
            policy: The cluster's idle policy. Default: - the library's.
            facts: Facts about types that the catalog does not have. Default: - none.
            availability_zone: The cluster's zone. Default: - not known.
            zone_id: The id of that zone. Default: - not known.
            public_subnet: Whether the nodes' subnet is known to be public. Default: - it is not.
            existing_network: Whether the VPC was there before the cluster. Default: - the cluster makes it.
            node_range: The IPv4 range of the nodes' subnet. Default: - not known.
            schedule: The cluster's schedule. Default: - it has none.
            words: What sentences call settings. Default: - what Python calls them.
            orchestrator: The orchestrator that launches the nodes. Default: - none: Auto Scaling groups do.
        """
        # EC2 writes the network traffic of HyperPod's nodes into SageMaker's account: it cannot be asked here.
        default = replace(default_idle_policy(), host_activity=not orchestrator.traits.is_hyperpod)
        whole = (policy or IdlePolicy()).over(default)
        nodes = [
            NodeGroupContext.of(
                group,
                facts,
                availability_zone=availability_zone,
                whole_policy=whole,
                schedule=schedule,
                words=words,
                orchestrator=orchestrator,
            )
            for group in groups
        ]
        return ClusterContext(
            nodes=nodes,
            policy=policy,
            zone_id=zone_id,
            public_subnet=public_subnet,
            existing_network=existing_network,
            node_range=node_range,
            words=words,
            orchestrator=orchestrator,
        )

    @cached_property
    def groups(self) -> Sequence[NodeGroup]:
        """The node groups."""
        return [each.group for each in self.nodes]

    @cached_property
    def infos(self) -> Mapping[str, InstanceTypeInfo]:
        """The facts about all their types, by name."""
        return {info.name: info for each in self.nodes for info in each.infos}
