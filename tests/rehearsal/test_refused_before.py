"""Each wrong template that the local AWS refuses is refused by synth first, or something else keeps it harmless."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aws_cdk import App, Environment, Stack
from aws_cdk.assertions import Template as Synthesized

from capacity_templates import TYPE, ZONE, block, given, reserved, segments, spot
from cdk_training_cluster import Capacity, NodeGroup, Placement, TrainingCluster
from cdk_training_cluster.nodes.rules import node_group_problems, node_group_warnings
from cdk_training_cluster.tags import NODE_GROUP_TAG
from cdk_training_cluster.template_rules import broken_rules
from cdk_training_cluster.template_rules.values import target_of, value_at
from cluster_power.reservations import Reservation
from cluster_power.windows import Phase, find_phase
from given_capacity import (
    BLOCK,
    BLOCK_ELSEWHERE,
    ELSEWHERE,
    ENDING,
    GIVEN,
    IN_A_GROUP,
    LATER,
    NOWHERE,
    OTHER_TYPE,
    OTHER_ZONE,
    OVER,
    RED_HAT,
)
from local_aws_scene import Template
from spot_scene import spot_fleet
from warm_scene import warm_nodes
from wrong_capacity import WRONG_CAPACITY
from wrong_spot import WRONG_SPOT

WRONG: dict[str, Callable[[], Template]] = {
    **{name: make for name, make, _ in WRONG_CAPACITY},
    **{row.id: row.template for row in WRONG_SPOT},
}

_NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
_HOUR = timedelta(hours=1)
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


@dataclass(frozen=True)
class NeverStarted:
    """Only EC2 knows, at the time: the power function reads it there and starts no node."""

    reservation: Reservation
    phase: Phase


@dataclass(frozen=True)
class Harmless:
    """Only EC2 knows, and nobody before: what the library makes keeps it from being billed.

    Attributes:
        why: What keeps it harmless.
        node_group: The node group of it in the cluster that is made here.
        properties: What its group or fleet has, by path; a `Made` where it must refer to what the template makes.
    """

    why: str
    node_group: str
    properties: Mapping[str, Any]


@dataclass(frozen=True)
class Made:
    """A resource of this type in the same template."""

    type: str


Refusal = ByTemplate | BySettings | ByWarning | NeverStarted | Harmless


def nodes(capacity: Capacity, *types: str, **settings: Any) -> NodeGroup:
    return NodeGroup("workers", instance_types=types or [TYPE], count=1, capacity=capacity, **settings)


def _block(id: str, state: str, *, starts: timedelta, ends: timedelta) -> Reservation:
    return Reservation(id=id, state=state, instances=4, zone=ZONE, starts=_NOW + starts, ends=_NOW + ends)


_ONE_ZONE = "what is reserved in a zone cannot be used in another; make the cluster there, or reserve here"
_EMPTY_GROUP = {"MinSize": "0", "DesiredCapacity": None}
_RESERVED = "CapacityReservationSpecification"
_TARGET = f"{_RESERVED}.CapacityReservationTarget"
_SEGMENTS = "MixedInstancesPolicy.InstancesDistribution.DistributionSegments"


def _launches_only_into(reservation: str) -> dict[str, Any]:
    return {
        **_EMPTY_GROUP,
        f"{_RESERVED}.CapacityReservationPreference": "capacity-reservations-only",
        f"{_TARGET}.CapacityReservationIds": [reservation],
    }


_GROUP, _FLEET = "AWS::AutoScaling::AutoScalingGroup", "AWS::EC2::SpotFleet"
_CONFIG = "SpotFleetRequestConfigData"
_EMPTY = (
    "the group is made empty and launches into this reservation only: the deployment does not wait, nothing else is "
    "billed, and the power function says why no node starts"
)
_BEFORE = "the group refers to what EC2 refuses to make: CloudFormation rolls back before there is a group"

# How synth refuses each wrong template, or why it cannot, and what keeps that harmless.
REFUSED: dict[str, Refusal] = {
    # Reservations and what has to match
    "a reservation in another placement group of the template": ByTemplate("reservationPlacementGroup"),
    "a given reservation in somebody's placement group": ByWarning(
        lambda: nodes(Capacity.from_reservation(IN_A_GROUP), placement=Placement.CLUSTER),
        "reservationOutsidePlacementGroup",
    ),
    "a reservation of another type": Harmless(_EMPTY, "other-type", _launches_only_into(OTHER_TYPE)),
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
    "a reservation that is not there": Harmless(_EMPTY, "nowhere", _launches_only_into(NOWHERE)),
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
    "a reservation that has ended before it is made": Harmless(
        f"a synth reads no clock; {_BEFORE}",
        "ended",
        {f"{_TARGET}.CapacityReservationIds.0": Made("AWS::EC2::CapacityReservation")},
    ),
    "a reservation of nothing": ByTemplate("reservationCount"),
    # Capacity Blocks
    "a block in a placement group": ByTemplate("blockPlacementGroup"),
    "a block before its start": NeverStarted(
        _block(LATER, "scheduled", starts=_HOUR, ends=9 * _HOUR),
        Phase.BEFORE,
    ),
    "a block after its end": NeverStarted(
        _block(OVER, "expired", starts=-9 * _HOUR, ends=-_HOUR),
        Phase.UNUSABLE,
    ),
    "a block that AWS is clearing": NeverStarted(
        _block(ENDING, "active", starts=-9 * _HOUR, ends=_HOUR / 3),
        Phase.OVER,
    ),
    "a block in another zone": BySettings(
        lambda: nodes(Capacity.capacity_block(BLOCK_ELSEWHERE, availability_zone=OTHER_ZONE)),
        "node group 'workers': availability_zone of Capacity.capacity_block() must be the cluster's, us-east-1b, "
        f"got us-east-1a: {_ONE_ZONE}",
    ),
    "a block without its market type": ByTemplate("blockMarket"),
    "the market type of blocks without a block": ByTemplate("blockTarget"),
    "the market type of blocks with a reservation": NeverStarted(
        Reservation(id=GIVEN, state="active", instances=2, zone=ZONE, starts=_NOW - _HOUR, plain=True), Phase.UNUSABLE
    ),
    "a block of a type that is not sold so": BySettings(
        lambda: nodes(Capacity.capacity_block(BLOCK), "g5.48xlarge"),
        "node group 'workers': g5.48xlarge cannot be bought with Capacity.capacity_block(): its usage classes are "
        "on-demand, spot",
    ),
    "a block in a mixed group": ByTemplate("blockMixedGroup"),
    # Distribution segments and their resource group
    "segments with an On-Demand base": ByTemplate("segmentShares"),
    "segments with a strategy for Spot": ByTemplate("segmentSpot"),
    "segments without a target": ByTemplate("segmentTarget"),
    "segments with a target by id": ByTemplate("segmentTarget"),
    "segments with a preference of the group's own": ByTemplate("segmentPreference"),
    "segments with blocks and a placement group": ByTemplate("segmentPlacementGroup"),
    "segments with On-Demand first": ByTemplate("segmentOrder"),
    "segments of a block that has not begun": Harmless(
        _EMPTY, "unbegun", {**_EMPTY_GROUP, f"{_SEGMENTS}.0.TargetCapacityTypes": ["capacity-block"]}
    ),
    "a resource group without its types": ByTemplate("resourceGroupConfiguration"),
    "a resource group that is no pool": ByTemplate("resourceGroupConfiguration"),
    "a resource group of a reservation that is not there": Harmless(
        _BEFORE,
        "missing",
        {f"{_TARGET}.CapacityReservationResourceGroupArns.0": Made("AWS::ResourceGroups::Group")},
    ),
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
        "node group 'workers': hpc6id.32xlarge cannot be bought with Capacity.spot_fleet(): its usage classes are "
        "on-demand",
    ),
    "a fleet without its role": Harmless(
        "the library makes the role, and one of somebody's own is not visible; EC2 refuses the request as a whole",
        "fleet",
        {f"{_CONFIG}.IamFleetRole": Made("AWS::IAM::Role")},
    ),
    "a fleet with a role that Spot Fleet cannot assume": ByTemplate("fleetRole"),
    "a fleet that tags its instances itself": ByTemplate("fleetTags"),
    "a fleet of the latest version": ByTemplate("launchTemplateVersion"),
    "a fleet that asks once, for nothing": ByTemplate("fleetType"),
    "a fleet with an interface that is there already": ByTemplate("fleetInterface"),
    "a Spot group of a type that is not sold as Spot": BySettings(
        lambda: nodes(Capacity.spot(), _NOT_SOLD_AS_SPOT),
        "node group 'workers': hpc6id.32xlarge cannot be bought with Capacity.spot(): its usage classes are "
        "on-demand",
    ),
    "a Spot group with a fleet's spelling of the strategy": ByTemplate("spotAllocationStrategy"),
    # Warm pools
    "a warm pool for a Spot group": ByTemplate("warmPoolSpot"),
    "a warm pool for a template that requests Spot": ByTemplate("warmPoolSpot"),
    "a warm pool for a Capacity Block": ByTemplate("warmPoolBlock"),
    "a warm pool for distribution segments": ByTemplate("segmentWarmPool"),
    "a lifecycle hook that waits for too long": ByTemplate("hookTimeout"),
}


def each(kind: type[Refusal]) -> pytest.MarkDecorator:
    rows = [(name, refusal) for name, refusal in REFUSED.items() if isinstance(refusal, kind)]
    return pytest.mark.parametrize(("name", "refusal"), rows, ids=[name for name, _ in rows])


def broken(template: Template) -> set[str]:
    """Return the rules that a template breaks once its groups and fleets are tagged as the library's.

    The rehearsal's templates want a node at once, so that something is launched: that is no part of the mistake.
    """
    for resource in template["Resources"].values():
        if resource["Type"] in {_GROUP, _FLEET}:
            tags = resource["Properties"].setdefault("Tags", [])
            tags.append({"Key": NODE_GROUP_TAG, "Value": "workers"})
    return {rule.id for rule, _ in broken_rules(template)} - {"groupSize"}


def test_every_wrong_template_says_how_it_is_refused_before() -> None:
    assert len(WRONG) == len(WRONG_CAPACITY) + len(WRONG_SPOT)
    assert list(REFUSED) == list(WRONG)


@pytest.mark.parametrize(
    "template",
    [reserved(), given(GIVEN), block(BLOCK), segments([GIVEN, BLOCK]), spot(), spot_fleet(), warm_nodes()],
    ids=["reserved", "given", "block", "segments", "spot", "fleet", "warm"],
)
def test_the_templates_that_the_tables_change_break_no_rule(template: Template) -> None:
    assert broken(template) == set()


@each(ByTemplate)
def test_a_rule_finds_it_in_the_template(name: str, refusal: ByTemplate) -> None:
    assert refusal.rule in broken(WRONG[name]())


@each(BySettings)
def test_the_settings_that_lead_to_it_are_refused(name: str, refusal: BySettings) -> None:
    assert name in WRONG
    try:
        found = node_group_problems(refusal.settings(), availability_zone=ZONE)
    except ValueError as error:
        found = str(error).splitlines()
    assert refusal.sentence in found


@each(ByWarning)
def test_the_settings_that_lead_to_it_are_warned_of(name: str, refusal: ByWarning) -> None:
    assert name in WRONG
    assert refusal.warning in node_group_warnings(refusal.settings())


@each(NeverStarted)
def test_the_power_function_does_not_start_it(name: str, refusal: NeverStarted) -> None:
    assert name in WRONG
    assert find_phase(refusal.reservation, now=_NOW, ends_early=_HOUR / 2) is refusal.phase
    assert refusal.phase not in {Phase.OPEN, Phase.CLOSING}


@pytest.fixture(scope="module")
def made() -> Template:
    """What the library makes of settings whose mistake only EC2 can know."""
    stack = Stack(App(), "Test", env=Environment(region="us-east-1"))
    bought = {
        "other-type": Capacity.from_reservation(OTHER_TYPE),
        "nowhere": Capacity.from_reservation(NOWHERE),
        "ended": Capacity.reservation(end=datetime(2020, 1, 1, tzinfo=UTC)),
        "unbegun": Capacity.prioritized(capacity_blocks=[LATER], on_demand=False),
        "missing": Capacity.prioritized(reservations=[GIVEN, NOWHERE]),
        "fleet": Capacity.spot_fleet(),
    }
    groups = [NodeGroup(name, instance_types=[TYPE], count=1, capacity=capacity) for name, capacity in bought.items()]
    TrainingCluster(stack, "Cluster", availability_zone=ZONE, node_groups=groups)
    return dict(Synthesized.from_stack(stack).to_json())


def owner_of(template: Template, node_group: str) -> Template:
    """Return the properties of the group or fleet of a node group."""
    found = [one["Properties"] for one in template["Resources"].values() if one["Type"] in {_GROUP, _FLEET}]
    (owner,) = [
        properties
        for properties in found
        if any(
            tag["Key"] == NODE_GROUP_TAG and tag["Value"] == node_group
            for tag in properties.get("Tags") or properties[_CONFIG]["TagSpecifications"][0]["Tags"]
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
