"""Whether this process moves, as a thread of it sees the main thread: in processes of their own."""

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
    subprocess.run([sys.executable, "-c", "import time\\nend = time.time() + 5\\nwhile time.time() < end: pass"])

def read():
    with open("/dev/zero", "rb") as file:
        while not ended.wait(0.01):
            file.read(100_000)

def look():
    time.sleep(0.5)
    first = read_motion()
    time.sleep(1)
    last = read_motion()
    print(last.moved_since(first), last.where, last.in_torch, flush=True)
    ended.set()
    __import__("os")._exit(0)

ended = threading.Event()
threading.Thread(target=look).start()
"""


@pytest.mark.parametrize(
    ("does", "moved"), [("wait", "False"), ("compute", "True"), ("child", "True"), ("read", "True")]
)
def test_a_process_moves_that_computes_or_reads_itself_or_by_another_one(
    tmp_path: Path, does: str, moved: str
) -> None:
    script = tmp_path / "train.py"
    script.write_text(f"{_SCRIPT}\n{does}()")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True, timeout=60)
    found, where = done.stdout.split(" ", 1)
    assert found == moved
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
