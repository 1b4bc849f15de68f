"""Legal templates, one for each way to buy: what the tables here change and expect to be refused."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from cdk_training_cluster.tags import NODE_GROUP_TAG

Template = dict[str, Any]

_TAGS = [{"Key": NODE_GROUP_TAG, "Value": "workers", "PropagateAtLaunch": True}]
_NAMED = {"LaunchTemplateId": {"Ref": "Launch"}, "Version": {"Fn::GetAtt": ["Launch", "LatestVersionNumber"]}}
_ARM = {"LaunchTemplateId": {"Ref": "Arm"}, "Version": {"Fn::GetAtt": ["Arm", "LatestVersionNumber"]}}
_PRIMARY = {"NetworkCardIndex": 0, "DeviceIndex": 0, "InterfaceType": "interface", "Groups": ["sg-1"]}
_EFA = {"NetworkCardIndex": 0, "DeviceIndex": 1, "InterfaceType": "efa-only", "Groups": ["sg-1"]}
_PLACEMENT = {"Type": "AWS::EC2::PlacementGroup", "Properties": {"Strategy": "cluster"}}
_PLACEMENT_ARN = {
    "Fn::Sub": [
        "arn:${AWS::Partition}:ec2:${AWS::Region}:${AWS::AccountId}:placement-group/${Name}",
        {"Name": {"Ref": "Placement"}},
    ]
}
_RESERVATION_ARN = {
    "Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, ":ec2:us-east-1:1:capacity-reservation/", {"Ref": "Booked"}]]
}
_BOOKED = {
    "Type": "AWS::EC2::CapacityReservation",
    "Properties": {
        "InstanceType": "p5.48xlarge",
        "InstanceCount": 4,
        "AvailabilityZone": "us-east-1b",
        "InstanceMatchCriteria": "targeted",
        "PlacementGroupArn": _PLACEMENT_ARN,
        "EndDateType": "limited",
        "EndDate": "2030-01-01T00:00:00Z",
        "TagSpecifications": [{"ResourceType": "capacity-reservation", "Tags": _TAGS}],
    },
}


def _launch(**data: Any) -> Template:
    shared = {"ImageId": {"Ref": "Image"}, "InstanceType": "p5.48xlarge", "NetworkInterfaces": [_PRIMARY, _EFA]}
    return {"Type": "AWS::EC2::LaunchTemplate", "Properties": {"LaunchTemplateData": {**shared, **data}}}


def _group(**properties: Any) -> Template:
    return {
        "Type": "AWS::AutoScaling::AutoScalingGroup",
        "UpdatePolicy": {"AutoScalingScheduledAction": {"IgnoreUnmodifiedGroupSizeProperties": True}},
        "Properties": {
            "MinSize": "0",
            "MaxSize": "4",
            "VPCZoneIdentifier": [{"Fn::ImportValue": "subnet"}],
            "Tags": _TAGS,
            **properties,
        },
    }


def _mixed(distribution: Template) -> Template:
    overrides = [{"InstanceType": "p5.48xlarge"}, {"InstanceType": "g5g.xlarge", "LaunchTemplateSpecification": _ARM}]
    return {
        "InstancesDistribution": distribution,
        "LaunchTemplate": {"LaunchTemplateSpecification": _NAMED, "Overrides": overrides},
    }


def _on_demand() -> Template:
    nodes = _group(LaunchTemplate=_NAMED, PlacementGroup={"Ref": "Placement"})
    pool = {"AutoScalingGroupName": {"Ref": "Nodes"}, "MaxGroupPreparedCapacity": 2, "MinSize": 0}
    hook = {"AutoScalingGroupName": {"Ref": "Nodes"}, "HeartbeatTimeout": 1800}
    return {
        "Launch": _launch(),
        "Placement": _PLACEMENT,
        "Other": _PLACEMENT,
        "Nodes": nodes,
        "Hook": {"Type": "AWS::AutoScaling::LifecycleHook", "Properties": hook},
        "Pool": {"Type": "AWS::AutoScaling::WarmPool", "Properties": pool},
    }


def _reservation() -> Template:
    reserved = {
        "CapacityReservationPreference": "capacity-reservations-only",
        "CapacityReservationTarget": {"CapacityReservationIds": [{"Ref": "Booked"}]},
    }
    nodes = _group(
        LaunchTemplate=_NAMED, PlacementGroup={"Ref": "Placement"}, CapacityReservationSpecification=reserved
    )
    return {
        "Launch": _launch(),
        "Placement": _PLACEMENT,
        "Other": _PLACEMENT,
        "Booked": _BOOKED,
        "Nodes": nodes,
    }


def _block() -> Template:
    launch = _launch(
        InstanceMarketOptions={"MarketType": "capacity-block"},
        CapacityReservationSpecification={"CapacityReservationTarget": {"CapacityReservationId": "cr-1"}},
    )
    return {"Launch": launch, "Placement": _PLACEMENT, "Nodes": _group(LaunchTemplate=_NAMED)}


def _spot() -> Template:
    distribution = {"OnDemandPercentageAboveBaseCapacity": 0, "SpotAllocationStrategy": "price-capacity-optimized"}
    nodes = _group(MixedInstancesPolicy=_mixed(distribution), CapacityRebalance=True)
    return {"Launch": _launch(), "Arm": _launch(InstanceType="g5g.xlarge"), "Nodes": nodes}


def _fleet() -> Template:
    config = {
        "AllocationStrategy": "priceCapacityOptimized",
        "Type": "maintain",
        "TargetCapacity": 0,
        "IamFleetRole": {"Fn::GetAtt": ["Role", "Arn"]},
        "InstanceInterruptionBehavior": "terminate",
        "LaunchTemplateConfigs": [{"LaunchTemplateSpecification": _NAMED, "Overrides": [{"SubnetId": "subnet-1"}]}],
        "TagSpecifications": [{"ResourceType": "spot-fleet-request", "Tags": _TAGS}],
    }
    fleet = {"Type": "AWS::EC2::SpotFleet", "Properties": {"SpotFleetRequestConfigData": config}}
    trust = {"Statement": [{"Principal": {"Service": "spotfleet.amazonaws.com"}, "Action": "sts:AssumeRole"}]}
    role = {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": trust}}
    return {"Launch": _launch(), "Role": role, "Fleet": fleet}


def _prioritized() -> Template:
    kinds = ["on-demand-capacity-reservation", "capacity-block", "on-demand"]
    segments = {"OnDemandAllocationStrategy": "prioritized", "DistributionSegments": [{"TargetCapacityTypes": kinds}]}
    reserved = {
        "CapacityReservationPreference": "default",
        "CapacityReservationTarget": {"CapacityReservationResourceGroupArns": [{"Fn::GetAtt": ["Pool", "Arn"]}]},
    }
    configuration = [
        {"Type": "AWS::EC2::CapacityReservationPool"},
        {
            "Type": "AWS::ResourceGroups::Generic",
            "Parameters": [{"Name": "allowed-resource-types", "Values": ["AWS::EC2::CapacityReservation"]}],
        },
    ]
    pool = {"Name": "pool", "Configuration": configuration, "Resources": [_RESERVATION_ARN]}
    return {
        "Launch": _launch(),
        "Arm": _launch(InstanceType="g5g.xlarge"),
        "Placement": _PLACEMENT,
        "Other": _PLACEMENT,
        "Booked": _BOOKED,
        "Pool": {"Type": "AWS::ResourceGroups::Group", "Properties": pool},
        "Nodes": _group(MixedInstancesPolicy=_mixed(segments), CapacityReservationSpecification=reserved),
    }


_LEGAL: dict[str, Callable[[], Template]] = {
    "on demand": _on_demand,
    "reservation": _reservation,
    "block": _block,
    "spot": _spot,
    "fleet": _fleet,
    "prioritized": _prioritized,
}


@pytest.fixture
def template() -> Callable[[str, Mapping[str, Any]], Template]:
    """Makes a legal template, changed: `Nodes.MinSize` is a property, `Nodes!UpdatePolicy` beside them; None goes."""

    def make(kind: str, changes: Mapping[str, Any]) -> Template:
        resources = copy.deepcopy(_LEGAL[kind]())
        for path, value in changes.items():
            _change(resources, _keys(path), copy.deepcopy(value))
        return {"Resources": resources}

    return make


def _keys(path: str) -> list[str]:
    logical_id, _, rest = path.partition(".")
    if "!" in path:
        return path.replace("!", ".").split(".")
    return [logical_id, "Properties", *rest.split(".")] if rest else [logical_id]


def _change(place: Any, keys: Sequence[str], value: Any) -> None:
    for key in keys[:-1]:
        place = place[int(key)] if isinstance(place, list) else place.setdefault(key, {})
    last: Any = int(keys[-1]) if isinstance(place, list) else keys[-1]
    if value is None:
        del place[last]
    else:
        place[last] = value
