"""What owns the nodes of a node group: the service that launches and terminates them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from cluster_contract.codec import Text


class OwnerKind(StrEnum):
    """The kinds of owners.

    Attributes:
        terminates_nodes: Whether single nodes can be terminated; if not, the owner chooses itself which.
    """

    terminates_nodes: bool

    # https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_TerminateInstanceInAutoScalingGroup.html, also for
    # the group underneath an EKS node group
    AUTO_SCALING_GROUP = "auto_scaling_group", True
    SPOT_FLEET = "spot_fleet"
    PCS_COMPUTE_NODE_GROUP = "pcs_compute_node_group"
    EKS_NODEGROUP = "eks_nodegroup", True
    # https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_BatchDeleteClusterNodes.html
    HYPERPOD_INSTANCE_GROUP = "hyperpod_instance_group", True
    BATCH_COMPUTE_ENVIRONMENT = "batch_compute_environment"

    def __new__(cls, value: str, terminates_nodes: bool = False) -> Self:
        """Make a kind with its traits."""
        kind = str.__new__(cls, value)
        kind._value_ = value
        kind.terminates_nodes = terminates_nodes
        return kind


_SCHEDULER_SIZED = "+"


@dataclass(frozen=True, kw_only=True)
class OwnerSettings(Text):
    """What the functions have to know of the owner of a node group's nodes.

    Attributes:
        kind: What it is.
        id: Its name or id: of AWS PCS `<cluster id>/<compute node group id>`, of EKS `<cluster>/<node group>`, of
            HyperPod `<cluster name>/<instance group>`, of Batch the compute environment's name, of a Spot Fleet the
            request's id.
        scheduler_sized: Whether a scheduler launches and terminates nodes as jobs need them: the size that functions
            set is then the most that it may run.
        options: What is sent with each size, as `name=value`, since an update of the stack that sends it might send
            the template's size as well. Default: - nothing.
    """

    kind: OwnerKind
    id: str
    scheduler_sized: bool = False
    options: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join((f"{self.kind}{_SCHEDULER_SIZED * self.scheduler_sized}", self.id, *self.options))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """See `Text`."""
        kind, _, rest = text.partition(" ")
        name, *options = rest.split(" ")
        known = kind.removesuffix(_SCHEDULER_SIZED)
        if known not in list(OwnerKind) or not name:
            raise ValueError(f"must be one of {', '.join(OwnerKind)} and its name or id")
        return cls(kind=OwnerKind(known), id=name, scheduler_sized=known != kind, options=tuple(options))

    @classmethod
    def spot_fleet(cls, request: str) -> Self:
        """Return a Spot Fleet request.

        Args:
            request: Its id.
        """
        return cls(kind=OwnerKind.SPOT_FLEET, id=request)


@dataclass(frozen=True, kw_only=True)
class OwnedGroupSettings:
    """What every function has to know of a node group.

    Attributes:
        owner: What owns its nodes. Default: - an Auto Scaling group, which is found by its tags.
    """

    owner: OwnerSettings | None = None

    @property
    def owner_kind(self) -> OwnerKind:
        """What kind of owner its nodes have."""
        return OwnerKind.AUTO_SCALING_GROUP if self.owner is None else self.owner.kind


def owners_of(kind: OwnerKind, groups: Mapping[str, OwnedGroupSettings]) -> dict[str, OwnerSettings]:
    """Return the owners of a kind that the settings name, by node group.

    Args:
        kind: Any but Auto Scaling groups, which are found by their tags.
        groups: The node groups, by name.
    """
    return {name: group.owner for name, group in groups.items() if group.owner and group.owner.kind is kind}
