"""What Auto Scaling refuses of a group when it is made or changed, with the service's codes.

Messages are the service's where a public report of one exists, and say the same in plain words elsewhere.
"""

from collections.abc import Callable, Mapping
from typing import Any

from local_aws.launch_facts import Ec2Refusal
from local_aws.refusal import Refusal
from local_aws.services import launches
from local_aws.services.purchases import (
    LaunchTemplate,
    distribution,
    launch_templates,
    purchases,
    reservations_of,
    segment,
)

_SPOT_STRATEGIES = (
    "capacity-optimized",
    "capacity-optimized-prioritized",
    "lowest-price",
    "price-capacity-optimized",
)
_CAPACITY_TYPES = (
    "on-demand-capacity-reservation",
    "capacity-block",
    "interruptible-capacity-reservation",
    "on-demand",
)
# The market types of launch templates that segments take precedence over, because they can buy on them themselves.
# https://docs.aws.amazon.com/autoscaling/ec2/userguide/target-capacity-reservations.html
_SEGMENT_MARKETS = frozenset({"capacity-block", "interruptible-capacity-reservation"})
_NOT_IN_SEGMENTS = (
    "OnDemandBaseCapacity",
    "OnDemandPercentageAboveBaseCapacity",
    "SpotAllocationStrategy",
    "SpotInstancePools",
    "SpotMaxPrice",
)


def group_named(response: Any) -> Any:
    """Return the group that a request names.

    Raises:
        Refusal: There is none.
    """
    name = response._get_param("AutoScalingGroupName")
    group = response.autoscaling_backend.autoscaling_groups.get(name)
    if group is None:
        raise Refusal("ValidationError", f"AutoScalingGroup name not found - AutoScalingGroup {name} not found")
    return group


def check_sizes(minimum: int, maximum: int, desired: int | None) -> None:
    """Refuse sizes that do not fit into each other."""
    if minimum > maximum:
        raise Refusal(
            "ValidationError",
            f"Max bound, {maximum}, must be greater than or equal to min bound, {minimum}",
        )
    if desired is not None and not minimum <= desired <= maximum:
        raise Refusal(
            "ValidationError",
            f"Desired capacity:{desired} must be between the specified min size:{minimum} and max size:{maximum}",
        )


def check_group(group: Any) -> None:
    """Refuse what the service refuses of a group, then try its launches out in each of its subnets.

    Raises:
        Refusal: what the service answers, with EC2's message and error code in it.
    """
    for override in (group.mixed_instances_policy or {}).get("LaunchTemplate", {}).get("Overrides") or []:
        for unknown in ("WeightedCapacity", "InstanceRequirements"):
            if override.get(unknown):
                raise NotImplementedError(f"{unknown} in a mixed instances policy")
    for rule in RULES:
        rule(group)
    for chosen in launch_templates(group):
        _check_template(group, chosen)
    subnets = (group.vpc_zone_identifier or "").split(",")
    for purchase in purchases(group):
        for subnet_id in subnets:
            data = {name: value for name, value in purchase.data.items() if name != "SubnetId"}
            try:
                launches.check(group.ec2_backend, data, subnet_id or None)
            except Ec2Refusal as refusal:
                raise Refusal(
                    "ValidationError",
                    f"You must use a valid fully-formed launch template. {refusal.message} "
                    f"(EC2 error code: {refusal.code})",
                ) from refusal


def _check_template(group: Any, chosen: LaunchTemplate) -> None:
    """Refuse what the service itself refuses about a launch template.

    Messages as seen in https://github.com/hashicorp/terraform-provider-aws/issues/4570 and
    https://github.com/kubernetes/kops/pull/7066. A placement group of its own is no mistake: where the group names
    one too, the group's takes precedence.
    https://docs.aws.amazon.com/autoscaling/ec2/userguide/create-launch-template.html
    """
    data = chosen.version.data
    interfaces = data.get("NetworkInterfaces") or []
    if interfaces and (data.get("SecurityGroupIds") or data.get("SecurityGroups")):
        raise Refusal(
            "InvalidQueryParameter",
            "Invalid launch template: When a network interface is provided, the security groups must be a part of "
            "it. (EC2 error code: InvalidParameterCombination)",
        )
    options = data.get("InstanceMarketOptions")
    overridden = segment(group) and options and options.get("MarketType") in _SEGMENT_MARKETS
    if group.mixed_instances_policy and options and not overridden:
        raise Refusal(
            "InvalidQueryParameter",
            "Incompatible launch template: You cannot use a launch template that is set to request Spot Instances "
            "(InstanceMarketOptions) when you configure an Auto Scaling group with a mixed instances policy. Add a "
            "different launch template to the group and try again.",
        )
    if group.vpc_zone_identifier and any(interface.get("SubnetId") for interface in interfaces):
        raise Refusal(
            "ValidationError",
            "You must use a valid fully-formed launch template. The parameter SubnetId of a network interface may "
            "not be specified: the group's VPCZoneIdentifier decides. (EC2 error code: InvalidParameterCombination)",
        )


def the_spot_strategy_is_known(group: Any) -> None:
    """Refuse a strategy that is none of the service's, such as a Spot Fleet's spelling of one.

    https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_InstancesDistribution.html
    """
    strategy = distribution(group).get("SpotAllocationStrategy")
    if strategy is not None and strategy not in _SPOT_STRATEGIES:
        raise _invalid(
            f"SpotAllocationStrategy {strategy} is not valid. Valid values are: {', '.join(_SPOT_STRATEGIES)}"
        )


def only_one_reservation_is_targeted(group: Any) -> None:
    """Refuse a group that targets more than one reservation, or more than one group of them.

    https://docs.aws.amazon.com/autoscaling/ec2/userguide/target-capacity-reservations.html
    """
    target = reservations_of(group).get("CapacityReservationTarget") or {}
    ids, arns = target.get("CapacityReservationIds") or [], target.get("CapacityReservationResourceGroupArns") or []
    if len(ids) + len(arns) > 1:
        raise _invalid(
            "Only a single Capacity Reservation ID or Capacity Reservation Resource Group ARN is allowed as a "
            "Capacity Reservation target."
        )


def no_target_without_reservations(group: Any) -> None:
    """Refuse a target beside the preference `none`.

    https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_CapacityReservationSpecification.html
    """
    said = reservations_of(group)
    if said.get("CapacityReservationPreference") == "none" and said.get("CapacityReservationTarget"):
        raise _invalid(
            "You cannot specify a CapacityReservationTarget when the CapacityReservationPreference is none."
        )


def one_segment_in_order(group: Any) -> None:
    """Refuse several segments, none or unknown types, a type twice, and On-Demand anywhere but last.

    https://docs.aws.amazon.com/autoscaling/ec2/userguide/use-distribution-segments.html
    """
    given = distribution(group).get("DistributionSegments") or []
    if len(given) > 1:
        raise _invalid("Only one distribution segment is supported per Auto Scaling group.")
    kinds = list(segment(group))
    if given and not kinds:
        raise _invalid("A distribution segment must have at least one of TargetCapacityTypes.")
    for kind in kinds:
        if kind not in _CAPACITY_TYPES:
            raise _invalid(f"TargetCapacityTypes {kind} is not valid. Valid values are: {', '.join(_CAPACITY_TYPES)}")
    if "interruptible-capacity-reservation" in kinds:
        raise NotImplementedError("interruptible Capacity Reservations")
    if len(set(kinds)) < len(kinds):
        raise _invalid("TargetCapacityTypes of a distribution segment must be unique.")
    if "on-demand" in kinds[:-1]:
        raise _invalid("on-demand must be the last of the TargetCapacityTypes of a distribution segment.")


def segments_go_alone(group: Any) -> None:
    """Refuse a share of On-Demand or anything about Spot beside a segment, and another order of types.

    https://docs.aws.amazon.com/autoscaling/ec2/userguide/use-distribution-segments.html
    """
    if not segment(group):
        return
    said = distribution(group)
    for name in _NOT_IN_SEGMENTS:
        if said.get(name) is not None:
            raise _invalid(f"You cannot specify {name} with DistributionSegments.")
    strategy = said.get("OnDemandAllocationStrategy", "prioritized")
    if strategy != "prioritized":
        raise _invalid(
            f"DistributionSegments support only the OnDemandAllocationStrategy prioritized, and it is {strategy}."
        )


def segments_target_one_group_of_reservations(group: Any) -> None:
    """Refuse a segment without a reservation resource group, or with a preference of the group's own.

    https://docs.aws.amazon.com/autoscaling/ec2/userguide/use-distribution-segments.html
    """
    if not segment(group):
        return
    said = reservations_of(group)
    # Auto Scaling takes the absence for `default`, as that page's example has it; CloudFormation requires it.
    preference = said.get("CapacityReservationPreference", "default")
    if preference != "default":
        raise _invalid(
            f"DistributionSegments support only the CapacityReservationPreference default, and it is {preference}."
        )
    if not (said.get("CapacityReservationTarget") or {}).get("CapacityReservationResourceGroupArns"):
        raise _invalid(
            "DistributionSegments need a Capacity Reservation Resource Group ARN as the CapacityReservationTarget."
        )


def blocks_in_a_segment_have_no_placement_group(group: Any) -> None:
    """Refuse a placement group beside a segment with Capacity Blocks.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/cr-groups-launch.html
    """
    if "capacity-block" in segment(group) and group.placement_group:
        raise _invalid(
            "Capacity Blocks do not support placement groups: you cannot specify a placement group when the "
            "distribution segment has capacity-block."
        )


RULES: tuple[Callable[[Any], None], ...] = (
    the_spot_strategy_is_known,
    only_one_reservation_is_targeted,
    no_target_without_reservations,
    one_segment_in_order,
    segments_go_alone,
    segments_target_one_group_of_reservations,
    blocks_in_a_segment_have_no_placement_group,
)


def _invalid(message: str) -> Refusal:
    return Refusal("ValidationError", message)


def warm_pool_trouble(group: Any) -> str | None:
    """Return why a group cannot have a warm pool, as far as it is because of what the group buys.

    https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-warm-pools.html
    """
    if segment(group):
        return "Warm pools are not supported with distribution segments."
    markets = {_market(purchase.data) for purchase in purchases(group)}
    if "capacity-block" in markets:
        return "Warm pools are not supported when the launch template targets a Capacity Block."
    return "Warm pools do not support Spot Instances." if "spot" in markets else None


def _market(data: Mapping[str, Any]) -> str | None:
    market: str | None = (data.get("InstanceMarketOptions") or {}).get("MarketType")
    return market
