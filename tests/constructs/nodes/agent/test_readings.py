"""What the watchdog reads of devices: the driver's own words, and rates of counters."""

import contextlib
import itertools
import json
import os
import queue
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cdk_training_cluster.nodes.agent.cluster_node import (
    accelerators,
    drain_files,
    gpus,
    programs,
    rates,
    readings,
    use,
)
from cdk_training_cluster.nodes.agent.cluster_node.node_facts import Facts
from cdk_training_cluster.nodes.agent.cluster_node.watch import DeviceReader
from cdk_training_cluster.nodes.agent.cluster_node.watched import NodeIdentity, Watched
from cdk_training_cluster.nodes.bootstrap.agent import AcceleratorVendor
from cdk_training_cluster.nodes.bootstrap.asset import write_scripts
from cluster_contract.faults import FaultKind
from verified_node import VerifiedNode, nvml

_READ = """
import sys; sys.path.insert(0, sys.argv[1])
import json, os
from cluster_node import gpus
from cluster_node.node_facts import expected_facts
from cluster_node.readings import Readings
gpus._SECONDS = float(os.environ.get("LIMIT", 60))
seconds = iter((0.0, 60.0))
sources = Readings(expected_facts("p5.48xlarge"), clock=lambda: next(seconds))
sources.read()
found = sources.read()
print(json.dumps([sorted(found.readable), found.wrong, found.serials, found.trouble]))
"""
_GPU_0 = "0000:53:00"


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a node has in its asset, nvidia-ml-py too."""
    directory = tmp_path_factory.mktemp("scripts")
    write_scripts(directory, AcceleratorVendor.NVIDIA)
    return directory


def _second_reading(node: VerifiedNode, scripts: Path, **environment: str) -> list[object]:
    done = subprocess.run(
        [sys.executable, "-IS", "-c", _READ, str(scripts)],
        env={"PATH": f"{node.programs}:{os.defpath}", "ROOT": str(node.root), "LD_LIBRARY_PATH": str(nvml())}
        | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[object] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("state", "wrong"),
    [
        ({}, set()),
        (
            {
                "NVML_REMAP_FAILED": "0",
                "NVML_ECC": "1",
                "NVML_SRAM": "2",
                "NVML_LOST": "7",
                "NVML_REASONS": str(0x40),
            },
            {
                *(("remap_failed", _GPU_0), ("ecc_uncorrectable", "0000:54:00"), ("sram_threshold", "0000:55:00")),
                *(("gpu_lost", ""), ("thermal", _GPU_0)),
            },
        ),
        (
            {
                "NVML_REMAP_PENDING": "0",
                "NVML_LINKS": "17",
                "NVML_REASONS": str(0x80 | 0x4),
                "NVML_FIELD": "52",
            },
            {(code, _GPU_0) for code in ("remap_pending", "nvlink_down", "power_brake", "nvlink_errors")},
        ),
        ({"NVML_FIELD": "59"}, {("nvlink_errors", _GPU_0)}),
        ({"NVML_RECOVERY": "1"}, {("recovery_action", _GPU_0)}),
        ({"NVML_FABRIC": "2"}, {("fabric_state", _GPU_0)}),
        ({"NVML_REASONS": str(0x20), "NVML_FIELD": "38", "NVML_GROWS": "5999"}, {("thermal", _GPU_0)}),
        ({"NVML_FIELD": "38", "NVML_GROWS": "6000"}, {("nvlink_errors", _GPU_0)}),
        ({"NVML_FIELD": "45", "NVML_GROWS": "6000"}, {("nvlink_errors", _GPU_0)}),
        # What one GPU does not say is unknown; only of two errors it takes no job.
        *(
            ({"NVML_UNSAID": error, "NVML_LINKS": "17", "NVML_REMAP_FAILED": "0"}, set())
            for error in ("10", "19", "999")
        ),
        *(({"NVML_UNSAID": error}, {("gpu_lost", "")}) for error in ("15", "16")),
        # An image without a driver, or one that hangs, is unknown.
        ({"NVML_DEAD": "1"}, set()),
        ({"NVML_HANGS": "1", "LIMIT": "0.2"}, set()),
    ],
)
def test_what_nvml_says_of_the_gpus(tmp_path: Path, scripts: Path, state: dict[str, str], wrong: object) -> None:
    state = {**state, "NVML_COUNTED": str(tmp_path / "counted")}
    readable, found, serials, trouble = _second_reading(VerifiedNode(tmp_path), scripts, **state)
    assert isinstance(found, list)
    assert isinstance(readable, list)
    assert {(code, device) for code, device, _ in found} == wrong
    answers = not {"NVML_DEAD", "NVML_HANGS"} & state.keys()
    assert bool(serials) is answers
    assert bool(trouble) is (not answers or ("gpu_lost", "") in wrong)
    # No fault ends while a GPU, or one of them, does not say how it is.
    ended = {"gpu_lost", "gpu_count", "remap_failed", "nvlink_down", "thermal", "sram_threshold", "nvlink_errors"}
    assert ended & set(readable) == (
        set()
        if trouble
        else {"gpu_lost", "gpu_count", "sram_threshold", "nvlink_errors"}
        if "NVML_UNSAID" in state
        else ended
    )


_H100 = tuple(
    gpus.Gpu(number, "NVIDIA H100 80GB HBM3", pci=f"0000:{number:02x}:00.0", fabric="") for number in range(8)
)


@pytest.mark.parametrize(
    ("state", "is_broken"),
    [
        ({}, False),
        ({"remap_failed": True}, True),
        ({"remap_pending": True}, True),
        ({"sram_over": True}, True),
        ({"recovery": "a reset"}, True),
        ({"fabric": "error 2"}, True),
        ({"fabric": "error 2", "divided": True}, False),
        ({"fabric": gpus.IN_PROGRESS}, False),
        # An application met it, or the rack is hot.
        ({"uncorrected": 1, "slow": ["thermal"], "link_errors": {"retries": 9}}, False),
    ],
)
def test_nvidia_s_library_confirms_a_line_of_the_kernel_s_log(
    monkeypatch: pytest.MonkeyPatch, state: dict[str, object], *, is_broken: bool
) -> None:
    found = [_H100[0]._replace(**state), *_H100[1:]]  # type: ignore[arg-type]
    monkeypatch.setattr(readings, "read_gpus", lambda: gpus.Reading("580.95.05", found, []))
    evidence = readings.Readings(Facts(instance_type="p5.48xlarge", gpus=8, gpu="H100")).read().evidence
    assert evidence.confirms(FaultKind.XID, "0000:00:00") is is_broken
    assert evidence.confirms(FaultKind.SXID, "0000:c1:00") is is_broken
    assert not evidence.confirms(FaultKind.XID, "0000:01:00")
    assert not evidence.confirms(FaultKind.XID, "0000:ff:00")
    assert not evidence.confirms(FaultKind.XID, "")


@pytest.mark.parametrize(("driver", "confirmed"), [("580.95.05", True), ("", False)])
def test_a_gpu_that_is_gone_confirms_a_line_and_a_driver_that_does_not_answer_none(
    monkeypatch: pytest.MonkeyPatch, driver: str, *, confirmed: bool
) -> None:
    reading = gpus.Reading(driver, list(_H100[1:]) if driver else [], ["GPU 0 does not answer: GPU is lost"])
    monkeypatch.setattr(readings, "read_gpus", lambda: reading)
    evidence = readings.Readings(Facts(instance_type="p5.48xlarge", gpus=8, gpu="H100")).read().evidence
    assert evidence.confirms(FaultKind.XID, "0000:00:00") is confirmed
    assert evidence.confirms(FaultKind.XID, "") is confirmed
    assert not evidence.confirms(FaultKind.XID, "0000:01:00")


def test_a_gpu_that_answers_again_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain_files, "ROOT", str(tmp_path))
    told: list[str] = []
    watched = Watched(
        NodeIdentity("llama", "workers", "i-1", "boot-1"), report=lambda report: told.append(report.kind.value)
    )
    devices = DeviceReader(readings.Readings(Facts(instance_type="p5.48xlarge", gpus=8, gpu="H100")))
    whole = [gpus.Gpu(number, "NVIDIA H100 80GB HBM3") for number in range(8)]
    one_lost = gpus.Reading("580.95.05", whole[1:], ["GPU 0 does not answer: GPU is lost"])
    for reading, drained_by in ((one_lost, ["check-gpu_lost"]), (gpus.Reading("580.95.05", whole, []), [])):
        monkeypatch.setattr(readings, "read_gpus", lambda reading=reading: reading)
        for _ in range(5):
            devices.read()
            with contextlib.suppress(OSError):
                devices.take(watched)
        assert drain_files.names() == drained_by
    assert told == ["fault", "recovered"]


@pytest.mark.parametrize(
    ("states", "wrong"),
    [
        (["active", "inactive"], [[], ["fabric_manager_stopped"]]),
        (["active", "", "failed"], [[], [], ["fabric_manager_stopped"]]),
        # The image may have none, or one that does not fit: its nodes would be rebooted for ever.
        (["inactive", "failed"], [[], []]),
    ],
)
def test_a_fabric_manager_counts_as_stopped_where_it_has_run(
    monkeypatch: pytest.MonkeyPatch, states: list[str], wrong: list[list[str]]
) -> None:
    whole = [gpus.Gpu(number, "NVIDIA H100 80GB HBM3", links=18) for number in range(8)]
    monkeypatch.setattr(readings, "read_gpus", lambda: gpus.Reading("580.95.05", whole, []))
    answers = iter(states)
    monkeypatch.setattr(accelerators, "ask", lambda *_: programs.Answer(0, f"{next(answers)}\n", ""))
    sources = readings.Readings(Facts(instance_type="p5.48xlarge", gpus=8, gpu="H100"))
    assert [[code for code, _, _ in sources.read().wrong] for _ in states] == wrong


def test_an_operator_hears_of_a_driver_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain_files, "ROOT", str(tmp_path))
    told: list[tuple[str, list[tuple[str, str]]]] = []
    watched = Watched(
        NodeIdentity("llama", "workers", "i-1", "boot-1"),
        report=lambda report: told.append(
            (report.kind.value, [(fault.code, fault.action.value) for fault in report.faults])
        ),
    )
    devices = DeviceReader(readings.Readings(Facts(instance_type="g6.48xlarge", gpus=8, gpu="L4")))
    answers = gpus.Reading("580.95.05", [gpus.Gpu(number, "NVIDIA L4") for number in range(8)], [])
    dead = gpus.Reading("", [], ["NVIDIA's driver does not answer: it did not in 60 seconds"])
    for reading, times in ((dead, 9), (answers, 1), (dead, 30), (answers, 5)):
        monkeypatch.setattr(readings, "read_gpus", lambda reading=reading: reading)
        for _ in range(times):
            devices.read()
            with contextlib.suppress(OSError):
                devices.take(watched)
            assert drain_files.names() == []
        if times == 9:
            assert told == []
    assert told == [("fault", [("gpu_silent", "observe")])]
    assert watched.faults == {}


@pytest.mark.parametrize("late", [1, 2])
def test_a_driver_that_is_late_is_asked_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: int) -> None:
    asked: list[object] = []

    class Late(subprocess.Popen[str]):
        def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:
            if self not in asked:
                asked.append(self)
                if len(asked) <= late:
                    raise subprocess.TimeoutExpired("python", timeout or 0)
            return super().communicate(input)

    python = tmp_path / "python"
    python.write_text("""#!/bin/sh\necho '{"driver": "580.95.05", "gpus": [], "troubles": []}'\n""")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr(subprocess, "Popen", Late)
    reading = gpus.read_gpus()
    assert len(asked) == 2
    assert reading.driver == ("580.95.05" if late == 1 else "")
    said = [re.sub(r"\d+ on \d+", "N on N", each) for each in reading.troubles]
    late_driver = "NVIDIA's driver does not answer: it did not in 60 seconds; the load average is N on N CPUs"
    assert said == [late_driver] * (late - 1)


def test_a_command_that_hangs_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    class Hangs(subprocess.Popen[str]):
        def kill(self) -> None:
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Hangs)
    try:
        assert [programs.ask(["sleep", "600"], 0.1).trouble for _ in range(2)] == [
            "sleep did not answer in 0 seconds",
            "sleep still hangs",
        ]
        assert len(started) == 1
    finally:
        for process in started:
            process.terminate()
            process.wait()


@pytest.mark.parametrize(
    ("counter", "grows", "said"),
    [
        ("retrans_timeout_events", 9, []),
        *(
            (name, 11, [f"{name} grew by 11 a minute"])
            for name in (
                "retrans_timeout_events",
                "unresponsive_remote_events",
                "impaired_remote_conn_events",
                "rx_drops",
            )
        ),
        ("retrans_bytes", 10**7, []),
        ("retrans_bytes", 10**8, ["5.0% of the bytes were sent again"]),
        # The driver was loaded again.
        ("rx_drops", -500, ["rx_drops grew by 500 a minute"]),
    ],
)
def test_how_fast_an_efa_counter_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counter: str, grows: int, said: list[str]
) -> None:
    monkeypatch.setattr(rates, "ROOT", str(tmp_path))
    folder = tmp_path / "sys/class/infiniband/rdmap0s6/ports/1/hw_counters"
    folder.mkdir(parents=True)
    counters = {"tx_bytes": 10**15, counter: 1000}
    known = rates.Rates()
    for seconds, growth in ((0.0, 0), (60.0, 1)):
        counters = {"tx_bytes": 10**15 + growth * 2 * 10**9, counter: 1000 + growth * grows}
        for name, value in counters.items():
            (folder / name).write_text(f"{value}\n")
        found = list(rates.efa_errors(known, seconds))
        assert found == [("rdmap0s6", text) for text in said] if growth else not found


@pytest.mark.parametrize(
    ("devices", "processes", "in_use"),
    [
        (["nvidia0"], {"python": "/dev/nvidia-uvm"}, True),
        (["nvidia0"], {"nvidia-smi": "/dev/nvidia0", "nv-hostengine": "/dev/nvidia-uvm"}, False),
        (["neuron0"], {"python": "/dev/neuron3"}, True),
        (["neuron0"], {"neuron-monitor": "/dev/neuron0"}, False),
        ([], {"slurmd": "/dev/null", "slurmstepd": "slurmstepd: [123.0]"}, True),
        ([], {"slurmd": "/dev/null", "slurmstepd": "/usr/sbin/slurmstepd infinity"}, False),
        ([], {"slurmd": "/dev/null", "slurmstepd of 1000": "slurmstepd: [123.0]"}, False),
        ([], {"slurmd of 1000": "/dev/null"}, None),
        ([], {"python": "/dev/null"}, None),
    ],
)
def test_whether_a_job_uses_the_node(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    devices: list[str],
    processes: dict[str, str],
    in_use: bool | None,
) -> None:
    monkeypatch.setattr(use, "ROOT", str(tmp_path))
    for device in devices:
        (tmp_path / "dev").mkdir(exist_ok=True)
        (tmp_path / "dev" / device).touch()
    for number, (named, what) in enumerate(processes.items(), start=2_000_000):
        name, _, user = named.partition(" of ")
        process = tmp_path / "proc" / str(number)
        (process / "fd").mkdir(parents=True)
        (process / "comm").write_text(f"{name[:15]}\n")
        (process / "cmdline").write_text(what)
        # Its real, effective, saved and file system's user: slurmstepd takes on the user of its step now and then.
        (process / "status").write_text(f"Name:\t{name[:15]}\nUid:\t{user or 0}\t1000\t0\t1000\nGid:\t0\t0\t0\t0\n")
        (process / "fd/7").symlink_to(what)
        for closed_meanwhile in "3456":
            (process / "fd" / closed_meanwhile).touch()
    assert use.jobs_use_node() is in_use


def test_a_user_whose_process_never_gives_its_arguments_does_not_keep_the_watchdog_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that waits for a file system of its own, such as FUSE, keeps the memory that holds them locked."""
    monkeypatch.setattr(use, "ROOT", str(tmp_path))
    process = tmp_path / "proc/2000000"
    process.mkdir(parents=True)
    (process / "comm").write_text("slurmstepd\n")
    (process / "status").write_text("Uid:\t1000\t1000\t1000\t1000\n")
    os.mkfifo(process / "cmdline")
    found: queue.SimpleQueue[bool | None] = queue.SimpleQueue()
    threading.Thread(target=lambda: found.put(use.jobs_use_node()), daemon=True).start()
    assert found.get(timeout=20) is None


def test_a_user_who_opens_a_million_files_does_not_keep_the_watchdog_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not looked at in time counts as a job, so that no node is let go under one."""
    monkeypatch.setattr(use, "ROOT", str(tmp_path))
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvidia0").touch()
    for number in range(2_000_000, 2_000_003):
        files = tmp_path / "proc" / str(number) / "fd"
        files.mkdir(parents=True)
        for each in range(100):
            (files / str(each)).symlink_to("/dev/null")
    seconds = itertools.count()
    assert use.jobs_use_node(lambda: float(next(seconds)))
    assert next(seconds) < 20
    assert use.jobs_use_node(lambda: 0.0) is False
