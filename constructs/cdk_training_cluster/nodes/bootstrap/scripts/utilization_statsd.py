"""Tell the CloudWatch agent how busy each accelerator is, as a command says it.

Runs on the node with the system's Python (3.9 or newer) and its standard library. The command prints a percentage for
each accelerator, on a line of its own. What fails, does not end, or does not answer for every accelerator proves
nothing: then nothing is sent, and the node is unknown, which is never idle.

Values are sent as histograms, of which the agent keeps every one: of a gauge it would keep a minute's last.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

_MOST = 100
_SHOWN = 500


def utilization(text: str, accelerators: int) -> list[float] | None:
    """Return the percentages that a command printed, or None if they are not one of each accelerator.

    Args:
        text: What it printed.
        accelerators: How many accelerators the node's type has.
    """
    try:
        percents = [float(line.strip().rstrip("%")) for line in text.splitlines() if line.strip()]
    except ValueError:
        return None
    # NaN is in no range.
    is_whole = len(percents) == accelerators and all(0 <= percent <= _MOST for percent in percents)
    return percents if is_whole else None


def read(command: str, accelerators: int, seconds: float) -> list[float]:
    """Run the command; return no percentages where it says too little, with a sentence for the service's log.

    Args:
        command: The command, in Bash.
        accelerators: How many accelerators the node's type has.
        seconds: How long it may take.
    """
    pipe = subprocess.PIPE
    with subprocess.Popen(  # noqa: S603 - the node group's own command
        ["/bin/bash", "-c", command], stdout=pipe, stderr=pipe, text=True, errors="replace", start_new_session=True
    ) as process:
        try:
            said, complained = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            # What it has started holds the pipe too.
            os.killpg(process.pid, signal.SIGKILL)
            sys.stderr.write(f"{command}: no answer in {seconds:g} seconds\n")
            return []
    percents = None if process.returncode else utilization(said, accelerators)
    if percents is None:
        sys.stderr.write(
            f"{command}: a percentage for each of {accelerators} accelerators is expected, got exit status "
            f"{process.returncode} and {(said + complained).strip()[:_SHOWN]!r}\n"
        )
    return percents or []


def main(arguments: list[str]) -> None:
    """Ask again and again."""
    file, accelerators, seconds, port, metric, tags = arguments
    command, each = Path(file).read_text(encoding="utf-8").rstrip("\n"), float(seconds)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as agent:
        while True:
            start = time.monotonic()
            for number, percent in enumerate(read(command, int(accelerators), each)):
                datagram = f"{metric}:{percent}|h|#{tags},accelerator:{number}".encode()
                agent.sendto(datagram, ("127.0.0.1", int(port)))
            time.sleep(max(0.0, each - (time.monotonic() - start)))


if __name__ == "__main__":
    main(sys.argv[1:])
