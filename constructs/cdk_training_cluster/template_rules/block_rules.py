"""What Capacity Blocks ask of a group."""

from collections.abc import Iterator

from cdk_training_cluster.template_rules.rule import AUTO_SCALING_GUIDE, EC2_GUIDE, TemplateRule
from cdk_training_cluster.template_rules.template import CAPACITY_BLOCK, Finding, Group, Template
from cdk_training_cluster.template_rules.values import number

_MARKET = "LaunchTemplateData.InstanceMarketOptions.MarketType"
_TARGET = "LaunchTemplateData.CapacityReservationSpecification.CapacityReservationTarget"


def _groups(template: Template) -> Iterator[Group]:
    return (group for group in template.groups if group.market_is_block and not group.may_have_segments)


def _placement_group(template: Template) -> Iterator[Finding]:
    for group in _groups(template):
        for place, _ in group.placements:
            yield place


def _mixed(template: Template) -> Iterator[Finding]:
    for group in _groups(template):
        if group.is_mixed:
            yield group.at(group.POLICY)


def _minimum(template: Template) -> Iterator[Finding]:
    for group in _groups(template):
        if (number(group.get("MinSize")) or 0) > 0:
            yield group.at("MinSize")


def _target(template: Template) -> Iterator[Finding]:
    for group in _groups(template):
        if group.get(group.IDS) is not None or group.get(group.ARNS) is not None:
            continue
        for launch in group.launch_templates:
            named = (launch.get(f"{_TARGET}.{name}") for name in _TARGETS)
            if launch.market == CAPACITY_BLOCK and all(name is None for name in named):
                yield launch.at(_MARKET)


def _market(template: Template) -> Iterator[Finding]:
    for group in template.groups:
        if group.get(group.PREFERENCE) is not None:
            continue
        for launch in group.launch_templates:
            if launch.has(f"{_TARGET}.CapacityReservationId") and launch.get(_MARKET) is None:
                yield launch.at(_TARGET)


_TARGETS = ("CapacityReservationId", "CapacityReservationResourceGroupArn")
_BLOCKS_IN_GROUPS = f"{AUTO_SCALING_GUIDE}/launch-template-capacity-blocks.html"

BLOCK_RULES = (
    TemplateRule(
        id="blockPlacementGroup",
        source=f"{EC2_GUIDE}/ec2-capacity-blocks.html#capacity-blocks-considerations",
        description=(
            "A group that launches into a Capacity Block must have no placement group, neither as PlacementGroup nor "
            "as Placement of its launch template: blocks do not support them"
        ),
        fix="Take the placement group away: EC2 puts the instances of a block close together by itself",
        find=_placement_group,
    ),
    TemplateRule(
        id="blockMixedGroup",
        source=_BLOCKS_IN_GROUPS,
        description=(
            "A group whose launch template has InstanceMarketOptions.MarketType capacity-block must have no "
            "MixedInstancesPolicy, unless it has DistributionSegments"
        ),
        fix="Name the launch template as LaunchTemplate, or use Capacity.prioritized()",
        find=_mixed,
    ),
    TemplateRule(
        id="blockMinimum",
        source=_BLOCKS_IN_GROUPS,
        description=(
            "MinSize of a group that launches into a Capacity Block must be 0: before the block starts, and after "
            "its end, nothing can be launched"
        ),
        fix="Leave MinSize at 0: the power function starts the nodes when the block starts",
        find=_minimum,
    ),
    TemplateRule(
        id="blockTarget",
        source=_BLOCKS_IN_GROUPS,
        description=(
            "InstanceMarketOptions.MarketType capacity-block must stand beside a CapacityReservationTarget that "
            "names the block"
        ),
        fix="Name the block's reservation, or use Capacity.capacity_block()",
        find=_target,
    ),
    TemplateRule(
        id="blockMarket",
        source=f"{AUTO_SCALING_GUIDE}/target-capacity-reservations.html",
        description=(
            "CapacityReservationTarget of a launch template must stand beside InstanceMarketOptions.MarketType "
            "capacity-block, or its group must say what happens when the reservation is full, with "
            "CapacityReservationPreference"
        ),
        fix=(
            "For a Capacity Block, name the market too; for a reservation, use Capacity.from_reservation(), which "
            "names it on the group"
        ),
        find=_market,
    ),
)
