"""What the power function has to know of one node group."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from aws_cdk import aws_iam as iam

from cdk_training_cluster.functions import OwnedGroup
from cdk_training_cluster.nodes import IdlePolicy, NodeFleet, Schedule
from cdk_training_cluster.validation.bounds import Whole
from cdk_training_cluster.validation.checks import is_unknown
from cdk_training_cluster.validation.kinds import checked
from cluster_contract.owners import OwnerKind
from cluster_contract.power import PowerGroupSettings

BLOCK_ENDS_EARLY_MINUTES = 30
"""How long before a Capacity Block's end EC2 begins to terminate its instances; for UltraServers it is 60.

https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-capacity-blocks.html
"""


@checked
@dataclass(frozen=True, kw_only=True)
class PowerGroup(OwnedGroup):
    """Say how many nodes a node group has, and what drives its size beside commands.

    Ids may be known at deployment only. At most one kind of them is given.

    Attributes:
        count: How many nodes it has while it is not stopped.
        capacity_block: The id of the Capacity Block that its nodes run in: they start when it does and are terminated
            before EC2 terminates them. Default: - none.
        capacity_blocks: The ids of Capacity Blocks that some of its nodes may run in: an alert says before they
            end, and the group keeps its size. Default: - none.
        listed_reservations: The ids of the reservations that some of its nodes may run in: an alert says before
            they end, and that nodes run on at On-Demand prices. Default: - none.
        on_demand: Whether On-Demand Instances replace the nodes in those blocks.
            Default: - they do not, which is what alerts say.
        block_ends_early_minutes: How long before a block's end EC2 begins to terminate its nodes, in minutes.
            Default: - 30; UltraServers need 60.
        capacity_reservation_id: The id of the capacity reservation that its nodes run in: an alert says when it
            ends. Default: - none.
        released: Whether that reservation, which must be one of the cluster, is lowered to one instance while the
            group is stopped, and raised before it starts. Default: - it is left as it is.
        terminates_nodes: Whether the command `terminate` may take single nodes out of it. A Spot Fleet chooses itself
            which of its nodes it terminates. Default: - it may not.
        warm_pool: Whether it has a warm pool: when the group grows, nodes in the pool that an old launch template
            version has launched are terminated, and Auto Scaling launches others. Default: - it has none.
        schedule: When its nodes run. Default: - always, while it is not stopped.
        role: The role of its nodes, which AWS PCS and HyperPod ask for with each size. Default: - none.
        size_permissions: What its owner's service does in the function's name with each size. Default: - nothing.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-monitor.html
    """

    count: Annotated[int, Whole(minimum=1)]
    capacity_block: str | None = None
    capacity_blocks: Sequence[str] = ()
    listed_reservations: Sequence[str] = ()
    on_demand: bool = False
    block_ends_early_minutes: Annotated[int, Whole(minimum=0)] = BLOCK_ENDS_EARLY_MINUTES
    capacity_reservation_id: str | None = None
    released: bool = False
    terminates_nodes: bool = False
    warm_pool: bool = False
    schedule: Schedule | None = None
    role: iam.IRole | None = None
    size_permissions: Sequence[iam.PolicyStatement] = ()

    @classmethod
    def of(cls, fleet: NodeFleet, policy: IdlePolicy, schedule: Schedule | None = None) -> "PowerGroup":
        """Return what has to be known of a group's nodes.

        Args:
            fleet: The nodes.
            policy: When they are idle and what becomes of them.
            schedule: When they run. Default: - always.
        """
        group, capacity = fleet.node_group, fleet.node_group.capacity
        return cls(
            count=group.count,
            capacity_block=capacity.block_id,
            # Shared ones are given as ARNs, which end with the id that EC2 describes them by.
            capacity_blocks=capacity.block_ids if capacity.is_prioritized else (),
            listed_reservations=capacity.reservation_ids if capacity.is_prioritized else (),
            on_demand=capacity.falls_back,
            block_ends_early_minutes=max(info.block_ends_early_minutes for info in fleet.instance_types),
            owner=fleet.owner_settings,
            capacity_reservation_id=fleet.reservation_id,
            released=capacity.releases,
            terminates_nodes=policy.takes_single_nodes,
            # EKS renews the warm pools of its node groups itself.
            warm_pool=group.warm_pool is not None and fleet.owner_settings is None,
            schedule=schedule,
            role=fleet.role,
            size_permissions=fleet.size_permissions,
        )

    @property
    def settings(self) -> PowerGroupSettings:
        """The group as the power function takes it, but for its schedule, which groups share."""
        has_blocks = self.capacity_block is not None or bool(self.capacity_blocks)
        early = self.block_ends_early_minutes if has_blocks else BLOCK_ENDS_EARLY_MINUTES
        return PowerGroupSettings(
            count=self.count,
            block=self.capacity_block,
            block_ends_early=timedelta(minutes=early),
            listed=tuple(self.listed_reservations),
            blocks=tuple(self.capacity_blocks),
            on_demand=self.on_demand or not self.capacity_blocks,
            owner=self.owner_settings,
            reservation=None if self.released else self.capacity_reservation_id,
            released=self.capacity_reservation_id if self.released else None,
            warm_pool=self.warm_pool,
        )

    @property
    def longest_id_bytes(self) -> int:
        """The most bytes that an id in the settings has: `cr-` and 17 digits, or each part of its owner's id, of
        which `sfr-` and a UUID is the longest that AWS makes."""
        return 20 if self.owner_settings is None else 40

    def _problems(self) -> Iterator[str]:
        yield from super()._problems()
        minutes = self.block_ends_early_minutes
        if is_unknown(minutes) and (self.capacity_block is not None or self.capacity_blocks):
            yield f"block_ends_early_minutes must be known when the template is made, got {minutes}: use a number"
        ids = {
            name: value
            for name, value in (
                ("capacity_block", self.capacity_block),
                ("capacity_blocks", self.capacity_blocks or None),
                ("spot_fleet_id", self.spot_fleet_id),
                ("capacity_reservation_id", self.capacity_reservation_id),
            )
            if value is not None
        }
        if len(ids) > 1:
            yield (
                "at most one of capacity_block, capacity_blocks, spot_fleet_id and capacity_reservation_id is "
                f"allowed, got {ids}"
            )
        if self.released and self.capacity_reservation_id is None:
            yield "released needs capacity_reservation_id: the reservation that is lowered while the group is stopped"
        if self.schedule is not None and self.capacity_block is not None:
            yield "schedule excludes capacity_block: the nodes run while the block does"
        kind = self.owner_kind
        if self.warm_pool and kind is not OwnerKind.AUTO_SCALING_GROUP:
            yield f"warm_pool takes a node group that an Auto Scaling group owns, got the owner {kind}"
        if self.terminates_nodes and not kind.terminates_nodes:
            able = ", ".join(kind for kind in OwnerKind if kind.terminates_nodes)
            yield (
                f"terminates_nodes takes one of the owners {able}, got {kind}: it chooses itself which of its nodes "
                "it terminates"
            )
