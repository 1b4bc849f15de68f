"""The node groups that exist: their nodes, what runs them, and what was bought for them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cluster_contract.tags import CLUSTER_TAG, NODE_GROUP_TAG, POWER_TAG
from rehearsal.hyperpod import instance_groups
from rehearsal.readback import Client
from rehearsal.slurm import compute_node_groups

ON_DEMAND = "on-demand"
"""The market of an instance that DescribeInstances names none for."""

_GONE = ("shutting-down", "terminated")
_FLEET_GONE = ("cancelled", "cancelled_running", "cancelled_terminating")
_RESERVATION_GONE = ("cancelled", "expired")


def node_groups(client: Client, cluster: str) -> list[dict[str, Any]]:
    """Describe a cluster's node groups by what runs them, their instances, and what is reserved for them.

    Args:
        client: Makes clients of the local AWS.
        cluster: The cluster's name, as in its tag.
    """
    found = [
        *_auto_scaling_groups(client, cluster),
        *_spot_fleets(client, cluster),
        *_eks_node_groups(client, cluster),
        *_slurm_groups(client, cluster),
        *instance_groups(client, cluster),
    ]
    return sorted(found, key=lambda group: str(group["name"]))


def _auto_scaling_groups(client: Client, cluster: str) -> Iterator[dict[str, Any]]:
    filters = [{"Name": f"tag:{CLUSTER_TAG}", "Values": [cluster]}]
    pages = client("autoscaling").get_paginator("describe_auto_scaling_groups").paginate(Filters=filters)
    for group in pages.search("AutoScalingGroups[]"):
        # What waits in a warm pool is no member of the group.
        running = _instances(client, [member["InstanceId"] for member in group["Instances"]])
        yield {
            **_node_group(client, _tags(group), running),
            "auto_scaling_group": group["AutoScalingGroupName"],
            "spot_fleet": None,
            "desired_capacity": group["DesiredCapacity"],
            "warm_pool": _warm_pool(client, group),
        }


def _spot_fleets(client: Client, cluster: str) -> Iterator[dict[str, Any]]:
    ec2 = client("ec2")
    requests = ec2.get_paginator("describe_spot_fleet_requests").paginate().search("SpotFleetRequestConfigs[]")
    for request in requests:
        tags = _tags(request)
        if tags.get(CLUSTER_TAG) != cluster or request["SpotFleetRequestState"] in _FLEET_GONE:
            continue
        fleet = request["SpotFleetRequestId"]
        members = ec2.get_paginator("describe_spot_fleet_instances").paginate(SpotFleetRequestId=fleet)
        running = _instances(client, list(members.search("ActiveInstances[].InstanceId")))
        yield {
            **_node_group(client, tags, running),
            "auto_scaling_group": None,
            "spot_fleet": fleet,
            "desired_capacity": request["SpotFleetRequestConfig"]["TargetCapacity"],
            "warm_pool": None,
        }


def _slurm_groups(client: Client, cluster: str) -> Iterator[dict[str, Any]]:
    for group, tags, ids in compute_node_groups(client, cluster):
        yield {
            **_node_group(client, tags, _instances(client, ids)),
            "auto_scaling_group": None,
            "spot_fleet": None,
            "run_by": f"compute node group {group['id']}",
            "desired_capacity": group["scalingConfiguration"]["maxInstanceCount"],
            "warm_pool": None,
        }


def _eks_node_groups(client: Client, cluster: str) -> Iterator[dict[str, Any]]:
    eks, auto_scaling = client("eks"), client("autoscaling")
    names = [(one, name) for one in _eks_clusters(eks) for name in _eks_groups(eks, one)]
    for owner, name in names:
        group = eks.describe_nodegroup(clusterName=owner, nodegroupName=name)["nodegroup"]
        tags = group.get("tags", {})
        if tags.get(CLUSTER_TAG) != cluster or NODE_GROUP_TAG not in tags:
            continue
        underneath = [one["name"] for one in group["resources"]["autoScalingGroups"]]
        found = auto_scaling.describe_auto_scaling_groups(AutoScalingGroupNames=underneath)["AutoScalingGroups"]
        running = _instances(client, [member["InstanceId"] for each in found for member in each["Instances"]])
        warm = group.get("warmPoolConfig") or {}
        yield {
            **_node_group(client, tags, running),
            "auto_scaling_group": None,
            "spot_fleet": None,
            "eks_node_group": f"{owner}/{name}",
            "desired_capacity": group["scalingConfig"]["desiredSize"],
            "warm_pool": {"size": warm["maxGroupPreparedCapacity"], "states": {}} if warm.get("enabled") else None,
        }


def _eks_clusters(eks: Any) -> list[str]:
    return list(eks.get_paginator("list_clusters").paginate().search("clusters[]"))


def _eks_groups(eks: Any, cluster: str) -> list[str]:
    return list(eks.get_paginator("list_nodegroups").paginate(clusterName=cluster).search("nodegroups[]"))


def _node_group(client: Client, tags: Mapping[str, str], running: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": tags.get(NODE_GROUP_TAG),
        "instance_type": _only({instance["InstanceType"] for instance in running}),
        "count_running": len(running),
        "network_interfaces": _only({len(instance["NetworkInterfaces"]) for instance in running}),
        "efa_interfaces": _only({_efa(instance) for instance in running}),
        "interfaces_by_type": {
            instance["InstanceType"]: [len(instance["NetworkInterfaces"]), _efa(instance)] for instance in running
        },
        "placement_group": _only({instance["Placement"].get("GroupName") or None for instance in running}),
        "market": _only({_market(instance) for instance in running}),
        "bought_from": dict(sorted(Counter(map(_bought_from, running)).items())),
        "reservation": _reservation(client, tags),
        "availability_zone": _only({instance["Placement"]["AvailabilityZone"] for instance in running}),
        "instance_ids": [instance["InstanceId"] for instance in running],
        "power": tags.get(POWER_TAG, ""),
    }


def _instances(client: Client, ids: Sequence[str]) -> list[dict[str, Any]]:
    """Return those of some instances that are not gone, by id."""
    if not ids:
        return []
    pages = client("ec2").get_paginator("describe_instances").paginate(InstanceIds=list(ids))
    found = [each for each in pages.search("Reservations[].Instances[]") if each["State"]["Name"] not in _GONE]
    return sorted(found, key=lambda instance: str(instance["InstanceId"]))


def _reservation(client: Client, tags: Mapping[str, str]) -> dict[str, Any] | None:
    """Describe the reservation that was made for a node group; None if none was."""
    wanted = {key: tags[key] for key in (CLUSTER_TAG, NODE_GROUP_TAG) if key in tags}
    # The action has no filter for tags.
    pages = client("ec2").get_paginator("describe_capacity_reservations").paginate()
    found = [one for one in pages.search("CapacityReservations[]") if one["State"] not in _RESERVATION_GONE]
    made = [one for one in found if wanted.items() <= {tag["Key"]: tag["Value"] for tag in one["Tags"]}.items()]
    if not made:
        return None
    (one,) = made
    return {
        "id": one["CapacityReservationId"],
        "instances": one["TotalInstanceCount"],
        "match_criteria": one["InstanceMatchCriteria"],
        "platform": one["InstancePlatform"],
        "placement_group": one.get("PlacementGroupArn", "").rpartition("/")[2] or None,
        "ends": one["EndDate"].isoformat() if one.get("EndDate") else None,
    }


def _warm_pool(client: Client, group: Mapping[str, Any]) -> dict[str, Any] | None:
    if not group.get("WarmPoolConfiguration"):
        return None
    pages = (
        client("autoscaling")
        .get_paginator("describe_warm_pool")
        .paginate(AutoScalingGroupName=group["AutoScalingGroupName"])
    )
    return {
        "size": group["WarmPoolConfiguration"].get("MaxGroupPreparedCapacity"),
        "states": dict(sorted(Counter(pages.search("Instances[].LifecycleState")).items())),
    }


def _market(instance: Mapping[str, Any]) -> str:
    return str(instance.get("InstanceLifecycle") or ON_DEMAND)


def _bought_from(instance: Mapping[str, Any]) -> str:
    """Return the reservation or block that an instance runs in, or else its market."""
    return str(instance.get("CapacityReservationId") or _market(instance))


def _tags(thing: Mapping[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in thing.get("Tags") or []}


def _efa(instance: Mapping[str, Any]) -> int:
    return sum(interface["InterfaceType"] in ("efa", "efa-only") for interface in instance["NetworkInterfaces"])


def _only(values: set[Any]) -> Any:
    """Return the value that all nodes share, None where there are none, and all of them where they differ."""
    return sorted(values, key=str) if len(values) > 1 else next(iter(values), None)
