"""What is known of an instance type."""

from dataclasses import dataclass
from enum import Enum

from cdk_training_cluster.validation.kinds import checked

_MAXIMUM_FRACTION = 1.0


class AcceleratorKind(Enum):
    """What an accelerator is, as EC2 DescribeInstanceTypes groups them."""

    GPU = "gpu"
    NEURON = "neuron"
    INFERENCE = "inference"
    FPGA = "fpga"
    MEDIA = "media"


@checked
@dataclass(frozen=True, kw_only=True)
class Accelerator:
    """Describes the accelerators of one model on a type.

    Attributes:
        kind: What it is; Trainium and Inferentia are `NEURON`, other inference chips `INFERENCE`.
        manufacturer: Who makes it, as EC2 spells it: `NVIDIA`, `AMD`, `AWS`, `Habana`, …
        name: The model, as EC2 spells it: `H100`, `Trainium2`, …
        count: How many devices the operating system sees.
        memory_mib: Memory of one device, in MiB.
        fraction: The part of a physical device that one of these is. Default: 1.0 - a whole one
        cores_per_device: NeuronCores on one device. Default: - no NeuronCores
        core_version: The NeuronCore's version: 1 on Inf1, 2 on Trn1 and Inf2, 3 on Trn2. Default: - no
            NeuronCores
    """

    kind: AcceleratorKind
    manufacturer: str
    name: str
    count: int
    memory_mib: int
    fraction: float = 1.0
    cores_per_device: int | None = None
    core_version: int | None = None

    def __post_init__(self) -> None:
        """Refuse counts and sizes that no accelerator has.

        Raises:
            ValueError: If count or memory_mib is not positive, or fraction not in (0, 1].
        """
        if self.count < 1 or self.memory_mib < 1:
            raise ValueError(
                f"Accelerator {self.name}: count and memory_mib must be positive, got {self.count} and "
                f"{self.memory_mib}"
            )
        if not 0 < self.fraction <= _MAXIMUM_FRACTION:
            raise ValueError(f"Accelerator {self.name}: fraction must be above 0 and at most 1, got {self.fraction}")


@checked
@dataclass(frozen=True, kw_only=True)
class NetworkCard:
    """Describes one network card of a type.

    Attributes:
        index: The card's index; 0 carries the primary interface.
        maximum_interfaces: How many interfaces fit on the card; None where AWS publishes only the type's
            total.
        interface_types: What may be attached to it: `interface` (ENA), `efa` (both in one), `efa-only`.
        baseline_gbps: The card's own bandwidth, in Gbps. The cards of a type need not add up to its
            `network_gbps`: p6-b200's say 200 each, which is their share for IP traffic.
    """

    index: int
    maximum_interfaces: int | None
    interface_types: tuple[str, ...]
    baseline_gbps: float

    def __post_init__(self) -> None:
        """Refuse a card that nothing fits on.

        Raises:
            ValueError: If maximum_interfaces is not positive.
        """
        if self.maximum_interfaces is not None and self.maximum_interfaces < 1:
            raise ValueError(
                f"NetworkCard {self.index}: maximum_interfaces must be at least 1, got {self.maximum_interfaces}"
            )

    @property
    def supports_efa(self) -> bool:
        """Whether an EFA fits on the card."""
        return "efa-only" in self.interface_types

    def has_room_for(self, interfaces: int) -> bool:
        """Whether so many interfaces fit on the card; true where AWS does not publish how many do.

        Args:
            interfaces: How many are wanted.
        """
        return self.maximum_interfaces is None or interfaces <= self.maximum_interfaces


@checked
@dataclass(frozen=True, kw_only=True)
class InstanceTypeInfo:
    """Holds the facts about an instance type that a cluster is built from.

    A type newer than the catalog can be described with one of these; the answer of
    `aws ec2 describe-instance-types` has every value.

    Attributes:
        name: The type, such as `p5.48xlarge`.
        vcpus: Default number of vCPUs.
        memory_mib: Memory, in MiB.
        architectures: `x86_64` or `arm64`.
        network_cards: The network cards, card 0 among them.
        accelerators: What accelerators it has. Default: - none
        instance_store_gb: Size of all instance-store disks together, in GB. Default: 0
        instance_store_disks: How many instance-store disks it has. Default: 0
        instance_store_nvme: Whether those are NVMe disks. Default: False
        usage_classes: How it can be bought: `on-demand`, `spot`, `capacity-block`. Default: - empty: not
            known
        placement_strategies: The placement groups it goes into: `cluster`, `partition`, `spread`. Default: -
            empty: not known
        maximum_efa_interfaces: How many EFAs may be attached. Default: 0 - it has no EFA
        efa_placements: The sets of cards that AWS recommends for EFA, its own example first. Default: - every
            card that takes EFA, in order, as many as `maximum_efa_interfaces`
        ena_cards: The cards that get an ENA interface of their own for full IP bandwidth, where AWS lists
            them. Default: - every further card that has room
        network_gbps: Network bandwidth of the whole type, in Gbps, as AWS advertises it (bursts where AWS
            says "up to"). Default: - not known
        hypervisor: `nitro` or `xen`. Default: - bare metal
        supported_root_device_types: What the root volume can be: `ebs`, `instance-store`. Default: `ebs`
        ultraserver_sizes: How many instances an UltraServer of the type can have: a Capacity Block of it is a whole
            one. Default: - empty: it comes in no UltraServer
        block_ends_early_minutes: How long before the end of a Capacity Block EC2 begins to terminate its
            instances, in minutes. Default: 30
        source: Where the facts are from. Default: `given by the user`
    """

    name: str
    vcpus: int
    memory_mib: int
    architectures: tuple[str, ...]
    network_cards: tuple[NetworkCard, ...]
    accelerators: tuple[Accelerator, ...] = ()
    instance_store_gb: int = 0
    instance_store_disks: int = 0
    instance_store_nvme: bool = False
    usage_classes: tuple[str, ...] = ()
    placement_strategies: tuple[str, ...] = ()
    maximum_efa_interfaces: int = 0
    efa_placements: tuple[tuple[int, ...], ...] = ()
    ena_cards: tuple[int, ...] | None = None
    network_gbps: float | None = None
    hypervisor: str | None = None
    supported_root_device_types: tuple[str, ...] = ("ebs",)
    ultraserver_sizes: tuple[int, ...] = ()
    block_ends_early_minutes: int = 30
    source: str = "given by the user"

    def __post_init__(self) -> None:
        """Refuse facts that contradict each other.

        Raises:
            ValueError: If cards are missing or doubled, a list of cards names one that is not there or
                cannot do it, or a value about Capacity Blocks is not positive.
        """
        cards = {card.index: card for card in self.network_cards}
        if len(cards) != len(self.network_cards):
            raise ValueError(f"{self.name}: network_cards must have an index of its own each, got {self._indexes()}")
        if 0 not in cards or "interface" not in cards[0].interface_types:
            raise ValueError(
                f"{self.name}: network_cards must have a card 0 that takes the primary 'interface', got "
                f"{self._indexes()}"
            )
        capable = [index for index, card in cards.items() if card.supports_efa]
        if not 0 <= self.maximum_efa_interfaces <= len(capable):
            raise ValueError(
                f"{self.name}: maximum_efa_interfaces must be 0 to {len(capable)}, as many as network_cards "
                f"take 'efa-only', got {self.maximum_efa_interfaces}"
            )
        for placement in self.efa_placements:
            if not set(placement) <= set(capable) or len(placement) > self.maximum_efa_interfaces:
                raise ValueError(
                    f"{self.name}: efa_placements must name at most {self.maximum_efa_interfaces} cards that "
                    f"take 'efa-only', got {list(placement)}"
                )
        for index in self.ena_cards or ():
            if index == 0 or index not in cards or "interface" not in cards[index].interface_types:
                raise ValueError(
                    f"{self.name}: ena_cards must name cards beyond 0 that take 'interface', got {index}"
                )
        if any(size < 1 for size in self.ultraserver_sizes):
            raise ValueError(
                f"{self.name}: ultraserver_sizes must be at least 1 each, got {list(self.ultraserver_sizes)}"
            )
        if self.block_ends_early_minutes < 1:
            raise ValueError(
                f"{self.name}: block_ends_early_minutes must be at least 1, got {self.block_ends_early_minutes}"
            )

    @property
    def nvidia_gpu_count(self) -> int:
        """How many NVIDIA GPUs the operating system sees, whole ones or parts."""
        return sum(
            accelerator.count
            for accelerator in self.accelerators
            if accelerator.kind is AcceleratorKind.GPU and accelerator.manufacturer == "NVIDIA"
        )

    @property
    def has_nvidia_gpus(self) -> bool:
        """Whether it has NVIDIA GPUs, whole or in part."""
        return self.nvidia_gpu_count > 0

    @property
    def neuron_device_count(self) -> int:
        """How many Trainium or Inferentia chips the operating system sees."""
        return sum(each.count for each in self.accelerators if each.kind is AcceleratorKind.NEURON)

    @property
    def has_neuron_devices(self) -> bool:
        """Whether it has Trainium or Inferentia chips."""
        return self.neuron_device_count > 0

    @property
    def is_accelerated(self) -> bool:
        """Whether it has any accelerator."""
        return bool(self.accelerators)

    @property
    def supports_efa(self) -> bool:
        """Whether an EFA can be attached."""
        return self.maximum_efa_interfaces > 0

    def allows_placement(self, strategy: str) -> bool:
        """Whether the type goes into such a placement group; true where AWS does not say that it does not.

        Args:
            strategy: `cluster`, `partition` or `spread`.
        """
        return not self.placement_strategies or strategy in self.placement_strategies

    @property
    def efa_cards(self) -> tuple[int, ...]:
        """The cards that carry an EFA each when the type is given all the EFA bandwidth it has."""
        if self.efa_placements:
            return self.efa_placements[0]
        capable = sorted(card.index for card in self.network_cards if card.supports_efa)
        return tuple(capable[: self.maximum_efa_interfaces])

    def _indexes(self) -> list[int]:
        return [card.index for card in self.network_cards]
