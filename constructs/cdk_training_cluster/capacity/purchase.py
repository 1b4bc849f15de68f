"""What follows from how nodes are bought: for launch templates, groups, functions and messages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from aws_cdk import Token
from aws_cdk import aws_autoscaling as autoscaling

from cdk_training_cluster.capacity.choices import OnIdle, UntilCancelled
from cdk_training_cluster.capacity.limits import ids_alone, price_text
from cdk_training_cluster.core.encryption import KeyUser
from cdk_training_cluster.validation.checks import is_unknown

_Group = autoscaling.CfnAutoScalingGroup


@dataclass(frozen=True, kw_only=True)
class Purchase:
    """How the nodes of a group are bought, whatever the way.

    Attributes:
        call: The call that makes one, as messages name it: `Capacity.on_demand()`.
        description: How the nodes are bought, in a few words.
        usage_classes: What is bought, in the words of DescribeInstanceTypes: `on-demand`, `spot`, `capacity-block`.
        owner_id: The construct's id of what owns the nodes. A group that is bought in another way is another group:
            Auto Scaling would take a running gang apart, node by node, to make the old one fit, and may keep what a
            template leaves out, such as a reservation that is gone.
            https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_UpdateAutoScalingGroup.html
        reservation_id: The existing reservation that all the nodes are launched into. None: there is none.
        training_plan_arn: The SageMaker training plan that all the nodes are launched into. None: there is none.
        block_id: The Capacity Block that all the nodes are launched into. None: there is none.
        placement_group: The placement group that the reservation was made in. None: none, or there is none.
        availability_zone: The zone of reservation or block, or None.
        instance_platform: The platform of the reservation, made or existing, or None.
        instance_count: How many instances reservation or block has, or None.
        end: When a reservation that is made ends. None: none is made.
        on_idle: What happens to it while the group is stopped.
        max_price: The most to pay for a Spot Instance and hour, in US dollars. None: the On-Demand price.
        reservations: The reservations that nodes are launched into in turn, as ids or ARNs.
        capacity_blocks: The Capacity Blocks that follow these, likewise.
        falls_back: Whether On-Demand Instances make up for what those cannot give.
        capacity_rebalancing: Whether Auto Scaling rebalances. None: it is not asked.
        keeps_together: Whether the nodes go into a cluster placement group unless the node group says otherwise.
        owned_by_spot_fleet: Whether a Spot Fleet owns the nodes. Else an Auto Scaling group does.
        takes_several_types: Whether a group may have several types.
        allows_warm_pool: Whether Auto Scaling keeps a warm pool of such nodes.
        ends_newest_first: Whether Auto Scaling ends the newest node first: where more nodes come than the power
            function asked for, none that works goes for one that has just come.
            https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-termination-policies.html
        key_users: What uses the key of encrypted root volumes to launch nodes.
    """

    call: str
    description: str
    usage_classes: tuple[str, ...]
    owner_id: str
    reservation_id: str | None = None
    training_plan_arn: str | None = None
    block_id: str | None = None
    placement_group: str | None = None
    availability_zone: str | None = None
    instance_platform: str | None = None
    instance_count: int | None = None
    end: datetime | UntilCancelled | None = None
    on_idle: OnIdle = OnIdle.KEEP
    max_price: float | None = None
    reservations: tuple[str, ...] = ()
    capacity_blocks: tuple[str, ...] = ()
    falls_back: bool = False
    capacity_rebalancing: bool | None = None
    keeps_together: bool = False
    owned_by_spot_fleet: bool = False
    takes_several_types: bool = False
    allows_warm_pool: bool = False
    ends_newest_first: bool = True
    key_users: tuple[KeyUser, ...] = (KeyUser.AUTO_SCALING,)

    @property
    def capacity_reservation_id(self) -> str | None:
        """The existing reservation or Capacity Block that all the nodes are launched into. None: there is none."""
        return self.reservation_id or self.block_id

    @property
    def uses_spot(self) -> bool:
        """Whether Spot Instances are bought."""
        return "spot" in self.usage_classes

    @property
    def is_mixed(self) -> bool:
        """Whether an Auto Scaling group launches nodes of several types and from several templates."""
        return self.takes_several_types and not self.owned_by_spot_fleet

    @property
    def is_prioritized(self) -> bool:
        """Whether nodes are launched into one thing after the other."""
        return bool(self.reservations or self.capacity_blocks)

    @property
    def reservation_ids(self) -> Sequence[str]:
        """The existing reservations that nodes may be launched into."""
        return ids_alone(self.reservations) if self.reservation_id is None else (self.reservation_id,)

    @property
    def block_ids(self) -> Sequence[str]:
        """The Capacity Blocks that nodes may be launched into."""
        return ids_alone(self.capacity_blocks) if self.block_id is None else (self.block_id,)

    @property
    def makes_reservation(self) -> bool:
        """Whether a reservation is made for the group."""
        return self.end is not None

    @property
    def end_time(self) -> datetime | None:
        """When that reservation ends, in UTC. None: there is no such time."""
        return self.end.astimezone(UTC) if isinstance(self.end, datetime) else None

    @property
    def reservation_settings(self) -> Mapping[str, Any]:
        """What is said of a reservation that is made, beside what follows from the group."""
        settings = {"instance_platform": self.instance_platform, "end_date_type": "unlimited"}
        if self.end_time is None:
            return settings
        return {**settings, "end_date_type": "limited", "end_date": f"{self.end_time:%Y-%m-%dT%H:%M:%SZ}"}

    @property
    def releases(self) -> bool:
        """Whether a reservation that is made is lowered while the group is stopped."""
        return self.on_idle is OnIdle.RELEASE

    @property
    def max_price_text(self) -> str | None:
        """The highest price as AWS takes it: digits and a point, no exponent. None: no limit but On-Demand's."""
        if self.max_price is None:
            return None
        return Token.as_string(self.max_price) if is_unknown(self.max_price) else price_text(self.max_price)

    @property
    def launch_template_data(self) -> Mapping[str, Any]:
        """What a launch template says of market and reservation.

        Source: https://docs.aws.amazon.com/autoscaling/ec2/userguide/launch-template-capacity-blocks.html
        """
        if self.block_id is None:
            return {}
        return {
            "InstanceMarketOptions": {"MarketType": "capacity-block"},
            "CapacityReservationSpecification": {
                "CapacityReservationTarget": {"CapacityReservationId": self.block_id}
            },
        }

    @property
    def capacity_types(self) -> Sequence[str]:
        """The list of a distribution segment, in the order in which Auto Scaling goes through it."""
        types = {
            "on-demand-capacity-reservation": self.reservations,
            "capacity-block": self.capacity_blocks,
            "on-demand": self.falls_back,
        }
        return [each for each, any_of_it in types.items() if any_of_it]

    @property
    def instances_distribution(self) -> autoscaling.CfnAutoScalingGroup.InstancesDistributionProperty | None:
        """How an Auto Scaling group spreads over types and markets. None: it launches one type in one way."""
        if self.uses_spot:
            return _Group.InstancesDistributionProperty(
                on_demand_base_capacity=0,
                on_demand_percentage_above_base_capacity=0,
                spot_allocation_strategy="price-capacity-optimized",
                # An empty one takes away a limit that an earlier deployment set; left out, the old limit would stay.
                # https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_InstancesDistribution.html
                spot_max_price=self.max_price_text or "",
            )
        if self.is_prioritized:
            # Segments, one after the other.
            # https://docs.aws.amazon.com/autoscaling/ec2/userguide/use-distribution-segments.html
            segment = _Group.DistributionSegmentProperty(target_capacity_types=self.capacity_types)
            return _Group.InstancesDistributionProperty(
                on_demand_allocation_strategy="prioritized", distribution_segments=[segment]
            )
        return None

    def describe(self) -> str:
        """Say in a few words how the nodes are bought."""
        return self.description
