"""A cluster of one node group, and the resources by which its nodes are bought."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from aws_cdk import Stack
from aws_cdk.assertions import Template

from cdk_training_cluster import NodeFleet, NodeGroup, TrainingCluster
from synthesis import ZONE, new_stack

GROUP, FLEET = "AWS::AutoScaling::AutoScalingGroup", "AWS::EC2::SpotFleet"
TEMPLATE, PLACEMENT = "AWS::EC2::LaunchTemplate", "AWS::EC2::PlacementGroup"
RESERVATION, RESERVATION_GROUP = "AWS::EC2::CapacityReservation", "AWS::ResourceGroups::Group"
WARM_POOL, HOOK = "AWS::AutoScaling::WarmPool", "AWS::AutoScaling::LifecycleHook"

_HARDWARE = (GROUP, FLEET, TEMPLATE, PLACEMENT, RESERVATION, RESERVATION_GROUP, WARM_POOL, HOOK)


@dataclass(frozen=True)
class FleetScene:
    """A synthesized cluster `pod` of the one node group `workers`."""

    stack: Stack
    cluster: TrainingCluster

    @property
    def fleet(self) -> NodeFleet:
        """The nodes."""
        return self.cluster.node_group("workers")

    @cached_property
    def template(self) -> dict[str, Any]:
        """The template's resources."""
        return dict(Template.from_stack(self.stack).to_json()["Resources"])

    def all(self, kind: str) -> dict[str, Any]:
        """The resources of a type, by logical id."""
        return {name: resource for name, resource in self.template.items() if resource["Type"] == kind}

    def only(self, kind: str) -> tuple[str, dict[str, Any]]:
        """The logical id and the properties of the one resource of a type."""
        ((name, resource),) = self.all(kind).items()
        return name, resource["Properties"]

    @property
    def kinds(self) -> list[str]:
        """The types of what buys the nodes: all that differs from call to call."""
        return sorted(resource["Type"] for resource in self.template.values() if resource["Type"] in _HARDWARE)

    def launch_data(self, name: str | None = None) -> dict[str, Any]:
        """The data of a launch template: of that name, or the only one."""
        properties = self.only(TEMPLATE)[1] if name is None else self.template[name]["Properties"]
        return dict(properties["LaunchTemplateData"])

    def user_data(self, name: str | None = None) -> str:
        """What sets the nodes of a launch template up, without what only the deployment knows."""
        parts = self.launch_data(name)["UserData"]["Fn::Base64"]["Fn::Join"][1]
        return "".join(part for part in parts if isinstance(part, str))

    def newest(self, template: str) -> dict[str, Any]:
        """How a group names the newest version of a launch template: by its number."""
        return {
            "LaunchTemplateId": {"Ref": template},
            "Version": {"Fn::GetAtt": [template, "LatestVersionNumber"]},
        }


def bought(stack: Stack | None = None, id: str = "Cluster", **settings: Any) -> FleetScene:
    """Make a cluster `pod` of 8 p5.48xlarge, unless told otherwise."""
    group = NodeGroup(**{"name": "workers", "instance_types": ["p5.48xlarge"], "count": 8, **settings})
    where = stack or new_stack()
    cluster = TrainingCluster(where, id, availability_zone=ZONE, node_groups=[group], cluster_name="pod")
    return FleetScene(where, cluster)


def cards(data: dict[str, Any]) -> list[tuple[int, int, str]]:
    """The interfaces of launch data: card, device and type of each; card 0 may be left out."""
    named = data["NetworkInterfaces"]
    return [(one.get("NetworkCardIndex", 0), one["DeviceIndex"], one["InterfaceType"]) for one in named]
