"""What a node reports to Prometheus, and the files that its collector and exporters are given.

Prometheus in agent mode scrapes exporters that listen on the node itself, and writes what `SERIES` names, and nothing
else, to a workspace: every sample is billed. https://prometheus.io/docs/prometheus/latest/prometheus_agent/
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

from cdk_training_cluster.nodes.bootstrap.agent import AcceleratorVendor
from cdk_training_cluster.nodes.bootstrap.shell import shell_assignments


class Exporter(Enum):
    """What a node's collector scrapes; the value is the job's name in Prometheus."""

    NODE = "node"
    """node_exporter, which also reads the text files of EFA's counters and of NeuronCores."""

    DCGM = "dcgm"
    """NVIDIA's DCGM exporter."""


PORTS: Final = {Exporter.NODE: 19100, Exporter.DCGM: 19400}
"""Where they listen, on the node only. Not their own defaults, which another exporter of the image may have."""

PROMETHEUS_PORT: Final = 19090
"""Where the collector says how it is, on the node only."""

# Fields of DCGM, their Prometheus types and descriptions:
# https://github.com/NVIDIA/dcgm-exporter/blob/main/etc/default-counters.csv. None of DCGM_FI_PROF_*: while these are
# read, a job's own profiler is refused, and the exporter needs the capability SYS_ADMIN.
DCGM: Final[Mapping[str, tuple[str, str]]] = {
    "DCGM_FI_DEV_GPU_UTIL": ("gauge", "GPU utilization (in %)."),
    "DCGM_FI_DEV_FB_USED": ("gauge", "Framebuffer memory used (in MiB)."),
    "DCGM_FI_DEV_FB_FREE": ("gauge", "Framebuffer memory free (in MiB)."),
    "DCGM_FI_DEV_GPU_TEMP": ("gauge", "GPU temperature (in C)."),
    "DCGM_FI_DEV_MEMORY_TEMP": ("gauge", "Memory temperature (in C)."),
    "DCGM_FI_DEV_POWER_USAGE": ("gauge", "Power draw (in W)."),
    "DCGM_FI_DEV_SM_CLOCK": ("gauge", "SM clock frequency (in MHz)."),
    "DCGM_FI_DEV_THERMAL_VIOLATION": ("counter", "Throttling duration due to thermal constraints."),
    "DCGM_FI_DEV_XID_ERRORS": ("gauge", "Value of the last XID error encountered."),
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": ("counter", "Total number of double-bit volatile ECC errors."),
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": ("counter", "Number of remapped rows for uncorrectable errors."),
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": ("gauge", "Whether remapping of rows has failed."),
}

# Counters of the EFA driver, by the names that AWS's own exporter gives them (node_amazonefa_…).
# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-working-monitor.html
EFA_COUNTERS: Final = (
    "rx_bytes",
    "tx_bytes",
    "rx_drops",
    "retrans_bytes",
    "retrans_timeout_events",
    "unresponsive_remote_events",
)
EFA_PREFIX: Final = "node_amazonefa_"

NEURON_UTILIZATION: Final = "neuroncore_utilization_ratio"
"""As AWS's exporter of Neuron calls it; that one says nothing of a node on which nothing runs, so ours writes it.

https://awsdocs-neuron.readthedocs-hosted.com/en/latest/tools/neuron-sys-tools/neuron-monitor-user-guide.html
"""

_NODE: Final = (
    "node_load1",
    "node_memory_MemAvailable_bytes",
    "node_memory_MemTotal_bytes",
    "node_filesystem_avail_bytes",
    "node_filesystem_size_bytes",
    "node_filesystem_device_error",
    "node_network_receive_bytes_total",
    "node_network_transmit_bytes_total",
)

SERIES: Final[Mapping[Exporter, tuple[str, ...]]] = {
    Exporter.NODE: (*_NODE, *(EFA_PREFIX + name for name in EFA_COUNTERS), NEURON_UTILIZATION),
    Exporter.DCGM: tuple(DCGM),
}
"""What is written to the workspace, by exporter."""

_FILE_SYSTEMS = 3
"""Root volume, local NVMe and a shared one, of which three series are each."""

_CORES = 8
"""The most NeuronCores that a Neuron device has."""

_OWN_SERIES = 5
"""What Prometheus itself writes of each exporter: whether it is up, and how its answer was."""


def series_of_a_node(*, gpus: int, efa_devices: int, neuron_devices: int) -> int:
    """Return how many series a node writes, without those that rules record of it.

    Args:
        gpus: How many NVIDIA GPUs it has.
        efa_devices: How many Elastic Fabric Adapters.
        neuron_devices: How many Neuron devices.
    """
    of_the_host = len(_NODE) - 3 + 3 * _FILE_SYSTEMS
    of_the_devices = gpus * len(DCGM) + efa_devices * len(EFA_COUNTERS) + neuron_devices * _CORES
    return of_the_host + of_the_devices + _OWN_SERIES * (2 if gpus else 1)


# Labels that tell devices apart; the others of the exporters would make new series with each driver.
_LABELS = ("__name__", "job", "instance", "gpu", "UUID", "device", "port", "fstype", "mountpoint", "neuroncore")


@dataclass(frozen=True, kw_only=True)
class Collector:
    """Where the nodes' metrics go, and how often.

    Attributes:
        remote_write_url: Where they are written to, signed with the node's role.
        interval_seconds: The seconds from one sample to the next.
    """

    remote_write_url: str
    interval_seconds: int


def write_collector(directory: Path, vendor: AcceleratorVendor, *, interval_seconds: int) -> None:
    """Write what the collector and the exporters of a node read, with placeholders for what differs.

    Args:
        directory: The directory of the node's scripts.
        vendor: Whose accelerators the node has.
        interval_seconds: The seconds from one sample to the next.
    """
    exporters = [Exporter.NODE, *([Exporter.DCGM] if vendor is AcceleratorVendor.NVIDIA else [])]
    configuration = prometheus_configuration(
        {each: f"127.0.0.1:{PORTS[each]}" for each in exporters}, interval_seconds=interval_seconds
    )
    # JSON is YAML too.
    _write(directory / "prometheus.json", json.dumps(configuration, indent=2, sort_keys=True))
    settings = {
        "NODE_PORT": str(PORTS[Exporter.NODE]),
        "PROMETHEUS_PORT": str(PROMETHEUS_PORT),
        "DCGM_PORT": str(PORTS[Exporter.DCGM]) if Exporter.DCGM in exporters else "",
        "INTERVAL": str(interval_seconds),
        "EFA_COUNTERS": EFA_COUNTERS,
        "EFA_PREFIX": EFA_PREFIX,
    }
    _write(directory / "collector.settings", shell_assignments(settings).rstrip("\n"))
    if Exporter.DCGM in exporters:
        _write(directory / "dcgm.csv", "\n".join(f"{name}, {kind}, {text}" for name, (kind, text) in DCGM.items()))


def prometheus_configuration(targets: Mapping[Exporter, str], *, interval_seconds: int) -> dict[str, Any]:
    """Return the collector's configuration; a script puts in the names for the placeholders.

    Args:
        targets: The addresses of the exporters.
        interval_seconds: The seconds from one sample to the next.
    """
    return {
        "global": {
            "scrape_interval": f"{interval_seconds}s",
            "scrape_timeout": f"{min(interval_seconds, 10)}s",
            "external_labels": {"cluster": "@CLUSTER@", "node_group": "@NODE_GROUP@"},
        },
        # https://docs.aws.amazon.com/prometheus/latest/userguide/AMP-onboard-ingest-metrics-remote-write-EC2.html
        "remote_write": [
            {
                "url": "@REMOTE_WRITE_URL@",
                "sigv4": {"region": "@REGION@"},
                "queue_config": {"max_samples_per_send": 1000, "max_shards": 5, "capacity": 2500},
            }
        ],
        "scrape_configs": [_scrape(exporter, address) for exporter, address in targets.items()],
    }


def _scrape(exporter: Exporter, address: str) -> dict[str, Any]:
    names = "|".join(map(re.escape, SERIES[exporter]))
    return {
        "job_name": exporter.value,
        "static_configs": [{"targets": [address], "labels": {"instance": "@INSTANCE_ID@"}}],
        "metric_relabel_configs": [
            {"action": "keep", "source_labels": ["__name__"], "regex": names},
            {"action": "labelkeep", "regex": "|".join(_LABELS)},
        ],
    }


def _write(path: Path, text: str) -> None:
    path.write_text(f"{text}\n", encoding="utf-8")
