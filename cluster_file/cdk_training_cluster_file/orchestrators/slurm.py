"""The settings of Slurm on AWS PCS in a cluster file."""

from typing import Annotated, Literal, Unpack

from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from constructs import Construct
from pydantic import Field

from cdk_training_cluster import LoginNodes, SlurmNodes, SlurmQueue, TrainingCluster
from cdk_training_cluster import SlurmSettings as Slurm
from cdk_training_cluster.cluster.arguments import TrainingClusterArguments
from cdk_training_cluster.cluster.orchestrator import Orchestrator
from cdk_training_cluster_file import fields
from cdk_training_cluster_file.derivation import ModelOf
from cdk_training_cluster_file.fields import LATEST, Flag
from cdk_training_cluster_file.model_base import Settings
from cdk_training_cluster_file.orchestrators.orchestrator_model import OrchestratorModel

_Own = dict[str, str]


class SlurmQueueSettings(Settings, ModelOf[SlurmQueue]):
    """A queue: one Slurm partition."""

    name: str = Field(examples=["train"])
    """The queue's name: 3 to 25 letters, digits and hyphens."""

    node_groups: Annotated[tuple[str, ...], Field(min_length=1)] | None = Field(default=None, examples=[["workers"]])
    """The node groups whose nodes its jobs use. Left out: all of them."""

    priority_tier: int = 1
    """Jobs of a higher tier start first: 0 to 65533."""

    preemption: Literal["off", "requeue", "cancel"] = "off"
    """What becomes of its running jobs when a queue of a higher tier needs their nodes: they go on, they end and wait
    for nodes again, or they end."""

    grace_minutes: float | None = Field(default=None, examples=[5])
    """How long a job that is preempted has to write a checkpoint, after the signal that it asked for. Left out: 5
    where jobs are preempted."""

    max_minutes: int | None = Field(default=None, examples=[2880])
    """How long a job may run. Left out: without limit."""

    power_down_on_idle: Flag = False
    """Whether a node ends as soon as its job did, where Slurm launches nodes for jobs."""

    custom_settings: _Own = Field(default={}, examples=[{"DefaultTime": "60"}])
    """More settings of the queue, in Slurm's names."""


class SlurmNodeSettings(Settings, ModelOf[SlurmNodes]):
    """What Slurm knows of a node group beside its types and count."""

    fixed: Flag | None = None
    """Whether all its nodes run as long as the cluster is on; else Slurm launches a node for a job. Left out: true
    for reservations, Capacity Blocks and GPUs in MIG mode."""

    scale_down_idle_minutes: float | None = Field(default=None, examples=[30])
    """How long a node that Slurm launched waits for a job before it ends. Left out: as for the cluster."""

    custom_settings: _Own = Field(default={}, examples=[{"Weight": "10"}])
    """Settings of the nodes, in Slurm's names."""


class LoginSettings(Settings, ModelOf[LoginNodes], names={"image": "machine_image"}):
    """The nodes that users log in to."""

    instance_type: str = "m7i.2xlarge"
    """Their EC2 type, without accelerators."""

    image: fields.Image = Field(default=LATEST, examples=["latest", "ami-0a1b2c3d4e5f67890"])
    """An image's id, which pins it, or `latest` for AWS's newest PCS-ready Deep Learning image: then a deployment
    after AWS publishes one replaces the login nodes, and what users run on them ends."""

    count: int = 1
    """How many there are; 0 for none."""

    root_volume_gib: int = 100
    """The size of the encrypted gp3 root volume in GiB."""

    def to_image(self, region: str | None) -> ec2.IMachineImage | None:
        """Return the image that is pinned.

        Args:
            region: The region that it is in.
        """
        if region is None or self.image == LATEST:
            return None
        return ec2.MachineImage.generic_linux({region: self.image})


class SlurmSettings(OrchestratorModel, ModelOf[Slurm]):
    """Slurm on AWS PCS."""

    version: Literal["25.11", "26.05"] = "25.11"
    """Slurm's version."""

    queues: tuple[SlurmQueueSettings, ...] = Field(default=(), examples=[[{"name": "train"}]])
    """The queues; jobs that name none go to the first. Left out: a queue for each node group, of its name."""

    node_groups: dict[str, SlurmNodeSettings] = Field(default={}, examples=[{"workers": {"fixed": True}}])
    """More about node groups, by name."""

    scale_down_idle_minutes: float = 10
    """How long a node that Slurm launched waits for a job before it ends."""

    health_check_minutes: float = 1
    """How often each node looks for files that drain it, and for Neuron and EFA devices: 1 to 60."""

    requeue_exit_codes: tuple[int, ...] = (99,)
    """Exit codes with which a job asks to run again."""

    accounting: Flag = True
    """Whether AWS PCS keeps the records of jobs, for sacct; it bills that by the hour."""

    accounting_days: int | None = Field(default=None, examples=[365])
    """How many days it keeps them. Left out: as long as the cluster exists."""

    size: Literal["small", "medium", "large"] | None = None
    """The size of the controller: at most 32, 512 or 2,048 nodes, login nodes among them. Another size makes a new
    cluster without the queues and records of the old one. Left out: the smallest that has room for all nodes."""

    login: LoginSettings = LoginSettings()
    """The nodes that users log in to."""

    custom_settings: _Own = Field(default={}, examples=[{"MinJobAge": "600"}])
    """More settings of the cluster, in Slurm's names."""

    def to_slurm(self, region: str | None = None) -> Slurm:
        """Return the settings as the construct takes them.

        Args:
            region: The region that an image of the login nodes is in. None: for the rules, which need no image.
        """
        return self.for_constructs(login=self.login.for_constructs(machine_image=self.login.to_image(region)))

    def to_orchestrator(self) -> Orchestrator:
        """Return the orchestrator as the rules ask it."""
        from cdk_training_cluster.orchestrators.slurm.slurm_orchestrator import SlurmOrchestrator  # noqa: PLC0415 - only for its clusters

        return SlurmOrchestrator(self.to_slurm())

    def make_cluster(
        self, scope: Construct, id: str, **arguments: Unpack[TrainingClusterArguments]
    ) -> TrainingCluster:
        """Make the cluster."""
        from cdk_training_cluster import SlurmCluster  # noqa: PLC0415 - only for its clusters

        return SlurmCluster(scope, id, slurm=self.to_slurm(Stack.of(scope).region), **arguments)
