"""Templates that AWS accepts and bills without a message: each rule of templates, and where it finds it."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from capacity_templates import only, reserved
from cluster_contract.tags import NODE_GROUP_TAG
from local_aws_scene import Template, imported
from spot_scene import spot_fleet
from warm_scene import warm_nodes

IGNORE_SIZES = "Nodes.UpdatePolicy.AutoScalingScheduledAction.IgnoreUnmodifiedGroupSizeProperties"
SPECIFICATION = "Nodes.Properties.CapacityReservationSpecification"
PREFERENCE = f"{SPECIFICATION}.CapacityReservationPreference"
IDS = f"{SPECIFICATION}.CapacityReservationTarget.CapacityReservationIds"
TARGET_CAPACITY = "Fleet.Properties.SpotFleetRequestConfigData.TargetCapacity"
CRITERIA = "Reserved.Properties.InstanceMatchCriteria"
COUNT = "Reserved.Properties.InstanceCount"
_VERSION = ["Launch", "LatestVersionNumber"]
SHARED: Mapping[str, Any] = {
    "Others": {
        "Type": "AWS::AutoScaling::AutoScalingGroup",
        "Properties": {
            "MinSize": "0",
            "MaxSize": "3",
            "VPCZoneIdentifier": [imported("Subnet")],
            "LaunchTemplate": {"LaunchTemplateId": {"Ref": "Launch"}, "Version": {"Fn::GetAtt": _VERSION}},
            "Tags": [{"Key": NODE_GROUP_TAG, "Value": "others", "PropagateAtLaunch": True}],
            "CapacityReservationSpecification": only({"Ref": "Reserved"}),
        },
        "UpdatePolicy": {"AutoScalingScheduledAction": {"IgnoreUnmodifiedGroupSizeProperties": True}},
    }
}
SUBNET = {
    "Type": "AWS::EC2::Subnet",
    "Properties": {"VpcId": imported("Vpc"), "CidrBlock": "10.0.128.0/20", "AvailabilityZone": "us-east-1b"},
}
IN_SUBNET: Mapping[str, Any] = {"Own": SUBNET, "Nodes.Properties.VPCZoneIdentifier": [{"Ref": "Own"}]}


class Costly(NamedTuple):
    """A legal template, changed so that it breaks one rule.

    Attributes:
        rule: The rule.
        kind: Which legal template.
        changes: What is put where, by path from the resources on; None takes it away.
        found: Where the rule finds it. Empty: at the first change.
    """

    rule: str
    kind: str
    changes: Mapping[str, Any]
    found: str = ""


COSTLY = [
    Costly("groupSize", "warm", {"Nodes.Properties.MinSize": "1"}),
    Costly("groupSize", "warm", {"Nodes.Properties.DesiredCapacity": 1}),
    Costly("groupUpdatePolicy", "warm", {"Nodes.UpdatePolicy": None}, IGNORE_SIZES),
    Costly("groupUpdatePolicy", "warm", {IGNORE_SIZES: "false"}),
    Costly("fleetTarget", "fleet", {TARGET_CAPACITY: 1}),
    Costly("warmPoolSize", "warm", {"Warm.Properties.MaxGroupPreparedCapacity": None}),
    Costly("warmPoolSize", "warm", {"Warm.Properties.MaxGroupPreparedCapacity": -1}),
    Costly("reservationFallback", "reserved", {PREFERENCE: "default"}),
    Costly("reservationFallback", "reserved", {PREFERENCE: "capacity-reservations-first"}),
    Costly("reservationUntargeted", "reserved", {SPECIFICATION: None}, CRITERIA),
    Costly("reservationUnusable", "reserved", {"Reserved.Properties.AvailabilityZone": "us-east-1a", **IN_SUBNET}),
    Costly("reservationUnusable", "reserved", {"Reserved.Properties.InstanceType": "g5.48xlarge"}),
    Costly("reservationUnusable", "reserved", {"Reserved.Properties.Tenancy": "dedicated"}),
    Costly("reservationCount", "reserved", {COUNT: 1}),
    Costly("reservationCount", "reserved", {COUNT: "3"}),
    Costly("reservationCount", "reserved", {"Nodes.Properties.MaxSize": "4"}, COUNT),
    Costly("reservationCount", "reserved", SHARED, COUNT),
    Costly("reservationOpen", "reserved", {CRITERIA: "open"}),
    Costly("reservationOpen", "reserved", {CRITERIA: None}),
    Costly(
        "reservationNoPlacementGroup",
        "reserved",
        {"Nodes.Properties.PlacementGroup": {"Ref": "Placement"}},
        "Reserved.Properties.PlacementGroupArn",
    ),
]


def costly_name(row: Costly) -> str:
    return f"{row.rule}: {', '.join(row.changes)}"


_TAGS = [{"Key": NODE_GROUP_TAG, "Value": "workers"}]


def _fleet() -> Template:
    template = spot_fleet()
    config = template["Resources"]["Fleet"]["Properties"]["SpotFleetRequestConfigData"]
    config["TagSpecifications"][0]["Tags"] = _TAGS
    return template


def _reserved() -> Template:
    template = reserved(TagSpecifications=[{"ResourceType": "capacity-reservation", "Tags": _TAGS}])
    del template["Resources"]["Nodes"]["Properties"]["DesiredCapacity"]
    template["Resources"]["Nodes"]["Properties"]["MaxSize"] = "2"
    return template


LEGAL: Mapping[str, Callable[[], Template]] = {"warm": warm_nodes, "reserved": _reserved, "fleet": _fleet}


def changed(kind: str, changes: Mapping[str, Any]) -> Template:
    """Return a legal template as the library tags it, changed."""
    template = LEGAL[kind]()
    if "Nodes" in template["Resources"]:
        template["Resources"]["Nodes"]["Properties"]["Tags"] = [{**tag, "PropagateAtLaunch": True} for tag in _TAGS]
    for path, value in changes.items():
        place = template["Resources"]
        *keys, last = path.split(".")
        for key in keys:
            place = place.setdefault(key, {})
        if value is None:
            del place[last]
        else:
            place[last] = value
    return template
