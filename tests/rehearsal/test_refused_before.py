"""Each wrong template that the local AWS refuses is refused by synth first, or something else keeps it harmless."""

import copy
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aws_cdk import App, Environment, Stack
from aws_cdk.assertions import Template as Synthesized

from capacity_templates import TYPE, ZONE, block, given, reserved, segments, spot
from cdk_training_cluster import Capacity, NodeGroup, Placement, TrainingCluster
from cdk_training_cluster.nodes.rules import node_group_warnings
from cdk_training_cluster.tags import NODE_GROUP_TAG
from cdk_training_cluster.template_rules import broken_rules
from cdk_training_cluster.template_rules.values import target_of, value_at
from cluster_power.windows import Phase, find_phase
from given_capacity import (
    BLOCK,
    BLOCK_ELSEWHERE,
    ELSEWHERE,
    GIVEN,
    IN_A_GROUP,
    LATER,
    NOWHERE,
    OTHER_TYPE,
    OTHER_ZONE,
    RED_HAT,
)
from local_aws_scene import NODES, Template
from not_by_synth import NOT_BY_SYNTH, NOW, Harmless, Made, NeverStarted, NotBySynth, RolledBack
from spot_scene import spot_fleet
from template_changes import Change
from warm_scene import warm_nodes
from wrong_capacity import WRONG_CAPACITY
from wrong_launches import WRONG_LAUNCHES
from wrong_spot import WRONG_SPOT


def changed(change: Change) -> Callable[[], Template]:
    """Return what makes the small legal node group, changed."""

    def make() -> Template:
        template = copy.deepcopy(NODES)
        change(template)
        return template

    return make


WRONG: dict[str, Callable[[], Template]] = {
    **{name: make for name, make, _ in WRONG_CAPACITY},
    **{row.id: row.template for row in WRONG_SPOT},
    **{name: changed(change) for name, change, _ in WRONG_LAUNCHES},
}

_NOT_SOLD_AS_SPOT = "hpc6id.32xlarge"


@dataclass(frozen=True)
class ByTemplate:
    """A rule about templates finds it in the very template."""

    rule: str


@dataclass(frozen=True)
class BySettings:
    """The library's settings, where they say the same, are refused with this sentence."""

    settings: Callable[[], NodeGroup]
    sentence: str


@dataclass(frozen=True)
class ByWarning:
    """AWS may well carry it out: the settings that lead to it are warned of."""

    settings: Callable[[], NodeGroup]
    warning: str


BySynth = ByTemplate | BySettings | ByWarning


def nodes(capacity: Capacity, *types: str, **settings: Any) -> NodeGroup:
    return NodeGroup("workers", instance_types=types or [TYPE], count=1, capacity=capacity, **settings)


_ONE_ZONE = "what is reserved in a zone cannot be used in another; make the cluster there, or reserve here"
_GROUP, _FLEET = "AWS::AutoScaling::AutoScalingGroup", "AWS::EC2::SpotFleet"

# How synth refuses each wrong template; those that it cannot know to be wrong are in `not_by_synth`.
BY_SYNTH: dict[str, BySynth] = {
    # Reservations and what has to match
    "a reservation in another placement group of the template": ByTemplate("reservationPlacementGroup"),
    "a given reservation in somebody's placement group": ByWarning(
        lambda: nodes(Capacity.from_reservation(IN_A_GROUP), placement=Placement.CLUSTER),
        "reservationOutsidePlacementGroup",
    ),
    "a reservation in another zone": BySettings(
        lambda: nodes(Capacity.from_reservation(ELSEWHERE, availability_zone=OTHER_ZONE)),
        "node group 'workers': availability_zone of Capacity.from_reservation() must be the cluster's, us-east-1b, "
        f"got us-east-1a: {_ONE_ZONE}",
    ),
    "a reservation for another platform": BySettings(
        lambda: nodes(Capacity.from_reservation(RED_HAT, instance_platform="Red Hat Enterprise Linux")),
        "node group 'workers': instance_platform must be 'Linux/UNIX' for AWS's Deep Learning images, got 'Red Hat "
        "Enterprise Linux': an instance is launched into a reservation of its own platform only; give a "
        "machine_image of that platform, or leave instance_platform out",
    ),
    "a reservation of another tenancy": ByTemplate("reservationTenancy"),
    "more nodes than the reservation has": ByTemplate("reservationCount"),
    "a reservation's id that is none": BySettings(
        lambda: nodes(Capacity.from_reservation("cr-workers")),
        "capacity_reservation_id must be the id of a capacity reservation, such as 'cr-0a1b2c3d4e5f67890', got "
        "'cr-workers'",
    ),
    "two reservations for one group": ByTemplate("reservationTarget"),
    "a target that shall not be used": ByTemplate("reservationUnused"),
    # Reservations as EC2 makes them
    "a reservation in a spread placement group": ByTemplate("reservationStrategy"),
    "a reservation in no placement group that there is": ByTemplate("reservationPlacementGroup"),
    "a limited reservation without an end": ByTemplate("reservationEnd"),
    "a reservation of nothing": ByTemplate("reservationCount"),
    # Capacity Blocks
    "a block in a placement group": ByTemplate("blockPlacementGroup"),
    "a block in another zone": BySettings(
        lambda: nodes(Capacity.capacity_block(BLOCK_ELSEWHERE, availability_zone=OTHER_ZONE)),
        "node group 'workers': availability_zone of Capacity.capacity_block() must be the cluster's, us-east-1b, "
        f"got us-east-1a: {_ONE_ZONE}",
    ),
    "a block without its market type": ByTemplate("blockMarket"),
    "the market type of blocks without a block": ByTemplate("blockTarget"),
    "a block of a type that is not sold so": BySettings(
        lambda: nodes(Capacity.capacity_block(BLOCK), "g5.48xlarge"),
        "node group 'workers': instance_types must be sold as capacity-block for Capacity.capacity_block(), got "
        "g5.48xlarge, which is sold as on-demand, spot: choose another type, or buy it with Capacity.on_demand() or "
        "Capacity.spot()",
    ),
    "a block in a mixed group": ByTemplate("blockMixedGroup"),
    # Distribution segments and their resource group
    "segments with an On-Demand base": ByTemplate("segmentShares"),
    "segments with a strategy for Spot": ByTemplate("segmentSpot"),
    "segments without a target": ByTemplate("segmentTarget"),
    "segments with a target by id": ByTemplate("segmentTarget"),
    "segments with a preference of the group's own": ByTemplate("segmentPreference"),
    "segments without a preference": ByTemplate("segmentPreference"),
    "segments with a launch template for Spot": ByTemplate("segmentMarket"),
    "segments of nothing": ByTemplate("segmentTypes"),
    "segments of Spot": ByTemplate("segmentTypes"),
    "segments of a type twice": ByTemplate("segmentTypes"),
    "segments with blocks and a placement group": ByTemplate("segmentPlacementGroup"),
    "segments with On-Demand first": ByTemplate("segmentOrder"),
    "a resource group without its types": ByTemplate("resourceGroupConfiguration"),
    "a resource group that is no pool": ByTemplate("resourceGroupConfiguration"),
    # Spot
    "Spot in a placement group that stops": ByTemplate("spotInterruption"),
    "a Spot Fleet's word in an Auto Scaling group": ByTemplate("spotAllocationStrategy"),
    "a fleet with a hyphenated strategy": ByTemplate("fleetAllocationStrategy"),
    "a fleet with an image to be resolved": ByTemplate("fleetImage"),
    "a fleet with market options in its template": ByTemplate("fleetMarketOptions"),
    "a fleet in a placement group that stops on interruption": ByTemplate("fleetInterruption"),
    "a fleet in a placement group that hibernates on interruption": ByTemplate("fleetInterruption"),
    "a fleet of a type that is not sold as Spot": BySettings(
        lambda: nodes(Capacity.spot_fleet(), _NOT_SOLD_AS_SPOT),
        "node group 'workers': instance_types must be sold as spot for Capacity.spot_fleet(), got hpc6id.32xlarge, "
        "which is sold as on-demand: choose another type, or buy it with Capacity.on_demand()",
    ),
    "a fleet with a role that Spot Fleet cannot assume": ByTemplate("fleetRole"),
    "a fleet that tags its instances itself": ByTemplate("fleetTags"),
    "a fleet of the latest version": ByTemplate("launchTemplateVersion"),
    "a fleet that asks once, for nothing": ByTemplate("fleetType"),
    "a fleet with an interface that is there already": ByTemplate("fleetInterface"),
    "a Spot group of a type that is not sold as Spot": BySettings(
        lambda: nodes(Capacity.spot(), _NOT_SOLD_AS_SPOT),
        "node group 'workers': instance_types must be sold as spot for Capacity.spot(), got hpc6id.32xlarge, which "
        "is sold as on-demand: choose another type, or buy it with Capacity.on_demand()",
    ),
    "a Spot group with a fleet's spelling of the strategy": ByTemplate("spotAllocationStrategy"),
    # Warm pools
    "a warm pool for a Spot group": ByTemplate("warmPoolSpot"),
    "a warm pool for a template that requests Spot": ByTemplate("warmPoolSpot"),
    "a warm pool for a Capacity Block": ByTemplate("warmPoolBlock"),
    "a warm pool for distribution segments": ByTemplate("segmentWarmPool"),
    "a lifecycle hook that waits for too long": ByTemplate("hookTimeout"),
    # Launches
    "efa-only as the primary": ByTemplate("interfacePrimary"),
    "no primary interface": ByTemplate("interfacePrimary"),
    "a device twice": ByTemplate("interfaceDevice"),
    "a public address with several": ByTemplate("interfacePublicAddress"),
    "security groups at both levels": ByTemplate("interfaceSecurityGroups"),
    "a subnet in an interface": ByTemplate("interfaceSubnet"),
    "a type that EC2 does not know": BySettings(
        lambda: nodes(Capacity.on_demand(), "p9.48xlarge"),
        "node group 'workers': unknown instance type 'p9.48xlarge': did you mean p5.48xlarge, r9g.48xlarge or "
        "p5e.48xlarge? Facts for a type newer than the catalog, or with neither accelerator nor EFA, can be passed "
        "in as InstanceTypeInfo (instance_type_facts=[...]).",
    ),
    "a cluster placement group for t3": BySettings(
        lambda: nodes(Capacity.on_demand(), "vt1.24xlarge", placement=Placement.CLUSTER),
        "node group 'workers': vt1.24xlarge cannot be launched into a cluster placement group: set placement to "
        "Placement.NONE, or choose another type",
    ),
    "too much user data": BySettings(
        lambda: nodes(Capacity.on_demand(), environment={"LONG": "x" * 16385}),
        "node group 'workers': environment and scripts of a node group must leave the user data below 16384 "
        "bytes, got ",
    ),
    "Spot in a mixed group's template": ByTemplate("marketOptionsInMixedGroup"),
    "Spot for a type that has none": BySettings(
        lambda: nodes(Capacity.spot(), _NOT_SOLD_AS_SPOT),
        "node group 'workers': instance_types must be sold as spot for Capacity.spot(), got hpc6id.32xlarge, which "
        "is sold as on-demand: choose another type, or buy it with Capacity.on_demand()",
    ),
    "sizes the wrong way round": ByTemplate("groupSize"),
    "more desired than allowed": ByTemplate("groupSize"),
}
REFUSED: dict[str, BySynth | NotBySynth] = {**BY_SYNTH, **NOT_BY_SYNTH}


def each(kind: type[BySynth | NotBySynth]) -> pytest.MarkDecorator:
    rows = [(name, refusal) for name, refusal in REFUSED.items() if isinstance(refusal, kind)]
    return pytest.mark.parametrize(("name", "refusal"), rows, ids=[name for name, _ in rows])


def broken(template: Template) -> set[str]:
    """Return the rules that a template breaks once its groups and fleets are tagged as the library's."""
    tagged = copy.deepcopy(template)
    for resource in tagged["Resources"].values():
        if resource["Type"] in {_GROUP, _FLEET}:
            tags = resource["Properties"].setdefault("Tags", [])
            tags.append({"Key": NODE_GROUP_TAG, "Value": "workers"})
    return {rule.id for rule, _ in broken_rules(tagged)}


def test_every_wrong_template_says_how_it_is_refused_before() -> None:
    assert len(WRONG) == len(WRONG_CAPACITY) + len(WRONG_SPOT) + len(WRONG_LAUNCHES)
    assert len(REFUSED) == len(BY_SYNTH) + len(NOT_BY_SYNTH)
    assert sorted(REFUSED) == sorted(WRONG)


@pytest.mark.parametrize(
    "template",
    [reserved(), given(GIVEN), block(BLOCK), segments([GIVEN, BLOCK]), spot(), spot_fleet(), warm_nodes(), NODES],
    ids=["reserved", "given", "block", "segments", "spot", "fleet", "warm", "nodes"],
)
def test_the_templates_that_the_tables_change_break_no_rule(template: Template) -> None:
    # Some want a node at once, so that something is launched: that is no part of the mistakes.
    assert broken(template) <= {"groupSize"}


@each(ByTemplate)
def test_a_rule_finds_it_in_the_template(name: str, refusal: ByTemplate) -> None:
    assert refusal.rule in broken(WRONG[name]())


@each(BySettings)
def test_the_settings_that_lead_to_it_are_refused(name: str, refusal: BySettings) -> None:
    assert name in WRONG
    with pytest.raises(ValueError, match=rf"(?m)^{re.escape(refusal.sentence)}"):
        new_cluster(refusal.settings())


@each(ByWarning)
def test_the_settings_that_lead_to_it_are_warned_of(name: str, refusal: ByWarning) -> None:
    assert name in WRONG
    assert refusal.warning in node_group_warnings(refusal.settings())


@each(NeverStarted)
def test_the_power_function_does_not_start_it(name: str, refusal: NeverStarted) -> None:
    assert name in WRONG
    assert refusal.why
    assert find_phase(refusal.reservation, now=NOW, ends_early=timedelta(minutes=30)) is refusal.phase
    assert refusal.phase not in {Phase.OPEN, Phase.CLOSING}


@each(RolledBack)
def test_what_only_a_deployment_can_know_is_found_by_no_rule(name: str, refusal: RolledBack) -> None:
    assert refusal.why
    assert broken(WRONG[name]()) == set()


def new_cluster(*node_groups: NodeGroup) -> Stack:
    stack = Stack(App(), "Test", env=Environment(region="us-east-1"))
    TrainingCluster(stack, "Cluster", availability_zone=ZONE, node_groups=node_groups)
    return stack


@pytest.fixture(scope="module")
def made() -> Template:
    """What the library makes of settings whose mistake only EC2 can know."""
    bought = {
        "other-type": Capacity.from_reservation(OTHER_TYPE),
        "nowhere": Capacity.from_reservation(NOWHERE),
        "ended": Capacity.reservation(end=datetime(2020, 1, 1, tzinfo=UTC)),
        "unbegun": Capacity.prioritized(capacity_blocks=[LATER], on_demand=False),
        "missing": Capacity.prioritized(reservations=[GIVEN, NOWHERE]),
        "fleet": Capacity.spot_fleet(),
    }
    groups = [NodeGroup(name, instance_types=[TYPE], count=1, capacity=capacity) for name, capacity in bought.items()]
    return dict(Synthesized.from_stack(new_cluster(*groups)).to_json())


def owner_of(template: Template, node_group: str) -> Template:
    """Return the properties of the group or fleet of a node group."""
    found = [one["Properties"] for one in template["Resources"].values() if one["Type"] in {_GROUP, _FLEET}]
    (owner,) = [
        properties
        for properties in found
        if any(
            tag["Key"] == NODE_GROUP_TAG and tag["Value"] == node_group
            for tag in properties.get("Tags")
            or properties["SpotFleetRequestConfigData"]["TagSpecifications"][0]["Tags"]
        )
    ]
    return dict(owner)


@each(Harmless)
def test_what_only_ec2_can_know_is_made_harmless(name: str, refusal: Harmless, made: Template) -> None:
    assert name in WRONG
    assert refusal.why
    owner = owner_of(made, refusal.node_group)
    for path, expected in refusal.properties.items():
        value = value_at(owner, path)
        if isinstance(expected, Made):
            assert made["Resources"][target_of(value)]["Type"] == expected.type
        else:
            assert value == expected
