"""The node groups of a HyperPod cluster, whose nodes are no instances of EC2's."""

from collections.abc import Iterator, Mapping
from typing import Any

from cluster_contract.tags import CLUSTER_TAG, POWER_TAG
from rehearsal.readback import Client

_SLURMS_OWN = ("Controller", "Login")


def instance_groups(client: Client, cluster: str) -> Iterator[dict[str, Any]]:
    """Describe the node groups of a cluster on HyperPod, as `node_groups` describes others.

    Args:
        client: Makes clients of the local AWS.
        cluster: The cluster's name, as in its tag.
    """
    sagemaker = client("sagemaker")
    for summary in sagemaker.list_clusters()["ClusterSummaries"]:
        tags = {tag["Key"]: tag["Value"] for tag in sagemaker.list_tags(ResourceArn=summary["ClusterArn"])["Tags"]}
        if tags.get(CLUSTER_TAG) != cluster:
            continue
        nodes = sagemaker.list_cluster_nodes(ClusterName=summary["ClusterName"])["ClusterNodeSummaries"]
        for group in sagemaker.describe_cluster(ClusterName=summary["ClusterName"])["InstanceGroups"]:
            if group.get("SlurmConfig", {}).get("NodeType") not in _SLURMS_OWN:
                yield _described(group, nodes, tags)


def _described(group: Mapping[str, Any], nodes: list[dict[str, Any]], tags: Mapping[str, str]) -> dict[str, Any]:
    name = group["InstanceGroupName"]
    own = [node["InstanceId"] for node in nodes if node["InstanceGroupName"] == name]
    market = "spot" if "Spot" in group.get("CapacityRequirements", {}) else "on-demand"
    return {
        "name": name,
        "instance_type": group["InstanceType"],
        "count_running": len(own),
        "network_interfaces": None,
        "efa_interfaces": None,
        "interfaces_by_type": {},
        "placement_group": None,
        "market": market if own else None,
        "bought_from": {market: len(own)} if own else {},
        "reservation": None,
        "availability_zone": None,
        "instance_ids": own,
        "power": tags.get(f"{POWER_TAG}/{name}", ""),
        "auto_scaling_group": None,
        "spot_fleet": None,
        "desired_capacity": group["TargetCount"],
        "warm_pool": None,
        "partition": next(iter(group.get("SlurmConfig", {}).get("PartitionNames", [])), None),
        "on_hyperpod": True,
        "run_by": "HyperPod",
    }
