"""The ways to buy nodes; what depends on types and groups is in `nodes`."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from cdk_training_cluster.capacity.choices import OnIdle
from cdk_training_cluster.capacity.limits import (
    FLEET_PRICE,
    SPOT_PRICE,
    InstanceCount,
    PlacementGroupName,
    Platform,
    ReservationEnd,
    ReservationId,
    ReservationIdOrArn,
    TrainingPlanArn,
    Zone,
    end_problems,
    refuse,
    together_problems,
)
from cdk_training_cluster.capacity.purchase import Purchase
from cdk_training_cluster.core.encryption import KeyUser
from cdk_training_cluster.validation.kinds import checked


@dataclass(frozen=True, kw_only=True)
class Capacity(Purchase):
    """How the nodes of a group are bought. Make one with one of its calls, such as `Capacity.on_demand()`.

    It says only how to buy: what and how many stands on `NodeGroup`. Each call sets whatever else differs between the
    ways to buy, so that nothing outside this module asks which one it is.
    """

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

        Resources: a `Custom::CapacityReservation` inside the group's placement group, which a function of the cluster
        makes with EC2's API, or an `AWS::EC2::CapacityReservation` outside of one; and an Auto Scaling group that
        launches `capacity-reservations-only`: without that, a node for which the reservation has no
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
    def training_plan(arn: TrainingPlanArn) -> "Capacity":
        """Launch into a SageMaker training plan: capacity on HyperPod that was bought beforehand, for a time.

        Only `HyperPodCluster` takes it. Buying a plan is not in CloudFormation, and the plan is paid whether nodes
        run or not. SageMaker terminates its nodes when it ends.

        Resources: an instance group of the HyperPod cluster that names the plan.

        Args:
            arn: The plan's ARN, such as `arn:aws:sagemaker:us-east-1:111122223333:training-plan/llama`.

        Raises:
            ValueError: The ARN is none of a training plan.

        Source: https://docs.aws.amazon.com/sagemaker/latest/dg/reserve-capacity-with-training-plans.html
        """
        return Capacity(
            call="Capacity.training_plan()",
            description=f"training plan {arn.rpartition('/')[2]}",
            usage_classes=("on-demand",),
            owner_id="TrainingPlanGroup",
            training_plan_arn=arn,
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


def _at_most(max_price: float | None) -> str:
    return "" if max_price is None else f", at most ${max_price:g} an hour"
