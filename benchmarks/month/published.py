"""What others have published: how often training is interrupted, by what, and how much of it was training."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

HOUR, DAY = 3600.0, 86_400.0


class Kind(Enum):
    """What an interruption is, as far as it decides what ends it."""

    GPU = "a GPU reports an Xid that a reboot ends, as the table of faults says"
    NODE = "a node dies, and says nothing any more"
    NETWORK = "a switch or cable between nodes: no node is broken, and the job hangs"
    SOFTWARE = "the job's own error, on all nodes"
    CORRUPTION = "silent data corruption: only people see it"
    PLANNED = "maintenance that is announced"


# Llama 3, table 5: 419 unexpected interruptions of 54 days on 16,384 H100, and 47 planned ones.
# https://arxiv.org/abs/2407.21783
INTERRUPTIONS: Final[Mapping[str, tuple[int, Kind, str]]] = {
    "faulty GPU": (148, Kind.GPU, "79"),
    "GPU HBM3 memory": (72, Kind.GPU, "95"),
    "software bug": (54, Kind.SOFTWARE, ""),
    "network switch or cable": (35, Kind.NETWORK, ""),
    "host maintenance": (32, Kind.PLANNED, ""),
    "GPU SRAM memory": (19, Kind.GPU, "48"),
    "GPU system processor": (17, Kind.GPU, "119"),
    "NIC": (7, Kind.NODE, ""),
    "NCCL watchdog timeout": (7, Kind.NETWORK, ""),
    "silent data corruption": (6, Kind.CORRUPTION, ""),
    "GPU thermal interface and sensor": (6, Kind.NODE, ""),
    "SSD": (3, Kind.NODE, ""),
    "power supply": (3, Kind.NODE, ""),
    "server chassis": (2, Kind.NODE, ""),
    "IO expansion board": (2, Kind.NODE, ""),
    "dependency": (2, Kind.SOFTWARE, ""),
    "CPU": (2, Kind.NODE, ""),
    "system memory": (2, Kind.NODE, ""),
    "planned": (47, Kind.PLANNED, ""),
}


@dataclass(frozen=True, kw_only=True)
class Rate:
    """How often a job is interrupted.

    Attributes:
        name: Whose figure it is.
        gpu_hours: The mean hours of one GPU between two interruptions.
        source: Where it is published.
    """

    name: str
    gpu_hours: float
    source: str

    def seconds_between(self, gpus: int) -> float:
        """Return the mean seconds between two interruptions of a job on some GPUs."""
        return self.gpu_hours * HOUR / gpus


LLAMA3: Final = Rate(name="Llama 3", gpu_hours=54 * 24 * 16_384 / 466, source="https://arxiv.org/abs/2407.21783")
RESEARCH: Final = Rate(name="research clusters", gpu_hours=7.9 * 1024, source="https://arxiv.org/abs/2410.21680")
"""Meta's two research clusters: 7.9 hours between two failures of a job on 1,024 GPUs."""
