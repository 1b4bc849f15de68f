"""How `cluster-run` ends where torchrun's own exit code does not say it; scripts may tell by it what to do next."""

from enum import IntEnum


class Exit(IntEnum):
    """An exit code, as sysexits.h numbers them."""

    USAGE = 64
    """The arguments, the environment or the installation are wrong, or another start trains the run."""

    NO_DATA = 66
    """The data set did not come: nothing was started."""

    UNFIT = 69
    """The node failed its verification, or its processes failed first too often: the job goes on without it."""

    BUDGET = 70
    """The run failed more often than its restart budget allows: it ended on all nodes."""

    AGAIN = 75
    """The node is drained, or the run was closed: start the job again, elsewhere."""
