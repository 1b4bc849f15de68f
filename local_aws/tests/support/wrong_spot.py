"""A table of Spot Fleets, Spot groups and warm pools that AWS refuses, each with the reason for it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from local_aws_scene import ROLE, X86_IMAGE, Template, imported, interface
from spot_scene import FLEET_ROLE, fleet_config, in_subnet, spot_fleet
from template_changes import Change, launch, properties
from warm_scene import warm_nodes

# A Capacity Block that the tests put there.
BLOCK = "cr-0b10c4b10c4b10c40"

_NOT_SOLD_AS_SPOT = "hpc6id.32xlarge"


@dataclass(frozen=True)
class WrongSpot:
    """One wrong template.

    Attributes:
        id: What is wrong, in a few words.
        base: Makes the legal template.
        change: Makes it wrong.
        logical_id: The resource that fails to deploy.
        words: Words of its reason.
    """

    id: str
    base: Callable[[], Template]
    change: Change
    logical_id: str
    words: str

    def template(self) -> Template:
        """The wrong template."""
        template = self.base()
        self.change(template)
        return template


def _fleet(**settings: Any) -> Change:
    return lambda template: fleet_config(template).update(settings)


def _in_a_placement_group(behavior: str) -> Change:
    def change(template: Template) -> None:
        template["Resources"]["Placement"] = {
            "Type": "AWS::EC2::PlacementGroup",
            "Properties": {"Strategy": "cluster"},
        }
        launch(Placement={"GroupName": {"Ref": "Placement"}})(template)
        fleet_config(template)["InstanceInterruptionBehavior"] = behavior

    return change


def _fleet_of(kind: str) -> Change:
    def change(template: Template) -> None:
        launch(NetworkInterfaces=[in_subnet(0, "interface")])(template)
        (config,) = fleet_config(template)["LaunchTemplateConfigs"]
        config["Overrides"][1]["InstanceType"] = kind

    return change


def _instance_level_subnet(template: Template) -> None:
    (config,) = fleet_config(template)["LaunchTemplateConfigs"]
    config["Overrides"][1]["SubnetId"] = imported("Subnet")


def _fleet_of_version(version: str) -> Change:
    def change(template: Template) -> None:
        (config,) = fleet_config(template)["LaunchTemplateConfigs"]
        config["LaunchTemplateSpecification"]["Version"] = version

    return change


def _role(role: dict[str, Any]) -> Change:
    return lambda template: template["Resources"].update(FleetRole=role)


def _trusting_ec2() -> dict[str, Any]:
    return {
        "Type": "AWS::IAM::Role",
        "Properties": {**FLEET_ROLE["Properties"], **_picked(ROLE["Properties"], "AssumeRolePolicyDocument")},
    }


def _picked(mapping: dict[str, Any], name: str) -> dict[str, Any]:
    return {name: mapping[name]}


def _spot_group(strategy: str = "price-capacity-optimized", **override: Any) -> Change:
    def change(template: Template) -> None:
        nodes = template["Resources"]["Nodes"]["Properties"]
        nodes.pop("PlacementGroup")
        nodes["MixedInstancesPolicy"] = {
            "InstancesDistribution": {
                "OnDemandBaseCapacity": 0,
                "OnDemandPercentageAboveBaseCapacity": 0,
                "SpotAllocationStrategy": strategy,
            },
            "LaunchTemplate": {
                "LaunchTemplateSpecification": nodes.pop("LaunchTemplate"),
                **({"Overrides": [override]} if override else {}),
            },
        }

    return change


def _spot_group_of(kind: str) -> Change:
    def change(template: Template) -> None:
        launch(NetworkInterfaces=[interface(0, 0, "interface")])(template)
        _spot_group(InstanceType=kind)(template)

    return change


def _spot_template(template: Template) -> None:
    launch(InstanceMarketOptions={"MarketType": "spot"})(template)


def _block_template(template: Template) -> None:
    template["Resources"]["Nodes"]["Properties"].pop("PlacementGroup")
    launch(
        InstanceMarketOptions={"MarketType": "capacity-block"},
        CapacityReservationSpecification={"CapacityReservationTarget": {"CapacityReservationId": BLOCK}},
    )(template)


def _segments(template: Template) -> None:
    resources = template["Resources"]
    resources["Reserved"] = {
        "Type": "AWS::ResourceGroups::Group",
        "Properties": {
            "Name": "wrong-spot",
            "Configuration": [
                {"Type": "AWS::EC2::CapacityReservationPool"},
                {
                    "Type": "AWS::ResourceGroups::Generic",
                    "Parameters": [
                        {"Name": "allowed-resource-types", "Values": ["AWS::EC2::CapacityReservation"]},
                    ],
                },
            ],
        },
    }
    nodes = resources["Nodes"]["Properties"]
    nodes.pop("PlacementGroup")
    nodes["CapacityReservationSpecification"] = {
        "CapacityReservationPreference": "default",
        "CapacityReservationTarget": {
            "CapacityReservationResourceGroupArns": [{"Fn::GetAtt": ["Reserved", "Arn"]}],
        },
    }
    nodes["MixedInstancesPolicy"] = {
        "InstancesDistribution": {
            "OnDemandAllocationStrategy": "prioritized",
            "DistributionSegments": [{"TargetCapacityTypes": ["on-demand-capacity-reservation", "on-demand"]}],
        },
        "LaunchTemplate": {
            "LaunchTemplateSpecification": nodes.pop("LaunchTemplate"),
            "Overrides": [{"InstanceType": "p4de.24xlarge"}],
        },
    }


WRONG_SPOT: tuple[WrongSpot, ...] = (
    # Spot Fleets
    WrongSpot(
        "a fleet with a hyphenated strategy",
        spot_fleet,
        _fleet(AllocationStrategy="price-capacity-optimized"),
        "Fleet",
        "#/SpotFleetRequestConfigData/AllocationStrategy: price-capacity-optimized is not a valid enum value",
    ),
    WrongSpot(
        "a fleet with an image to be resolved",
        spot_fleet,
        launch(ImageId=f"resolve:ssm:{X86_IMAGE}"),
        "Fleet",
        "EC2 Fleet and Spot Fleet do not support specifying a Systems Manager parameter.",
    ),
    WrongSpot(
        "a fleet with a subnet beside interfaces",
        spot_fleet,
        _instance_level_subnet,
        "Fleet",
        "Network interfaces and an instance-level subnet ID may not be specified on the same request",
    ),
    WrongSpot(
        "a fleet with market options in its template",
        spot_fleet,
        _spot_template,
        "Fleet",
        "The launch template must not have InstanceMarketOptions when it is used by a Spot Fleet",
    ),
    WrongSpot(
        "a fleet in a placement group that stops on interruption",
        spot_fleet,
        _in_a_placement_group("stop"),
        "Fleet",
        "Spot Instances that stop on interruption cannot be launched in a placement group.",
    ),
    WrongSpot(
        "a fleet in a placement group that hibernates on interruption",
        spot_fleet,
        _in_a_placement_group("hibernate"),
        "Fleet",
        "Spot Instances that hibernate on interruption cannot be launched in a placement group.",
    ),
    WrongSpot(
        "a fleet of a type that is not sold as Spot",
        spot_fleet,
        _fleet_of(_NOT_SOLD_AS_SPOT),
        "Fleet",
        "does not support the market type 'spot'",
    ),
    WrongSpot(
        "a fleet without its role",
        spot_fleet,
        _fleet(IamFleetRole="arn:aws:iam::123456789012:role/nobody"),
        "Fleet",
        "Parameter: SpotFleetRequestConfig.IamFleetRole is invalid.",
    ),
    WrongSpot(
        "a fleet with a role that Spot Fleet cannot assume",
        spot_fleet,
        _role(_trusting_ec2()),
        "Fleet",
        "Error Code: InvalidSpotFleetRequestConfig",
    ),
    WrongSpot(
        "a fleet that tags its instances itself",
        spot_fleet,
        _fleet(TagSpecifications=[{"ResourceType": "instance", "Tags": [{"Key": "a", "Value": "b"}]}]),
        "Fleet",
        "The value for `ResourceType` must be `spot-fleet-request`, but got `instance` instead.",
    ),
    WrongSpot(
        "a fleet of the latest version",
        spot_fleet,
        _fleet_of_version("$Latest"),
        "Fleet",
        "CloudFormation does not support using $Latest or $Default for LaunchTemplate version.",
    ),
    WrongSpot(
        "a fleet that asks once, for nothing",
        spot_fleet,
        _fleet(Type="request"),
        "Fleet",
        "Parameter: SpotFleetRequestConfig.TargetCapacity is invalid: 0.",
    ),
    WrongSpot(
        "a fleet with an interface that is there already",
        spot_fleet,
        launch(NetworkInterfaces=[{"DeviceIndex": 0, "NetworkInterfaceId": "eni-0123456789abcdef0"}]),
        "Fleet",
        "You cannot specify a network interface ID in a Spot Fleet.",
    ),
    # Spot in Auto Scaling groups
    WrongSpot(
        "a Spot group of a type that is not sold as Spot",
        warm_nodes,
        _spot_group_of(_NOT_SOLD_AS_SPOT),
        "Nodes",
        "does not support the market type 'spot'",
    ),
    WrongSpot(
        "a Spot group with a fleet's spelling of the strategy",
        warm_nodes,
        _spot_group("priceCapacityOptimized"),
        "Nodes",
        "SpotAllocationStrategy priceCapacityOptimized is not valid.",
    ),
    # Warm pools
    WrongSpot(
        "a warm pool for a Spot group",
        warm_nodes,
        _spot_group(),
        "Warm",
        "Warm pools do not support Spot Instances.",
    ),
    WrongSpot(
        "a warm pool for a template that requests Spot",
        warm_nodes,
        _spot_template,
        "Warm",
        "Warm pools do not support Spot Instances.",
    ),
    WrongSpot(
        "a warm pool for a Capacity Block",
        warm_nodes,
        _block_template,
        "Warm",
        "Warm pools are not supported when the launch template targets a Capacity Block.",
    ),
    WrongSpot(
        "a warm pool for distribution segments",
        warm_nodes,
        _segments,
        "Warm",
        "Warm pools are not supported with distribution segments.",
    ),
    WrongSpot(
        "a lifecycle hook that waits for too long",
        warm_nodes,
        properties("Hook", HeartbeatTimeout=7201),
        "Hook",
        "HeartbeatTimeout must be from 30 to 7200 seconds: 7201",
    ),
)
