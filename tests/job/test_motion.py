"""Whether this process moves, as a thread of it sees the main thread: in processes of their own."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from cluster_job.motion import Motion

_SCRIPT = """
import threading, time, subprocess, sys
from cluster_job.motion import read_motion

def wait():
    ended.wait()

def compute():
    while not ended.is_set():
        sum(range(1000))

def child():
    subprocess.run([sys.executable, "-c", "import time\\nend = time.time() + 30\\nwhile time.time() < end: pass"])

def read():
    with open("/dev/zero", "rb") as file:
        while not ended.wait(0.01):
            file.read(100_000)

def kernel():
    # Perl calls vfork, whose parent sleeps without interruption until the child ends.
    command = ["perl", "-e", "if (syscall(58) == 0) { sleep 8; exec 'true' }"]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

def look():
    time.sleep(0.5)
    # On a busy machine, a process that computes gets little CPU at first.
    for _ in range(1 if sys.argv[1] == "False" else 20):
        first = read_motion()
        time.sleep(1)
        last = read_motion()
        if last.moved_since(first):
            break
    print(last.moved_since(first), last.in_kernel, last.where, last.in_torch, flush=True)
    ended.set()
    __import__("os")._exit(0)

ended = threading.Event()
threading.Thread(target=look).start()
"""


@pytest.mark.parametrize(
    ("does", "moved", "kernel"),
    [
        ("wait", "False", "False"),
        ("compute", "True", "False"),
        ("child", "True", "False"),
        ("read", "True", "False"),
        pytest.param(
            "kernel",
            "False",
            "True",
            marks=pytest.mark.skipif(platform.machine() != "x86_64", reason="the number of vfork is that of x86-64"),
        ),
    ],
)
def test_a_process_moves_that_computes_or_reads_itself_or_by_another_one(
    tmp_path: Path, does: str, moved: str, kernel: str
) -> None:
    script = tmp_path / "train.py"
    script.write_text(f"{_SCRIPT}\n{does}()")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "job")}
    done = subprocess.run(
        [sys.executable, str(script), moved], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    found, in_kernel, where = done.stdout.split(" ", 2)
    assert (found, in_kernel) == (moved, kernel)
    assert f"in {does}" in where
    assert where.rstrip().endswith("False")


def _motion(at: float = 0.0, *, line: int = 1, cpu: float = 0.0, io: int = 0, in_torch: bool = False) -> Motion:
    return Motion(at=at, stack=(("a.py", line),), where="", in_torch=in_torch, cpu_seconds=cpu, io_bytes=io)


@pytest.mark.parametrize(
    ("later", "moved"),
    [
        (_motion(5.0), False),
        (_motion(5.0, line=2), True),
        (_motion(5.0, cpu=0.2), False),
        (_motion(5.0, cpu=0.3), True),
        (_motion(5.0, io=900_000), False),
        (_motion(5.0, io=1_100_000), True),
        # NCCL and CUDA wait with a whole CPU.
        (_motion(5.0, cpu=5.0, in_torch=True), False),
        (_motion(5.0, line=2, in_torch=True), True),
        (_motion(5.0, io=1_100_000, in_torch=True), True),
    ],
)
def test_the_limits_of_what_moves(later: Motion, moved: bool) -> None:
    assert later.moved_since(_motion()) is moved
