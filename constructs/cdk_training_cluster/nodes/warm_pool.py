"""Nodes that are kept stopped beside a group."""

from dataclasses import dataclass
from typing import Annotated

from cdk_training_cluster.validation.bounds import Whole
from cdk_training_cluster.validation.kinds import checked


@checked
@dataclass(frozen=True, kw_only=True)
class WarmPool:
    """Say how many nodes of a group are kept stopped, for a start that is quicker than a new node's.

    When the group shrinks, so many of its nodes are stopped instead of terminated; the others go. A stopped node
    costs its volumes and no more, but gives its capacity back: starting it again can fail. Its instance-store disks
    are empty then.

    With a group that is made or stopped there are nodes to keep ready at once: Auto Scaling launches up to `size`
    nodes, waits until they are set up, and stops them; each is billed for these minutes. Nodes of the pool are not in
    the power function's counts, nor in its alarms.

    Attributes:
        size: The most nodes in group and pool together while the group has fewer; at most the group's count.

    Raises:
        ValueError: The size is not a whole number of at least 1.

    Source: https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-warm-pools.html
    """

    size: Annotated[int, Whole(minimum=1, advice=": leave warm_pool out")]
