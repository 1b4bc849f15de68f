"""What the templates of a cluster say, in the words in which `training-cluster check` tells it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from cluster_contract.codec import FunctionSettings
from cluster_contract.tags import NODE_GROUP_TAG
from examples import templates

Properties = Mapping[str, Any]


class Facts:
    """The facts of a cluster's two templates.

    Attributes:
        foundation: The resources of the foundation.
        cluster: The resources of the cluster.
        text: The template of the cluster, as text.
    """

    def __init__(self, assembly: Path) -> None:
        found = templates(assembly)
        self.foundation, self.cluster = (
            next(each["Resources"] for name, each in found.items() if name.endswith(end))
            for end in ("-foundation", "-cluster")
        )
        self.text = json.dumps(self.cluster)

    def of(self, *kinds: str) -> list[Properties]:
        """Return the properties of the cluster's resources of some types."""
        return [each.get("Properties", {}) for each in self.cluster.values() if each["Type"] in kinds]

    def made(self, kind: str) -> list[Properties]:
        """Return the properties of the foundation's resources of a type."""
        return [each.get("Properties", {}) for each in self.foundation.values() if each["Type"] == kind]

    def environment(self, package: str) -> Mapping[str, str] | None:
        """Return the environment of a function, with a word for what the deployment fills in. None: there is none."""
        for function in self.of("AWS::Lambda::Function"):
            if function["Handler"].startswith(f"{package}."):
                return {name: _text(value) for name, value in function["Environment"]["Variables"].items()}
        return None

    def settings(self, package: str, kind: type[FunctionSettings]) -> Any:
        """Return the settings of a function, as it reads them."""
        environment = self.environment(package)
        assert environment is not None, package
        return kind.from_environment(environment)

    @cached_property
    def thresholds(self) -> set[float]:
        """The thresholds of the cluster's alarms."""
        return {float(alarm["Threshold"]) for alarm in self.of("AWS::CloudWatch::Alarm") if "Threshold" in alarm}

    @cached_property
    def instance_groups(self) -> Mapping[str, Properties]:
        """HyperPod's instance groups, by name."""
        return {
            group["InstanceGroupName"]: group
            for cluster in self.of("AWS::SageMaker::Cluster")
            for group in cluster["InstanceGroups"]
        }

    def launches(self, node_group: str) -> list[Properties]:
        """Return the launch templates of a node group."""
        return [
            data
            for data in (each["LaunchTemplateData"] for each in self.of("AWS::EC2::LaunchTemplate"))
            if {"Key": NODE_GROUP_TAG, "Value": node_group} in _instance_tags(data)
        ]

    def owner(self, node_group: str) -> Properties:
        """Return what owns the nodes of a node group."""
        if node_group in self.instance_groups:
            return self.instance_groups[node_group]
        return next(each for each in self.of(*_OWNERS) if _is_of(each, node_group))

    def efa_counts(self, node_group: str) -> set[int]:
        """Return how many EFAs nodes of a node group get, by launch template."""
        return {
            sum(each.get("InterfaceType") in ("efa", "efa-only") for each in data["NetworkInterfaces"])
            for data in self.launches(node_group)
        }

    def bought(self, node_group: str) -> str:
        """Return how nodes of a node group are bought, in the first word or words of what is told."""
        owner, launch = self.owner(node_group), json.dumps(self.launches(node_group))
        if "SpotFleetRequestConfigData" in owner:
            return f"Spot Fleet, at most ${float(owner['SpotFleetRequestConfigData']['SpotPrice']):g} an hour"
        if "capacity-block" in launch:
            return f"Capacity Block {launch.partition('CapacityReservationId')[2][4:24]}"
        said = json.dumps(owner)
        if "DistributionSegments" in said:
            return "1 reservation, then"
        if "CapacityReservationTarget" in said or "CapacityReservationTarget" in launch:
            return "new reservation"
        spot = (
            '"PurchaseOption": "SPOT"',
            '"CapacityType": "SPOT"',
            '"OnDemandPercentageAboveBaseCapacity": 0',
            '"Spot"',
        )
        return "Spot" if any(each in said for each in spot) else "on demand"

    def placement(self, node_group: str) -> str:
        """Return the placement of the nodes of a node group."""
        launches = json.dumps([each.get("Placement") for each in self.launches(node_group)])
        owner = self.owner(node_group)
        named = owner.get("PlacementGroup") or (owner.get("ComputeResources") or {}).get("PlacementGroup")
        return "cluster" if named or "GroupName" in launches else "none"

    def warm_nodes(self, node_group: str) -> int | None:
        """Return the size of a node group's warm pool. None: it has none."""
        pools = [each["MaxGroupPreparedCapacity"] for each in self.of("AWS::AutoScaling::WarmPool")]
        return int(pools[0]) if pools and node_group else None

    def shares(self, kind: str) -> Sequence[float]:
        """Return the thresholds of the AWS budget, in percent."""
        (budget,) = self.of("AWS::Budgets::Budget")
        told = [each["Notification"] for each in budget["NotificationsWithSubscribers"]]
        return [float(each["Threshold"]) for each in told if each["NotificationType"] == kind]


_OWNERS = (
    "AWS::AutoScaling::AutoScalingGroup",
    "AWS::EC2::SpotFleet",
    "AWS::PCS::ComputeNodeGroup",
    "AWS::EKS::Nodegroup",
    "AWS::Batch::ComputeEnvironment",
)


def _is_of(owner: Properties, node_group: str) -> bool:
    return any(tags == (NODE_GROUP_TAG, node_group) for tags in _tags(owner))


def _tags(owner: Properties) -> Iterator[tuple[str, str]]:
    fleet = owner.get("SpotFleetRequestConfigData", {}).get("TagSpecifications", ())
    for tags in (owner.get("Tags", ()), *(each["Tags"] for each in fleet)):
        yield from tags.items() if isinstance(tags, dict) else ((tag["Key"], tag["Value"]) for tag in tags)


def _instance_tags(data: Properties) -> Sequence[Mapping[str, str]]:
    kinds = [each for each in data.get("TagSpecifications", ()) if each["ResourceType"] == "instance"]
    return [tag for each in kinds for tag in each["Tags"]]


def _text(value: Any) -> str:
    """Return a text of a template, with a word for each part that the deployment fills in."""
    if not isinstance(value, dict):
        return str(value)
    if "Fn::Join" in value:
        return "".join(map(_text, value["Fn::Join"][1]))
    return "deployed"
