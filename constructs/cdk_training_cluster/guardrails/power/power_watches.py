"""What is alarmed on of the numbers that the power function reports."""

from cdk_training_cluster.functions import Watch
from cluster_contract.power import PowerMetric

POWER_WATCHES = (
    Watch(
        id="MissingNodes",
        metric=PowerMetric.MISSING_NODES,
        trouble="for 15 minutes fewer nodes have run than should",
        records="missing > 0",
        remedy="Each record names a node group and gives EC2's answer. If EC2 lacks capacity, the function asks "
        "again every 10 minutes; otherwise correct what the record names",
    ),
    Watch(
        id="SurplusNodes",
        metric=PowerMetric.SURPLUS_NODES,
        trouble="for 15 minutes more nodes have run, and been billed, than the power function wants",
        records="surplus > 0",
        remedy="Each record names a node group and the cause: the group was removed from the cluster's file, the "
        "process Terminate of its Auto Scaling group is suspended, or nodes are protected from scale-in. Remove "
        "that cause; terminate by hand only nodes whose group has the desired capacity 0, since others are replaced",
    ),
    Watch(
        id="HeldGroups",
        metric=PowerMetric.HELD_GROUPS,
        # An hour, of which some points may be missing.
        periods=12,
        datapoints=9,
        trouble="for an hour some node groups have not had the size that the power function set, and it does not "
        "change them",
        remedy="Run `training-cluster status $name`, which names them. Then give a group its count with "
        "`training-cluster start $name --node-group GROUP`, or end its nodes with `stop` instead",
    ),
    Watch(
        id="MixedGroups",
        metric=PowerMetric.MIXED_GROUPS,
        trouble="for 15 minutes nodes of one node group have run different versions of its launch template, and "
        "perhaps different images",
        remedy="Jobs go on. Run `training-cluster status $name` to see which group. When its jobs have saved a "
        "checkpoint, run `training-cluster stop $name --node-group GROUP --wait`, which loses what is on the nodes' "
        "disks, and then `start` instead",
    ),
)
