"""What the spend function has to know of one node group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from cdk_training_cluster.functions import OwnedGroup
from cdk_training_cluster.nodes import NodeFleet
from cdk_training_cluster.nodes.node_launch_template import root_volume_gib
from cdk_training_cluster.validation.bounds import Whole
from cdk_training_cluster.validation.kinds import checked
from cluster_contract.spend import SpendGroupSettings


@checked
@dataclass(frozen=True, kw_only=True)
class SpendGroup(OwnedGroup):
    """Say what of a node group is billed beside its instances, and how they are bought. Ids may be known at
    deployment only.

    Attributes:
        root_volume_gib: The size of each node's root volume, in GiB. Default: - 0: volumes are not counted.
        reservations: The ids of the capacity reservations and Capacity Blocks that its nodes may run in, which are
            billed whether or not they do. Default: - none.
        released: Whether its reservation is lowered while the group is stopped, so that a stop does save money.
            Default: - it is not.
        orchestrator: What the orchestrator bills for each node by the hour, by the names in the price list.
            Default: - nothing.
    """

    root_volume_gib: Annotated[int, Whole(minimum=0)] = 0
    reservations: Sequence[str] = ()
    released: bool = False
    orchestrator: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, fleet: NodeFleet, orchestrator: Mapping[str, float] | None = None) -> "SpendGroup":
        """Return what has to be known of a group's nodes.

        Args:
            fleet: The nodes.
            orchestrator: What the orchestrator bills for each. Default: - nothing.
        """
        group, capacity = fleet.node_group, fleet.node_group.capacity
        own = [] if fleet.reservation_id is None else [fleet.reservation_id]
        return cls(
            # What is launched from no template has no volumes in the account.
            root_volume_gib=max(root_volume_gib(group, info) for info in fleet.instance_types)
            if fleet.launch_templates
            else 0,
            reservations=tuple(dict.fromkeys([*own, *capacity.reservation_ids, *capacity.block_ids])),
            owner=fleet.owner_settings,
            released=capacity.releases,
            orchestrator=orchestrator or {},
        )

    @property
    def settings(self) -> SpendGroupSettings:
        """The group as the spend function takes it."""
        return SpendGroupSettings(
            volume_gib=self.root_volume_gib,
            reservations=tuple(self.reservations),
            owner=self.owner_settings,
            release=self.released,
            orchestrator=self.orchestrator,
        )
