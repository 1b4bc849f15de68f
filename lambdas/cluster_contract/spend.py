"""The settings of the spend function, which its construct writes, and the names of its metrics."""

from enum import StrEnum


class OnExceed(StrEnum):
    """What becomes of a cluster when its dollars reach the whole budget of a month."""

    NOTIFY = "notify"
    """Nothing but notifications."""

    NO_NEW_NODES = "no-new-nodes"
    """Node groups keep at most the nodes that they have."""

    STOP = "stop"
    """Node groups are stopped, after a warning."""
