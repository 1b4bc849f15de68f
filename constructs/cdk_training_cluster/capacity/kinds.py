"""The ways to buy nodes, and what follows from each: what depends on types and groups is in `nodes`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from aws_cdk import Token
from aws_cdk import aws_autoscaling as autoscaling

from cdk_training_cluster.capacity.choices import OnIdle, UntilCancelled
from cdk_training_cluster.capacity.settings import (
    FLEET_PRICE,
    SPOT_PRICE,
    InstanceCount,
    PlacementGroupName,
    Platform,
    ReservationEnd,
    ReservationId,
    ReservationIdOrArn,
    Zone,
    end_problems,
    ids_alone,
    price_text,
    refuse,
    together_problems,
)
from cdk_training_cluster.checks import is_unknown
from cdk_training_cluster.encryption import KeyUser
from cdk_training_cluster.validation.kinds import checked

_Group = autoscaling.CfnAutoScalingGroup


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """How the nodes of a group are bought. Make one with one of its calls, such as `Capacity.on_demand()`.

    It says only how to buy: what and how many stands on `NodeGroup`. Each call sets whatever else differs between the
    ways to buy, so that nothing outside this module asks which one it is.

    Attributes:
        call: The call that makes one, as messages name it: `Capacity.on_demand()`.
        description: How the nodes are bought, in a few words.
        usage_classes: What is bought, in the words of DescribeInstanceTypes: `on-demand`, `spot`, `capacity-block`.
        owner_id: The construct's id of what owns the nodes. A group that is bought in another way is another group:
            Auto Scaling would take a running gang apart, node by node, to make the old one fit, and may keep what a
            template leaves out, such as a reservation that is gone.
            https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_UpdateAutoScalingGroup.html
        reservation_id: The existing reservation that all the nodes are launched into. None: there is none.
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

    @staticmethod
    def on_demand() -> "Capacity":
        """Buy On-Demand Instances: always the same price, no promise that they can be had.

        Resources: an Auto Scaling group and, unless the node group says otherwise, a cluster placement group.

        Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-on-demand-instances.html
        """
        return Capacity(
            call="Capacity.on_demand()",
            description="on demand",
            usage_classes=("on-demand",),
            owner_id="AutoScalingGroup",
            keeps_together=True,
            allows_warm_pool=True,
        )

    @staticmethod
    @checked
    def reservation(
        *,
        end: ReservationEnd = None,
        on_idle: OnIdle = OnIdle.KEEP,
        instance_platform: Platform = "Linux/UNIX",
    ) -> "Capacity":
        """Reserve On-Demand capacity for every node of the group, and launch into nothing else.

        The reservation is billed at the On-Demand price from the deployment on, whether nodes run or not. EC2
        may not have the capacity: then the deployment fails and is rolled back, a first one with nothing left to
        bill. No other way to buy can end a deployment so: the others start their nodes afterwards.

        Resources: an `AWS::EC2::CapacityReservation` inside the group's placement group, and an Auto Scaling
        group that launches `capacity-reservations-only`: without that, a node for which the reservation has no
        room would silently run, and be billed, On-Demand.

        Args:
            end: When EC2 gives the capacity back; a time with its zone. After that the group cannot start
                again: give a new end while the reservation lasts. `UNTIL_CANCELLED`: when the group is taken
                out of the cluster. Default: - it is refused: an idle reservation is billed all the same, so its
                end is said on purpose.
            on_idle: What happens to the reservation while the group is stopped. Default: - it is kept, and
                billed.
            instance_platform: The platform of the nodes' image, as EC2 bills it. Default: - `Linux/UNIX`, right
                for AWS's Deep Learning images.

        Raises:
            ValueError: `end` is left out or has no zone, or the platform is none that EC2 knows or none for these
                nodes.

        Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/cr-cpg.html
        """
        refuse(end_problems("end", end))
        until = f"{end.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if isinstance(end, datetime) else "cancelled"
        released = ", released while stopped" if on_idle is OnIdle.RELEASE else ""
        return Capacity(
            call="Capacity.reservation()",
            description=f"new reservation until {until}{released}",
            usage_classes=("on-demand",),
            owner_id="ReservationGroup",
            end=end,
            on_idle=on_idle,
            instance_platform=instance_platform,
            keeps_together=True,
            allows_warm_pool=True,
        )

    @staticmethod
    @checked
    def from_reservation(
        capacity_reservation_id: ReservationId,
        *,
        placement_group: PlacementGroupName | None = None,
        availability_zone: Zone | None = None,
        instance_platform: Platform | None = None,
        instance_count: InstanceCount | None = None,
    ) -> "Capacity":
        """Launch into an existing On-Demand Capacity Reservation, and into nothing else.

        Resources: an Auto Scaling group that launches `capacity-reservations-only`, in the reservation's own
        placement group if it has one.

        Args:
            capacity_reservation_id: The reservation, such as `cr-0a1b2c3d4e5f67890`.
            placement_group: The name of the cluster placement group that the reservation was made in.
                Default: - it was made in none, and the nodes are launched into none.
            availability_zone: The reservation's zone, to be checked against the cluster's.
                Default: - not checked.
            instance_platform: The reservation's platform, to be checked against the image's.
                Default: - not checked.
            instance_count: How many instances it reserves, to be checked against the counts of all the node
                groups that share it. Default: - not checked.

        Raises:
            ValueError: The id, the platform or the count is none that EC2 knows.

        Source: https://docs.aws.amazon.com/autoscaling/ec2/userguide/target-capacity-reservations.html
        """
        return Capacity(
            call="Capacity.from_reservation()",
            description=f"reservation {capacity_reservation_id}",
            usage_classes=("on-demand",),
            owner_id="ExistingReservationGroup",
            reservation_id=capacity_reservation_id,
            placement_group=placement_group,
            availability_zone=availability_zone,
            instance_platform=instance_platform,
            instance_count=instance_count,
            # A reservation that was made in a placement group: the nodes go into it too.
            keeps_together=placement_group is not None,
            allows_warm_pool=True,
        )

    @staticmethod
    @checked
    def capacity_block(
        capacity_reservation_id: ReservationId,
        *,
        availability_zone: Zone | None = None,
        instance_count: InstanceCount | None = None,
    ) -> "Capacity":
        """Launch into a Capacity Block for ML: bought beforehand, for a time, close together.

        The power function starts the nodes when the block starts and brings them down before EC2 terminates
        them, which begins 30 minutes before the block's end (UltraServers: 60). It reads start and end from EC2
        each minute, since blocks can be extended. Buying a block is not in CloudFormation.

        Resources: an Auto Scaling group with minimum 0 whose launch template names the market `capacity-block`
        and the block; no placement group, which blocks do not support; an EventBridge rule for the block's
        events.

        Args:
            capacity_reservation_id: The block's reservation, such as `cr-0a1b2c3d4e5f67890`.
            availability_zone: The block's zone, to be checked against the cluster's. Default: - not checked
                before the power function does.
            instance_count: How many instances it has, to be checked against the counts of all the node groups
                that share it. Default: - not checked before the power function does.

        Raises:
            ValueError: The id or the count is none that EC2 knows.

        Source: https://docs.aws.amazon.com/autoscaling/ec2/userguide/launch-template-capacity-blocks.html
        """
        return Capacity(
            call="Capacity.capacity_block()",
            description=f"Capacity Block {capacity_reservation_id}",
            usage_classes=("capacity-block",),
            owner_id="CapacityBlockGroup",
            block_id=capacity_reservation_id,
            availability_zone=availability_zone,
            instance_count=instance_count,
        )

    @staticmethod
    @checked
    def spot(
        *, max_price: Annotated[float, SPOT_PRICE] | None = None, capacity_rebalancing: bool = False
    ) -> "Capacity":
        """Buy Spot Instances with an Auto Scaling group: cheap, and EC2 may take them back at two minutes' notice.

        Several types make it likelier that there are any. Each type gets the network interfaces that suit it.

        Resources: a launch template for each interface layout among the types, and one Auto Scaling group over
        all types with `price-capacity-optimized`; what is interrupted is terminated.

        Args:
            max_price: The most to pay for an instance and hour, in US dollars; at least 0.001. Default: - the
                On-Demand price; a lower limit means more interruptions.
            capacity_rebalancing: Whether Auto Scaling launches another node when EC2 calls one likelier to be
                interrupted, and then terminates that one, whether EC2 ever takes it or not: a gang's job ends with
                it. A group at its maximum size may exceed it by 10 % meanwhile, and is billed for both. For nodes
                that each work for themselves. Default: - a node stays until EC2 takes it.

        Raises:
            ValueError: The price is no number, or too low, or `capacity_rebalancing` is no flag.

        Sources: https://docs.aws.amazon.com/autoscaling/ec2/userguide/mixed-instances-groups-set-up-overview.html
        and https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-capacity-rebalancing.html
        """
        return Capacity(
            call="Capacity.spot()",
            description=f"Spot{_at_most(max_price)}",
            usage_classes=("spot",),
            owner_id="SpotGroup",
            max_price=max_price,
            capacity_rebalancing=capacity_rebalancing,
            takes_several_types=True,
            key_users=(KeyUser.AUTO_SCALING, KeyUser.SPOT),
        )

    @staticmethod
    @checked
    def spot_fleet(*, max_price: Annotated[float, FLEET_PRICE] | None = None) -> "Capacity":
        """Buy Spot Instances with a Spot Fleet, for elastic extra workers beside a steady base.

        AWS recommends Auto Scaling groups instead, and so does a warning: prefer `Capacity.spot()`.

        Resources: an `AWS::EC2::SpotFleet` of type maintain with a role of its own, and a launch template for
        each interface layout among the types. The power function sets its target.

        The account needs the service-linked roles `AWSServiceRoleForEC2Spot` and `AWSServiceRoleForEC2SpotFleet`:
        `aws iam create-service-linked-role --aws-service-name spot.amazonaws.com`, and `spotfleet.amazonaws.com`.
        A deployment that changes image, types or price may replace the fleet and its nodes: AWS's documents
        contradict its schema there. Pin the image.

        Args:
            max_price: The most to pay for an instance and hour, in US dollars. Default: - the On-Demand price.

        Raises:
            ValueError: The price is no number, or too low.

        Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/work-with-spot-fleets.html
        """
        return Capacity(
            call="Capacity.spot_fleet()",
            description=f"Spot Fleet{_at_most(max_price)}",
            usage_classes=("spot",),
            owner_id="SpotFleet",
            max_price=max_price,
            owned_by_spot_fleet=True,
            takes_several_types=True,
            key_users=(KeyUser.SPOT, KeyUser.SPOT_FLEET),
        )

    @staticmethod
    @checked
    def prioritized(
        *,
        reservations: Sequence[ReservationIdOrArn] = (),
        capacity_blocks: Sequence[ReservationIdOrArn] = (),
        on_demand: bool = True,
    ) -> "Capacity":
        """Use what is reserved first: reservations, then Capacity Blocks, then On-Demand.

        EC2 terminates the nodes of a block at its end, and Auto Scaling then launches others where the list
        goes on. The nodes of a reservation run on when it ends, at On-Demand prices, even without `on_demand`, which
        decides about launches only; the power function then notifies the alert topic's subscribers. Nodes that
        target the group move into reservations that are added to it later. Of several types, each is launched where
        it is sold: there are no Capacity Blocks of a g5.

        Resources: an `AWS::ResourceGroups::Group` of all reservations and blocks, and an Auto Scaling group
        with distribution segments that targets it; no placement group unless the node group asks for one.

        Args:
            reservations: On-Demand Capacity Reservations, such as `cr-0a1b2c3d4e5f67890`, or the ARNs of those that
                other accounts share. Default: - none.
            capacity_blocks: Capacity Blocks' reservations, likewise. Default: - none.
            on_demand: Whether On-Demand Instances make up for what the others cannot give. Default: - they do.

        Raises:
            ValueError: There is neither a reservation nor a block, or an id is none or given twice.

        Sources: https://docs.aws.amazon.com/autoscaling/ec2/userguide/use-distribution-segments.html and
        https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/create-cr-group.html
        """
        refuse(together_problems([*reservations, *capacity_blocks]))
        named = ((reservations, "reservation"), (capacity_blocks, "Capacity Block"))
        ways = [f"{len(ids)} {noun}{'' if len(ids) == 1 else 's'}" for ids, noun in named if ids]
        # Both reservations and their substitute are On-Demand Instances.
        bought = {"on-demand": reservations or on_demand, "capacity-block": capacity_blocks}
        return Capacity(
            call="Capacity.prioritized()",
            description=", then ".join([*ways, *(["on demand"] if on_demand else [])]),
            usage_classes=tuple(usage for usage, any_of_it in bought.items() if any_of_it),
            owner_id="PrioritizedGroup",
            reservations=tuple(reservations),
            capacity_blocks=tuple(capacity_blocks),
            falls_back=on_demand,
            takes_several_types=True,
            ends_newest_first=False,
        )

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


def _at_most(max_price: float | None) -> str:
    return "" if max_price is None else f", at most ${max_price:g} an hour"
