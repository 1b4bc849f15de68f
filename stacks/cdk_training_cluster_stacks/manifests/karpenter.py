"""Nodes that Karpenter launches, of the same types, interfaces and capacity as the node groups."""

from collections.abc import Mapping, Sequence
from typing import Any

from cdk_training_cluster.network import network_interfaces
from cdk_training_cluster.nodes.layouts import wants_efa
from cdk_training_cluster.orchestrators.eks.node_groups import labels
from cdk_training_cluster_stacks.manifests.group_nodes import GroupNodes
from cdk_training_cluster_stacks.manifests.objects import Object, an_object, plain
from cdk_training_cluster_stacks.manifests.wanted import Wanted
from cluster_contract.tags import CLUSTER_TAG

PLACES = ("NODE_ROLE_NAME", "NODE_SUBNET_ID", "NODE_SECURITY_GROUP_ID", "CLUSTER_SECURITY_GROUP_ID", "IMAGE_ALIAS")
"""What a node class needs that exists after the deployment only; `overlay/deployed.env` has it."""

_ROOT_GIB = 200


def node_pools(wanted: Wanted) -> Sequence[Object]:
    """Return a node pool and a node class for each group; `launchable` says which.

    Args:
        wanted: The cluster.
    """
    return [
        each for nodes in wanted.groups if launchable(nodes) for each in (_pool(wanted, nodes), _class(wanted, nodes))
    ]


def launchable(nodes: GroupNodes) -> bool:
    """Say whether Karpenter can buy a group's nodes: on demand, on the Spot market, in a reservation or block.

    Args:
        nodes: The group. A reservation that the cluster makes is left to its node group, which is launched into it.
    """
    capacity = nodes.group.capacity
    return not capacity.makes_reservation and not capacity.owned_by_spot_fleet


def _pool(wanted: Wanted, nodes: GroupNodes) -> Object:
    requirements = [
        _one_of("node.kubernetes.io/instance-type", nodes.group.instance_types),
        _one_of("topology.kubernetes.io/zone", [wanted.zone]),
        _one_of("karpenter.sh/capacity-type", [_capacity_type(nodes)]),
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


def _capacity_type(nodes: GroupNodes) -> str:
    capacity = nodes.group.capacity
    if capacity.uses_spot:
        return "spot"
    return "reserved" if capacity.reservation_ids else "on-demand"


def _class(wanted: Wanted, nodes: GroupNodes) -> Object:
    group = nodes.group
    reservations = [{"id": each} for each in group.capacity.reservation_ids if not each.startswith("arn:")]
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
                **storage,
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
