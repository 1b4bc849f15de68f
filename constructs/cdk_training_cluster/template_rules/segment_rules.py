"""What distribution segments ask of a group, and what they exclude."""

from collections.abc import Iterator

from cdk_training_cluster.template_rules.rule import AUTO_SCALING_API, AUTO_SCALING_GUIDE, TemplateRule
from cdk_training_cluster.template_rules.template import CAPACITY_BLOCK, Finding, Group, Template
from cdk_training_cluster.template_rules.values import is_intrinsic, items, text

_SHARES = ("OnDemandBaseCapacity", "OnDemandPercentageAboveBaseCapacity")
_SPOT = ("SpotAllocationStrategy", "SpotInstancePools", "SpotMaxPrice")
_ON_DEMAND = "on-demand"
# The markets of launch templates that segments buy on too, and take precedence over.
# https://docs.aws.amazon.com/autoscaling/ec2/userguide/target-capacity-reservations.html
_MARKETS = (CAPACITY_BLOCK, "interruptible-capacity-reservation")
_CAPACITY_TYPES = ("on-demand-capacity-reservation", *_MARKETS, _ON_DEMAND)


def _groups(template: Template) -> Iterator[Group]:
    return (group for group in template.groups if group.has_segments)


def _one_list(template: Template) -> Iterator[Finding]:
    for group in _groups(template):
        segments = group.get(group.SEGMENTS)
        if isinstance(segments, list) and len(segments) != 1:
            yield group.at(group.SEGMENTS)


def _types(template: Template) -> Iterator[Finding]:
    for group in _groups(template):
        for place in range(len(items(group.get(group.SEGMENTS)))):
            path = f"{group.SEGMENTS}.{place}.TargetCapacityTypes"
            if not _are_capacity_types(group.get(path)):
                yield group.at(path)


def _are_capacity_types(value: object) -> bool:
    if value is None or value == []:
        return False
    known = [kind for kind in items(value) if isinstance(kind, str)]
    return len(known) == len(set(known)) and all(kind in _CAPACITY_TYPES for kind in known)


def _order(template: Template) -> Iterator[Finding]:
    for group in _groups(template):
        for place in range(len(items(group.get(group.SEGMENTS)))):
            path = f"{group.SEGMENTS}.{place}.TargetCapacityTypes"
            if _ON_DEMAND in items(group.get(path))[:-1]:
                yield group.at(path)


def _target(template: Template) -> Iterator[Finding]:
    for group in _groups(template):
        arns = group.get(group.ARNS)
        known = arns is None or isinstance(arns, list)
        if known and len(items(arns)) != 1:
            yield group.at(group.ARNS)
        elif group.has(group.IDS):
            yield group.at(group.IDS)


def _preference(template: Template) -> Iterator[Finding]:
    for group in _groups(template):
        preference = group.get(group.PREFERENCE)
        # Auto Scaling takes the absence for `default`, but CloudFormation has it "Required: Yes":
        # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-autoscaling-autoscalinggroup-capacityreservationspecification.html
        absent = preference is None and group.has(group.RESERVED)
        if absent or text(preference) not in {None, "default"}:
            yield group.at(group.PREFERENCE)


def _strategy(template: Template) -> Iterator[Finding]:
    path = f"{Group.DISTRIBUTION}.OnDemandAllocationStrategy"
    for group in _groups(template):
        # Where nothing is said, prioritized is the default.
        if text(group.get(path)) not in {None, "prioritized"}:
            yield group.at(path)


def _shares(template: Template) -> Iterator[Finding]:
    yield from _given(template, _SHARES)


def _spot(template: Template) -> Iterator[Finding]:
    yield from _given(template, _SPOT)


def _given(template: Template, names: tuple[str, ...]) -> Iterator[Finding]:
    for group in _groups(template):
        for name in names:
            if group.has(f"{group.DISTRIBUTION}.{name}"):
                yield group.at(f"{group.DISTRIBUTION}.{name}")


def _market(template: Template) -> Iterator[Finding]:
    options = "LaunchTemplateData.InstanceMarketOptions"
    for group in _groups(template):
        for launch in group.launch_templates:
            market = launch.get(f"{options}.MarketType")
            known = market is None or isinstance(market, str)
            if launch.has(options) and known and market not in _MARKETS:
                yield launch.at(options)


def _warm_pool(template: Template) -> Iterator[Finding]:
    for group in _groups(template):
        for pool in group.warm_pools:
            yield pool.at("AutoScalingGroupName")


def _placement_group(template: Template) -> Iterator[Finding]:
    for group in _groups(template):
        if any(kind == CAPACITY_BLOCK for kind in group.capacity_types if not is_intrinsic(kind)):
            for place, _ in group.placements:
                yield place


_SOURCE = f"{AUTO_SCALING_GUIDE}/use-distribution-segments.html"

SEGMENT_RULES = (
    TemplateRule(
        id="segmentList",
        source=_SOURCE,
        description="DistributionSegments must have exactly one list of TargetCapacityTypes",
        fix="Put all capacity types into one list, the most wanted first",
        find=_one_list,
    ),
    TemplateRule(
        id="segmentTypes",
        source=f"{AUTO_SCALING_API}/API_DistributionSegment.html",
        description=(
            f"TargetCapacityTypes must be at least one of {', '.join(_CAPACITY_TYPES)}, and none of them twice"
        ),
        fix="Name what the nodes are bought from; for Spot Instances, make a node group with Capacity.spot()",
        find=_types,
    ),
    TemplateRule(
        id="segmentOrder",
        source=_SOURCE,
        description="on-demand must be the last of TargetCapacityTypes",
        fix="Put on-demand last, or leave it out",
        find=_order,
    ),
    TemplateRule(
        id="segmentTarget",
        source=_SOURCE,
        description=(
            "A group with DistributionSegments must target one resource group of reservations, in "
            "CapacityReservationResourceGroupArns, and nothing else"
        ),
        fix="Name the ARN of one resource group that holds all reservations and blocks",
        find=_target,
    ),
    TemplateRule(
        id="segmentPreference",
        source=_SOURCE,
        description="CapacityReservationPreference of a group with DistributionSegments must be default",
        fix="Set CapacityReservationPreference to default: the segments say what is preferred",
        find=_preference,
    ),
    TemplateRule(
        id="segmentStrategy",
        source=_SOURCE,
        description="OnDemandAllocationStrategy of a group with DistributionSegments must be prioritized",
        fix="Set OnDemandAllocationStrategy to prioritized",
        find=_strategy,
    ),
    TemplateRule(
        id="segmentShares",
        source=_SOURCE,
        description=(
            "A group with DistributionSegments must have neither OnDemandBaseCapacity nor "
            "OnDemandPercentageAboveBaseCapacity"
        ),
        fix="Take it away: the segments say where On-Demand comes",
        find=_shares,
    ),
    TemplateRule(
        id="segmentSpot",
        source=_SOURCE,
        description=(
            "A group with DistributionSegments must have no SpotAllocationStrategy, SpotInstancePools or "
            "SpotMaxPrice: it launches no Spot Instances"
        ),
        fix="Take it away, and make a node group with Capacity.spot() for Spot Instances",
        find=_spot,
    ),
    TemplateRule(
        id="segmentMarket",
        source=_SOURCE,
        description=(
            "A launch template of a group with DistributionSegments must have no InstanceMarketOptions but those of "
            f"MarketType {' or '.join(_MARKETS)}: the group launches no Spot Instances"
        ),
        fix="Take InstanceMarketOptions away, and make a node group with Capacity.spot() for Spot Instances",
        find=_market,
    ),
    TemplateRule(
        id="segmentWarmPool",
        source=_SOURCE,
        description="A group with DistributionSegments must have no warm pool",
        fix="Take the AWS::AutoScaling::WarmPool away",
        find=_warm_pool,
    ),
    TemplateRule(
        id="segmentPlacementGroup",
        source=_SOURCE,
        description=(
            "A group with capacity-block among its TargetCapacityTypes must have no placement group, neither as "
            "PlacementGroup nor as Placement of its launch template: blocks do not support them"
        ),
        fix="Take the placement group away, or the capacity blocks",
        find=_placement_group,
    ),
)
