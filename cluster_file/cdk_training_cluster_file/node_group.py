"""The settings of a node group in a cluster file."""

from pathlib import Path
from typing import Annotated, Literal

from aws_cdk import aws_ec2 as ec2
from pydantic import AfterValidator, Field, ValidationInfo

from cdk_training_cluster import NodeGroup, WarmPool
from cdk_training_cluster.nodes.rules.type_rules import MAX_TYPES
from cdk_training_cluster_file import fields
from cdk_training_cluster_file.capacity import CapacityChoice
from cdk_training_cluster_file.derivation import ModelOf
from cdk_training_cluster_file.fields import LATEST, Count, Flag
from cdk_training_cluster_file.gpu_sharing import GpuSharingSettings
from cdk_training_cluster_file.idle import NodeGroupIdleSettings
from cdk_training_cluster_file.model_base import Settings
from cdk_training_cluster_file.schedule import ScheduleSettings

_SCHEDULE = {"windows": ["weekdays 08:00-20:00 Europe/Berlin"]}


def _beside_the_file(name: str, info: ValidationInfo) -> str:
    directory: Path | None = (info.context or {}).get("directory")
    return name if directory is None else str(directory / name)


Script = Annotated[fields.ScriptName, AfterValidator(_beside_the_file)]


class WarmPoolSettings(Settings, ModelOf[WarmPool]):
    """Nodes that are kept stopped, set up already, so that a start of the group is quick."""

    size: Count = Field(examples=[2])
    """The most nodes in group and pool together while the group has fewer: at most its count. A stopped node
    bills its volumes; its capacity is given back, so starting it again can fail."""


class NodeGroupSettings(Settings, ModelOf[NodeGroup], names={"idle": "idle_policy", "image": "machine_image"}):
    """Nodes of one kind: the same types, bought in the same way, started and stopped together."""

    name: fields.NodeGroupName = Field(examples=["workers"])
    """The group's name, unique in this file."""

    instance_types: Annotated[tuple[fields.InstanceTypeName, ...], Field(min_length=1, max_length=MAX_TYPES)] = Field(
        examples=[["p5.48xlarge"]]
    )
    """The instance types, best first. One is usual: a training job wants nodes that are equal."""

    count: Count = Field(examples=[8])
    """How many nodes run while the cluster is on."""

    image: fields.Image = Field(examples=["latest", "ami-0a1b2c3d4e5f67890"])
    """An image's id, which pins it, or `latest` for AWS's newest Deep Learning image that fits the type:
    the next deployment may then move drivers, and says so in a warning."""

    capacity: CapacityChoice = Field(default="on_demand", validate_default=True)
    """How the nodes are bought: a word, or one key with the settings of that way to buy."""

    placement: Literal["cluster", "none"] | None = None
    """`cluster` puts the nodes close together, for the lowest latency; `none` suits a single node. Left out: what
    suits the capacity; a group bought on demand or with a new reservation is put close together."""

    warm_pool: WarmPoolSettings | None = None
    """Stopped nodes to start from, where AWS allows them. Left out: none."""

    gpu_sharing: GpuSharingSettings | None = Field(default=None, examples=[{"mig": "1g.10gb"}])
    """How several jobs share a GPU, with orchestrator slurm or eks. Left out: a job takes whole GPUs."""

    idle: NodeGroupIdleSettings | None = Field(default=None, examples=[{"window_minutes": 120}])
    """When its nodes are idle and what becomes of them then. Left out: as for the cluster."""

    schedule: ScheduleSettings | None = Field(default=None, examples=[_SCHEDULE])
    """When its nodes run. Left out: as for the cluster."""

    efa: Flag | None = None
    """Whether nodes get Elastic Fabric Adapters. Left out: they do if the type has any."""

    interface_layout: Literal["ip_optimised", "bandwidth_optimised"] = "ip_optimised"
    """How network interfaces are laid out: one IP address a node, or ordinary (ENA) interfaces on more of the
    network cards, for more bandwidth outside EFA."""

    utilization_command: fields.UtilizationCommand | None = Field(
        default=None, examples=["/usr/local/bin/utilization"]
    )
    """What prints how busy each accelerator is, as a percentage on a line of its own, of types with neither NVIDIA
    GPUs nor Neuron devices. Left out: hl-smi for Gaudi, else none: then the idle function cannot judge the nodes."""

    root_volume_gib: int | None = None
    """Size of the encrypted gp3 root volume in GiB. Left out: 200, or 512 with Neuron devices."""

    root_device_name: fields.DeviceName | None = None
    """The root device of an image of your own. Left out: what AWS's Deep Learning image for the type has,
    /dev/xvda with NVIDIA GPUs and /dev/sda1 with Neuron devices."""

    environment: dict[fields.VariableName, fields.VariableValue] = Field(
        default={}, examples=[{"NCCL_DEBUG": "WARN"}]
    )
    """Environment variables for everything that runs on the nodes."""

    scripts_before: tuple[Script, ...] = Field(default=(), examples=[["scripts/certificates.sh"]])
    """Scripts to run as root before a node is set up, in this order. Paths are relative to this file."""

    scripts_after: tuple[Script, ...] = Field(default=(), examples=[["scripts/start-agent.sh"]])
    """Scripts to run as root when the file system is mounted and all else is set up, in this order."""

    def to_node_group(self, region: str) -> NodeGroup:
        """Return the group as the constructs take it.

        Args:
            region: The region that an image of the user's own is in.

        Raises:
            ValueError: The settings contradict each other.
        """
        own = None if self.image == LATEST else ec2.MachineImage.generic_linux({region: self.image})
        return self.for_constructs(capacity=self.capacity.to_capacity(), machine_image=own)
