"""The adapters of the kinds of owners that the settings of a function name."""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime

from cluster_common.clients import Clients
from cluster_common.owners.auto_scaling_groups import AutoScalingGroups
from cluster_common.owners.batch_compute_environments import BatchComputeEnvironments
from cluster_common.owners.eks_nodegroups import EksNodegroups
from cluster_common.owners.hyperpod_instance_groups import HyperPodInstanceGroups
from cluster_common.owners.named_owners import Named
from cluster_common.owners.node_owner import NodeOwner, Owners
from cluster_common.owners.pcs_compute_node_groups import PcsComputeNodeGroups
from cluster_common.owners.spot_fleets import SpotFleets
from cluster_contract.owners import OwnedGroupSettings, OwnerKind, owners_of
from cluster_contract.tags import CLUSTER_TAG


def make_owners(
    groups: Mapping[str, OwnedGroupSettings],
    clients: Clients,
    cluster: str,
    now: datetime,
    *,
    stack_id: str,
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
        stack_id: As for `AutoScalingGroups`.
        counts: How many nodes each node group has by the cluster's file, where that is known. Default: - of none.
        also: Kinds of owners that are read though no node group has one.
        tag: The key of the tag that says what is the cluster's.
    """
    adapters: list[NodeOwner] = []
    kinds = {*also, *(group.owner_kind for group in groups.values())}
    named = {
        kind: Named(cluster=cluster, owners=owners_of(kind, groups), now=now, counts=counts or {}, tag=tag)
        for kind in kinds
    }
    if OwnerKind.AUTO_SCALING_GROUP in kinds:
        names = [name for name, group in groups.items() if group.owner_kind is OwnerKind.AUTO_SCALING_GROUP]
        made = (clients.auto_scaling(), clients.auto_scaling_once, clients.ec2)
        adapters.append(AutoScalingGroups(*made, cluster, names, stack_id=stack_id, tag=tag))
    for kind in OwnerKind:
        if kind in kinds and kind in _NAMED:
            adapters.append(_NAMED[kind](clients, named[kind]))
    return Owners(adapters)


_NAMED: Mapping[OwnerKind, Callable[[Clients, Named], NodeOwner]] = {
    OwnerKind.SPOT_FLEET: lambda clients, named: SpotFleets(clients.ec2(), named),
    OwnerKind.PCS_COMPUTE_NODE_GROUP: lambda clients, named: PcsComputeNodeGroups(
        clients.pcs(), clients.ec2(), named
    ),
    OwnerKind.EKS_NODEGROUP: lambda clients, named: EksNodegroups(
        clients.eks(), clients.auto_scaling(), clients.auto_scaling_once, named
    ),
    OwnerKind.HYPERPOD_INSTANCE_GROUP: lambda clients, named: HyperPodInstanceGroups(clients.sagemaker(), named),
    OwnerKind.BATCH_COMPUTE_ENVIRONMENT: lambda clients, named: BatchComputeEnvironments(
        clients.batch(), clients.ec2(), named
    ),
}
"""Makes the adapter of each kind whose owners the settings name."""
