"""What a GPU can be partitioned into by MIG (Multi-Instance GPU), read from `mig.toml`."""

import functools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from cdk_training_cluster.instance_types.model import AcceleratorKind, InstanceTypeInfo

PROFILE = re.compile(r"\dg\.\d+gb(?:[+-][a-z.]+)?")
"""The form of a profile's name: `3g.40gb` is three compute slices and 40 GB of memory."""


@dataclass(frozen=True, kw_only=True)
class MigGpu:
    """Describes the partitions of one model of GPU.

    Attributes:
        name: The model, as EC2 spells it.
        memory_mib: The memory of the whole GPU, in MiB.
        compute_slices: How many slices its compute units have.
        memory_slices: How many slices its memory has.
        profiles: The profiles, the smallest first, each with the most that one GPU can have.
        source: The address of the document that lists them.
    """

    name: str
    memory_mib: int
    compute_slices: int
    memory_slices: int
    profiles: Mapping[str, int]
    source: str

    def slices(self, partitions: Mapping[str, int]) -> tuple[int, int]:
        """Return how many slices of compute and of memory some partitions take together.

        Args:
            partitions: How many of each of its profiles.
        """
        compute = sum(int(profile[0]) * count for profile, count in partitions.items())
        # The smallest profile has one slice of the memory; names round it.
        whole = _gigabytes(next(iter(self.profiles)))
        memory = sum(round(_gigabytes(profile) / whole) * count for profile, count in partitions.items())
        return compute, memory


def mig_gpu(info: InstanceTypeInfo) -> MigGpu | None:
    """Return what the GPUs of an instance type can be partitioned into; None if they cannot.

    Args:
        info: The type. A part of a GPU, as on g6f, cannot be partitioned again.
    """
    for accelerator in info.accelerators:
        rows = [gpu for gpu in _gpus() if gpu.name == accelerator.name]
        if rows and accelerator.kind is AcceleratorKind.GPU and accelerator.fraction == 1:
            return min(rows, key=lambda gpu: abs(gpu.memory_mib - accelerator.memory_mib))
    return None


@functools.cache
def _gpus() -> tuple[MigGpu, ...]:
    text = resources.files("cdk_training_cluster.instance_types").joinpath("mig.toml").read_text(encoding="utf-8")
    return tuple(MigGpu(**row) for row in tomllib.loads(text)["gpu"])


def _gigabytes(profile: str) -> int:
    return int(profile.partition(".")[2].partition("gb")[0])
