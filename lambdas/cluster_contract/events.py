"""How the functions mark, in their logs, what `training-cluster events` shows."""

from enum import StrEnum

EVENT_FIELD = "cluster_event"
"""The field of a log record that is an event; its value is an `Event`."""


class Event(StrEnum):
    """What an event is."""

    COMMAND = "command"
    """An operator or another function sent the power function a command: the record says who and why."""

    ACT = "act"
    """The function changed something by itself."""

    MESSAGE = "message"
    """The function sent a message to the alert topic."""

    NOTICE = "notice"
    """A node or AWS reported something about a node, or the function found it broken and leaves it: the record says
    what."""
