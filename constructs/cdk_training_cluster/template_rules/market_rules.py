"""What the markets that are bought on, and placement groups, ask of a group."""

from collections.abc import Iterator

from cdk_training_cluster.template_rules.rule import (
    AUTO_SCALING_API,
    AUTO_SCALING_GUIDE,
    EC2_GUIDE,
    TemplateRule,
)
from cdk_training_cluster.template_rules.template import CAPACITY_BLOCK, Finding, Group, Template
from cdk_training_cluster.template_rules.values import text

_MARKET_OPTIONS = "LaunchTemplateData.InstanceMarketOptions"

_SPOT_STRATEGIES = (
    "capacity-optimized",
    "capacity-optimized-prioritized",
    "lowest-price",
    "price-capacity-optimized",
)


def _market_options(template: Template) -> Iterator[Finding]:
    for group in template.groups:
        if not group.is_mixed or group.may_have_segments:
            continue
        for launch in group.launch_templates:
            # A block in a mixed group has a rule of its own.
            if launch.has(_MARKET_OPTIONS) and launch.market != CAPACITY_BLOCK:
                yield launch.at(_MARKET_OPTIONS)


def _spot_strategy(template: Template) -> Iterator[Finding]:
    path = f"{Group.DISTRIBUTION}.SpotAllocationStrategy"
    for group in template.groups:
        strategy = text(group.get(path))
        if strategy is not None and strategy not in _SPOT_STRATEGIES:
            yield group.at(path)


def _two_placement_groups(template: Template) -> Iterator[Finding]:
    for group in template.groups:
        own = template.placement_group(group.get("PlacementGroup"))
        for place, other in group.placements:
            if own is not None and other is not None and other != own:
                yield place


def _interruption(template: Template) -> Iterator[Finding]:
    path = f"{_MARKET_OPTIONS}.SpotOptions.InstanceInterruptionBehavior"
    for group in template.groups:
        for launch in group.launch_templates if any(group.placements) else ():
            if text(launch.get(path)) not in {None, "terminate"}:
                yield launch.at(path)


MARKET_RULES = (
    TemplateRule(
        id="marketOptionsInMixedGroup",
        source=f"{AUTO_SCALING_GUIDE}/create-launch-template.html",
        description=(
            "A launch template of a group with a MixedInstancesPolicy must have no InstanceMarketOptions: Auto "
            "Scaling calls it an incompatible launch template"
        ),
        fix="Take InstanceMarketOptions away, and say in InstancesDistribution how much is Spot",
        find=_market_options,
    ),
    TemplateRule(
        id="spotAllocationStrategy",
        source=f"{AUTO_SCALING_API}/API_InstancesDistribution.html",
        description=(
            f"SpotAllocationStrategy of an Auto Scaling group must be one of {', '.join(_SPOT_STRATEGIES)}: with "
            "hyphens, unlike a Spot Fleet's"
        ),
        fix="Write price-capacity-optimized",
        find=_spot_strategy,
    ),
    TemplateRule(
        id="spotInterruption",
        source=f"{EC2_GUIDE}/limitations-placement-groups.html",
        description=(
            "SpotOptions.InstanceInterruptionBehavior of a launch template must be terminate in a placement group: "
            "EC2 launches no Spot Instance there that is to stop or hibernate"
        ),
        fix="Leave InstanceInterruptionBehavior out",
        find=_interruption,
    ),
    TemplateRule(
        id="twoPlacementGroups",
        source=f"{AUTO_SCALING_GUIDE}/create-launch-template.html",
        description=(
            "PlacementGroup of a group and Placement of its launch template must not name different placement "
            "groups: the group's takes precedence, and the other means nothing"
        ),
        fix="Name the placement group on the group alone",
        find=_two_placement_groups,
    ),
)
