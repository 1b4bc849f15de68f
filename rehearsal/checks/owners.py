"""What the templates say of what owns nodes: Auto Scaling groups, Spot Fleets and groups of orchestrators."""

from collections.abc import Iterator, Mapping
from typing import Any

from cluster_contract.power import PowerFunctionSettings, PowerGroupSettings
from cluster_contract.tags import NODE_GROUP_TAG
from rehearsal.checks.check import Deployment
from rehearsal.templates import Resource, of_type

EKS_NODE_GROUP = "AWS::EKS::Nodegroup"
PCS_GROUP = "AWS::PCS::ComputeNodeGroup"
_OWNERS = ("AWS::AutoScaling::AutoScalingGroup", "AWS::EC2::SpotFleet", PCS_GROUP, EKS_NODE_GROUP)


def owners(deployment: Deployment) -> Mapping[str, Resource]:
    """Return what owns the nodes of each node group.

    Args:
        deployment: The deployed cluster.
    """
    # Login nodes and system nodes belong to no node group.
    found = (owner for owner in of_type(deployment.resources, *_OWNERS) if NODE_GROUP_TAG in owner.tags)
    return {owner.tags[NODE_GROUP_TAG]: owner for owner in found}


def counts(deployment: Deployment) -> dict[str, int]:
    """Return how many nodes the power function keeps in each group: templates create groups with none.

    Args:
        deployment: The deployed cluster.
    """
    return {name: group.count for name, group in _power_groups(deployment).items()}


def options(deployment: Deployment, node_group: str) -> Mapping[str, str]:
    """Return what the power function sends to a node group of EKS with its size, by name.

    Args:
        deployment: The deployed cluster.
        node_group: The node group's name.
    """
    owner = _power_groups(deployment)[node_group].owner
    return {} if owner is None else dict(option.split("=", 1) for option in owner.options)


def _power_groups(deployment: Deployment) -> Mapping[str, PowerGroupSettings]:
    for function in of_type(deployment.resources, "AWS::Lambda::Function"):
        if function.properties["Handler"].startswith("cluster_power."):
            settings = deployment.client("lambda").get_function_configuration(FunctionName=function.id)
            return PowerFunctionSettings.from_environment(settings["Environment"]["Variables"]).groups
    return {}


def launches(deployment: Deployment, owner: Resource) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the launch template's data for each instance type.

    Args:
        deployment: The deployed cluster.
        owner: What owns the nodes.
    """
    made = of_type(deployment.resources, "AWS::EC2::LaunchTemplate")
    templates = {one.id: one.properties["LaunchTemplateData"] for one in made}
    if owner.type == EKS_NODE_GROUP:
        data = templates[owner.properties["LaunchTemplate"]["Id"]]
        yield from ((name, data) for name in owner.properties.get("InstanceTypes") or [data["InstanceType"]])
        return
    if owner.type == PCS_GROUP:
        data = templates[owner.properties["CustomLaunchTemplate"]["TemplateId"]]
        yield from ((each["InstanceType"], data) for each in owner.properties["InstanceConfigs"])
        return
    mixed = owner.properties.get("MixedInstancesPolicy", {}).get("LaunchTemplate")
    request = owner.properties.get("SpotFleetRequestConfigData", {})
    for launch in [mixed] if mixed else request.get("LaunchTemplateConfigs") or [owner.properties]:
        own = launch.get("LaunchTemplateSpecification") or launch["LaunchTemplate"]
        for override in launch.get("Overrides") or [{}]:
            data = templates[override.get("LaunchTemplateSpecification", own)["LaunchTemplateId"]]
            yield override.get("InstanceType", data.get("InstanceType")), data
