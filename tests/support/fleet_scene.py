"""Node groups by themselves, in one network, and the resources by which their nodes are bought."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Template

from cdk_training_cluster import ClusterNetwork, NodeFleet, NodeGroup
from synthesis import ZONE, new_stack

GROUP, FLEET = "AWS::AutoScaling::AutoScalingGroup", "AWS::EC2::SpotFleet"
TEMPLATE, PLACEMENT = "AWS::EC2::LaunchTemplate", "AWS::EC2::PlacementGroup"
RESERVATION, RESERVATION_GROUP = "AWS::EC2::CapacityReservation", "AWS::ResourceGroups::Group"
PLACED_RESERVATION = "Custom::CapacityReservation"
WARM_POOL, HOOK = "AWS::AutoScaling::WarmPool", "AWS::AutoScaling::LifecycleHook"

_HARDWARE = (GROUP, FLEET, TEMPLATE, PLACEMENT, RESERVATION, PLACED_RESERVATION, RESERVATION_GROUP, WARM_POOL, HOOK)


class _Synthesized:
    """A stack, and its template once it is asked for."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack

    @cached_property
    def template(self) -> dict[str, Any]:
        return dict(Template.from_stack(self.stack).to_json()["Resources"])


@dataclass(frozen=True)
class FleetScene:
    """The nodes of the group `workers` of the cluster `pod`, and their network."""

    network: ClusterNetwork
    fleet: NodeFleet
    made: _Synthesized

    @property
    def stack(self) -> Stack:
        """The stack of the nodes, which other scenes may share."""
        return self.made.stack

    @property
    def template(self) -> dict[str, Any]:
        """The resources of the stack."""
        return self.made.template

    def all(self, kind: str) -> dict[str, Any]:
        """The group's own resources of a type, by logical id."""
        own = self.fleet.node.id
        return {
            name: resource
            for name, resource in self.template.items()
            if resource["Type"] == kind and name.startswith(own)
        }

    def only(self, kind: str) -> tuple[str, dict[str, Any]]:
        """The logical id and the properties of the one resource of a type."""
        ((name, resource),) = self.all(kind).items()
        return name, resource["Properties"]

    @property
    def kinds(self) -> list[str]:
        """The types of what buys the nodes: all that differs from call to call."""
        return sorted(kind for kind in _HARDWARE for _ in self.all(kind))

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


def bought(stack: Stack | None = None, **settings: Any) -> FleetScene:
    """Make a node group of 8 p5.48xlarge, unless told otherwise."""
    (scene,) = bought_each([settings], stack)
    return scene


def bought_each(groups: Sequence[Mapping[str, Any]], stack: Stack | None = None, **more: Any) -> list[FleetScene]:
    """Make node groups that share a stack and a network, so that they are synthesized once.

    Args:
        groups: The settings of each. Default: - 8 p5.48xlarge called workers.
        stack: Where they are made. Default: - a stack of their own.
        more: What else is given to each `NodeFleet`.
    """
    where = stack or new_stack()
    network = ClusterNetwork(where, "Network", availability_zone=ZONE)
    role = iam.Role(where, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
    profile = iam.InstanceProfile(where, "Profile", role=role)
    made = _Synthesized(where)
    fleets = [
        NodeFleet(
            where,
            f"Fleet{number:03}",
            cluster_name="pod",
            network=network,
            node_group=NodeGroup(
                **{"name": "workers", "instance_types": ["p5.48xlarge"], "count": 8, **settings},
            ),
            role=role,
            instance_profile=profile,
            **more,
        )
        for number, settings in enumerate(groups)
    ]
    return [FleetScene(network, fleet, made) for fleet in fleets]


def cards(data: dict[str, Any]) -> list[tuple[int, int, str]]:
    """The interfaces of launch data: card, device and type of each; card 0 may be left out."""
    named = data["NetworkInterfaces"]
    return [(one.get("NetworkCardIndex", 0), one["DeviceIndex"], one["InterfaceType"]) for one in named]
