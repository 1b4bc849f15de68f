"""What node groups are tried against every rule with: for each rule what breaks it, and what just does not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from aws_cdk import Token
from aws_cdk import aws_ec2 as ec2

from cdk_training_cluster import Capacity, IdlePolicy, InstanceTypeInfo, NodeGroup
from cdk_training_cluster.nodes.orchestrator_kind import OrchestratorKind

RESERVED, OTHER = "cr-0a1b2c3d4e5f67890", "cr-0123456789abcdef0"

OWN_IMAGE = ec2.MachineImage.generic_linux({"us-east-1": "ami-0a1b2c3d4e5f67890"})
IMAGE_AT_LAUNCH = ec2.MachineImage.resolve_ssm_parameter_at_launch("/images/tested")
IMAGE_AT_DEPLOYMENT = ec2.MachineImage.from_ssm_parameter("/images/tested")


IMEX_WARNING = {
    "imex": "NVLink between nodes of p6e-gb200.36xlarge needs NVIDIA IMEX with the addresses of each job's nodes, "
    "which this library does not set up: without it jobs use NVLink within a node and EFA between nodes; start "
    "the service nvidia-imex for each job, with Slurm in a prolog"
}


def unknown_number(name: str = "Number") -> Any:
    """A number that only the deployment knows."""
    return Token.as_number({"Ref": name})


def unknown_text(name: str = "Text") -> str:
    """A text that only the deployment knows."""
    return Token.as_string({"Ref": name})


def held_in(one: str = RESERVED, **settings: Any) -> Capacity:
    """A reservation of 1,000 instances that exists already, unless told otherwise."""
    return Capacity.from_reservation(one, **{"instance_count": 1000, **settings})


def node_group(**settings: Any) -> NodeGroup:
    """A node group of 8 p5.48xlarge, unless told otherwise."""
    return NodeGroup(**{"name": "workers", "instance_types": ["p5.48xlarge"], "count": 8, **settings})


@dataclass(frozen=True, kw_only=True)
class Case:
    """A node group and all that is said of it.

    Attributes:
        group: The node group.
        errors: What is wrong with it, a sentence each, without its name.
        warnings: If nothing is, what will surprise: sentences by the rule's id.
        zone: The cluster's zone. None: it is not known.
        facts: Facts about types that the catalog does not have.
        orchestrator: The orchestrator that launches the nodes.
    """

    group: NodeGroup
    errors: tuple[str, ...] = ()
    warnings: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    zone: str | None = None
    facts: Sequence[InstanceTypeInfo] = ()
    orchestrator: OrchestratorKind = OrchestratorKind.NONE

    def __str__(self) -> str:
        verdict = "refused" if self.errors else "warned" if self.warnings else "fine"
        # A token is another number in each process, and a test's name has to be the same in all.
        count = "token" if Token.is_unresolved(self.group.count) else str(self.group.count)
        return f"{'+'.join(self.group.instance_types[:2])}-{count}-{verdict}"


def case(
    *errors: str,
    warnings: Mapping[str, str] | None = None,
    zone: str | None = None,
    facts: Sequence[InstanceTypeInfo] = (),
    orchestrator: OrchestratorKind = OrchestratorKind.NONE,
    **settings: Any,
) -> Case:
    """A case of a node group with these settings."""
    return Case(
        group=node_group(**settings),
        errors=errors,
        warnings=warnings or {},
        zone=zone,
        facts=facts,
        orchestrator=orchestrator,
    )


@dataclass(frozen=True, kw_only=True)
class ClusterCase:
    """Node groups of one cluster, each fine by itself, and all that is said of them together."""

    groups: Sequence[NodeGroup]
    errors: tuple[str, ...] = ()
    warnings: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    public_subnet: bool = False
    node_range: str | None = None
    policy: IdlePolicy | None = None


def together(
    *errors: str,
    groups: Sequence[Mapping[str, Any]],
    warnings: Mapping[str, str] | None = None,
    public_subnet: bool = False,
    node_range: str | None = None,
    policy: IdlePolicy | None = None,
) -> ClusterCase:
    """A case of node groups called a, b, c … with these settings."""
    return ClusterCase(
        groups=[node_group(**{"name": name, **settings}) for name, settings in zip("abcdef", groups, strict=False)],
        errors=errors,
        warnings=warnings or {},
        public_subnet=public_subnet,
        node_range=node_range,
        policy=policy,
    )
