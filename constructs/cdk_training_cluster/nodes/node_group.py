"""The settings of a group of equal nodes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from os import PathLike
from typing import Annotated

from aws_cdk import aws_ec2 as ec2

from cdk_training_cluster.capacity import Capacity
from cdk_training_cluster.network import InterfaceLayout
from cdk_training_cluster.nodes.gpu_sharing import GpuSharing, SharingMethod
from cdk_training_cluster.nodes.idle_policy import IdlePolicy
from cdk_training_cluster.nodes.schedule import Schedule
from cdk_training_cluster.nodes.warm_pool import WarmPool
from cdk_training_cluster.validation.bounds import Form, Whole
from cdk_training_cluster.validation.checks import shown
from cdk_training_cluster.validation.kinds import checked
from cdk_training_cluster.validation.rule import refuse

MAX_VOLUME_GIB = 65_536
"""The largest gp3 volume: https://docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html"""

_NAME = Form(
    pattern=re.compile(r"[A-Za-z][A-Za-z0-9-]{0,62}"),
    wanted="up to 63 letters, digits and hyphens, a letter first",
)
UTILIZATION_COMMAND = Form(pattern=re.compile(r"[ -~]*[!-~][ -~]*"), wanted="a command of one line in ASCII")
COUNT = Whole(minimum=1, advice=": to have no nodes for a while, stop the group; to have none at all, remove it")
# Amazon Linux 2023's own root volume: no image with an accelerator's driver is smaller.
# https://docs.aws.amazon.com/linux/al2023/ug/ec2.html
ROOT_VOLUME_GIB = Whole(minimum=8, maximum=MAX_VOLUME_GIB)


def _types(setting: str, value: object) -> Iterator[str]:
    is_list = isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 0
    if not is_list or not all(isinstance(item, str) for item in value):  # type: ignore[attr-defined]  # a list here
        yield f"{setting} must be a list of EC2 types, such as ['p5.48xlarge'], got {shown(value)}"


class Placement(Enum):
    """Where EC2 puts the nodes of a group, relative to each other.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/placement-strategies.html
    """

    CLUSTER = "cluster"
    """Close together, in a placement group of their own: what a gang of nodes that talk over EFA needs."""

    NONE = "none"
    """Wherever there is room: right for nodes that work alone, such as a development box."""


@checked
@dataclass(frozen=True, kw_only=True)
class NodeGroup:
    """Say what a group of equal nodes is made of. `TrainingCluster` makes a `NodeFleet` of it.

    Attributes:
        name: The group's name: letters, digits and hyphens. It becomes a tag, and a part of the template's ids:
            a new name makes new nodes.
        instance_types: The EC2 types, best first: several for Spot and `Capacity.prioritized()`, else exactly one.
        count: How many nodes run when the cluster is on.
        capacity: How they are bought. Default: - `Capacity.on_demand()`.
        placement: Where EC2 puts them relative to each other. Default: - what suits the capacity:
            `Placement.CLUSTER` for `Capacity.on_demand()`, `Capacity.reservation()` and an existing reservation in
            a placement group, else `Placement.NONE`, as with `GpuSharing.mig()`.
        efa: Whether they get Elastic Fabric Adapters. Default: - if the type has them.
        interface_layout: How many interfaces have an IP address. Default: - one a node
            (`InterfaceLayout.IP_OPTIMISED`).
        idle_policy: When its nodes are idle and what becomes of them then. Default: - as the cluster's policy says.
        schedule: When they run. Default: - as the cluster's schedule says, and always where it has none.
        warm_pool: How many nodes may be kept stopped for a quick start. Default: - none: nodes are terminated.
        gpu_sharing: How several jobs share a GPU. Default: - a job takes whole GPUs.
        utilization_command: What prints how busy each accelerator is, as a percentage on a line of its own, of types
            with neither NVIDIA GPUs nor Neuron devices. It runs as root twice a minute. Default: - hl-smi for Gaudi,
            else none: then the idle function cannot judge the nodes.
        machine_image: The image. Default: - AWS's newest Deep Learning Base AMI for the type's architecture and
            accelerators, with a warning: it moves drivers under a running fleet at a later deployment.
        root_device_name: The root volume's device name in `machine_image`; a wrong one adds a volume and leaves
            the root as it is. Default: - that of AWS's image for the type, or `/dev/xvda` where AWS has none.
        root_volume_gib: The size of the encrypted gp3 root volume, in GiB. Default: - 200, or 512 with Neuron
            devices.
        environment: Environment variables of every login and job on the nodes. Default: - none but the library's.
        scripts_before: Files to run as root before a node is set up, in this order. Default: - none.
        scripts_after: Files to run as root when it is set up, in this order. Default: - none.

    Raises:
        ValueError: A setting that is wrong by itself; what depends on the types is checked by `NodeFleet`.
    """

    name: Annotated[str, _NAME] = field(kw_only=False)
    instance_types: Annotated[Sequence[str], _types]
    count: Annotated[int, COUNT]
    capacity: Capacity = field(default_factory=Capacity.on_demand)
    placement: Placement | None = None
    efa: bool | None = None
    interface_layout: InterfaceLayout = InterfaceLayout.IP_OPTIMISED
    idle_policy: IdlePolicy | None = None
    schedule: Schedule | None = None
    warm_pool: WarmPool | None = None
    gpu_sharing: GpuSharing | None = None
    utilization_command: Annotated[str, UTILIZATION_COMMAND] | None = None
    machine_image: ec2.IMachineImage | None = None
    root_device_name: str | None = None
    root_volume_gib: Annotated[int, ROOT_VOLUME_GIB] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    scripts_before: Sequence[str | PathLike[str]] = ()
    scripts_after: Sequence[str | PathLike[str]] = ()

    def __post_init__(self) -> None:
        """Check what settings demand of each other."""
        refuse({"root_device_name": self._device_problems(), "idle_policy": self._idle_problems()})

    @property
    def chosen_placement(self) -> Placement:
        """Where EC2 puts the nodes: as the user said, or as it suits the capacity."""
        if self.placement is not None:
            return self.placement
        if self.gpu_sharing is not None and self.gpu_sharing.method is SharingMethod.MIG:
            return Placement.NONE  # no job spans nodes
        return Placement.CLUSTER if self.capacity.keeps_together else Placement.NONE

    @property
    def reserves_in_placement_group(self) -> bool:
        """Whether a reservation is made for the nodes, in a placement group."""
        return self.capacity.makes_reservation and self.chosen_placement is not Placement.NONE

    def _device_problems(self) -> Iterator[str]:
        if self.root_device_name is not None and self.machine_image is None:
            yield (
                f"root_device_name must be left out for AWS's images, got {shown(self.root_device_name)}: leave it "
                "out, or give an image of your own"
            )

    def _idle_problems(self) -> Iterator[str]:
        for setting in ("max_stops", "max_unknown_share"):
            value = getattr(self.idle_policy, setting, None)
            if value is not None:
                yield (
                    f"{setting} of idle_policy must be left out for a node group, got {shown(value)}: it holds for "
                    "the whole cluster; give it to the cluster's idle_policy"
                )
