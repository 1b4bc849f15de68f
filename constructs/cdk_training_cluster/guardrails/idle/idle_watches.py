"""What is alarmed on of the numbers that the idle function reports."""

from cdk_training_cluster.functions import Watch
from cluster_contract.idle import IdleMetric

IDLE_WATCHES = (
    Watch(
        id="UnknownNodes",
        metric=IdleMetric.UNKNOWN_NODES,
        trouble="for 15 minutes the idle function could not tell whether some nodes are idle, so it does not stop "
        "them",
        records="verdict = 'unknown'",
        remedy="Each record gives the reason for a node: most often its CloudWatch agent does not run, a GPU is in "
        "MIG mode or lost, or the library does not know how many GPUs its type has, which instance_type_facts state",
    ),
    Watch(
        id="Breaker",
        metric=IdleMetric.BREAKER,
        statistic="Maximum",
        periods=1,
        trouble="so many nodes lost their metrics within 15 minutes that the idle function warns of no node and "
        "stops none",
        remedy="Check that the CloudWatch agent runs on the nodes, and whether AWS Health reports an event of "
        "CloudWatch",
    ),
    Watch(
        id="StuckNodes",
        metric=IdleMetric.STUCK_NODES,
        trouble="for 15 minutes the idle function could not stop nodes that are due to be stopped, and they are "
        "billed",
        records="verdict in ['stop', 'unstoppable', 'managed'] and stopped = 0",
        remedy="Each record names a node and what prevents its stop, such as a suspended Terminate or a one-time "
        "Spot request. Remove that cause, or stop the node group through the power function; a member of an "
        "Auto Scaling group that is stopped in EC2 is replaced",
    ),
    Watch(
        id="LingeringNodes",
        metric=IdleMetric.LINGERING_NODES,
        # Three hours, with gaps: longer than any warning and launch takes that goes well. A group whose nodes keep
        # coming anew is warned of now and then.
        periods=36,
        datapoints=27,
        trouble="for most of three hours the accelerators of some nodes have been idle, or the nodes of a group have "
        "been replaced too often to be judged, and the nodes run on: their CPUs, network or sessions, other nodes of "
        "their group, or the limit on stops in a run may keep them",
        records="lingering = 1",
        remedy="Each record names a node, the reason, the signal and USD an hour. End what keeps the nodes, or stop "
        "the group",
    ),
    Watch(
        id="UnclearTags",
        metric=IdleMetric.UNCLEAR_TAGS,
        trouble="some nodes are kept running by tags whose end is not a clear time, such as keep-until = tomorrow",
        records="verdict = 'keep'",
        remedy="Each record names a node, and the tag that keeps it. Write a time with its zone, such as "
        "2026-11-30T18:00Z, into that tag, or remove it; the daily reminder of the alert topic holds the command",
    ),
    Watch(
        id="FailedNotifications",
        metric=IdleMetric.FAILED_NOTIFICATIONS,
        statistic="Maximum",
        periods=1,
        trouble="the alert topic does not deliver the idle function's warnings, and the function still stops nodes "
        "that it warned of before",
        remedy="If the alert topic refuses messages and no backup topic takes them, no further node is warned of or "
        "stopped; if it has no confirmed subscription, warnings and stops go on unread. Check the topic, its policy, "
        "its key and its subscriptions; the tag cdk-training-cluster:keep-until keeps a node until the time that it "
        "holds",
    ),
)

RESERVED_IDLE = Watch(
    id="ReservedIdle",
    metric=IdleMetric.DOLLARS_RESERVED,
    # An hour, with gaps: what is reserved for the next job may wait a while, and a run may fail now and then.
    periods=12,
    datapoints=9,
    threshold=0.01,
    trouble="some nodes in capacity reservations or Capacity Blocks have been idle for most of an hour, and are left "
    "running, since they cost the same if they were stopped",
    records="verdict = 'reserved'",
    remedy="Run jobs on them. A reservation that is no longer needed can be removed from the cluster's file or "
    "cancelled, which cannot be undone; a Capacity Block is paid for and cannot be cancelled",
)
