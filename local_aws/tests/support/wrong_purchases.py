"""A table of templates that buy nodes in a way that AWS refuses, at the deployment or at the first launch."""

from collections.abc import Callable
from typing import Any

from capacity_templates import (
    block,
    given,
    group_of,
    launch_of,
    only,
    reservation,
    reserved,
    segments,
)
from given_capacity import (
    BLOCK,
    GIVEN,
    LATER,
    NOWHERE,
    OTHER_TYPE,
)
from local_aws_scene import ROLE, X86_IMAGE, Template
from spot_scene import fleet_config, in_subnet, spot_fleet
from template_changes import Change, launch
from warm_scene import kept_warm, warm_nodes

Row = tuple[str, Callable[[], Template], str]

_EXCEEDED = "The requested reservation does not have sufficient compatible and available capacity for this request. "
_PLACED = {"PlacementGroup": {"Ref": "Placement"}}


def _group(template: Template, **properties: Any) -> Template:
    group_of(template).update(properties)
    return template


def _launch(template: Template, **data: Any) -> Template:
    launch_of(template).update(data)
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


def _changed(template: Template, change: Change) -> Template:
    change(template)
    return template


def _fleet(**settings: Any) -> Template:
    return _changed(spot_fleet(), lambda template: fleet_config(template).update(settings))


def _fleet_of_the_latest_version() -> Template:
    template = spot_fleet()
    fleet_config(template)["LaunchTemplateConfigs"][0]["LaunchTemplateSpecification"]["Version"] = "$Latest"
    return template


def _fleet_of_a_type_without_spot() -> Template:
    template = _changed(spot_fleet(), launch(NetworkInterfaces=[in_subnet(0, "interface")]))
    fleet_config(template)["LaunchTemplateConfigs"][0]["Overrides"][1]["InstanceType"] = "hpc6id.32xlarge"
    return template


def _empty(template: Template) -> Template:
    del group_of(template)["DesiredCapacity"]
    return template


def _in_a_spread_group() -> Template:
    template = reserved()
    template["Resources"]["Placement"]["Properties"]["Strategy"] = "spread"
    return template


def _two_targets() -> Template:
    template = reserved()
    template["Resources"]["Second"] = reservation()
    return _group(template, CapacityReservationSpecification=only({"Ref": "Reserved"}, {"Ref": "Second"}))


# id, what makes the template, and words of the reason that it fails to deploy for.
WRONG_PURCHASES: list[Row] = [
    # Reservations and what has to match
    (
        "a reservation of another type",
        lambda: given(OTHER_TYPE),
        f"{_EXCEEDED}The Capacity Reservation {OTHER_TYPE} has another instance type.",
    ),
    (
        "more nodes than the reservation has",
        lambda: _group(reserved(), DesiredCapacity="3"),
        f"{_EXCEEDED}It took 2 of 3 instances. Launching EC2 instance failed.",
    ),
    (
        "two reservations for one group",
        _two_targets,
        "Only a single Capacity Reservation ID or Capacity Reservation Resource Group ARN is allowed",
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
    # Distribution segments and their resource group
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
        "segments of Spot",
        lambda: segments([GIVEN], ["on-demand-capacity-reservation", "spot"]),
        "/TargetCapacityTypes/1: spot is not a valid enum value",
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
    # Spot Fleets
    (
        "a fleet with an image to be resolved",
        lambda: _changed(spot_fleet(), launch(ImageId=f"resolve:ssm:{X86_IMAGE}")),
        "EC2 Fleet and Spot Fleet do not support specifying a Systems Manager parameter.",
    ),
    (
        "a fleet with market options in its template",
        lambda: _changed(spot_fleet(), launch(InstanceMarketOptions={"MarketType": "spot"})),
        "The launch template must not have InstanceMarketOptions when it is used by a Spot Fleet",
    ),
    (
        "a fleet of a type that is not sold as Spot",
        _fleet_of_a_type_without_spot,
        "does not support the market type 'spot'",
    ),
    (
        "a fleet without its role",
        lambda: _fleet(IamFleetRole="arn:aws:iam::123456789012:role/nobody"),
        "Parameter: SpotFleetRequestConfig.IamFleetRole is invalid.",
    ),
    (
        "a fleet with a role that Spot Fleet cannot assume",
        lambda: _changed(spot_fleet(), lambda template: template["Resources"].update(FleetRole=ROLE)),
        "Error Code: InvalidSpotFleetRequestConfig",
    ),
    (
        "a fleet that tags its instances itself",
        lambda: _fleet(TagSpecifications=[{"ResourceType": "instance", "Tags": [{"Key": "a", "Value": "b"}]}]),
        "The value for `ResourceType` must be `spot-fleet-request`, but got `instance` instead.",
    ),
    (
        "a fleet of the latest version",
        _fleet_of_the_latest_version,
        "CloudFormation does not support using $Latest or $Default for LaunchTemplate version.",
    ),
    (
        "a fleet that asks once, for nothing",
        lambda: _fleet(Type="request"),
        "Parameter: SpotFleetRequestConfig.TargetCapacity is invalid: 0.",
    ),
    (
        "a fleet with an interface that is there already",
        lambda: _changed(
            spot_fleet(),
            launch(NetworkInterfaces=[{"DeviceIndex": 0, "NetworkInterfaceId": "eni-0123456789abcdef0"}]),
        ),
        "You cannot specify a network interface ID in a Spot Fleet.",
    ),
    # Warm pools
    (
        "a warm pool for a template that requests Spot",
        lambda: _changed(warm_nodes(), launch(InstanceMarketOptions={"MarketType": "spot"})),
        "Warm pools do not support Spot Instances.",
    ),
    (
        "a warm pool for a Capacity Block",
        lambda: _empty(kept_warm(block(BLOCK))),
        "Warm pools are not supported when the launch template targets a Capacity Block.",
    ),
    (
        "a warm pool for distribution segments",
        lambda: _empty(kept_warm(segments([]))),
        "Warm pools are not supported with distribution segments.",
    ),
]
