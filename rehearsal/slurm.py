"""The compute node groups and queues of AWS PCS that exist, and the jobs that need nodes of them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console

from cluster_contract.tags import CLUSTER_TAG, NODE_GROUP_TAG
from local_aws import LocalAws
from rehearsal.readback import Client
from rehearsal.report import table_of

GROUP_TAG = "aws:pcs:compute-node-group-id"


def compute_node_groups(client: Client, cluster: str) -> Iterator[tuple[dict[str, Any], dict[str, str], list[str]]]:
    """Yield each compute node group that is a node group of a cluster, its tags and the ids of its instances.

    Args:
        client: Makes clients of the local AWS.
        cluster: The cluster's name, as in its tag.
    """
    pcs, ec2 = client("pcs"), client("ec2")
    for owner in _clusters(client, cluster):
        for listed in pcs.list_compute_node_groups(clusterIdentifier=owner)["computeNodeGroups"]:
            tags = pcs.list_tags_for_resource(resourceArn=listed["arn"])["tags"]
            if NODE_GROUP_TAG not in tags:  # the login nodes
                continue
            named = {"clusterIdentifier": owner, "computeNodeGroupIdentifier": listed["id"]}
            group = pcs.get_compute_node_group(**named)["computeNodeGroup"]
            filters = [{"Name": f"tag:{GROUP_TAG}", "Values": [group["id"]]}]
            pages = ec2.get_paginator("describe_instances").paginate(Filters=filters)
            yield group, tags, list(pages.search("Reservations[].Instances[].InstanceId"))


def queues(client: Client, cluster: str) -> dict[str, dict[str, Any]]:
    """Return the queues of a cluster by name, each with the names of its node groups and its settings.

    Args:
        client: Makes clients of the local AWS.
        cluster: The cluster's name, as in its tag.
    """
    pcs, found = client("pcs"), {}
    for owner in _clusters(client, cluster):
        groups = pcs.list_compute_node_groups(clusterIdentifier=owner)["computeNodeGroups"]
        names = {each["id"]: each["name"] for each in groups}
        for listed in pcs.list_queues(clusterIdentifier=owner)["queues"]:
            queue = pcs.get_queue(clusterIdentifier=owner, queueIdentifier=listed["id"])["queue"]
            settings = queue.get("slurmConfiguration", {}).get("slurmCustomSettings", [])
            found[queue["name"]] = {
                "node_groups": [
                    names[each["computeNodeGroupId"]] for each in queue["computeNodeGroupConfigurations"]
                ],
                "settings": {each["parameterName"]: each["parameterValue"] for each in settings},
            }
    return found


def need_all_nodes(aws: LocalAws, cluster: str) -> bool:
    """Have jobs need all the nodes that Slurm may launch; return whether there are such.

    Args:
        aws: The local AWS.
        cluster: The cluster's name.
    """
    groups = [group for group, _, _ in compute_node_groups(aws.client, cluster)]
    for group in groups:
        aws.need_slurm_nodes(group["id"], group["scalingConfiguration"]["maxInstanceCount"])
    return bool(groups)


def show_queues(
    console: Console, found: Mapping[str, Mapping[str, Any]], groups: Sequence[Mapping[str, Any]]
) -> None:
    """Show the queues, and what a job of each can run on.

    Args:
        console: Where to show them.
        found: The queues.
        groups: The node groups.
    """
    if not found:
        return
    table = table_of("Queues", "name", "tier", "preemption", "a job can run on")
    nodes = {
        group["name"]: f"{group['count_running']} x {group['instance_type']} ({group['market']})" for group in groups
    }
    for name, queue in found.items():
        settings = queue["settings"]
        runs = ", ".join(nodes.get(group, group) for group in queue["node_groups"])
        table.add_row(name, settings.get("PriorityTier", "1"), settings.get("PreemptMode", "OFF"), runs)
    console.print(table)


def _clusters(client: Client, cluster: str) -> Iterator[str]:
    pcs = client("pcs")
    for each in pcs.list_clusters()["clusters"]:
        if pcs.list_tags_for_resource(resourceArn=each["arn"])["tags"].get(CLUSTER_TAG) == cluster:
            yield str(each["id"])
