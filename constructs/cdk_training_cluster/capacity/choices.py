"""The end of a reservation that has no time, and what happens to it while its group is stopped."""

from enum import Enum


class UntilCancelled(Enum):
    """A reservation's end that is no time."""

    UNTIL_CANCELLED = "until-cancelled"
    """The reservation lasts, and is billed, until it is taken out of the cluster."""


UNTIL_CANCELLED = UntilCancelled.UNTIL_CANCELLED
"""Says on purpose that a reservation has no end: `Capacity.reservation(end=UNTIL_CANCELLED)`."""


class OnIdle(Enum):
    """What happens to a reservation while its node group is stopped."""

    KEEP = "keep"
    """It is kept for the group, and billed as if the nodes ran."""

    RELEASE = "release"
    """It is lowered to one instance once the last node is gone, and raised again before the group starts, if EC2
    still has the capacity. One stays, and is billed: EC2 knows no reservation of none, and a cancelled one is gone
    for good."""
