"""NVIDIA's nccl-tests: run over the GPUs of this node, or read from the output of a run over several nodes.

https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from . import use
from .checking import FLOORS, Check, counted, not_checked, verdict
from .gpus import Reading
from .node_facts import Facts, paths
from .programs import ROOT, Answer, ask

# https://docs.aws.amazon.com/dlami/latest/devguide/tutorial-efa-using.html
_PROGRAMS = ("/usr/local/cuda*/efa/test-cuda*/all_reduce_perf", "/opt/nccl-tests/build/all_reduce_perf")
_CUDA = re.compile(r"/usr/local/cuda[^/]*")
_LIBRARIES = "/opt/amazon/openmpi/lib:/opt/amazon/openmpi/lib64:/opt/amazon/efa/lib:/opt/amazon/ofi-nccl/lib"
_SECONDS = 180
# What CUDA says of a broken GPU.
# https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html
_HARDWARE = re.compile(
    r"uncorrectable|nvlink|gpu is lost|hardware|launch failure|illegal (?:memory|instruction)", re.I
)
# A library or driver that does not fit says nothing of the GPUs, and every node of the image has it.
_IMAGE = re.compile(
    r"cannot open shared object|undefined symbol|version `\S+' not found"
    r"|driver version is insufficient|no kernel image|unsupported toolchain",
    re.I,
)
# size, count, type, redop, root, and then time, algbw, busbw, #wrong: out of place, and in place. mpirun may put the
# rank before a line, and a run that does not compare its results says N/A.
_ROW = re.compile(
    r"(?:^|\s|:)(?P<size>\d+)\s+\d+\s+\w+\s+\w+\s+-?\d+"
    r"\s+[\d.]+\s+[\d.]+\s+(?P<out>[\d.]+)\s+(?P<out_wrong>\S+)"
    r"\s+[\d.]+\s+[\d.]+\s+(?P<place>[\d.]+)\s+(?P<place_wrong>\S+)\s*$"
)


class Row(NamedTuple):
    """One size of a run.

    Attributes:
        size: The bytes of each all-reduce.
        gb_per_s: The lower bus bandwidth of its two forms, in GB/s.
        wrong: How many results were wrong.
    """

    size: int
    gb_per_s: float
    wrong: int


def read_rows(text: str) -> list[Row]:
    """Return the sizes of a run of all_reduce_perf.

    Args:
        text: What it printed.
    """
    found = filter(None, map(_ROW.search, text.splitlines()))
    return [
        Row(
            size=int(row["size"]),
            gb_per_s=min(float(row["out"]), float(row["place"])),
            wrong=sum(int(row[name]) for name in ("out_wrong", "place_wrong") if row[name].isdigit()),
        )
        for row in found
    ]


def judge(text: str, instance_type: str, nodes: int) -> Iterator[Check]:
    """Yield what a run shows: whether its results were right, and whether it reached the floor of each size.

    Args:
        text: What all_reduce_perf printed.
        instance_type: The type of the nodes.
        nodes: How many nodes took part.
    """
    rows = read_rows(text)
    if not rows:
        yield verdict("gpu_test", ["all_reduce_perf printed no results"], "")
        return
    wrong = sum(row.wrong for row in rows)
    yield verdict(
        "gpu_test", [f"{wrong} results of all_reduce_perf are wrong"] if wrong else [], "all results are right"
    )
    best = max(rows, key=lambda row: row.size)
    found = f"{best.gb_per_s:.0f} GB/s at {best.size} bytes over {counted(nodes, 'node')}"
    floors = _floors(instance_type, nodes)
    judged = [(row, floor) for floor in floors for row in rows if row.size >= floor["min_bytes"]]
    if not judged:
        sizes = f" for runs of {floors[0]['min_bytes']} bytes or more only" if floors else ""
        yield not_checked("all_reduce", f"{found}; {instance_type} has {'a floor' if floors else 'no floor'}{sizes}")
        return

    def urgency(pair: tuple[Row, dict[str, Any]]) -> tuple[bool, float]:
        row, floor = pair
        share: float = row.gb_per_s / floor["gb_per_s"]
        # What fails the node is said before what a provisional floor says.
        return floor["provisional"] or share >= 1, share

    row, floor = min(judged, key=urgency)
    yield Check(
        "all_reduce",
        passed=row.gb_per_s >= floor["gb_per_s"],
        found=f"{row.gb_per_s:.0f} GB/s at {row.size} bytes over {counted(nodes, 'node')}",
        floor=f"{floor['gb_per_s']} GB/s",
        provisional=floor["provisional"] or floor["nodes"] != nodes,
    )


def _floors(instance_type: str, nodes: int) -> list[dict[str, Any]]:
    """Return the floors of so many nodes; those of fewer nodes where there are none, but not those of one node."""
    known = [row for row in FLOORS["all_reduce"] if row["type"] == instance_type and row["nodes"] <= nodes]
    several = [row for row in known if (row["nodes"] > 1) == (nodes > 1)]
    most = max((row["nodes"] for row in several), default=0)
    return [row for row in several if row["nodes"] == most]


def check_all_reduce(facts: Facts, reading: Reading) -> Iterator[Check]:
    """Run an all-reduce over the GPUs of this node and yield what it shows; nothing for a type without any.

    Args:
        facts: What the node has when all is well.
        reading: What the driver said of the GPUs.
    """
    if not facts.gpus or not reading.gpus:
        return
    programs = [path for pattern in reversed(_PROGRAMS) for path in paths(pattern)]
    if any(gpu.divided for gpu in reading.gpus):
        yield not_checked("gpu_test", "the GPUs are in MIG mode")
    elif any(gpu.divided is None for gpu in reading.gpus):
        yield not_checked("gpu_test", "the driver does not say whether the GPUs are in MIG mode")
    elif not programs:
        yield not_checked("gpu_test", "the image has no all_reduce_perf of nccl-tests")
    elif use.jobs_use_node():
        yield not_checked("gpu_test", "a job uses the node")
    else:
        arguments = ("-b", "1G", "-e", "1G", "-g", str(len(reading.gpus)), "-n", "20", "-w", "5", "-c", "1")
        answer = ask([ROOT + programs[-1], *arguments], _SECONDS, {"LD_LIBRARY_PATH": _search_path(programs[-1])})
        # One that hangs would be taken for a job itself.
        if not answer.is_late and use.jobs_use_node():
            yield not_checked("gpu_test", "a job began to use the node meanwhile")
            return
        if not answer.succeeded:
            yield _why_it_ended(answer)
            return
        checks = judge(answer.text, facts.instance_type, nodes=1)
        # One GPU sends nothing: its bandwidth is 0.
        yield from checks if len(reading.gpus) > 1 else [next(checks)]


def _search_path(program: str) -> str:
    found = _CUDA.match(program)
    cuda = found[0] if found else "/usr/local/cuda"
    own = (f"{cuda}/efa/lib:{cuda}/lib:{cuda}/lib64", _LIBRARIES, os.environ.get("LD_LIBRARY_PATH"))
    return ":".join(filter(None, own))


def _why_it_ended(answer: Answer) -> Check:
    said = answer.text + answer.trouble
    if answer.is_late or _HARDWARE.search(said):
        return verdict("gpu_test", [answer.trouble], "")
    if answer.status is None or _IMAGE.search(said):
        return not_checked("gpu_test", answer.trouble)
    # Neither a GPU nor the image is known to be to blame, so that no other host is known to help.
    return verdict("gpu_test_error", [answer.trouble], "")
