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


def _two_targets() -> Template:
    template = reserved()
    template["Resources"]["Second"] = reservation()
    return _group(template, CapacityReservationSpecification=only({"Ref": "Reserved"}, {"Ref": "Second"}))


# Words of the reason that it fails to deploy for, and what makes the template.
WRONG_PURCHASES: dict[str, Callable[[], Template]] = {
    # Reservations and what has to match
    f"{_EXCEEDED}The Capacity Reservation {OTHER_TYPE} has another instance type.": lambda: given(OTHER_TYPE),
    f"{_EXCEEDED}It took 2 of 3 instances. Launching EC2 instance failed.": lambda: _group(
        reserved(), DesiredCapacity="3"
    ),
    "Only a single Capacity Reservation ID or Capacity Reservation Resource Group ARN is allowed": _two_targets,
    # Reservations as EC2 makes them
    "placement-group/mine] does not match pattern": lambda: reserved(
        PlacementGroupArn={"Fn::Sub": "arn:aws:ec2:us-east-1:${AWS::AccountId}:placement-group/mine"}
    ),
    "You must provide an EndDate value if EndDateType is limited.": lambda: reserved(EndDateType="limited"),
    "The EndDate 2020-01-01T00:00:00Z must be in the future.": lambda: reserved(
        EndDateType="limited", EndDate="2020-01-01T00:00:00Z"
    ),
    "0 is an invalid value for InstanceCount. InstanceCount must be between 1 and 1000.": lambda: reserved(
        InstanceCount=0
    ),
    # Capacity Blocks
    # Distribution segments and their resource group
    "#/CapacityReservationSpecification: required key [CapacityReservationPreference] not found": lambda: (
        _without_preference(segments([GIVEN]))
    ),
    "You cannot use a launch template that is set to request Spot Instances (InstanceMarketOptions)": lambda: _launch(
        segments([GIVEN]), InstanceMarketOptions={"MarketType": "spot"}
    ),
    "/TargetCapacityTypes/1: spot is not a valid enum value": lambda: segments(
        [GIVEN], ["on-demand-capacity-reservation", "spot"]
    ),
    f"{_EXCEEDED}It took 0 of 1 instances.": lambda: segments([LATER], ["capacity-block"]),
    "needs another one of the type AWS::ResourceGroups::Generic": lambda: _one_entry(0),
    "needs another one of the type AWS::EC2::CapacityReservationPool": lambda: _one_entry(1),
    f"capacity-reservation/{NOWHERE} does not exist.": lambda: segments([GIVEN, NOWHERE]),
    # Spot
    # Spot Fleets
    "EC2 Fleet and Spot Fleet do not support specifying a Systems Manager parameter.": lambda: _changed(
        spot_fleet(), launch(ImageId=f"resolve:ssm:{X86_IMAGE}")
    ),
    "The launch template must not have InstanceMarketOptions when it is used by a Spot Fleet": lambda: _changed(
        spot_fleet(), launch(InstanceMarketOptions={"MarketType": "spot"})
    ),
    "does not support the market type 'spot'": _fleet_of_a_type_without_spot,
    "Parameter: SpotFleetRequestConfig.IamFleetRole is invalid.": lambda: _fleet(
        IamFleetRole="arn:aws:iam::123456789012:role/nobody"
    ),
    "Error Code: InvalidSpotFleetRequestConfig": lambda: _changed(
        spot_fleet(), lambda template: template["Resources"].update(FleetRole=ROLE)
    ),
    "The value for `ResourceType` must be `spot-fleet-request`, but got `instance` instead.": lambda: _fleet(
        TagSpecifications=[{"ResourceType": "instance", "Tags": [{"Key": "a", "Value": "b"}]}]
    ),
    "CloudFormation does not support using $Latest or $Default for LaunchTemplate": _fleet_of_the_latest_version,
    "You cannot specify a network interface ID in a Spot Fleet.": lambda: _changed(
        spot_fleet(),
        launch(NetworkInterfaces=[{"DeviceIndex": 0, "NetworkInterfaceId": "eni-0123456789abcdef0"}]),
    ),
    # Warm pools
    "Warm pools do not support Spot Instances.": lambda: _changed(
        warm_nodes(), launch(InstanceMarketOptions={"MarketType": "spot"})
    ),
    "Warm pools are not supported when the launch template targets a Capacity Block.": lambda: _empty(
        kept_warm(block(BLOCK))
    ),
    "Warm pools are not supported with distribution segments.": lambda: _empty(kept_warm(segments([]))),
}
