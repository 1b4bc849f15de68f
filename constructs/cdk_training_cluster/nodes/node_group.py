"""The settings of a group of equal nodes."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from os import PathLike

from aws_cdk import aws_ec2 as ec2

from cdk_training_cluster.capacity import Capacity
from cdk_training_cluster.checks import (
    choice_problems,
    flag_problems,
    interface_problems,
    kind_problems,
    list_problems,
    shown,
    whole_number_problems,
)
from cdk_training_cluster.network import InterfaceLayout
from cdk_training_cluster.nodes.idle_policy import IdlePolicy
from cdk_training_cluster.nodes.warm_pool import WarmPool
from cdk_training_cluster.validation.rule import refuse

MAX_VOLUME_GIB = 65_536
"""The largest gp3 volume: https://docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html"""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,62}")


class Placement(Enum):
    """Where EC2 puts the nodes of a group, relative to each other.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/placement-strategies.html
    """

    CLUSTER = "cluster"
    """Close together, in a placement group of their own: what a gang of nodes that talk over EFA needs."""

    NONE = "none"
    """Wherever there is room: right for nodes that work alone, such as a development box."""


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
            a placement group, else `Placement.NONE`.
        efa: Whether they get Elastic Fabric Adapters. Default: - if the type has them.
        interface_layout: How many interfaces have an IP address. Default: - one a node
            (`InterfaceLayout.IP_OPTIMISED`).
        idle_policy: When its nodes are idle and what becomes of them then. Default: - as the cluster's policy says.
        warm_pool: How many nodes may be kept stopped for a quick start. Default: - none: nodes are terminated.
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

    name: str = field(kw_only=False)
    instance_types: Sequence[str]
    count: int
    capacity: Capacity = field(default_factory=Capacity.on_demand)
    placement: Placement | None = None
    efa: bool | None = None
    interface_layout: InterfaceLayout = InterfaceLayout.IP_OPTIMISED
    idle_policy: IdlePolicy | None = None
    warm_pool: WarmPool | None = None
    machine_image: ec2.IMachineImage | None = None
    root_device_name: str | None = None
    root_volume_gib: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    scripts_before: Sequence[str] = ()
    scripts_after: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Check the settings that need no other."""
        found: dict[str, Iterable[str]] = {
            "name": _name_problems(self.name),
            "instance_types": list_problems(
                "instance_types", self.instance_types, "EC2 types, such as ['p5.48xlarge']"
            ),
            "count": whole_number_problems(
                f"count of node group {self.name!r}",
                self.count,
                minimum=1,
                advice=": to have no nodes for a while, stop the group; to have none at all, remove it",
            ),
            "capacity": kind_problems("capacity", self.capacity, Capacity, "Capacity.on_demand()"),
            "placement": [] if self.placement is None else choice_problems("placement", self.placement, Placement),
            "efa": [] if self.efa is None else flag_problems("efa", self.efa),
            "interface_layout": choice_problems("interface_layout", self.interface_layout, InterfaceLayout),
            "warm_pool": []
            if self.warm_pool is None
            else kind_problems("warm_pool", self.warm_pool, WarmPool, "WarmPool(size=2)"),
            "idle_policy": _idle_problems(self.idle_policy),
            "root_volume_gib": []
            if self.root_volume_gib is None
            else whole_number_problems("root_volume_gib", self.root_volume_gib, minimum=1, maximum=MAX_VOLUME_GIB),
            "machine_image": _image_problems(self.machine_image),
            "root_device_name": _device_problems(self.root_device_name, self.machine_image),
            "environment": _environment_problems(self.environment),
            "scripts_before": _files_problems("scripts_before", self.scripts_before),
            "scripts_after": _files_problems("scripts_after", self.scripts_after),
        }
        refuse(found)

    @property
    def chosen_placement(self) -> Placement:
        """Where EC2 puts the nodes: as the user said, or as it suits the capacity."""
        if self.placement is not None:
            return self.placement
        return Placement.CLUSTER if self.capacity.keeps_together else Placement.NONE


def _name_problems(name: object) -> Iterator[str]:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        yield f"name must start with a letter and hold up to 63 letters, digits and hyphens, got {shown(name)}"


def _image_problems(image: object) -> list[str]:
    example = "ec2.MachineImage.generic_linux({'us-east-1': 'ami-0a1b2c3d4e5f67890'})"
    wanted = f"an image of ec2.MachineImage, such as {example}"
    return [] if image is None else interface_problems("machine_image", image, "get_image", wanted)


def _device_problems(device: object, image: object) -> Iterator[str]:
    if device is not None and not isinstance(device, str):
        yield f"root_device_name must be a device's name, such as '/dev/xvda', got {shown(device)}"
    elif device is not None and image is None:
        yield (
            f"root_device_name must be left out for AWS's images, got {shown(device)}: leave it out, or give an "
            "image of your own"
        )


def _idle_problems(policy: object) -> Iterator[str]:
    if policy is None:
        return
    if not isinstance(policy, IdlePolicy):
        yield from kind_problems("idle_policy", policy, IdlePolicy, "IdlePolicy(window=Duration.minutes(90))")
        return
    for setting in ("max_stops", "max_unknown_share"):
        value = getattr(policy, setting)
        if value is not None:
            yield (
                f"{setting} of idle_policy must be left out for a node group, got {shown(value)}: it holds for the "
                "whole cluster; give it to the cluster's idle_policy"
            )


def _environment_problems(given: object) -> Iterator[str]:
    if not isinstance(given, Mapping):
        yield f"environment must be a mapping of names to text, such as {{'NCCL_DEBUG': 'WARN'}}, got {shown(given)}"
        return
    for name, value in given.items():
        if not isinstance(name, str):
            yield f"environment names must be text, got {shown(name)}"
        elif not isinstance(value, str):
            yield f"environment values must be text, got {shown(value)} for {name}"


def _files_problems(setting: str, given: object) -> Iterator[str]:
    is_list = isinstance(given, Sequence) and not isinstance(given, str)
    if not is_list or not all(isinstance(item, str | PathLike) for item in given):  # type: ignore[attr-defined]  # a list here
        yield f"{setting} must be a list of files, such as ['setup.sh'], got {shown(given)}"
