"""The figures of the sweep, as people read them."""

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table


def show_sweep(console: Console, sweep: dict[str, Any]) -> None:
    """Print the figures of the sweep.

    Args:
        console: Where to.
        sweep: What was measured.
    """
    goals, machine = sweep["goals"], sweep["machine"]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for heading in ("nodes", "stops", "calls", "most", "seconds", "plain", "ratio", "CPU", "MiB", "plain"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("missed", no_wrap=True)
    for entry in sweep["fleets"].values():
        function, minimal = entry["function"], entry["minimal"]
        table.add_row(
            *(f"{entry[count]:,}" for count in ("instances", "stops", "requests", "most_requests")),
            *(f"{side['seconds']:.2f}" for side in (function, minimal)),
            *(f"{entry[ratio]:.2f}" for ratio in ("ratio_of_turns", "cpu_ratio")),
            *(f"{side['peak_mib']:.0f}" for side in (function, minimal)),
            ", ".join(goal for goal, is_met in entry["meets"].items() if not is_met),
        )
    console.print(
        f"Idle stop, cold processes, {sweep['runs']} turns, fewer over large fleets, on {machine['cpus']} CPUs, "
        f"load {machine['load']} before the first."
    )
    console.print(table)
    for size, entry in sweep["fleets"].items():
        calls = ", ".join(f"{operation} {number}" for operation, number in entry["function"]["requests"].items())
        console.print(f"{int(size):,}: {calls}.")
    for name, start in sweep.items():
        if name.startswith("import"):
            console.print(
                f"{name.capitalize()}, and clients: {start['function']['seconds']:.2f} s, boto3 "
                f"{start['boto3']['seconds']:.2f} s, ratio {start['ratio_of_turns']:.2f}, of CPU time "
                f"{start['cpu_ratio']:.2f}."
            )
    gangs = sweep.get("gangs")
    if gangs:
        console.print(
            f"The decision about one gang of 10,000 nodes: {gangs['one_gang_cpu_seconds']:.2f} s of CPU time, about "
            f"ten of 1,000 {gangs['ten_gangs_cpu_seconds']:.2f} s, ratio {gangs['cpu_ratio_of_turns']:.2f}."
        )
    console.print("Plain: the minimal script. Ratios: median of each turn's, of CPU time.")
    console.print(
        f"Goals: a ratio of {goals['wall_ratio']}, {goals['peak_mib']} MiB at {goals['peak_at']:,}, "
        f"an import's ratio of {goals['import_ratio']}, one gang's of 1.2 to ten gangs, calls as in the table."
    )
