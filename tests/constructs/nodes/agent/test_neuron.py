"""What `cluster-node verify` and `cluster-node watch` find on nodes with Trainium."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cdk_training_cluster.instance_types import instance_type_info
from cdk_training_cluster.nodes.bootstrap.agent import AcceleratorVendor
from cdk_training_cluster.nodes.bootstrap.asset import write_scripts
from cdk_training_cluster.nodes.bootstrap.expected import expected_nodes
from verified_node import VerifiedNode

_SYSFS = "sys/devices/virtual/neuron_device"
OTHER_HOST = 3
_NODES = {"trn1.32xlarge": (16, 8, "Trainium1"), "trn2.48xlarge": (16, 16, "Trainium2")}
_READ = """
import sys; sys.path.insert(0, sys.argv[1])
import json
from cluster_node.node_facts import expected_facts, instance_type
from cluster_node.readings import Readings
sources = Readings(expected_facts(instance_type()))
found = [sources.read() for _ in range(2)][1]
print(json.dumps([sorted(found.readable), [code for code, _, _ in found.wrong], [*found.evidence.broken]]))
"""


@pytest.fixture(params=_NODES)
def node(request: pytest.FixtureRequest, tmp_path: Path) -> VerifiedNode:
    """A node of the type, as the driver of Neuron 2.24 shows it."""
    devices, adapters, model = _NODES[request.param]
    node = VerifiedNode(tmp_path)
    info = instance_type_info(request.param)
    node.configure(json.loads(expected_nodes([info], adapters)))
    node.write("sys/devices/virtual/dmi/id/product_name", f"{request.param}\n")
    for number in range(devices):
        node.write(f"dev/neuron{number}")
        node.write(f"{_SYSFS}/neuron{number}/info/architecture/device_name", f"{model}\n")
        for name in ("mem_ecc_uncorrected", "mem_ecc_repairable_uncorrected", "sram_ecc_uncorrected"):
            node.write(f"{_SYSFS}/neuron{number}/stats/hardware/{name}", "0\n")
    for number in range(adapters):
        node.write(f"sys/class/infiniband/rdmap{number}/ports/1/state", "4: ACTIVE\n")
    for number in range(info.instance_store_disks):
        node.write(f"sys/class/nvme/nvme{number + 1}/model", "Amazon EC2 NVMe Instance Storage        \n")
    return node


def _reading(node: VerifiedNode, scripts: Path) -> list[list[str]]:
    if not scripts.exists():
        scripts.mkdir()
        write_scripts(scripts, AcceleratorVendor.NEURON)
    done = subprocess.run(
        [sys.executable, "-IS", "-c", _READ, str(scripts)],
        env={"PATH": f"{node.programs}:{os.defpath}", "ROOT": str(node.root)},
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[list[str]] = json.loads(done.stdout)
    return found


def test_a_sound_node_passes_and_is_watched(node: VerifiedNode, tmp_path: Path) -> None:
    done = node.verify()
    assert (done.returncode, done.stderr) == (0, "")
    assert "ok neuron_count: the node has 16 Neuron devices" in done.stdout
    assert "ok neuron_model: Trainium" in done.stdout
    assert "ok neuron_hardware: no uncorrected errors of memory" in done.stdout
    readable, wrong, broken = _reading(node, tmp_path / "scripts")
    assert broken == []
    assert {"neuron_count", "neuron_hardware", "neuron_repairable", "efa_count", "efa_errors"} <= set(readable)
    assert wrong == []


def _move_counters(node: VerifiedNode) -> None:
    # Version 2.31 of the driver moved nodes of the tree.
    for device in (node.root / _SYSFS).iterdir():
        (device / "stats/hardware").rename(device / "ecc")
    node.write(f"{_SYSFS}/neuron3/ecc/mem_ecc_uncorrected", "1\n")


def _lose_counters(node: VerifiedNode) -> None:
    for counter in (node.root / _SYSFS).glob("*/stats/hardware/*"):
        counter.unlink()


def _tell(path: str, text: str) -> Callable[[VerifiedNode], None]:
    return lambda node: node.write(f"{_SYSFS}/neuron3/{path}", f"{text}\n")


@pytest.mark.parametrize(
    ("breaks", "status", "sentence"),
    [
        (
            lambda node: (node.root / "dev/neuron7").unlink(),
            OTHER_HOST,
            "neuron_count: the node has 15 Neuron devices, and trn",
        ),
        (
            _tell("stats/hardware/sram_ecc_uncorrected", "2"),
            OTHER_HOST,
            "neuron_hardware: sram_ecc_uncorrected of neuron3 is 2",
        ),
        (_move_counters, OTHER_HOST, "neuron_hardware: mem_ecc_uncorrected of neuron3 is 1"),
        # Results were wrong, and the memory is repaired when the driver is loaded again.
        (
            _tell("stats/hardware/mem_ecc_repairable_uncorrected", "1"),
            OTHER_HOST,
            "neuron_repairable: mem_ecc_repairable_uncorrected of neuron3 is 1",
        ),
        (_lose_counters, 0, "ok neuron_hardware: not checked: the driver shows no counters of uncorrected"),
        (_tell("info/architecture/device_name", "Inferentia2"), 1, "neuron_model: neuron3 is Inferentia2, and trn"),
    ],
)
def test_a_node_fails_by_each_fault(
    node: VerifiedNode, tmp_path: Path, breaks: Callable[[VerifiedNode], object], status: int, sentence: str
) -> None:
    breaks(node)
    done = node.verify("--dry-run")
    assert sentence in done.stdout
    assert done.returncode == status
    readable, wrong, broken = _reading(node, tmp_path / "scripts")
    assert broken == (["neuron3"] if sentence.startswith("neuron_hardware") else [])
    assert wrong == ([sentence.partition(":")[0]] if status == OTHER_HOST else [])
    assert ("neuron_hardware" in readable) is ("not checked" not in sentence)
