"""What a user says of a cluster's Slurm."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Final

from aws_cdk import Duration
from aws_cdk import aws_ec2 as ec2

from cdk_training_cluster.orchestrators.slurm.allowed import settings_of
from cdk_training_cluster.validation.bounds import Form, Minutes, Whole
from cdk_training_cluster.validation.kinds import checked
from cdk_training_cluster.validation.rule import refuse

QUEUE_NAME: Final = Form(
    pattern=re.compile(r"[A-Za-z][A-Za-z0-9-]{2,24}"),
    wanted="3 to 25 letters, digits and hyphens, a letter first, such as 'train'",
)
"""https://docs.aws.amazon.com/pcs/latest/APIReference/API_CreateQueue.html"""

PRIORITY_TIER: Final = Whole(minimum=0, maximum=65_533)
"""https://slurm.schedmd.com/slurm.conf.html#OPT_PriorityTier"""

LOGIN_TYPE: Final = Form(
    pattern=re.compile(r"[a-z][a-z0-9-]*\.[a-z0-9-]+"), wanted="an EC2 type such as 'm7i.2xlarge'"
)

# The first letter after the generation is g with AWS Graviton; accelerators have families of their own.
# https://docs.aws.amazon.com/ec2/latest/instancetypes/instance-type-names.html
_GRAVITON: Final = re.compile(r"a1\.|[a-z]+\d+g[a-z]*\.")
_ACCELERATED: Final = re.compile(r"(?:p|g|gr|trn|inf|dl|vt|f)\d")

_YEAR = 365 * 24 * 60
GRACE_TIME: Final = Minutes(minimum=0, maximum=24 * 60)
MAX_TIME: Final = Minutes(minimum=1, maximum=_YEAR, step=1)
IDLE_TIME: Final = Minutes(minimum=1, maximum=_YEAR)
HEALTH_CHECK: Final = Minutes(minimum=1, maximum=60)
EXIT_CODE: Final = Whole(minimum=1, maximum=255)
ACCOUNTING_DAYS: Final = Whole(minimum=1, maximum=10_000)
LOGIN_COUNT: Final = Whole(minimum=0, maximum=10)
LOGIN_ROOT_GIB: Final = Whole(minimum=60, maximum=16_384)


class SlurmVersion(Enum):
    """Slurm's version; below 25.11 a job on a failed node waits minutes before it runs again.

    Source: https://docs.aws.amazon.com/pcs/latest/userguide/slurm-versions.html
    """

    V25_11 = "25.11"
    """Slurm 25.11."""

    V26_05 = "26.05"
    """Slurm 26.05, which also finds the sockets of nodes and the GPUs near each by itself."""


class Preemption(Enum):
    """What becomes of a queue's running jobs when a queue of a higher tier needs their nodes.

    Source: https://slurm.schedmd.com/preempt.html
    """

    OFF = "OFF"
    """They go on, and the other job waits."""

    REQUEUE = "REQUEUE"
    """They end after the grace time and wait for nodes again."""

    CANCEL = "CANCEL"
    """They end after the grace time."""


@checked
@dataclass(frozen=True, kw_only=True)
class SlurmQueue:
    """Say what jobs of a queue may use: one Slurm partition.

    Attributes:
        name: The queue's name: 3 to 25 letters, digits and hyphens.
        node_groups: The names of the node groups whose nodes it uses. Default: - all of the cluster.
        priority_tier: Jobs of a higher tier start first: 0 to 65533. Default: - 1.
        preemption: What becomes of its running jobs when a queue of a higher tier needs their nodes. Default: -
            `Preemption.OFF`: they go on.
        grace_time: How long a job that is preempted has to write a checkpoint. It gets the signal that it asked for
            with `--signal`, else SIGTERM. Default: - 5 minutes where jobs are preempted.
        max_time: How long a job may run. Default: - without limit.
        power_down_on_idle: Whether a node ends as soon as its job did, where nodes come and go with jobs.
            Default: - no: it waits for `scale_down_idle_time`.
        custom_settings: More settings, in Slurm's names. Default: - none.

    Raises:
        ValueError: A setting is wrong; every reason, a line each.
    """

    name: Annotated[str, QUEUE_NAME] = field(kw_only=False)
    node_groups: Sequence[str] | None = None
    priority_tier: Annotated[int, PRIORITY_TIER] = 1
    preemption: Preemption = Preemption.OFF
    grace_time: Annotated[Duration, GRACE_TIME] | None = None
    max_time: Annotated[Duration, MAX_TIME] | None = None
    power_down_on_idle: bool = False
    custom_settings: Annotated[Mapping[str, str], settings_of("a queue")] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check what settings demand of each other."""
        refuse({"grace_time": self._grace_problems(), "node_groups": self._group_problems()})

    def _grace_problems(self) -> Iterator[str]:
        if self.grace_time is not None and self.preemption is Preemption.OFF:
            yield (
                f"grace_time of queue {self.name!r} must be left out where preemption is off, got "
                f"{self.grace_time.to_human_string()}: leave it out, or set preemption to REQUEUE"
            )

    def _group_problems(self) -> Iterator[str]:
        if self.node_groups is not None and (
            not self.node_groups or len(set(self.node_groups)) < len(self.node_groups)
        ):
            yield (
                f"node_groups of queue {self.name!r} must name one or more node groups once each, got "
                f"{list(self.node_groups)}"
            )


@checked
@dataclass(frozen=True, kw_only=True)
class SlurmNodes:
    """Say what Slurm knows of a node group beside its types and count.

    Attributes:
        fixed: Whether all its nodes run as long as the cluster is on; else Slurm launches a node for a job and ends
            it when it was idle. Default: - yes for capacity that is paid for whether it is used or not
            (reservations and Capacity Blocks) and for GPUs in MIG mode, else no.
        scale_down_idle_time: How long a node that Slurm launched waits for a job before it ends. Default: - as the
            cluster's.
        custom_settings: Settings of the nodes, in Slurm's names. Default: - none.

    Raises:
        ValueError: A setting is wrong; every reason, a line each.
    """

    fixed: bool | None = None
    scale_down_idle_time: Annotated[Duration, IDLE_TIME] | None = None
    custom_settings: Annotated[Mapping[str, str], settings_of("a node group")] = field(default_factory=dict)


class SlurmSize(Enum):
    """The size of a cluster's controller.

    Source: https://docs.aws.amazon.com/pcs/latest/userguide/working-with_clusters_size.html
    """

    SMALL = "SMALL"
    """At most 32 nodes, login nodes among them, and 256 jobs."""

    MEDIUM = "MEDIUM"
    """At most 512 nodes and 8,192 jobs."""

    LARGE = "LARGE"
    """At most 2,048 nodes and 16,384 jobs."""

    @property
    def max_nodes(self) -> int:
        """The most nodes of the cluster, login nodes among them."""
        return {"SMALL": 32, "MEDIUM": 512, "LARGE": 2048}[self.value]


@checked
@dataclass(frozen=True, kw_only=True)
class LoginNodes:
    """Say what users log in to: nodes of the cluster that run no jobs.

    Attributes:
        instance_type: Their EC2 type, without accelerators. Default: - `m7i.2xlarge`.
        count: How many there are; 0 for none, and jobs are submitted from nodes of your own. Default: - 1.
        machine_image: Their image, with the agent of AWS PCS and Slurm. Default: - AWS's newest PCS-ready DLAMI for
            the architecture of the type.
        root_volume_gib: The size of the encrypted gp3 root volume, in GiB. Default: - 100.

    Raises:
        ValueError: A setting is wrong; every reason, a line each.

    Source: https://docs.aws.amazon.com/pcs/latest/userguide/working-with_login-nodes.html
    """

    instance_type: Annotated[str, LOGIN_TYPE] = "m7i.2xlarge"
    count: Annotated[int, LOGIN_COUNT] = 1
    machine_image: ec2.IMachineImage | None = None
    root_volume_gib: Annotated[int, LOGIN_ROOT_GIB] = 100

    @property
    def architecture(self) -> str:
        """The architecture of their type: `arm64` of Graviton families, `x86_64` of all others."""
        return "arm64" if _GRAVITON.match(self.instance_type) else "x86_64"

    @property
    def has_accelerators(self) -> bool:
        """Whether their type is of a family with accelerators."""
        return _ACCELERATED.match(self.instance_type) is not None


@checked
@dataclass(frozen=True, kw_only=True)
class SlurmSettings:
    """Say how Slurm runs a cluster's jobs.

    Attributes:
        version: Slurm's version. Default: - 25.11.
        queues: The queues; jobs that name none go to the first. Default: - a queue for each node group, of its name.
        node_groups: More about node groups, by name. Default: - nothing.
        scale_down_idle_time: How long a node that Slurm launched waits for a job before it ends. Default: - 10
            minutes.
        health_check_interval: How often each node looks for files that drain it, and for Neuron and EFA devices.
            Default: - 1 minute.
        requeue_exit_codes: Exit codes with which a job asks to run again. Default: - 99.
        accounting: Whether AWS PCS keeps the records of jobs, for `sacct` and `sacctmgr`; it bills that by the hour.
            Default: - yes.
        accounting_days: How many days it keeps them: 1 to 10000. Default: - as long as the cluster exists.
        size: The size of the controller, which bounds nodes and jobs; another size makes a new cluster, and its
            queues and records are gone. Default: - the smallest that has room for all nodes.
        login: The nodes that users log in to. Default: - one `m7i.2xlarge`.
        custom_settings: More settings of the cluster, in Slurm's names; items of `SchedulerParameters` and
            `PrologFlags` are added to the library's. Default: - none.

    Raises:
        ValueError: A setting is wrong; every reason, a line each.
    """

    version: SlurmVersion = SlurmVersion.V25_11
    queues: Sequence[SlurmQueue] = ()
    node_groups: Mapping[str, SlurmNodes] = field(default_factory=dict)
    scale_down_idle_time: Annotated[Duration, IDLE_TIME] = field(default_factory=lambda: Duration.minutes(10))
    health_check_interval: Annotated[Duration, HEALTH_CHECK] = field(default_factory=lambda: Duration.minutes(1))
    requeue_exit_codes: Sequence[Annotated[int, EXIT_CODE]] = (99,)
    accounting: bool = True
    accounting_days: Annotated[int, ACCOUNTING_DAYS] | None = None
    size: SlurmSize | None = None
    login: LoginNodes = field(default_factory=LoginNodes)
    custom_settings: Annotated[Mapping[str, str], settings_of("the cluster")] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check what settings demand of each other."""
        refuse({"accounting_days": self._accounting_problems()})

    def _accounting_problems(self) -> Iterator[str]:
        if self.accounting_days is not None and not self.accounting:
            yield (
                f"accounting_days must be left out where accounting is off, got {self.accounting_days}: leave it "
                "out, or leave accounting on"
            )

    def nodes_of(self, group: str) -> SlurmNodes:
        """Return what Slurm knows of a node group.

        Args:
            group: The node group's name.
        """
        return self.node_groups.get(group, SlurmNodes())
