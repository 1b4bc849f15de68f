"""The kinds of FSx for Lustre file systems: one row for each deployment type and storage class."""

from collections.abc import Sequence
from dataclasses import dataclass

DEPLOYMENT_TYPES = ("PERSISTENT_2", "PERSISTENT_1", "SCRATCH_2", "SCRATCH_1")
STORAGE_TYPES = ("SSD", "HDD", "INTELLIGENT_TIERING")


@dataclass(frozen=True, kw_only=True)
class ThroughputTier:
    """What a file system of one throughput for each TiB of storage can be.

    Attributes:
        mbps_per_tib: The disk throughput in MB/s for each TiB of storage.
        step_gib: The storage capacity is a multiple of this.
        price: The name in the price list of one GiB for a month.
        first_gib: Capacities below the first multiple that FSx takes too.
        efa_step_gib: The storage capacity with EFA is a multiple of this. None: there is no EFA.
    """

    mbps_per_tib: int
    step_gib: int
    price: str
    first_gib: tuple[int, ...] = ()
    efa_step_gib: int | None = None

    def takes(self, gib: int, *, efa: bool = False) -> bool:
        """Tell whether FSx makes a file system of a size.

        Args:
            gib: The storage capacity in GiB.
            efa: Whether it has EFA.
        """
        return (gib > 0 and gib % self._step(efa=efa) == 0) or (not efa and gib in self.first_gib)

    def smallest_gib(self, at_least: int, *, efa: bool = False) -> int:
        """Return the smallest storage capacity that FSx makes and that holds so much.

        Args:
            at_least: What has to fit, in GiB.
            efa: Whether it has EFA.
        """
        step = self._step(efa=efa)
        fitting = [] if efa else [gib for gib in self.first_gib if gib >= at_least]
        return min([*fitting, max(-(-at_least // step), 1) * step])

    def _step(self, *, efa: bool) -> int:
        if not efa:
            return self.step_gib
        if self.efa_step_gib is None:
            raise ValueError(f"there is no EFA at {self.mbps_per_tib} MB/s/TiB")
        return self.efa_step_gib


@dataclass(frozen=True, kw_only=True)
class FileSystemKind:
    """What a deployment type with a storage class can do.

    Attributes:
        deployment_type: FSx's name of the deployment type.
        storage_type: FSx's name of the storage class.
        tiers: What its throughput for each TiB can be; empty: its throughput does not depend on its size.
        provisioned: Whether the throughput for each TiB is a setting.
        persistent: Whether data are replicated in the zone. It takes backups and a KMS key then.
        links: Whether S3 data sets can be linked.
        grows: Whether its storage capacity can be raised.
        tier_changes: Whether its throughput for each TiB can be changed later, unless it has EFA.
        metadata_iops: The metadata IOPS that can be asked for; beyond the last of them, its multiples. Empty: none.
        max_metadata_iops: The most metadata IOPS.
        drive_cache: Whether it takes, and needs, `drive_cache_type`.
        throughput_step_mbps: Its throughput capacity is a multiple of this. None: the tiers say its throughput.
    """

    deployment_type: str
    storage_type: str
    tiers: tuple[ThroughputTier, ...] = ()
    provisioned: bool = True
    persistent: bool = True
    links: bool = True
    grows: bool = True
    tier_changes: bool = False
    metadata_iops: tuple[int, ...] = ()
    max_metadata_iops: int = 0
    drive_cache: bool = False
    throughput_step_mbps: int | None = None

    @property
    def efa(self) -> bool:
        """Whether it can have EFA."""
        return self.deployment_type == "PERSISTENT_2"

    def tier(self, mbps_per_tib: int | None) -> ThroughputTier | None:
        """Return the tier of a throughput; where that is no setting, the only one.

        Args:
            mbps_per_tib: The throughput in MB/s for each TiB, if it is a setting.
        """
        if not self.provisioned:
            return next(iter(self.tiers), None)
        return next((tier for tier in self.tiers if tier.mbps_per_tib == mbps_per_tib), None)

    def takes_metadata_iops(self, iops: int) -> bool:
        """Tell whether metadata IOPS can be asked for.

        Args:
            iops: How many.
        """
        if iops in self.metadata_iops:
            return True
        return bool(self.metadata_iops) and 0 < iops <= self.max_metadata_iops and iops % self.metadata_iops[-1] == 0


# https://docs.aws.amazon.com/fsx/latest/LustreGuide/ssd-storage.html
_SCRATCH_MBPS_PER_TIB = 200

# Capacities: https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateFileSystem.html
# Throughput, EFA, metadata, drive cache: https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateFileSystemLustreConfiguration.html
# Capacities with EFA: https://docs.aws.amazon.com/fsx/latest/LustreGuide/increase-storage-capacity.html
# Backups: https://docs.aws.amazon.com/fsx/latest/LustreGuide/using-backups-fsx.html
# Links: https://docs.aws.amazon.com/fsx/latest/LustreGuide/create-dra-linked-data-repo.html
KINDS: Sequence[FileSystemKind] = (
    FileSystemKind(
        deployment_type="PERSISTENT_2",
        storage_type="SSD",
        tiers=tuple(
            ThroughputTier(
                mbps_per_tib=mbps,
                first_gib=(1200,),
                step_gib=2400,
                efa_step_gib=efa_step,
                price=f"fsx-persistent-2-{mbps}",
            )
            for mbps, efa_step in ((125, 38400), (250, 19200), (500, 9600), (1000, 4800))
        ),
        tier_changes=True,
        metadata_iops=(1500, 3000, 6000, 12000),
        max_metadata_iops=192_000,
    ),
    FileSystemKind(
        deployment_type="PERSISTENT_2",
        storage_type="INTELLIGENT_TIERING",
        provisioned=False,
        # https://docs.aws.amazon.com/fsx/latest/LustreGuide/using-fsx-lustre.html
        links=False,
        grows=False,
        metadata_iops=(6000, 12000),
        max_metadata_iops=12_000,
        throughput_step_mbps=4000,
    ),
    FileSystemKind(
        deployment_type="PERSISTENT_1",
        storage_type="SSD",
        tiers=tuple(
            ThroughputTier(mbps_per_tib=mbps, first_gib=(1200,), step_gib=2400, price=f"fsx-persistent-1-{mbps}")
            for mbps in (50, 100, 200)
        ),
        tier_changes=True,
    ),
    FileSystemKind(
        deployment_type="PERSISTENT_1",
        storage_type="HDD",
        tiers=tuple(
            ThroughputTier(mbps_per_tib=mbps, step_gib=step, price=f"fsx-persistent-1-hdd-{mbps}")
            for mbps, step in ((12, 6000), (40, 1800))
        ),
        drive_cache=True,
    ),
    FileSystemKind(
        deployment_type="SCRATCH_2",
        storage_type="SSD",
        tiers=(
            ThroughputTier(
                mbps_per_tib=_SCRATCH_MBPS_PER_TIB, first_gib=(1200,), step_gib=2400, price="fsx-scratch-2"
            ),
        ),
        provisioned=False,
        persistent=False,
    ),
    FileSystemKind(
        deployment_type="SCRATCH_1",
        storage_type="SSD",
        tiers=(
            ThroughputTier(
                mbps_per_tib=_SCRATCH_MBPS_PER_TIB, first_gib=(1200, 2400), step_gib=3600, price="fsx-scratch-1"
            ),
        ),
        provisioned=False,
        persistent=False,
        links=False,
        grows=False,
    ),
)


# The least capacity in GiB, and the metadata IOPS from there on; from 48,000 GiB on so many for each 24,000 GiB.
# https://docs.aws.amazon.com/fsx/latest/LustreGuide/performance.html#dne-metadata-performance
_AUTOMATIC_METADATA_IOPS = ((12_000, 12_000), (4800, 6000), (2400, 3000), (0, 1500))
_LARGE_GIB = 24_000


def automatic_metadata_iops(gib: int) -> int:
    """Return the metadata IOPS that a storage capacity of PERSISTENT_2 with SSD brings along, and pays for.

    Args:
        gib: The storage capacity in GiB.
    """
    if gib >= 2 * _LARGE_GIB:
        return gib // _LARGE_GIB * 12_000
    return next(iops for least, iops in _AUTOMATIC_METADATA_IOPS if gib >= least)


def kind_of(deployment_type: str, storage_type: str) -> FileSystemKind | None:
    """Return what a deployment type with a storage class can do; None: FSx has no such file system.

    Args:
        deployment_type: FSx's name of the deployment type.
        storage_type: FSx's name of the storage class.
    """
    wanted = (deployment_type, storage_type)
    return next((kind for kind in KINDS if (kind.deployment_type, kind.storage_type) == wanted), None)


# https://docs.aws.amazon.com/fsx/latest/LustreGuide/managing-ssd-read-cache.html
READ_CACHE_GIB_PER_STEP = (32, 131_072)
"""The smallest and the largest read cache, for each step of an Intelligent-Tiering file system's throughput."""

AUTOMATIC_READ_CACHE_GIB_PER_STEP = 20_000
"""The read cache that FSx sizes itself, for each step of an Intelligent-Tiering file system's throughput."""

INTELLIGENT_TIERING_PRICES = ("fsx-intelligent-tiering-mbps", "fsx-intelligent-tiering-read-cache")
"""The names in the price list of one MB/s of throughput capacity and one GiB of read cache, for a month."""

# https://docs.aws.amazon.com/fsx/latest/LustreGuide/managing-throughput-capacity.html
MAX_THROUGHPUT_MBPS = 2_000_000
