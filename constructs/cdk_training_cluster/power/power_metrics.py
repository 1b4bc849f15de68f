"""The names under which the power function reports.

Plain data; namespace and dimensions are those of the nodes. A test compares what the function writes with
what is written here.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class PowerMetrics:
    """The metrics of the power function, one point a minute each.

    Attributes:
        missing_nodes: How many nodes should run and do not, by cluster and by node group.
        surplus_nodes: How many nodes live, and are billed, beyond those that should, likewise.
        running_nodes: How many nodes are in service, by cluster and by node group.
        held_groups: How many node groups have a size that somebody else gave them, by cluster.
        mixed_groups: How many node groups have nodes of different launch template versions, by cluster.
        successful_ticks: 1 for a tick in which nothing failed, else 0, by cluster.
    """

    missing_nodes: str
    surplus_nodes: str
    running_nodes: str
    held_groups: str
    mixed_groups: str
    successful_ticks: str


POWER_METRICS = PowerMetrics(
    missing_nodes="MissingNodes",
    surplus_nodes="SurplusNodes",
    running_nodes="RunningNodes",
    held_groups="HeldGroups",
    mixed_groups="MixedGroups",
    successful_ticks="SuccessfulTicks",
)
"""What the power function of this library reports."""
