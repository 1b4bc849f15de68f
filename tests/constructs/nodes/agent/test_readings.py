"""What the watchdog reads of devices: the driver's own words, and rates of counters."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cdk_training_cluster.nodes.agent.cluster_node import rates, use
from cdk_training_cluster.nodes.bootstrap.asset import AGENT, CONTRACT
from verified_node import VerifiedNode, build_nvml

_READ = """
import sys; sys.path[:0] = sys.argv[1:3]
import json
from cluster_node.node_facts import expected_facts
from cluster_node.readings import Readings
seconds = iter((0.0, 60.0))
sources = Readings(expected_facts("p5.48xlarge"), clock=lambda: next(seconds))
sources.read()
found = sources.read()
print(json.dumps([sorted(found.readable), found.wrong, found.serials, found.trouble, sources.seconds]))
"""
_GPU_0 = "0000:53:00"


@pytest.fixture(scope="module")
def nvml(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_nvml(tmp_path_factory.mktemp("nvml"))


def _second_reading(node: VerifiedNode, nvml: Path | None = None, **environment: str) -> list[object]:
    options = ["-I"] if nvml else ["-I", "-S"]
    done = subprocess.run(
        [sys.executable, *options, "-c", _READ, str(AGENT.parent), str(CONTRACT.parent)],
        env={"PATH": f"{node.programs}:{os.defpath}", "ROOT": str(node.root), "LD_LIBRARY_PATH": str(nvml or "")}
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
            {"NVML_REMAP_PENDING": "0", "NVML_LINKS": "17", "NVML_REASONS": str(0x80 | 0x4), "NVML_REPLAYS": "3"},
            {(code, _GPU_0) for code in ("remap_pending", "nvlink_down", "power_brake", "nvlink_errors")},
        ),
        # An image without a driver, or one that hangs, is unknown.
        ({"NVML_DEAD": "1"}, set()),
    ],
)
def test_what_nvml_says_of_the_gpus(tmp_path: Path, nvml: Path, state: dict[str, str], wrong: object) -> None:
    readable, found, serials, trouble, seconds = _second_reading(VerifiedNode(tmp_path), nvml, **state)
    assert isinstance(found, list)
    assert isinstance(readable, list)
    assert {(code, device) for code, device, _ in found} == wrong
    assert ("remap_failed" in readable) is (state.keys() != {"NVML_DEAD"})
    assert bool(serials) is (trouble == "" or "NVML_LOST" in state)
    assert seconds == 60


def test_without_nvidia_ml_py_the_gpus_are_read_less_often(tmp_path: Path) -> None:
    readable, found, _, _, seconds = _second_reading(VerifiedNode(tmp_path))
    assert isinstance(readable, list)
    assert ("remap_failed" in readable, "thermal" in readable, found, seconds) == (True, False, [], 900)


@pytest.mark.parametrize(
    ("counter", "grows", "said"),
    [
        ("retrans_timeout_events", 9, []),
        ("retrans_timeout_events", 11, ["retrans_timeout_events grew by 11 a minute"]),
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
    for number, (name, what) in enumerate(processes.items(), start=2_000_000):
        process = tmp_path / "proc" / str(number)
        (process / "fd").mkdir(parents=True)
        (process / "comm").write_text(f"{name[:15]}\n")
        (process / "cmdline").write_text(what)
        (process / "fd/7").symlink_to(what)
    assert use.jobs_use_node() is in_use
