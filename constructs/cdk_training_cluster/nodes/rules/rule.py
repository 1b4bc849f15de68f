"""What a rule about node groups is."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from cdk_training_cluster.instance_types import InstanceTypeInfo
from cdk_training_cluster.nodes.node_group import NodeGroup


class Level(Enum):
    """What a broken rule means."""

    ERROR = "error"
    """AWS refuses it, or it cannot do what it is for: nothing is made."""

    WARNING = "warning"
    """It is allowed, and will surprise."""


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What the rules about one node group look at.

    Attributes:
        group: The node group.
        infos: The facts about its types, in the order the user gave them.
        availability_zone: The cluster's zone. None: it is not known before the deployment.
    """

    group: NodeGroup
    infos: Sequence[InstanceTypeInfo]
    availability_zone: str | None = None


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One thing that AWS says about node groups.

    Attributes:
        id: The rule's name; a warning is acknowledged as `cdk-training-cluster:<id>`.
        source: Where AWS says so.
        find: Yields a sentence for each way in which a node group breaks the rule. What is not known before the
            deployment breaks none.
        level: What a broken rule means.
    """

    id: str
    source: str
    find: Callable[[Situation], Iterator[str]]
    level: Level = Level.ERROR
