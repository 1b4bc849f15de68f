"""What a cluster file needs of an account, read from the file and counted in the stacks that it makes."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from aws_cdk import CfnResource
from aws_cdk import aws_lambda as lambda_

from cdk_training_cluster import Capacity, InstanceTypeInfo, NodeFleet, TrainingCluster
from cdk_training_cluster.nodes.images import pcs_image, public_image
from cdk_training_cluster.nodes.node_launch_template import root_volume_gib
from cdk_training_cluster.nodes.orchestrator_kind import OrchestratorKind
from cdk_training_cluster.orchestrators.slurm.rules import LOGIN_GROUP
from cdk_training_cluster_file import ClusterFile
from cdk_training_cluster_file.fields import LATEST
from cdk_training_cluster_stacks.building import built_stacks


@dataclass(frozen=True, kw_only=True)
class GroupNeed:
    """What a node group needs.

    Attributes:
        name: Its name.
        infos: What is known of its instance types.
        count: How many nodes run.
        capacity: How they are bought.
    """

    name: str
    infos: tuple[InstanceTypeInfo, ...]
    count: int
    capacity: Capacity

    @property
    def instance_types(self) -> tuple[str, ...]:
        """The names of its instance types."""
        return tuple(info.name for info in self.infos)


@dataclass(frozen=True, kw_only=True)
class ImageNeed:
    """An image that nodes are launched from.

    Attributes:
        name: The node group, or `login`.
        image: The id of the image, or the name of the SSM parameter that holds it.
        architectures: The architectures of each of the nodes' instance types.
        root_volume_gib: The size of the root volume, in GiB. None: HyperPod chooses it.
    """

    name: str
    image: str
    architectures: Mapping[str, tuple[str, ...]]
    root_volume_gib: int | None


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What a cluster needs.

    Attributes:
        file: The path of the cluster file, as its user wrote it.
        cluster: What the file says.
        groups: Its node groups.
        images: What their nodes are launched from, without images that an orchestrator chooses.
        foundation: How many resources of each CloudFormation type its foundation stack has.
        nodes: How many resources of each CloudFormation type its cluster stack has.
        reserved_functions: How many of its functions reserve concurrent executions, each one.
        orchestrator: The orchestrator that launches the nodes.
        serves_job_role: Whether nodes give jobs credentials of the jobs' role, and those of their own to root alone.
    """

    file: str
    cluster: ClusterFile
    groups: tuple[GroupNeed, ...]
    images: tuple[ImageNeed, ...] = ()
    foundation: Mapping[str, int] = field(default_factory=dict)
    nodes: Mapping[str, int] = field(default_factory=dict)
    reserved_functions: int = 0
    orchestrator: OrchestratorKind = OrchestratorKind.NONE
    serves_job_role: bool = True

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
            groups=tuple(_group(fleet) for fleet in stack.training_cluster.node_groups),
            images=tuple(_images(cluster, stack.training_cluster)),
            foundation=made[cluster.foundation_stack_name],
            nodes=made[cluster.cluster_stack_name],
            orchestrator=stack.training_cluster.orchestrator.kind,
            serves_job_role=stack.training_cluster.orchestrator.serves_job_role,
            reserved_functions=sum(each.reserved_concurrent_executions is not None for each in functions),
        )


def _group(fleet: NodeFleet) -> GroupNeed:
    group = fleet.node_group
    return GroupNeed(name=group.name, infos=tuple(fleet.instance_types), count=group.count, capacity=group.capacity)


def _images(cluster: ClusterFile, made: TrainingCluster) -> Iterator[ImageNeed]:
    written = {each.name: each.image for each in cluster.node_groups}
    hyperpod = cluster.orchestrator.hyperpod is not None and cluster.orchestrator.hyperpod.orchestrator == "slurm"
    for fleet in made.node_groups:
        dialect = made.orchestrator.dialect(fleet.node_group)
        image = written[fleet.node_group.name]
        if (hyperpod and image != LATEST) or (dialect is not None and dialect.image):
            public = public_image(fleet.instance_types[0], made.orchestrator.kind)
            largest = max(root_volume_gib(fleet.node_group, info) for info in fleet.instance_types)
            yield ImageNeed(
                name=fleet.node_group.name,
                image=public.parameter_name if image == LATEST and public is not None else image,
                architectures={info.name: info.architectures for info in fleet.instance_types},
                root_volume_gib=None if hyperpod else largest,
            )
    slurm = cluster.orchestrator.slurm
    if slurm is not None and slurm.login.count:
        login, image = slurm.to_slurm().login, slurm.login.image
        yield ImageNeed(
            name=LOGIN_GROUP,
            image=pcs_image(login.architecture).parameter_name if image == LATEST else image,
            architectures={login.instance_type: (login.architecture,)},
            root_volume_gib=login.root_volume_gib,
        )
