"""Write the counters of the Elastic Fabric Adapters where node_exporter reads them.

Runs on the node with the system's Python (3.9 or newer) and its standard library. node_exporter's own collector of
InfiniBand devices knows other counters than the EFA driver has; the names are those of AWS's exporter.

Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-working-monitor.html
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path


def lines(devices: Path, prefix: str, counters: list[str]) -> Iterator[str]:
    """Yield the metrics in Prometheus' text format.

    Args:
        devices: The directory with a directory for each device.
        prefix: What the metrics' names start with.
        counters: The counters; those that a driver does not have are left out.
    """
    for counter in counters:
        found = sorted(devices.glob(f"*/ports/*/hw_counters/{counter}"))
        if found:
            yield f"# TYPE {prefix}{counter} counter"
        for path in found:
            device, port = path.parts[-5], path.parts[-3]
            yield f'{prefix}{counter}{{device="{device}",port="{port}"}} {int(path.read_text())}'


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all: node_exporter reads it at any time."""
    new = path.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    new.chmod(0o644)
    new.replace(path)


def main(path: str, interval: str, prefix: str, *counters: str) -> None:
    """Write them again and again."""
    devices = Path(f"{os.environ.get('ROOT', '')}/sys/class/infiniband")
    while True:
        write(Path(path), "".join(f"{line}\n" for line in lines(devices, prefix, list(counters))))
        time.sleep(int(interval))


if __name__ == "__main__":
    main(*sys.argv[1:])
