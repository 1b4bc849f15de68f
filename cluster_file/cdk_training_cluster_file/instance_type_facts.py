"""Facts about an instance type that is newer than the catalog, as DescribeInstanceTypes returns them."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from cdk_training_cluster.instance_types import Accelerator, AcceleratorKind, InstanceTypeInfo, NetworkCard
from cdk_training_cluster.validation.bounds import Number
from cdk_training_cluster_file import fields
from cdk_training_cluster_file.fields import Count, Flag, Whole
from cdk_training_cluster_file.forms import within
from cdk_training_cluster_file.model_base import Settings

FACTS_EXAMPLE = {
    "name": "p9.48xlarge",
    "vcpus": 192,
    "memory_mib": 2097152,
    "architectures": ["x86_64"],
    "network_cards": [{"index": 0, "interface_types": ["interface", "efa"], "baseline_gbps": 100}],
}
"""The least that is stated of a type."""

Gbps = Annotated[float, within(Number(minimum=0))]
"""A bandwidth in Gbps."""


class AcceleratorFacts(Settings):
    """Accelerators of one model in an instance."""

    kind: Literal["gpu", "neuron", "inference", "fpga", "media"] = Field(examples=["gpu"])
    """What they are: Trainium and Inferentia are `neuron`, other inference chips `inference`."""

    manufacturer: str = Field(examples=["NVIDIA"])
    """Who makes them, as EC2 spells it."""

    name: str = Field(examples=["H200"])
    """The model, as EC2 spells it."""

    count: Count = Field(examples=[8])
    """How many devices the operating system sees."""

    memory_mib: Count = Field(examples=[144384])
    """Memory of one device in MiB."""

    fraction: Annotated[float, within(Number(above=0, maximum=1))] = 1.0
    """The part of a physical device that one of these is."""

    cores_per_device: Count | None = None
    """NeuronCores on one device; Neuron only."""

    core_version: Count | None = None
    """The NeuronCore's version; Neuron only."""


class NetworkCardFacts(Settings):
    """One network card of an instance."""

    index: Whole = Field(examples=[0])
    """The card's number; 0 carries the primary interface."""

    maximum_interfaces: Count | None = Field(default=None, examples=[2])
    """How many interfaces fit on it. Left out: AWS does not say."""

    interface_types: tuple[Literal["interface", "efa", "efa-only"], ...] = Field(
        examples=[["interface", "efa", "efa-only"]]
    )
    """What may be attached to it."""

    baseline_gbps: Gbps = Field(examples=[100])
    """The card's own bandwidth in Gbps."""


class InstanceTypeFacts(Settings):
    """Facts about an instance type that is newer than the catalog; the answer of
    `aws ec2 describe-instance-types` has every value.
    """

    name: fields.InstanceTypeName = Field(examples=["p9.48xlarge"])
    """The type's name."""

    vcpus: Count = Field(examples=[192])
    """Default number of vCPUs."""

    memory_mib: Count = Field(examples=[2097152])
    """Memory in MiB."""

    architectures: Annotated[tuple[Literal["x86_64", "arm64"], ...], Field(min_length=1)] = Field(
        examples=[["x86_64"]]
    )
    """Processor architectures."""

    network_cards: Annotated[tuple[NetworkCardFacts, ...], Field(min_length=1)] = Field(
        examples=[[{"index": 0, "interface_types": ["interface", "efa", "efa-only"], "baseline_gbps": 100}]]
    )
    """The network cards, card 0 among them."""

    accelerators: tuple[AcceleratorFacts, ...] = ()
    """What accelerators it has. Left out: none."""

    instance_store_gb: Whole = 0
    """Size of all instance-store disks together in GB."""

    instance_store_disks: Whole = 0
    """How many instance-store disks it has."""

    instance_store_nvme: Flag = False
    """Whether those are NVMe disks."""

    usage_classes: tuple[str, ...] = ()
    """How it can be bought: `on-demand`, `spot`, `capacity-block`. Left out: not known."""

    placement_strategies: tuple[str, ...] = ()
    """The placement groups it goes into: `cluster`, `partition`, `spread`. Left out: not known."""

    maximum_efa_interfaces: Whole = 0
    """How many Elastic Fabric Adapters may be attached."""

    efa_placements: tuple[tuple[Whole, ...], ...] = ()
    """The sets of cards that AWS recommends for EFA. Left out: every card that takes one, in order."""

    ena_cards: tuple[Whole, ...] | None = None
    """The cards that get an ordinary interface of their own for full IP bandwidth. Left out: every further
    card that has room."""

    network_gbps: Gbps | None = None
    """Network bandwidth of the whole type in Gbps."""

    hypervisor: Literal["nitro", "xen"] | None = None
    """What it runs on. Left out: bare metal."""

    supported_root_device_types: tuple[str, ...] = ("ebs",)
    """What the root volume can be."""

    ultraserver_sizes: tuple[Count, ...] = ()
    """How many instances an UltraServer of the type may have. Left out: it is bought by the instance."""

    block_ends_early_minutes: Count = 30
    """How long before a Capacity Block's end AWS begins to terminate its instances, in minutes."""

    @model_validator(mode="after")
    def _agree_with_each_other(self) -> Self:
        self.to_info()
        return self

    def to_info(self) -> InstanceTypeInfo:
        """Return the facts as the constructs take them.

        Raises:
            ValueError: They contradict each other.
        """
        parts = {
            "accelerators": tuple(
                Accelerator(**{**dict(each), "kind": AcceleratorKind(each.kind)}) for each in self.accelerators
            ),
            "network_cards": tuple(NetworkCard(**dict(card)) for card in self.network_cards),
        }
        return InstanceTypeInfo(**{**dict(self), **parts}, source="the cluster file")
