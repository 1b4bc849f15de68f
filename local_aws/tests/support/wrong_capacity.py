"""A table of templates that ask for capacity in a way that AWS refuses, at the deployment or at the first launch."""

from collections.abc import Callable
from typing import Any

from capacity_templates import (
    block,
    given,
    group_of,
    launch_of,
    mixed,
    only,
    placement_group_arn,
    reservation,
    reserved,
    segments,
    spot,
)
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
    OVER,
    RED_HAT,
)
from local_aws_scene import Template

Row = tuple[str, Callable[[], Template], str]

_EXCEEDED = "The requested reservation does not have sufficient compatible and available capacity for this request. "
_PLACED = {"PlacementGroup": {"Ref": "Placement"}}


def _group(template: Template, **properties: Any) -> Template:
    group_of(template).update(properties)
    return template


def _launch(template: Template, **data: Any) -> Template:
    launch_of(template).update(data)
    return template


def _without_market(template: Template) -> Template:
    del launch_of(template)["InstanceMarketOptions"]
    return template


def _without_target(template: Template) -> Template:
    group_of(template)["CapacityReservationSpecification"].pop("CapacityReservationTarget")
    return template


def _without_preference(template: Template) -> Template:
    group_of(template)["CapacityReservationSpecification"].pop("CapacityReservationPreference")
    return template


def _pool(template: Template, **properties: Any) -> Template:
    template["Resources"]["Pool"]["Properties"].update(properties)
    return template


def _one_entry(entry: int) -> Template:
    template = segments([GIVEN])
    configuration = template["Resources"]["Pool"]["Properties"]["Configuration"]
    return _pool(template, Configuration=[configuration[entry]])


def _in_another_placement_group() -> Template:
    template = reserved(PlacementGroupArn=placement_group_arn("Other"))
    template["Resources"]["Other"] = {"Type": "AWS::EC2::PlacementGroup", "Properties": {"Strategy": "cluster"}}
    return template


def _in_a_spread_group() -> Template:
    template = reserved()
    template["Resources"]["Placement"]["Properties"]["Strategy"] = "spread"
    return template


def _two_targets() -> Template:
    template = reserved()
    template["Resources"]["Second"] = reservation()
    return _group(template, CapacityReservationSpecification=only({"Ref": "Reserved"}, {"Ref": "Second"}))


def _spot_that_stops() -> Template:
    template = given(GIVEN)
    del group_of(template)["CapacityReservationSpecification"]
    options = {"InstanceInterruptionBehavior": "stop", "SpotInstanceType": "persistent"}
    _launch(template, InstanceMarketOptions={"MarketType": "spot", "SpotOptions": options})
    return _group(template, **_PLACED)


# id, what makes the template, and words of the reason that it fails to deploy for.
WRONG_CAPACITY: list[Row] = [
    # Reservations and what has to match
    (
        "a reservation in another placement group of the template",
        _in_another_placement_group,
        "has another placement group.",
    ),
    (
        "a given reservation in somebody's placement group",
        lambda: _group(given(IN_A_GROUP), **_PLACED),
        f"The Capacity Reservation {IN_A_GROUP} has another placement group.",
    ),
    (
        "a reservation of another type",
        lambda: given(OTHER_TYPE),
        f"{_EXCEEDED}The Capacity Reservation {OTHER_TYPE} has another instance type.",
    ),
    (
        "a reservation in another zone",
        lambda: given(ELSEWHERE),
        f"{_EXCEEDED}The Capacity Reservation {ELSEWHERE} has another Availability Zone.",
    ),
    (
        "a reservation for another platform",
        lambda: given(RED_HAT),
        f"{_EXCEEDED}The Capacity Reservation {RED_HAT} has another platform.",
    ),
    (
        "a reservation of another tenancy",
        lambda: reserved(Tenancy="dedicated"),
        "has another tenancy.",
    ),
    (
        "more nodes than the reservation has",
        lambda: _group(reserved(), DesiredCapacity="3"),
        f"{_EXCEEDED}It took 2 of 3 instances. Launching EC2 instance failed.",
    ),
    (
        "a reservation that is not there",
        lambda: given(NOWHERE),
        f"The specified Capacity Reservation ID '{NOWHERE}' does not exist. "
        "(EC2 error code: InvalidCapacityReservationId.NotFound)",
    ),
    (
        "a reservation's id that is none",
        lambda: given("cr-workers"),
        "(EC2 error code: InvalidCapacityReservationId.Malformed)",
    ),
    (
        "two reservations for one group",
        _two_targets,
        "Only a single Capacity Reservation ID or Capacity Reservation Resource Group ARN is allowed",
    ),
    (
        "a target that shall not be used",
        lambda: _group(
            reserved(),
            CapacityReservationSpecification=only({"Ref": "Reserved"}) | {"CapacityReservationPreference": "none"},
        ),
        "You cannot specify a CapacityReservationTarget when the CapacityReservationPreference is none.",
    ),
    # Reservations as EC2 makes them
    (
        "a reservation in a spread placement group",
        _in_a_spread_group,
        "Capacity Reservations can be created in cluster placement groups only",
    ),
    (
        "a reservation in no placement group that there is",
        lambda: reserved(PlacementGroupArn={"Fn::Sub": "arn:aws:ec2:us-east-1:${AWS::AccountId}:placement-group/no"}),
        "Error Code: InvalidPlacementGroup.Unknown",
    ),
    (
        "a limited reservation without an end",
        lambda: reserved(EndDateType="limited"),
        "You must provide an EndDate value if EndDateType is limited.",
    ),
    (
        "a reservation that has ended before it is made",
        lambda: reserved(EndDateType="limited", EndDate="2020-01-01T00:00:00Z"),
        "The EndDate 2020-01-01T00:00:00Z must be in the future.",
    ),
    (
        "a reservation of nothing",
        lambda: reserved(InstanceCount=0),
        "0 is an invalid value for InstanceCount. InstanceCount must be between 1 and 1000.",
    ),
    # Capacity Blocks
    (
        "a block in a placement group",
        lambda: _group(block(BLOCK), **_PLACED),
        "Capacity Blocks do not support placement groups.",
    ),
    (
        "a block before its start",
        lambda: block(LATER),
        f"Your Capacity Block reservation {LATER} is not active yet. Launching EC2 instance failed.",
    ),
    (
        "a block after its end",
        lambda: block(OVER),
        f"{_EXCEEDED}The Capacity Reservation {OVER} is expired.",
    ),
    (
        "a block that AWS is clearing",
        lambda: block(ENDING),
        f"{_EXCEEDED}The Capacity Block {ENDING} is about to end.",
    ),
    (
        "a block in another zone",
        lambda: block(BLOCK_ELSEWHERE),
        f"{_EXCEEDED}The Capacity Reservation {BLOCK_ELSEWHERE} has another Availability Zone.",
    ),
    (
        "a block without its market type",
        lambda: _without_market(block(BLOCK)),
        "The market type (purchasing) option is not valid. Choose a different market type and try again.",
    ),
    (
        "the market type of blocks without a block",
        lambda: _launch(block(BLOCK), CapacityReservationSpecification={}),
        "The market type capacity-block needs a CapacityReservationTarget.",
    ),
    (
        "the market type of blocks with a reservation",
        lambda: block(GIVEN),
        "The market type (purchasing) option is not valid. Choose a different market type and try again.",
    ),
    (
        "a block of a type that is not sold so",
        lambda: _launch(block(BLOCK), InstanceType="g5.48xlarge", NetworkInterfaces=[]),
        "does not support the market type 'capacity-block'",
    ),
    (
        "a block in a mixed group",
        lambda: mixed(block(BLOCK)),
        "when you configure an Auto Scaling group with a mixed instances policy.",
    ),
    # Distribution segments and their resource group
    (
        "segments with an On-Demand base",
        lambda: segments([GIVEN], OnDemandBaseCapacity=0),
        "You cannot specify OnDemandBaseCapacity with DistributionSegments.",
    ),
    (
        "segments with a strategy for Spot",
        lambda: segments([GIVEN], SpotAllocationStrategy="price-capacity-optimized"),
        "You cannot specify SpotAllocationStrategy with DistributionSegments.",
    ),
    (
        "segments without a target",
        lambda: _without_target(segments([GIVEN])),
        "DistributionSegments need a Capacity Reservation Resource Group ARN as the CapacityReservationTarget.",
    ),
    (
        "segments with a target by id",
        lambda: _group(
            segments([GIVEN]),
            CapacityReservationSpecification=only(GIVEN) | {"CapacityReservationPreference": "default"},
        ),
        "DistributionSegments need a Capacity Reservation Resource Group ARN as the CapacityReservationTarget.",
    ),
    (
        "segments with a preference of the group's own",
        lambda: _group(
            segments([GIVEN]),
            CapacityReservationSpecification={"CapacityReservationPreference": "capacity-reservations-only"},
        ),
        "DistributionSegments support only the CapacityReservationPreference default",
    ),
    (
        "segments without a preference",
        lambda: _without_preference(segments([GIVEN])),
        "#/CapacityReservationSpecification: required key [CapacityReservationPreference] not found",
    ),
    (
        "segments with a launch template for Spot",
        lambda: _launch(segments([GIVEN]), InstanceMarketOptions={"MarketType": "spot"}),
        "You cannot use a launch template that is set to request Spot Instances (InstanceMarketOptions)",
    ),
    (
        "segments of nothing",
        lambda: segments([GIVEN], []),
        "/TargetCapacityTypes: expected minimum item count: 1, found: 0",
    ),
    (
        "segments of Spot",
        lambda: segments([GIVEN], ["on-demand-capacity-reservation", "spot"]),
        "/TargetCapacityTypes/1: spot is not a valid enum value",
    ),
    (
        "segments of a type twice",
        lambda: segments([GIVEN], ["on-demand", "on-demand"]),
        "/TargetCapacityTypes: array items are not unique",
    ),
    (
        "segments with blocks and a placement group",
        lambda: _group(segments([BLOCK], ["capacity-block"]), **_PLACED),
        "Capacity Blocks do not support placement groups",
    ),
    (
        "segments with On-Demand first",
        lambda: segments([GIVEN], ["on-demand", "on-demand-capacity-reservation"]),
        "on-demand must be the last of the TargetCapacityTypes",
    ),
    (
        "segments of a block that has not begun",
        lambda: segments([LATER], ["capacity-block"]),
        f"{_EXCEEDED}It took 0 of 1 instances.",
    ),
    (
        "a resource group without its types",
        lambda: _one_entry(0),
        "needs another one of the type AWS::ResourceGroups::Generic",
    ),
    (
        "a resource group that is no pool",
        lambda: _one_entry(1),
        "needs another one of the type AWS::EC2::CapacityReservationPool",
    ),
    (
        "a resource group of a reservation that is not there",
        lambda: segments([GIVEN, NOWHERE]),
        f"capacity-reservation/{NOWHERE} does not exist.",
    ),
    # Spot
    (
        "Spot in a placement group that stops",
        _spot_that_stops,
        "Spot Instances that stop on interruption cannot be launched in a placement group.",
    ),
    (
        "a Spot Fleet's word in an Auto Scaling group",
        lambda: spot(SpotAllocationStrategy="priceCapacityOptimized"),
        "SpotAllocationStrategy priceCapacityOptimized is not valid.",
    ),
]
