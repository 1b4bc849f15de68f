"""What the health function may do with broken nodes, and how long it waits."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from aws_cdk import Duration

from cdk_training_cluster.core.times import to_duration, to_time
from cdk_training_cluster.validation.bounds import Minutes, Whole
from cdk_training_cluster.validation.kinds import checked
from cluster_contract.health_settings import HealthPolicySettings

_DEFAULT = HealthPolicySettings()

MAX_REPAIRS = Whole(minimum=1, maximum=100, advice=": to repair nothing, leave act out")
WINDOW = Minutes(minimum=60, maximum=7 * 24 * 60)
DRAIN = Minutes(minimum=0, maximum=24 * 60)
VERIFY = Minutes(minimum=5, maximum=2 * 60)
# The power function reports nodes as too many that take more than 10 minutes to go, and has those of a Capacity Block
# go 10 minutes before EC2 begins to terminate them. Auto Scaling takes 30 to 7200 seconds.
# https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_PutLifecycleHook.html
GRACE = Minutes(minimum=1, maximum=8)
_GRACE = timedelta(minutes=5)


@checked
@dataclass(frozen=True, kw_only=True)
class HealthPolicy:
    """Say what the health function may do with broken nodes, and how long it waits.

    Attributes:
        act: Whether it reboots and replaces broken nodes; if not, it reports them only. Default: - it reports only.
        max_repairs: How many nodes of a node group are rebooted or replaced within the window at most: 1 to 100.
            Above that it only reports. Default: - 3.
        window: The time in which these repairs are counted: an hour to a week. Default: - 24 hours.
        drain_timeout: How long the job of a broken node may take to save a checkpoint and end, before the node is
            rebooted or replaced: at most 24 hours. Default: - 15 minutes.
        verify_timeout: How long a node may take from its reboot to the report that it passes its checks: 5 minutes
            to 2 hours. One that takes longer is replaced. Default: - 20 minutes.
        grace: How long the job of a node that Auto Scaling terminates, for a stop, a replacement or a smaller size,
            may take to save a checkpoint and end: 1 to 8 minutes. A node without a job goes at once.
            Default: - 5 minutes.

    Raises:
        ValueError: A setting is wrong; every reason, a line each.
    """

    act: bool = False
    max_repairs: Annotated[int, MAX_REPAIRS] = _DEFAULT.max_repairs
    window: Annotated[Duration, WINDOW] | None = None
    drain_timeout: Annotated[Duration, DRAIN] | None = None
    verify_timeout: Annotated[Duration, VERIFY] | None = None
    grace: Annotated[Duration, GRACE] | None = None

    @property
    def grace_seconds(self) -> float:
        """How long the job of a node that is terminated may take, in seconds."""
        return (self.grace or to_duration(_GRACE)).to_seconds()

    def to_contract(self) -> HealthPolicySettings:
        """Return the policy as the health function takes it."""
        return HealthPolicySettings(
            act=self.act,
            max_repairs=self.max_repairs,
            window=to_time(self.window or to_duration(_DEFAULT.window)),
            drain_timeout=to_time(self.drain_timeout or to_duration(_DEFAULT.drain_timeout)),
            verify_timeout=to_time(self.verify_timeout or to_duration(_DEFAULT.verify_timeout)),
        )

    def describe(self) -> str:
        """Say in a few words what the health function does with broken nodes."""
        settings = self.to_contract()
        if not self.act:
            return "reported, and neither rebooted nor replaced by the health function"
        hours = settings.window.total_seconds() / 3600
        return f"drained, then rebooted or replaced, at most {self.max_repairs} of a node group in {hours:g} hours"
