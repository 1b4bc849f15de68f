"""What becomes of broken nodes: `health:` in a cluster file."""

from cdk_training_cluster import HealthPolicy
from cdk_training_cluster_file.derivation import ModelOf
from cdk_training_cluster_file.fields import Flag
from cdk_training_cluster_file.model_base import Settings


class HealthSettings(Settings, ModelOf[HealthPolicy]):
    """What the health function may do with broken nodes, and how long it waits."""

    act: Flag = False
    """Whether it reboots and replaces broken nodes. Left out: it only reports them."""

    max_repairs: int = 3
    """How many nodes of a node group are rebooted or replaced within the window at most: 1 to 100."""

    window_hours: int = 24
    """The hours in which these repairs are counted: 1 to 168."""

    drain_minutes: int = 15
    """How long the job of a broken node may take to save a checkpoint and end, before the node is rebooted or
    replaced: at most 1440."""

    verify_minutes: int = 20
    """How long a node may take from its reboot until it has passed its checks: 5 to 120. Then it is replaced."""

    grace_minutes: int = 5
    """How long the job of a node that Auto Scaling terminates may take to save a checkpoint and end: 1 to 8. A node
    without a job goes at once."""
