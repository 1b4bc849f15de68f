"""What a cluster file needs of an account, read from the file and counted in the stacks that it makes."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from aws_cdk import CfnResource
from aws_cdk import aws_lambda as lambda_

from cdk_training_cluster import Capacity, InstanceTypeInfo, NodeFleet
from cdk_training_cluster.nodes.images import public_image
from cdk_training_cluster.orchestrators.kinds import OrchestratorKind
from cdk_training_cluster_stacks.building import built_stacks
from cdk_training_cluster_stacks.cluster_file import ClusterFile
from cdk_training_cluster_stacks.cluster_file.fields import LATEST


@dataclass(frozen=True, kw_only=True)
class GroupNeed:
    """What a node group needs.

    Attributes:
        name: Its name.
        infos: What is known of its instance types.
        count: How many nodes run.
        capacity: How they are bought.
        image: The id of the image, or the name of the SSM parameter that holds it.
    """

    name: str
    infos: tuple[InstanceTypeInfo, ...]
    count: int
    capacity: Capacity
    image: str

    @property
    def instance_types(self) -> tuple[str, ...]:
        """The names of its instance types."""
        return tuple(info.name for info in self.infos)


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What a cluster needs.

    Attributes:
        file: The path of the cluster file, as its user wrote it.
        cluster: What the file says.
        groups: Its node groups.
        foundation: How many resources of each CloudFormation type its foundation stack has.
        nodes: How many resources of each CloudFormation type its cluster stack has.
        reserved_functions: How many of its functions reserve concurrent executions, each one.
        orchestrator: The engine that launches the nodes.
    """

    file: str
    cluster: ClusterFile
    groups: tuple[GroupNeed, ...]
    foundation: Mapping[str, int] = field(default_factory=dict)
    nodes: Mapping[str, int] = field(default_factory=dict)
    reserved_functions: int = 0
    orchestrator: OrchestratorKind = OrchestratorKind.NONE

    @property
    def region(self) -> str:
        """Its region."""
        return self.cluster.region

    @property
    def zone(self) -> str:
        """Its Availability Zone."""
        return self.cluster.availability_zone

    @property
    def instance_types(self) -> tuple[str, ...]:
        """The names of all its instance types, each once."""
        return tuple(dict.fromkeys(name for group in self.groups for name in group.instance_types))


def needs_of(file: str, cluster: ClusterFile) -> Needs:
    """Build the stacks of a cluster file in memory, and say what they need. It asks nothing of AWS.

    Args:
        file: The path of the cluster file, as its user wrote it.
        cluster: What the file says.

    Raises:
        ValueError: A construct refuses its settings.
    """
    with built_stacks(cluster) as (app, stack):
        every = app.node.find_all()
        made = {name: Counter[str]() for name in (cluster.foundation_stack_name, cluster.cluster_stack_name)}
        for each in every:
            if isinstance(each, CfnResource):
                kind = getattr(type(each), "CFN_RESOURCE_TYPE_NAME", None) or each.cfn_resource_type
                made[each.stack.stack_name][str(kind)] += 1
        functions = [each for each in every if isinstance(each, lambda_.CfnFunction)]
        return Needs(
            file=file,
            cluster=cluster,
            groups=tuple(
                _group(cluster, fleet, stack.training_cluster.orchestrator.kind)
                for fleet in stack.training_cluster.node_groups
            ),
            foundation=made[cluster.foundation_stack_name],
            nodes=made[cluster.cluster_stack_name],
            orchestrator=stack.training_cluster.orchestrator.kind,
            reserved_functions=sum(each.reserved_concurrent_executions is not None for each in functions),
        )


def _group(cluster: ClusterFile, fleet: NodeFleet, orchestrator: OrchestratorKind) -> GroupNeed:
    group, infos = fleet.node_group, tuple(fleet.instance_types)
    (image,) = (each.image for each in cluster.node_groups if each.name == group.name)
    public = public_image(infos[0], orchestrator)
    return GroupNeed(
        name=group.name,
        infos=infos,
        count=group.count,
        capacity=group.capacity,
        image=public.parameter_name if image == LATEST and public is not None else image,
    )
