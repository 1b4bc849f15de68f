"""Tell the CloudWatch agent, by StatsD, how busy each NeuronCore is: neuron-monitor writes, this reads.

Runs on the node with the system's Python (3.9 or newer) and its standard library. AWS's Prometheus exporter
is not used because it says nothing about a node on which nothing runs: idle and unknown would look the same.

The report: https://awsdocs-neuron.readthedocs-hosted.com/en/latest/tools/neuron-sys-tools/neuron-monitor-user-guide.html
"""

from __future__ import annotations

import json
import socket
import sys
from typing import Any


def utilization(report: dict[str, Any]) -> dict[int, float] | None:
    """Return the percentage of each NeuronCore, 0 where no process holds it, or None if the report has a gap.

    Args:
        report: One report of neuron-monitor.
    """
    hardware = report.get("neuron_hardware_info") or {}
    count = int(hardware.get("neuron_device_count") or 0) * int(hardware.get("neuroncore_per_device_count") or 0)
    if hardware.get("error") or count == 0:
        return None
    cores = dict.fromkeys(range(count), 0.0)
    for runtime in report.get("neuron_runtime_data") or []:
        counters = (runtime.get("report") or {}).get("neuroncore_counters") or {"error": "missing"}
        if runtime.get("error") or counters.get("error"):
            return None
        for core, values in (counters.get("neuroncores_in_use") or {}).items():
            index = int(core)
            cores[index] = max(cores.get(index, 0.0), float(values["neuroncore_utilization"]))
    return cores


def datagrams(metric: str, tags: str, cores: dict[int, float]) -> list[bytes]:
    """Return a StatsD gauge for each core, in a datagram of its own.

    Args:
        metric: The metric's name.
        tags: The tags that all of them carry, as `name:value,…`.
        cores: The percentages by core.
    """
    return [f"{metric}:{percent}|g|#{tags},core:{core}".encode() for core, percent in sorted(cores.items())]


def main(port: str, metric: str, tags: str) -> None:
    """Forward reports until there are no more."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as agent:
        for line in sys.stdin:
            cores = utilization(json.loads(line)) if line.strip() else None
            for datagram in datagrams(metric, tags, cores or {}):
                agent.sendto(datagram, ("127.0.0.1", int(port)))


if __name__ == "__main__":
    main(*sys.argv[1:])
