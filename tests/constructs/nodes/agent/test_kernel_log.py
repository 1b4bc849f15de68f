"""Which lines of the kernel are faults, from lines that drivers have written on real nodes, and how they are read."""

import errno
from collections.abc import Callable

import pytest

from cdk_training_cluster.nodes.agent.cluster_node.kernel_log import KernelLog, sighting
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
        (
            "NEURON_HW_ERR=SRAM_UNCORRECTABLE_ERROR instance-id=i-0592464924bd45322 nd-id=0 "
            "nc-id=0 serial-num=19fcda00f5ff6eb9 action=TERMINATE_INSTANCE",
            *("neuron", "SRAM_UNCORRECTABLE_ERROR", "neuron0", "replace"),
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
