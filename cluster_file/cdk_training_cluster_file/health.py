"""What becomes of broken nodes: `health:` in a cluster file."""

from typing import Annotated

from aws_cdk import Duration

from cdk_training_cluster import HealthPolicy
from cdk_training_cluster.guardrails.health.health_policy import DRAIN, GRACE, MAX_REPAIRS, VERIFY, WINDOW_HOURS
from cdk_training_cluster_file.fields import Flag
from cdk_training_cluster_file.forms import within
from cdk_training_cluster_file.model_base import Settings


class HealthSettings(Settings):
    """What the health function may do with broken nodes, and how long it waits."""

    act: Flag = False
    """Whether it reboots and replaces broken nodes. Left out: it only reports them."""

    max_repairs: Annotated[int, within(MAX_REPAIRS)] = 3
    """How many nodes of a node group are rebooted or replaced within the window at most: 1 to 100."""

    window_hours: Annotated[int, within(WINDOW_HOURS)] = 24
    """The hours in which these repairs are counted: 1 to 168."""

    drain_minutes: Annotated[int, within(DRAIN)] = 15
    """How long the job of a broken node may take to save a checkpoint and end, before the node is rebooted or
    replaced: at most 1440."""

    verify_minutes: Annotated[int, within(VERIFY)] = 20
    """How long a node may take from its reboot until it has passed its checks: 5 to 120. Then it is replaced."""

    grace_minutes: Annotated[int, within(GRACE)] = 5
    """How long the job of a node that Auto Scaling terminates may take to save a checkpoint and end: 1 to 8. A node
    without a job goes at once."""

    def to_policy(self) -> HealthPolicy:
        """Return the policy as the constructs take it."""
        return HealthPolicy(
            act=self.act,
            max_repairs=self.max_repairs,
            window=Duration.hours(self.window_hours),
            drain_timeout=Duration.minutes(self.drain_minutes),
            verify_timeout=Duration.minutes(self.verify_minutes),
            grace=Duration.minutes(self.grace_minutes),
        )
