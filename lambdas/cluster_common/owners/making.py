"""The adapters of the kinds of owners that the settings of a function name."""

from collections.abc import Collection, Mapping
from datetime import datetime

from cluster_common.clients import Clients
from cluster_common.owners.auto_scaling_groups import AutoScalingGroups
from cluster_common.owners.node_owner import NodeOwner, Owners
from cluster_common.owners.spot_fleets import SpotFleets
from cluster_contract.owners import OwnedGroupSettings, OwnerKind, owners_of
from cluster_contract.tags import CLUSTER_TAG


def make_owners(
    groups: Mapping[str, OwnedGroupSettings],
    clients: Clients,
    cluster: str,
    now: datetime,
    *,
    counts: Mapping[str, int] | None = None,
    also: Collection[OwnerKind] = (),
    tag: str = CLUSTER_TAG,
) -> Owners:
    """Return what owns the nodes of a cluster; a client is made for a kind that some node group has only.

    Args:
        groups: The settings of the cluster's node groups, by name.
        clients: What the function talks to.
        cluster: The cluster's name.
        now: The time.
        counts: How many nodes each node group has by the cluster's file, where that is known. Default: - of none.
        also: Kinds of owners that are read though no node group has one.
        tag: The key of the tag that says what is the cluster's.
    """
    adapters: list[NodeOwner] = []
    kinds = {*also, *(group.owner_kind for group in groups.values())}
    if OwnerKind.AUTO_SCALING_GROUP in kinds:
        names = [name for name, group in groups.items() if group.owner_kind is OwnerKind.AUTO_SCALING_GROUP]
        client = clients.auto_scaling()
        adapters.append(AutoScalingGroups(client, clients.auto_scaling_once, clients.ec2, cluster, names, tag=tag))
    if OwnerKind.SPOT_FLEET in kinds:
        fleets = {name: owner.id for name, owner in owners_of(OwnerKind.SPOT_FLEET, groups).items()}
        adapters.append(SpotFleets(clients.ec2(), cluster, fleets, counts or {}, now, tag=tag))
    return Owners(adapters)
