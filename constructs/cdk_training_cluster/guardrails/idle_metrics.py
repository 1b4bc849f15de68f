"""The names under which the idle stop reports.

Plain data; namespace and dimension are those of the nodes. A test compares what the function writes with what is
written here.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class IdleMetrics:
    """The metrics of the idle stop, by cluster, one point a run each.

    Attributes:
        idle_nodes: How many nodes are idle.
        stopped_nodes: How many this run stopped.
        warned_nodes: How many will be stopped unless somebody works on them or keeps them.
        deferred_nodes: How many a later run stops, since one run stops no more than it may.
        unknown_nodes: Of how many too little is known.
        stuck_nodes: How many are idle and cannot be stopped from here.
        lingering_nodes: How many run on though their accelerators have been idle for a window: they wait for young or
            unknown nodes of their group, for nodes that keep coming anew, or for their turn; or only CPUs, network
            or a session keep them or their group.
        reserved_nodes: How many are idle in reservations and Capacity Blocks, where a stop saves nothing; also
            those whose group works.
        dollars_saved: USD an hour that the nodes cost which this run stopped, where the price is known.
        dollars_reserved: USD an hour that nodes cost which are idle in reservations and blocks, likewise.
        evaluations: 1 for a run that could read everything its decisions rest on, else 0.
        breaker: 1 while so many nodes have just turned unknown that nothing is stopped, else 0.
        unclear_tags: How many tags keep nodes from being stopped without an end that is clear.
        failed_notifications: How many messages the alert topic did not take.
    """

    idle_nodes: str
    stopped_nodes: str
    warned_nodes: str
    deferred_nodes: str
    unknown_nodes: str
    stuck_nodes: str
    lingering_nodes: str
    reserved_nodes: str
    dollars_saved: str
    dollars_reserved: str
    evaluations: str
    breaker: str
    unclear_tags: str
    failed_notifications: str


IDLE_METRICS = IdleMetrics(
    idle_nodes="IdleNodes",
    stopped_nodes="IdleStoppedNodes",
    warned_nodes="IdleWarnedNodes",
    deferred_nodes="IdleDeferredNodes",
    unknown_nodes="IdleUnknownNodes",
    stuck_nodes="IdleStuckNodes",
    lingering_nodes="IdleLingeringNodes",
    reserved_nodes="IdleReservedNodes",
    dollars_saved="IdleDollarsSaved",
    dollars_reserved="IdleDollarsReserved",
    evaluations="IdleEvaluations",
    breaker="IdleBreaker",
    unclear_tags="IdleUnclearTags",
    failed_notifications="IdleFailedNotifications",
)
"""What the idle stop of this library reports."""
