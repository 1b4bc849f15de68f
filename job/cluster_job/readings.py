"""What a process reads of its node: the GPUs through nvidia-smi, the Elastic Fabric Adapters through sysfs.

nvidia-smi comes with the driver, and NVIDIA's container runtime puts it into containers. What cannot be read is left
out, and nothing follows from it.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster_job.hangs import Reading

INFINIBAND = Path("/sys/class/infiniband")

# https://docs.nvidia.com/deploy/nvidia-smi/index.html; drivers before 535 call the reasons clocks_throttle_reasons.
_FIELDS = (
    "index",
    "uuid",
    "name",
    "utilization.gpu",
    "utilization.memory",
    "power.draw",
    "power.limit",
    "clocks_event_reasons.hw_thermal_slowdown",
    "clocks_event_reasons.sw_thermal_slowdown",
)
_ACTIVE = "Active"
_BUSY_PERCENT, _UNREAD_PERCENT, _COOL_PERCENT = 99.0, 5.0, 40.0
_SECONDS = 20.0

Runner = Callable[[Sequence[str]], str | None]


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """A GPU at a moment.

    Attributes:
        index: Its number on the node.
        name: What its driver calls it.
        percent: The share of the last moment in which a kernel ran. None: it says none, as in MIG mode.
        is_throttled: Whether its temperature slows it down.
        memory_percent: The share of the last moment in which its memory was read or written. None: it says none.
        power_percent: What it draws of the power that it may. None: it says none.
    """

    index: int
    name: str
    percent: float | None
    is_throttled: bool
    memory_percent: float | None = None
    power_percent: float | None = None

    @property
    def waits(self) -> bool:
        """Whether its kernel only waits, as NCCL's do: it is busy, reads no memory and stays cool.

        https://github.com/NVIDIA/nccl/issues/968 had 100 % at about 70 W. What it does not say is no sign.
        """
        if self.percent is None or self.memory_percent is None or self.power_percent is None:
            return False
        return (
            self.percent >= _BUSY_PERCENT
            and self.memory_percent <= _UNREAD_PERCENT
            and self.power_percent <= _COOL_PERCENT
        )


@dataclass(frozen=True, kw_only=True)
class EfaCounters:
    """What went over a node's Elastic Fabric Adapters so far.

    Attributes:
        bytes: Received and sent.
        sent_bytes: Sent.
        retransmitted_bytes: Sent again. 0: the driver does not count them.
    """

    bytes: int
    sent_bytes: int
    retransmitted_bytes: int

    def retransmitted_since(self, before: "EfaCounters") -> float | None:
        """Return the share of bytes that were sent again since earlier counters. None: nothing was sent.

        Args:
            before: The counters then; a reset lies between where they were higher.
        """
        sent = self.sent_bytes - before.sent_bytes
        return max(self.retransmitted_bytes - before.retransmitted_bytes, 0) / sent if sent > 0 else None


def run_command(command: Sequence[str]) -> str | None:
    """Return what a command says. None: it is not there, fails or takes too long."""
    program = shutil.which(command[0])
    if program is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603
            [program, *command[1:]], capture_output=True, text=True, check=True, timeout=_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def read_gpus(run: Runner = run_command, environ: Mapping[str, str] = os.environ) -> tuple[Gpu, ...]:
    """Return the GPUs that the job has; none where they cannot be read.

    Args:
        run: Runs a command.
        environ: The environment variables: `CUDA_VISIBLE_DEVICES` says which of the node's GPUs are the job's.
    """
    said = run(["nvidia-smi", f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits"])
    wanted = [one.strip() for one in environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if one.strip()]
    found = []
    for line in (said or "").splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != len(_FIELDS) or not cells[0].isdecimal():
            return ()
        index, uuid, name, percent, memory, power, limit, *reasons = cells
        drawn, allowed = _number(power), _number(limit)
        if not wanted or index in wanted or any(uuid.startswith(one) for one in wanted if not one.isdecimal()):
            found.append(
                Gpu(
                    index=int(index),
                    name=name,
                    percent=_number(percent),
                    is_throttled=_ACTIVE in reasons,
                    memory_percent=_number(memory),
                    power_percent=100 * drawn / allowed if drawn is not None and allowed else None,
                )
            )
    return tuple(found)


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:  # such as [N/A]
        return None


def read_efa(devices: Path = INFINIBAND) -> EfaCounters | None:
    """Return what went over the adapters. None: there are none that count.

    Args:
        devices: The folder with a folder for each device.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-working-monitor.html
    """
    received, sent = _sum(devices, "rx_bytes"), _sum(devices, "tx_bytes")
    if received is None or sent is None:
        return None
    # What goes over RDMA is counted apart.
    rdma = sum(_sum(devices, name) or 0 for name in ("rdma_read_bytes", "rdma_write_bytes", "rdma_write_recv_bytes"))
    again = _sum(devices, "retrans_bytes") or 0
    return EfaCounters(bytes=received + sent + rdma, sent_bytes=sent, retransmitted_bytes=again)


def _sum(devices: Path, counter: str) -> int | None:
    try:
        files = sorted(devices.glob(f"*/ports/*/hw_counters/{counter}"))
        return sum(int(file.read_text(encoding="ascii")) for file in files) if files else None
    except (OSError, ValueError):
        return None


def hang_reading(at: float, gpus: Sequence[Gpu], efa: EfaCounters | None) -> Reading:
    """Return what says whether a process hangs.

    Args:
        at: When it was read.
        gpus: The job's GPUs.
        efa: The node's adapters.
    """
    waits = bool(gpus) and all(gpu.waits for gpu in gpus)
    return Reading(at=at, gpus_wait=waits, efa_bytes=None if efa is None else efa.bytes)
