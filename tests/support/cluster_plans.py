"""Whole clusters as plain data: what a cluster is made of, the cluster that it makes, and a sample of legal ones."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3

from cdk_training_cluster import (
    UNTIL_CANCELLED,
    Budget,
    Capacity,
    ClusterNetwork,
    Dataset,
    InstanceTypeInfo,
    InterfaceLayout,
    NodeGroup,
    OnIdle,
    Placement,
    TrainingCluster,
    WarmPool,
)
from cdk_training_cluster.cluster.orchestrator import NoOrchestrator, Orchestrator
from cdk_training_cluster.nodes.rules import ClusterContext, cluster_problems
from cdk_training_cluster.orchestrators.batch.batch_orchestrator import BatchOrchestrator
from cdk_training_cluster.orchestrators.batch.settings import BatchSettings
from cdk_training_cluster.orchestrators.eks.eks_orchestrator import EksOrchestrator
from cdk_training_cluster.orchestrators.eks.settings import EksSettings
from cdk_training_cluster.orchestrators.hyperpod.hyperpod_orchestrator import HyperPodOrchestrator
from cdk_training_cluster.orchestrators.hyperpod.settings import HyperPodOrchestration, HyperPodSettings
from cdk_training_cluster.orchestrators.slurm.settings import SlurmSettings
from cdk_training_cluster.orchestrators.slurm.slurm_orchestrator import SlurmOrchestrator
from cdk_training_cluster.validation.rule import Problem
from synthesis import ZONE

VPC, SUBNET, BUCKET = "vpc-0a1b2c3d4e5f67890", "subnet-0a1b2c3d4e5f67890", "corpus"

Settings = Mapping[str, Any]
"""Of a node group, but for how it is bought: that is `call`, a name, and `buy`, the call's own settings."""


_EXTRAS = ("warm_pool", "placement", "interface_layout")
_SECOND_ZONE = "us-east-1a"
EKS, EKS_GROUP = "arn:aws:eks:us-east-1:123456789012:cluster/training", "sg-0a1b2c3d4e5f67890"
"""The EKS cluster that HyperPod's nodes join, and its cluster security group."""

ORCHESTRATORS: Mapping[str, Callable[[], Orchestrator]] = {
    "none": NoOrchestrator,
    "slurm": lambda: SlurmOrchestrator(SlurmSettings()),
    "eks": lambda: EksOrchestrator(EksSettings(control_plane_zone=_SECOND_ZONE)),
    "hyperpod_slurm": lambda: HyperPodOrchestrator(HyperPodSettings()),
    "hyperpod_eks": lambda: HyperPodOrchestrator(
        HyperPodSettings(orchestrator=HyperPodOrchestration.EKS, eks_cluster_arn=EKS, eks_security_group_id=EKS_GROUP)
    ),
    "batch": lambda: BatchOrchestrator(BatchSettings()),
}
"""What runs jobs, with its default settings."""


def reservation_id(number: int) -> str:
    """The id of a reservation or block."""
    return f"cr-{number:017x}"


@dataclass(frozen=True, kw_only=True)
class ClusterPlan:
    """What a cluster is made of.

    Attributes:
        groups: The node groups' settings.
        dataset: Whether a bucket is linked to a file system.
        existing_network: Whether the VPC is there already.
        budget: What it may cost. None: anything.
        facts: Facts about types that the catalog does not have.
        orchestrator: What runs jobs, by its name in `ORCHESTRATORS`.
    """

    groups: tuple[Settings, ...]
    dataset: bool = False
    existing_network: bool = False
    budget: Budget | None = None
    facts: Sequence[InstanceTypeInfo] = field(default=(), repr=False)
    orchestrator: str = "none"

    def make(self, stack: Stack, cluster_name: str = "pod") -> TrainingCluster:
        """Make the cluster.

        Raises:
            ValueError: It is not legal.
        """
        groups = [node_group(settings) for settings in self.groups]
        bucket = s3.Bucket.from_bucket_name(stack, "Corpus", BUCKET)
        where: dict[str, Any] = {"availability_zone": ZONE}
        if self.existing_network:
            where = {"network": existing_network(stack)}
        return TrainingCluster(
            stack,
            "Cluster",
            **where,
            node_groups=groups,
            cluster_name=cluster_name,
            datasets=[Dataset(bucket=bucket, prefix="tokens/", file_system_path="/data")] if self.dataset else [],
            instance_type_facts=self.facts,
            budget=self.budget,
            _orchestrator=ORCHESTRATORS[self.orchestrator](),
        )

    def problems(self) -> list[str]:
        """Return what the rules say of it."""
        return [*map(str, self._found())]

    def for_orchestrator(self, orchestrator: str) -> "ClusterPlan":
        """Return it with another orchestrator, and the node groups that it takes, as they are or without extras."""
        plain = tuple({name: group[name] for name in group if name not in _EXTRAS} for group in self.groups)
        # EKS needs a second subnet of a network that exists, and HyperPod on EKS the network of the EKS cluster.
        existing = orchestrator == "hyperpod_eks" or (self.existing_network and orchestrator != "eks")
        on_it = replace(self, existing_network=existing, orchestrator=orchestrator)
        taken = []
        for each in zip(self.groups, plain, strict=True):
            legal = (one for one in each if not replace(on_it, groups=(one,)).problems())
            taken += [group for group in (next(legal, None),) if group is not None]
        return replace(on_it, groups=tuple(taken))

    def _found(self) -> Iterator[Problem]:
        orchestrator = ORCHESTRATORS[self.orchestrator]()
        together = ClusterContext.of(
            [node_group(each) for each in self.groups],
            facts=self.facts,
            availability_zone=ZONE,
            existing_network=self.existing_network,
            orchestrator=orchestrator.kind,
        )
        yield from cluster_problems(together)
        yield from orchestrator.problems(together)


def node_group(settings: Settings) -> NodeGroup:
    """The node group of some settings.

    Raises:
        ValueError: A setting is wrong by itself.
    """
    rest = {name: value for name, value in settings.items() if name not in {"call", "buy"}}
    return NodeGroup(**rest, capacity=getattr(Capacity, settings["call"])(**settings.get("buy", {})))


def existing_network(stack: Stack) -> ClusterNetwork:
    vpc = ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id=VPC, availability_zones=[ZONE])
    subnet = ec2.Subnet.from_subnet_attributes(stack, "Subnet", subnet_id=SUBNET, availability_zone=ZONE)
    return ClusterNetwork.from_subnet(stack, "Network", vpc=vpc, subnet=subnet)


@dataclass(frozen=True, kw_only=True)
class Given:
    """A reservation or block that is there before a cluster.

    Attributes:
        id: Its id.
        is_block: Whether it is a Capacity Block.
        instance_type: Its type.
        instance_count: How many instances it has.
        placement_group: The placement group that it was made in. None: none.
    """

    id: str
    is_block: bool
    instance_type: str
    instance_count: int
    placement_group: str | None = None


_HELD, _SHARED, _BLOCK, _ULTRASERVER, _FIRST, _SECOND = (reservation_id(0xA0 + number) for number in range(6))


OWN = "own"
"""What the cluster itself made."""


class Where(NamedTuple):
    """Where a node runs: on which market, in which reservation and placement group; On-Demand Instances on none."""

    market: str | None = None
    reservation: str | None = None
    placement_group: str | None = None


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A legal cluster, what is there before it, and where its nodes run when all of them do.

    Attributes:
        plan: The cluster.
        runs: For each node group how many nodes run where.
        given: What is reserved before.
    """

    plan: ClusterPlan
    runs: Mapping[str, Mapping[Where, int]]
    given: tuple[Given, ...] = ()


SAMPLE: Mapping[str, Sample] = {
    "on demand, with warm nodes and a data set": Sample(
        plan=ClusterPlan(
            groups=(
                {
                    "name": "workers",
                    "instance_types": ["p4de.24xlarge"],
                    "count": 3,
                    "call": "on_demand",
                    "warm_pool": WarmPool(size=2),
                },
                {
                    "name": "login",
                    "instance_types": ["g5.xlarge"],
                    "count": 1,
                    "call": "on_demand",
                    "placement": Placement.NONE,
                },
            ),
            dataset=True,
        ),
        runs={"workers": {Where(placement_group=OWN): 3}, "login": {Where(): 1}},
    ),
    "reservations of their own": Sample(
        plan=ClusterPlan(
            groups=(
                {
                    "name": "workers",
                    "instance_types": ["trn1.32xlarge"],
                    "count": 2,
                    "call": "reservation",
                    "buy": {"end": datetime(2099, 12, 24, 18, tzinfo=UTC)},
                },
                {
                    "name": "extra",
                    "instance_types": ["p6-b300.48xlarge"],
                    "count": 2,
                    "call": "reservation",
                    "buy": {"end": UNTIL_CANCELLED, "on_idle": OnIdle.RELEASE},
                    "placement": Placement.NONE,
                    "interface_layout": InterfaceLayout.BANDWIDTH_OPTIMISED,
                },
            ),
        ),
        runs={"workers": {Where(reservation=OWN, placement_group=OWN): 2}, "extra": {Where(reservation=OWN): 2}},
    ),
    "reservations of others, one of them shared": Sample(
        plan=ClusterPlan(
            groups=(
                {
                    "name": "workers",
                    "instance_types": ["p5.48xlarge"],
                    "count": 2,
                    "call": "from_reservation",
                    "buy": {"capacity_reservation_id": _HELD, "placement_group": "rack", "instance_count": 4},
                },
                {
                    "name": "eval",
                    "instance_types": ["p5.48xlarge"],
                    "count": 2,
                    "call": "from_reservation",
                    "buy": {"capacity_reservation_id": _HELD, "placement_group": "rack", "availability_zone": ZONE},
                },
                {
                    "name": "small",
                    "instance_types": ["g6e.48xlarge"],
                    "count": 1,
                    "call": "from_reservation",
                    "buy": {"capacity_reservation_id": _SHARED},
                    "warm_pool": WarmPool(size=1),
                },
            ),
            existing_network=True,
        ),
        given=(
            Given(id=_HELD, is_block=False, instance_type="p5.48xlarge", instance_count=4, placement_group="rack"),
            Given(id=_SHARED, is_block=False, instance_type="g6e.48xlarge", instance_count=2),
        ),
        runs={
            "workers": {Where(reservation=_HELD, placement_group="rack"): 2},
            "eval": {Where(reservation=_HELD, placement_group="rack"): 2},
            "small": {Where(reservation=_SHARED): 1},
        },
    ),
    "blocks, one of them an UltraServer's": Sample(
        plan=ClusterPlan(
            groups=(
                {
                    "name": "workers",
                    "instance_types": ["p5en.48xlarge"],
                    "count": 4,
                    "call": "capacity_block",
                    "buy": {"capacity_reservation_id": _BLOCK, "instance_count": 4},
                },
                {
                    "name": "ultra",
                    "instance_types": ["p6e-gb200.36xlarge"],
                    "count": 9,
                    "call": "capacity_block",
                    "buy": {"capacity_reservation_id": _ULTRASERVER, "instance_count": 9},
                },
            ),
        ),
        given=(
            Given(id=_BLOCK, is_block=True, instance_type="p5en.48xlarge", instance_count=4),
            Given(id=_ULTRASERVER, is_block=True, instance_type="p6e-gb200.36xlarge", instance_count=9),
        ),
        runs={
            "workers": {Where("capacity-block", _BLOCK): 4},
            "ultra": {Where("capacity-block", _ULTRASERVER): 9},
        },
    ),
    "Spot both ways beside a base": Sample(
        plan=ClusterPlan(
            groups=(
                {"name": "base", "instance_types": ["g6e.48xlarge"], "count": 2, "call": "on_demand"},
                {
                    "name": "elastic",
                    "instance_types": ["g5.48xlarge", "g6e.48xlarge", "g6.48xlarge"],
                    "count": 3,
                    "call": "spot",
                    "buy": {"max_price": 12.5},
                },
                {
                    "name": "fleet",
                    "instance_types": ["inf2.48xlarge", "trn1.32xlarge"],
                    "count": 2,
                    "call": "spot_fleet",
                    "placement": Placement.CLUSTER,
                },
            ),
        ),
        runs={
            "base": {Where(placement_group=OWN): 2},
            "elastic": {Where("spot"): 3},
            "fleet": {Where("spot", placement_group=OWN): 2},
        },
    ),
    "what is reserved first": Sample(
        plan=ClusterPlan(
            groups=(
                {
                    "name": "workers",
                    "instance_types": ["p5.48xlarge"],
                    "count": 4,
                    "call": "prioritized",
                    "buy": {"reservations": [_FIRST], "capacity_blocks": [_SECOND]},
                },
            ),
        ),
        given=(
            Given(id=_FIRST, is_block=False, instance_type="p5.48xlarge", instance_count=1),
            Given(id=_SECOND, is_block=True, instance_type="p5.48xlarge", instance_count=2),
        ),
        runs={
            "workers": {
                Where(reservation=_FIRST): 1,
                Where("capacity-block", _SECOND): 2,
                Where(): 1,
            }
        },
    ),
}
"""Legal clusters that use all the calls together."""
