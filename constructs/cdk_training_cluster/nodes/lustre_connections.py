"""How many nodes a file system takes by EFA."""

from collections.abc import Iterable

from constructs import Construct

from cdk_training_cluster.core.acknowledgements import warn
from cdk_training_cluster.nodes.bootstrap import MAX_LUSTRE_INTERFACES, lustre_interfaces
from cdk_training_cluster.nodes.node_fleet import NodeFleet
from cdk_training_cluster.validation.checks import is_unknown


def warn_of_connections(scope: Construct, fleets: Iterable[NodeFleet]) -> None:
    """Warn where nodes make more connections by EFA than their file system takes.

    Args:
        scope: The cluster.
        fleets: Its nodes.
    """
    made = sum(map(_connections, fleets))
    if made > MAX_LUSTRE_INTERFACES:
        warn(
            scope,
            "fileSystemEfaConnections",
            f"the nodes make {made:,} EFA connections to the file system, which takes {MAX_LUSTRE_INTERFACES:,}: the "
            "set-up of further nodes fails while they cost money. Have fewer nodes, or a file system for each half.",
        )


def _connections(fleet: NodeFleet) -> int:
    group = fleet.node_group
    if group.efa is False or is_unknown(group.count):
        return 0
    return group.count * max(map(lustre_interfaces, fleet.instance_types))
