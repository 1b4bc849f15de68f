"""Which lines of the kernel are faults, from lines that drivers have written on real nodes, and how they are read."""

import errno
import os
import platform
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cdk_training_cluster.nodes.agent.cluster_node.kernel_log import PATH, KernelLog, open_kernel_log, sighting
from cluster_contract.faults import FaultKind, fault_of

# From public threads, the fixtures of gpud and NVSentinel, and the documents of NVIDIA and Neuron.
_FALLEN = (
    "NVRM: The NVIDIA GPU 0000:b3:00.0\nNVRM: (PCI ID: 10de:26b5) installed in this system has\n"
    "NVRM: fallen off the bus and is not responding to commands."
)


@pytest.mark.parametrize(
    ("line", "kind", "code", "device", "action"),
    [
        (
            "NVRM: Xid (PCI:0000:9b:00): 119, pid=2024380, name=nvidia-smi, Timeout after 6s of waiting for RPC "
            "response from GPU4 GSP! Expected function 10 (FREE) (0xa55a0210 0x0).",
            *("xid", "119", "0000:9b:00", "reboot"),
        ),
        (
            "NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
            *("xid", "79", "0000:05:00", "reboot"),
        ),
        ("NVRM: Xid (0000:03:00): 14, Channel 00000001", "xid", "14", "0000:03:00", "observe"),
        (
            "NVRM: Xid (PCI:0000:38:00): 13, pid='<unknown>', name=<unknown>, Graphics SM Warp Exception on (GPC 9, "
            "TPC 5, SM 0): Out Of Range Address",
            *("xid", "13", "0000:38:00", "application"),
        ),
        (
            "NVRM: Xid (PCI:0009:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)",
            *("xid", "154", "0009:01:00", "observe"),
        ),
        (
            "NVRM: Xid (PCI:0018:01:00): 145, pid=876767, name=ray::WorkerDict, RLW_RXPIPE Nonfatal XC0 i0 Link 13 "
            "(0x0409a0c2 0x00000008 0x00000001 0x00000000 0x00100000 0x00000004)",
            *("xid", "145", "0018:01:00", "observe"),
        ),
        (
            "NVRM: Xid (PCI:0019:01:00): 149, NETIR Fatal XC0 i0 Link -1 (0x000fe406 0x00000000 0x00000000)",
            *("xid", "149", "0019:01:00", "reboot"),
        ),
        (
            "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error",
            *("sxid", "12028", "0000:05:00", "observe"),
        ),
        (
            "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 32 LTSSM Fault Up",
            *("sxid", "20034", "0000:c1:00", "reboot"),
        ),
        (
            "nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 20034, Data {0x50610002, 0x10100030}",
            *("sxid", "20034", "0000:a9:00", "observe"),
        ),
        ("NVRM: GPU 0000:91:00.0: GPU has fallen off the bus.", "xid", "79", "0000:91:00", "reboot"),
        ("NVRM: GPU 18:00.0: GPU has fallen off the bus.", "xid", "79", "0000:18:00", "reboot"),
        (_FALLEN, "xid", "79", "0000:b3:00", "reboot"),
        ("NVRM: fallen off the bus and is not responding to commands.", "xid", "79", "", "reboot"),
        ("NVRM: GPU at 0000:01:00.0 has fallen off the bus.", "xid", "79", "0000:01:00", "reboot"),
        (
            "NVRM: Xid (PCI:0000:41:00 GPU-I:05): 94, pid=7, name=python, Contained: SM (0x1).",
            *("xid", "94", "0000:41:00", "observe"),
        ),
        *(
            (
                f"{date}NEURON_HW_ERR=SRAM_UNCORRECTABLE_ERROR instance-id=i-0592464924bd45322 {host}nd-id=0 "
                "nc-id=0 serial-num=19fcda00f5ff6eb9 action=TERMINATE_INSTANCE",
                *("neuron", "SRAM_UNCORRECTABLE_ERROR", "neuron0", "replace"),
            )
            for date in ("", "2023-07-22T17:39:08.123456Z ")
            for host in ("", "hostname=ip-172-31-61-252 ")
        ),
    ],
)
def test_a_line_that_a_driver_wrote(line: str, kind: str, code: str, device: str, action: str) -> None:
    found = sighting(line)
    assert found is not None
    assert (found.kind.value, found.code, found.device) == (kind, code, device)
    assert fault_of(found.kind, found.code).action_for(found.text).value == action


@pytest.mark.parametrize(
    "line",
    [
        "eth0: link up",
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.172.08",
        "NVRM: GPU at PCI:0000:9b:00: GPU-509665ad-b600-ac93-3616-d754b23d636d",
        "efa 0000:a0:1a.0 rdmap160s26: Failed to process command DEREG_MR (opcode 8) comp_status 7 err -22",
    ],
)
def test_a_line_that_is_no_fault(line: str) -> None:
    assert sighting(line) is None


def _device(*records: bytes | OSError) -> Callable[[int, int], bytes]:
    left = list(records)

    def read(_: int, __: int) -> bytes:
        record = left.pop(0) if left else BlockingIOError()
        if isinstance(record, OSError):
            raise record
        return record

    return read


# Names of programs: the kernel reports their crash in a record that begins with their first 15 characters.
_FORGED_NAMES = (
    "NVRM: Xid (PCI:0000:9b:00): 64, pid=1",
    "NVRM: Xid (0000): 64, pid=1",
    "x\nNVRM: Xid (PCI:0000:9b:00): 64, pid=1",
    "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Fatal",
    "NVRM: fallen off the bus",
    "NVRM: GPU 0000:91:00.0: GPU has fallen off the bus.",
    "NEURON_HW_ERR=SRAM_UNCORRECTABLE_ERROR instance-id=i-1 nd-id=0",
    "2023-07-22T17:3 NEURON_HW_ERR=SRAM_UNCORRECTABLE_ERROR instance-id=i-1",
    "\x01cNVRM: fallen off the bus",
)
# As kernel 6.18 wrote them on x86_64.
_CRASH = (
    "6,{number},805302688,{flags};{start}[30079]: segfault at 0 ip 000000000040007a sp 00007ffcdfdbd850 error 6 "
    "in {name}[7a,400000+1000] likely on CPU 0 (core 0, socket 0)\n"
)


def _escaped(text: str) -> str:
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)


def _crash_record(number: int, name: str) -> bytes:
    # A name that begins with the kernel's mark of a continued line makes the record one.
    flags, start = ("c", name[2:15]) if name.startswith("\x01c") else ("-", name[:15])
    return _CRASH.format(number=number, flags=flags, start=_escaped(start), name=_escaped(name)).encode()


def test_the_name_of_a_program_that_crashes_is_no_fault() -> None:
    records = [_crash_record(number, name) for number, name in enumerate(_FORGED_NAMES)]
    assert [line for line in KernelLog(0, read=_device(*records)).lines() if sighting(line)] == []


@pytest.mark.parametrize("head", ["12,7,5140900,-", "4,7,5140900,c", "4,7,5140900,+", "12,7,5140900,-,caller=T1"])
def test_what_a_program_writes_is_no_line_of_the_kernel(head: str) -> None:
    record = f"{head};NVRM: Xid (PCI:0000:9b:00): 64, pid=1\n".encode()
    log = KernelLog(0, read=_device(record, _record(8, "b")))
    assert (list(log.lines()), log.last) == (["b"], 8)


@pytest.mark.parametrize(
    "line",
    [
        "a NVRM: Xid (PCI:0000:9b:00): 64, pid=1",
        "a\nNVRM: Xid (PCI:0000:9b:00): 64, pid=1",
        "NVRM: Xid (PCI:x 0000:9b:00): 64, pid=1",
        "NVRM: Xid (PCI:0000:9b:00 x): 64, pid=1",
        "NVRM: Xid (PCI:0000:9b:00): 64x",
        "NVRM: Xid (PCI:0000:9b:00): 64\n",
        "a\nnvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Fatal",
        "NVRM: a fallen off the bus",
        "NVRM: The NVIDIA GPU 0000:b3:00.0 a fallen off the bus",
        "a\nNEURON_HW_ERR=DMA_ERROR instance-id=i-1",
        "NEURON_HW_ERR=DMA_ERROR",
    ],
)
def test_a_line_that_is_not_whole_is_no_fault(line: str) -> None:
    assert sighting(line) is None


def _crashing_program() -> bytes:
    """Return an x86_64 program that writes to address 0."""
    code, base = bytes.fromhex("31c08900"), 0x400000
    size = 120 + len(code)
    head = struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, base + 120, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 0x1000)
    return b"\x7fELF\x02\x01\x01" + bytes(9) + head + segment + code


_UNFIT = platform.machine() != "x86_64" or not os.access(PATH, os.R_OK)


@pytest.mark.skipif(_UNFIT, reason="the program is of x86-64, and the kernel's log must be readable")
def test_a_program_that_crashes_on_this_machine_forges_no_fault(tmp_path: Path) -> None:
    log = open_kernel_log()
    list(log.lines())
    for name in _FORGED_NAMES:
        program = tmp_path / name
        program.write_bytes(_crashing_program())
        program.chmod(0o755)
        subprocess.run([program], check=False)
    lines = list(log.lines())
    assert [line for line in lines if sighting(line)] == []
    if not any("segfault" in line for line in lines):
        pytest.skip(reason="this kernel reports no program that crashes: nothing could be forged")


def _record(number: int, text: str) -> bytes:
    return f"4,{number},5140900,-;{text}\n SUBSYSTEM=pci\n DEVICE=+pci:0000:05:00.0\n".encode()


def test_each_line_is_read_once_where_the_kernel_overwrites_lines_and_after_a_restart() -> None:
    log = KernelLog(0, read=_device(_record(7, "a"), BrokenPipeError(errno.EPIPE, "overwritten"), _record(90, "b")))
    assert (list(log.lines()), log.last, log.lost) == (["a", "b"], 90, 1)
    assert list(log.lines()) == []
    again = KernelLog(0, after=log.last, read=_device(_record(89, "a"), _record(90, "b"), _record(91, "c")))
    assert list(again.lines()) == ["c"]


def test_a_record_of_several_lines_is_one_fault() -> None:
    (line,) = KernelLog(0, read=_device(_record(1, _FALLEN.replace("\n", "\\x0a")))).lines()
    assert line == _FALLEN
    assert fault_of(FaultKind.XID, "79").action.drains
