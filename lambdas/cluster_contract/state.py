"""The table in which a cluster's functions keep what has to outlive a run: its keys, and the parts of its items."""

from enum import StrEnum


class StateAttribute(StrEnum):
    """The attributes that every item of the table has."""

    PART = "part"
    """The partition key: what part of which cluster's state the item belongs to, as `StatePart.key` says."""

    NAME = "name"
    """The sort key: what the item is about, such as a node group."""

    VERSION = "version"
    """How often the item was written; a writer that has not seen the newest one is refused."""

    EXPIRES = "expires"
    """When DynamoDB may delete the item, in seconds since 1970. Without it an item stays."""


class StatePart(StrEnum):
    """The parts of a cluster's state. Each is written by one function."""

    def key(self, cluster: str) -> str:
        """Return the partition key of this part of one cluster's state: clusters may share a table."""
        return f"{self.value}#{cluster}"

    POWER = "power"
    """Which node groups are stopped, and what the power function did with each: an item for each node group."""

    IDLE = "idle"
    """The warnings that the idle function has sent, and its reminders: an item for each."""

    SPEND = "spend"
    """What the cluster has cost: an item for each month."""

    COSTS = "costs"
    """Which report of the cluster's bill was sent last: one item."""

    HYDRATION = "hydration"
    """How far the data sets are hydrated: one item."""

    HEALTH = "health"
    """Which nodes are under repair, which repairs there were, and the serials of bad hosts: an item for each node, an
    item for each node group, and an item for each serial."""


class Sender(StrEnum):
    """Who has ordered the state of a node group, where that is no operator: the attribute `by` of its item."""

    SCHEDULE = "its schedule"
    """The power function, at an edge of the node group's schedule."""

    IDLE = "cluster_idle"
    """The idle function."""

    BUDGET = "cluster_spend"
    """The spend function, for the budget."""

    POWER = "cluster_power"
    """The power function, where no command has set a state."""


class PowerState(StrEnum):
    """Whether a node group is meant to run: the attribute `state` of its item."""

    RUNNING = "running"
    """It has its count."""

    LIMITED = "limited"
    """It has at most the nodes that it had when it was limited."""

    STOPPED = "stopped"
    """It has no nodes."""
