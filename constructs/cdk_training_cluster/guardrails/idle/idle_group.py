"""What the idle stop has to know of one node group."""

from dataclasses import dataclass

from cdk_training_cluster.functions import OwnedGroup
from cdk_training_cluster.nodes import IdlePolicy, NodeFleet
from cdk_training_cluster.validation.kinds import checked


@checked
@dataclass(frozen=True, kw_only=True)
class IdleGroup(OwnedGroup):
    """Say when a node group's nodes are idle, and who owns them.

    Attributes:
        policy: What differs from the policy of the whole. Default: - nothing.
        released: Whether the reservation that its nodes run in is lowered while the group is stopped, so that a stop
            does save money. Default: - it is not.
    """

    policy: IdlePolicy | None = None
    released: bool = False

    @classmethod
    def of(cls, fleet: NodeFleet, policy: IdlePolicy) -> "IdleGroup":
        """Return what has to be known of a group's nodes.

        Args:
            fleet: The nodes.
            policy: When they are idle and what becomes of them.
        """
        return cls(policy=policy, owner=fleet.owner_settings, released=fleet.node_group.capacity.releases)
