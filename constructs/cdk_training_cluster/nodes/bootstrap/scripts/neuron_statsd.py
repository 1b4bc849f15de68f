"""Tell the CloudWatch agent, and Prometheus, how busy each NeuronCore is: neuron-monitor writes, this reads.

Runs on the node with the system's Python (3.9 or newer) and its standard library. AWS's Prometheus exporter
is not used because it says nothing about a node on which nothing runs: idle and unknown would look the same.
An idle node's report has an empty list of runtimes; one without the list, or with an error, proves nothing.

Values are sent as histograms, of which the agent keeps every one: of a gauge it would keep a minute's last.

The report: https://awsdocs-neuron.readthedocs-hosted.com/en/latest/tools/neuron-sys-tools/neuron-monitor-user-guide.html
"""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any

TEXTFILE_METRIC = "neuroncore_utilization_ratio"


def utilization(report: dict[str, Any], devices: int) -> dict[int, float] | None:
    """Return the percentage of each NeuronCore, 0 where no process holds it, or None if the report has a gap.

    Args:
        report: One report of neuron-monitor.
        devices: How many Neuron devices the node's type has.
    """
    hardware = report.get("neuron_hardware_info") or {}
    seen, cores_each = (int(hardware.get(f"neuron{of}_count") or 0) for of in ("_device", "core_per_device"))
    runtimes = report.get("neuron_runtime_data")
    if hardware.get("error") or seen < devices or cores_each == 0 or not isinstance(runtimes, list):
        return None
    cores = dict.fromkeys(range(seen * cores_each), 0.0)
    for runtime in runtimes:
        counters = (runtime.get("report") or {}).get("neuroncore_counters") or {}
        in_use = counters.get("neuroncores_in_use")
        if runtime.get("error") or counters.get("error") or not isinstance(in_use, dict):
            return None
        for core, values in in_use.items():
            percent = values.get("neuroncore_utilization")
            if percent is None:
                return None
            cores[int(core)] = max(cores.get(int(core), 0.0), float(percent))
    return cores


def datagrams(metric: str, tags: str, cores: dict[int, float]) -> list[bytes]:
    """Return a StatsD histogram's value for each core, in a datagram of its own.

    Args:
        metric: The metric's name.
        tags: The tags that all of them carry, as `name:value,…`.
        cores: The percentages by core.
    """
    return [f"{metric}:{percent}|h|#{tags},core:{core}".encode() for core, percent in sorted(cores.items())]


def write_textfile(path: Path, cores: dict[int, float]) -> None:
    """Write a ratio for each core where node_exporter reads it; nothing while cores are unknown.

    Args:
        path: The file.
        cores: The percentages by core.
    """
    new = path.with_suffix(".new")
    try:
        text = "".join(
            f'{TEXTFILE_METRIC}{{neuroncore="{core}"}} {percent / 100}\n' for core, percent in cores.items()
        )
        new.write_text(text, encoding="utf-8")
        new.chmod(0o644)
        new.replace(path)
    except OSError as error:
        # What decides about idle nodes goes on without it.
        sys.stderr.write(f"{path}: {error}\n")


def main(port: str, metric: str, tags: str, devices: str, textfile: str = "") -> None:
    """Forward reports until there are no more."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as agent:
        for line in sys.stdin:
            cores = utilization(json.loads(line), int(devices)) if line.strip() else None
            for datagram in datagrams(metric, tags, cores or {}):
                agent.sendto(datagram, ("127.0.0.1", int(port)))
            if textfile:
                write_textfile(Path(textfile), cores or {})


if __name__ == "__main__":
    main(*sys.argv[1:])
