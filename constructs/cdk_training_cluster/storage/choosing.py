"""Chooses a file system for people who think in needs: the smallest of each kind that meets them, and its price."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from math import ceil
from typing import Annotated, Any

from cdk_training_cluster.instance_types import InstanceTypeInfo, instance_type_info
from cdk_training_cluster.nodes.bootstrap import MAX_LUSTRE_INTERFACES, lustre_interfaces
from cdk_training_cluster.prices import PriceBook, committed_prices
from cdk_training_cluster.storage.deployment_types import (
    KINDS,
    MAX_THROUGHPUT_MBPS,
    FileSystemKind,
)
from cdk_training_cluster.storage.file_system_settings import FileSystemSettings
from cdk_training_cluster.validation.bounds import Number, Whole, written
from cdk_training_cluster.validation.kinds import checked

# Gigabits a second between one client and the file system:
# https://docs.aws.amazon.com/fsx/latest/LustreGuide/performance.html#throughput-clients
_CLIENT_GBITS, _CLIENT_GBITS_EFA = 100, 700
# AWS recommends EFA for file systems of more: the same page.
EFA_ABOVE_GBPS = 10
# https://docs.aws.amazon.com/fsx/latest/LustreGuide/configure-efa-clients.html
_GPUDIRECT_FAMILIES = frozenset({"p5", "p5e", "p5en", "p6-b200"})

# GiB of storage of a deployment type and storage class in an account and region:
# https://docs.aws.amazon.com/fsx/latest/LustreGuide/limits.html
DEFAULT_QUOTA_GIB = 100_800
# Far above what FSx makes, and small enough to count with.
_MAX_GIB, _MAX_NODES = 10**9, 10**6
_NOT_FOR_NEW = "SCRATCH_1"
_GIB_IN_TIB, _MB_IN_GB, _BITS = Decimal(1024), Decimal(1000), Decimal(8)


@dataclass(frozen=True, kw_only=True)
class StorageNeed:
    """What training needs of a file system.

    Attributes:
        dataset_gib: How much data it has to hold, in GiB, as they are: compression is not counted.
        gbps: What all nodes together read, in gigabytes (10^9 bytes) a second.
        nodes: How many nodes read.
        info: What is known of their type.
        region: The region whose prices count.
    """

    dataset_gib: int
    gbps: Decimal
    nodes: int
    info: InstanceTypeInfo
    region: str

    @property
    def readers(self) -> str:
        """The nodes, as people write them: `8 x p5.48xlarge`."""
        return f"{self.nodes} x {self.info.name}"

    @property
    def efa_clients(self) -> bool:
        """Whether all the nodes reach an EFA-enabled file system by EFA."""
        return 0 < self.efa_connections <= MAX_LUSTRE_INTERFACES

    @property
    def efa_connections(self) -> int:
        """How many connections by EFA the nodes would make; 0: they reach a file system over TCP alone."""
        return self.nodes * lustre_interfaces(self.info)

    def reachable_gbps(self, *, efa: bool) -> Decimal:
        """Return what all nodes can read together, however fast the file system is.

        Args:
            efa: Whether they read by EFA.
        """
        gbits, share = Decimal(_CLIENT_GBITS), Decimal(1)
        if efa:
            gbits, share = Decimal(_CLIENT_GBITS_EFA), Decimal(lustre_interfaces(self.info))
            share /= len(self.info.network_cards)
        if self.info.network_gbps is not None:
            gbits = min(gbits, Decimal(str(self.info.network_gbps)) * share)
        return self.nodes * gbits / _BITS


@dataclass(frozen=True, kw_only=True)
class StorageOption:
    """The smallest file system of one kind that holds the data and is as fast as needed.

    Attributes:
        need: What it is for.
        made: The settings that make it.
        kind: What its deployment type and storage class can do.
        usd_a_month: What it costs a month. None: a price is unknown, or it is billed by what is stored and read.
        price_regions: The regions whose prices were taken.
        unknown_prices: The names of the prices that are unknown.
    """

    need: StorageNeed
    made: FileSystemSettings
    kind: FileSystemKind
    usd_a_month: Decimal | None = None
    price_regions: tuple[str, ...] = ()
    unknown_prices: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its kind, as people write it: `PERSISTENT_2 SSD 250 MB/s/TiB, EFA`."""
        per_tib = "" if self.made.throughput_mbps_per_tib is None else f" {self.made.mbps_per_tib} MB/s/TiB"
        return f"{self.kind.deployment_type} {self.kind.storage_type}{per_tib}{', EFA' if self.efa else ''}"

    @property
    def settings(self) -> Mapping[str, object]:
        """The settings of `TrainingFileSystem`, and of `file_system` in a cluster file, that are not the defaults."""
        given = {each.name: getattr(self.made, each.name) for each in fields(self.made)}
        return {name: value for name, value in given.items() if value != getattr(FileSystemSettings, name)}

    @property
    def efa(self) -> bool:
        """Whether it is EFA-enabled."""
        return self.made.efa_enabled

    @property
    def capacity_gib(self) -> int | None:
        """Its storage capacity. None: it grows and shrinks with the data."""
        return self.made.capacity_gib

    @property
    def gbps(self) -> Decimal:
        """What its disks give, in GB/s: a TiB is 1,024 GiB here, while AWS's examples count 1,000."""
        return (self.made.total_mbps or Decimal(0)) / _MB_IN_GB

    @property
    def delivered_gbps(self) -> Decimal:
        """What the nodes get of it, in GB/s."""
        return min(self.gbps, self.need.reachable_gbps(efa=self.efa))

    @property
    def gbps_per_accelerator(self) -> Decimal | None:
        """What each GPU, or Trainium or Inferentia device, gets of it, in GB/s. None: the nodes have none."""
        accelerators = self.need.nodes * sum(each.count for each in self.need.info.accelerators)
        return self.delivered_gbps / accelerators if accelerators else None

    @property
    def fast_enough(self) -> bool:
        """Whether the nodes get what they need."""
        return self.delivered_gbps >= self.need.gbps

    @property
    def gpudirect(self) -> bool:
        """Whether data can go to the memory of the GPUs without the CPUs: NVIDIA's GPUDirect Storage."""
        return self.efa and self.need.info.name.partition(".")[0] in _GPUDIRECT_FAMILIES

    @property
    def exceeds_quota(self) -> bool:
        """Whether it is larger than an account's default quota of its deployment type and storage class."""
        return self.capacity_gib is not None and self.capacity_gib > DEFAULT_QUOTA_GIB


@dataclass(frozen=True, kw_only=True)
class StorageChoice:
    """What can be had for a need.

    Attributes:
        need: The need.
        options: The smallest file system of each kind.
        recommended: The best of them. None: none links S3 data sets, keeps data when a server fails, and is fast
            enough.
        reason: Why, in one sentence.
    """

    need: StorageNeed
    options: tuple[StorageOption, ...]
    recommended: StorageOption | None = None
    reason: str = ""


@checked
def choose_storage(
    *,
    dataset_gib: Annotated[int, Whole(minimum=1, maximum=_MAX_GIB)],
    gbps: Annotated[float, Number(above=0, maximum=MAX_THROUGHPUT_MBPS / 1000, known=True)],
    nodes: Annotated[int, Whole(minimum=1, maximum=_MAX_NODES)],
    instance_type: str = "p5.48xlarge",
    region: str = "us-east-1",
    prices: PriceBook | None = None,
) -> StorageChoice:
    """Return the smallest FSx for Lustre file system of each kind that meets a need, and the one to take.

    It asks nothing of AWS. A price that the book lacks is unknown, not zero.

    Args:
        dataset_gib: How much data it has to hold, in GiB, as they are: compression is not counted.
        gbps: What all nodes together read, in gigabytes (10^9 bytes) a second.
        nodes: How many nodes read.
        instance_type: Their type. Default: `p5.48xlarge`
        region: The region whose prices count. Default: `us-east-1`
        prices: The prices. Default: - those that come with this library

    Raises:
        ValueError: A figure is out of bounds, or the instance type is unknown.
    """
    need = StorageNeed(
        dataset_gib=dataset_gib,
        gbps=Decimal(str(gbps)),
        nodes=nodes,
        info=instance_type_info(instance_type),
        region=region,
    )
    options = tuple(_priced(option, prices or committed_prices()) for option in _smallest(need))
    recommended, reason = _recommend(need, options)
    return StorageChoice(need=need, options=options, recommended=recommended, reason=reason)


def _smallest(need: StorageNeed) -> Iterator[StorageOption]:
    efa_helps = need.efa_clients and (need.gbps > EFA_ABOVE_GBPS or need.gbps > need.reachable_gbps(efa=False))
    for kind in KINDS:
        if kind.deployment_type == _NOT_FOR_NEW:
            continue
        for efa in (False, True) if kind.efa and efa_helps else (False,):
            for size in _sizes(need, kind, efa=efa):
                made = FileSystemSettings(
                    deployment_type=kind.deployment_type,
                    storage_type=kind.storage_type,
                    efa_enabled=efa,
                    drive_cache_type="NONE" if kind.drive_cache else None,
                    **size,
                )
                yield StorageOption(need=need, made=made, kind=kind)


def _sizes(need: StorageNeed, kind: FileSystemKind, *, efa: bool) -> Iterator[dict[str, Any]]:
    """Yield the settings of the smallest size of each throughput tier."""
    mbps = need.gbps * _MB_IN_GB
    if kind.throughput_step_mbps is not None:
        yield {"throughput_capacity_mbps": ceil(mbps / kind.throughput_step_mbps) * kind.throughput_step_mbps}
    for tier in kind.tiers:
        fast_enough = ceil(mbps * _GIB_IN_TIB / tier.mbps_per_tib)
        yield {
            "storage_capacity_gib": tier.smallest_gib(max(need.dataset_gib, fast_enough), efa=efa),
            "throughput_mbps_per_tib": tier.mbps_per_tib if kind.provisioned else None,
        }


def _priced(option: StorageOption, book: PriceBook) -> StorageOption:
    units = option.made.units_of_a_month() or {}
    prices = {name: book.units.nearest(name, option.need.region) for name in units}
    known = {name: price for name, price in prices.items() if price is not None}
    # Where there is no capacity, what is stored is billed, and requests: the list has no names for these.
    whole = len(known) == len(units) and option.capacity_gib is not None
    return replace(
        option,
        usd_a_month=sum((known[name].usd * count for name, count in units.items()), Decimal(0)) if whole else None,
        price_regions=tuple(sorted({price.region for price in known.values()})),
        unknown_prices=tuple(sorted(set(units) - set(known))),
    )


def _recommend(need: StorageNeed, options: tuple[StorageOption, ...]) -> tuple[StorageOption | None, str]:
    """Return the cheapest on SSDs that links S3, replicates its data, and is fast enough, by EFA where that helps."""
    fitting = [each for each in options if each.kind.links and each.kind.persistent and each.fast_enough]
    fitting = [each for each in fitting if each.kind.storage_type == "SSD"]
    if any(each.efa for each in fitting):
        fitting = [each for each in fitting if each.efa]
    if not fitting:
        most = need.reachable_gbps(efa=need.efa_clients)
        return None, (
            f"no file system gives {written(float(need.gbps))} GB/s to {need.readers}, which read "
            f"{most:,.1f} GB/s at most: use more nodes, or need less"
        )
    known = [each for each in fitting if each.usd_a_month is not None]
    best = min(known or fitting, key=lambda each: (each.usd_a_month or 0, each.capacity_gib or 0))
    by_what = "the lowest known price" if known else "the smallest size, and no price is known,"
    reason = (
        f"it has {by_what} of those that link S3 data sets, keep data when a server fails, and give "
        f"{written(float(need.gbps))} GB/s to {need.readers}"
    )
    if best.efa:
        reason += f" by EFA, which AWS recommends above {EFA_ABOVE_GBPS} GB/s"
    unknown = [each.name for each in fitting if each.usd_a_month is None]
    if known and unknown:
        reason += f"; the price of {' and '.join(unknown)} is unknown and may be lower"
    return best, reason
