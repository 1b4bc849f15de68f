"""Nodes that Karpenter launches, of the same types, interfaces and capacity as the node groups."""

from collections.abc import Mapping, Sequence
from typing import Any

from cdk_training_cluster import Capacity
from cdk_training_cluster.network import network_interfaces
from cdk_training_cluster.nodes.layouts import wants_efa
from cdk_training_cluster.orchestrators.eks.node_groups import GPU_ACCESS, labels
from cdk_training_cluster_manifests.kubernetes.cluster import KubernetesCluster
from cdk_training_cluster_manifests.kubernetes.group_nodes import GroupNodes
from cdk_training_cluster_manifests.kubernetes.objects import Object, an_object, plain
from cluster_contract.tags import CLUSTER_TAG

PLACES = ("NODE_ROLE_NAME", "NODE_SUBNET_ID", "NODE_SECURITY_GROUP_ID", "CLUSTER_SECURITY_GROUP_ID", "IMAGE_ALIAS")
"""What a node class needs that exists after the deployment only; `overlay/deployed.env` has it."""

_ROOT_GIB = 200


def node_pools(wanted: KubernetesCluster) -> Sequence[Object]:
    """Return a node pool and a node class for each group; `launchable` says which.

    Args:
        wanted: The cluster.
    """
    return [
        each for nodes in wanted.groups if launchable(nodes) for each in (_pool(wanted, nodes), _class(wanted, nodes))
    ]


def launchable(nodes: GroupNodes) -> bool:
    """Return whether Karpenter can buy the nodes of a group.

    Args:
        nodes: The group. A reservation that the cluster makes lies in a placement group whose name exists after the
            deployment only, so its nodes are left to the node group.
    """
    return bool(capacity_types(nodes.group.capacity))


def capacity_types(capacity: Capacity) -> Sequence[str]:
    """Return Karpenter's capacity types of a way to buy; empty: it launches no such nodes.

    Karpenter prefers `reserved`, and buys nothing else unless the list names it: a group with a Capacity Block waits
    for the block.

    Args:
        capacity: The way to buy.

    Source: https://karpenter.sh/docs/tasks/odcrs/
    """
    if capacity.makes_reservation or capacity.owned_by_spot_fleet or capacity.training_plan_arn is not None:
        return []
    if capacity.uses_spot:
        return ["spot"]
    if not _reservations(capacity):
        return ["on-demand"]
    return ["reserved", "on-demand"] if capacity.falls_back else ["reserved"]


def _reservations(capacity: Capacity) -> Sequence[str]:
    """Return the reservations and Capacity Blocks, which Karpenter selects alike."""
    return [*capacity.reservation_ids, *capacity.block_ids]


def _pool(wanted: KubernetesCluster, nodes: GroupNodes) -> Object:
    requirements = [
        _one_of("node.kubernetes.io/instance-type", nodes.group.instance_types),
        _one_of("topology.kubernetes.io/zone", [wanted.zone]),
        _one_of("karpenter.sh/capacity-type", capacity_types(nodes.group.capacity)),
    ]
    # A count may be a token in an app; in a file it is a number.
    most = {
        "nodes": str(nodes.group.count),
        **{key: str(each * nodes.group.count) for key, each in nodes.accelerators.items()},
    }
    return an_object(
        "NodePool",
        nodes.name,
        api="karpenter.sh/v1",
        spec=plain(
            {
                "template": {
                    "metadata": {"labels": labels(nodes.group, nodes.info)},
                    "spec": {
                        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": nodes.name},
                        "requirements": requirements,
                        "taints": [
                            {"key": key, "value": value, "effect": "NoSchedule"}
                            for key, value in nodes.taints.items()
                        ],
                        # A job on many nodes loses all of them with one.
                        "expireAfter": "Never",
                    },
                },
                "limits": most,
                "disruption": {
                    "consolidationPolicy": "WhenEmpty",
                    "consolidateAfter": f"{wanted.idle_minutes}m",
                    "budgets": [{"nodes": "100%", "reasons": ["Empty"]}, {"nodes": "0", "reasons": ["Drifted"]}],
                },
            }
        ),
    )


def _one_of(key: str, values: Sequence[str]) -> Mapping[str, Any]:
    return {"key": key, "operator": "In", "values": [*values]}


def _class(wanted: KubernetesCluster, nodes: GroupNodes) -> Object:
    group = nodes.group
    reservations = [{"id": each} for each in _reservations(group.capacity)]
    placement = group.capacity.placement_group
    storage = {"instanceStorePolicy": "RAID0"} if nodes.info.instance_store_nvme else {}
    return an_object(
        "EC2NodeClass",
        nodes.name,
        api="karpenter.k8s.aws/v1",
        spec=plain(
            {
                "amiFamily": "AL2023",
                "amiSelectorTerms": [{"alias": PLACES[4]}],
                "role": PLACES[0],
                "subnetSelectorTerms": [{"id": PLACES[1]}],
                "securityGroupSelectorTerms": [{"id": PLACES[2]}, {"id": PLACES[3]}],
                "networkInterfaces": _interfaces(nodes),
                **({"capacityReservationSelectorTerms": reservations} if reservations else {}),
                # EC2 launches into a reservation of a placement group only what is launched into the group too.
                # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/cr-cpg.html
                **({} if placement is None else {"placementGroupSelector": {"name": placement}}),
                **storage,
                **({"userData": GPU_ACCESS.read_text(encoding="utf-8")} if nodes.info.has_nvidia_gpus else {}),
                "blockDeviceMappings": [
                    {
                        "deviceName": "/dev/xvda",
                        "rootVolume": True,
                        "ebs": {
                            "volumeSize": f"{group.root_volume_gib or _ROOT_GIB}Gi",
                            "volumeType": "gp3",
                            "encrypted": True,
                            "deleteOnTermination": True,
                        },
                    }
                ],
                "metadataOptions": {"httpTokens": "required", "httpPutResponseHopLimit": 1},
                # What the spend function and the AWS budget find the cluster's instances by.
                "tags": {CLUSTER_TAG: wanted.name},
            }
        ),
    )


def _interfaces(nodes: GroupNodes) -> Sequence[Object]:
    """Return the interfaces of the node group's launch template in Karpenter's words: ENA and EFA are apart there.

    Source: https://karpenter.sh/docs/concepts/nodeclasses/#specnetworkinterfaces
    """
    group, info = nodes.group, nodes.info
    cards = {card.index: card for card in info.network_cards}
    found = []
    for each in network_interfaces(info, efa=wants_efa(group, info), layout=group.interface_layout):
        kinds = {"interface": ["interface"], "efa-only": ["efa-only"]}.get(
            each.interface_type, ["interface", "efa-only"]
        )
        room = cards[each.card].has_room_for(each.device + len(kinds))
        found += [
            {"networkCardIndex": each.card, "deviceIndex": each.device + more, "interfaceType": kind}
            for more, kind in enumerate(kinds if room else kinds[:1])
        ]
    return found
