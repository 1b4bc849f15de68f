"""What `cluster-node verify` finds on a node, and where it says so."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cdk_training_cluster.instance_types import instance_type_info
from cdk_training_cluster.nodes.agent.cluster_node import versions
from cdk_training_cluster.nodes.agent.cluster_node.checking import FLOORS
from cdk_training_cluster.nodes.agent.cluster_node.node_facts import Facts
from cdk_training_cluster.nodes.agent.cluster_node.versions import check_versions
from cluster_contract.faults import FaultAction
from cluster_contract.health import NodeReport, ReportKind
from cluster_contract.node_files import AFFINITY, DRAIN, SPOOL_IN_MEMORY
from verified_node import ALL_REDUCE, EXPECTED, VerifiedNode, nccl_row

FAILED, OTHER_HOST = 1, 3


@pytest.fixture
def node(tmp_path: Path) -> VerifiedNode:
    return VerifiedNode(tmp_path)


def test_a_sound_node_passes_and_says_so(node: VerifiedNode) -> None:
    node.write(f"{DRAIN}/verify"[1:], "an earlier failure")
    left = "fsx/.cdk-training-cluster/verify/of-a-killed-one"
    node.write(left)
    os.utime(node.root / left, (0, 0))
    done = node.verify()
    assert not (node.root / left).exists()
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert all(line.startswith("ok ") for line in lines)
    assert node.result["passed"]
    assert node.result["serials"] == [f"165332300000{number}" for number in range(8)]
    assert not (node.root / DRAIN[1:] / "verify").exists()
    assert (node.root / "dev/console").read_text() == f"cdk-training-cluster: verified, {len(lines)} checks passed\n"
    metric, tag, _, _ = node.calls
    assert '"MetricName": "VerificationFailed"' in metric
    assert metric.count('"Value": 0') == 2
    assert "create-tags --resources i-0a1b2c3d4e5f67890" in tag
    assert '"cdk-training-cluster:verified", "Value": "passed 20' in tag


def test_a_bad_node_takes_no_job_and_tells_what_ends_its_faults(node: VerifiedNode) -> None:
    (node.root / "sys/class/infiniband/rdmap1").rename(node.root / "gone")
    node.command("systemctl", "echo inactive")
    done = node.verify()
    assert done.returncode == OTHER_HOST
    sentence, asked = (node.root / DRAIN[1:] / "verify").read_text().splitlines()
    assert sentence.startswith(
        "verification failed: fabric_manager: nvidia-fabricmanager.service is inactive. efa_count"
    )
    assert json.loads(asked)["action"] == "reboot"
    assert not node.result["passed"]
    assert '"Value": 1' in node.calls[0]
    assert "failed 20" in node.calls[1]
    assert node.calls[1].endswith(' fabric_manager efa_count memlock"}]')
    (event,) = json.loads((node.root / "events").read_text())
    assert event["Source"].endswith("/AROAEXAMPLE:i-0a1b2c3d4e5f67890")
    report = NodeReport.from_json(event["Detail"])
    assert (report.kind, report.instance_id, len(report.serials)) == (ReportKind.VERIFIED, "i-0a1b2c3d4e5f67890", 8)
    # Of the fabric manager an operator has to see why it does not run: every node of the image may have that.
    assert [(fault.code, fault.action) for fault in report.faults] == [("efa_count", FaultAction.REBOOT)]
    assert [check.name for check in report.checks if not check.passed] == ["fabric_manager", "efa_count", "memlock"]


def test_a_result_that_cannot_be_told_is_still_recorded(node: VerifiedNode) -> None:
    node.command("aws", "echo AccessDenied >&2; exit 254")
    done = node.verify()
    assert done.returncode == 0
    assert "could not be counted: aws ended with exit status 254: AccessDenied" in done.stderr
    assert node.result["passed"]
    before = node.result
    node.command("systemctl", "echo inactive")
    assert node.verify("--dry-run").returncode == OTHER_HOST, "the fabric manager has run"
    assert node.result == before
    node.command("aws", "echo {}")
    done = node.verify()
    assert (done.returncode, "not written down or sent: KeyError: 'Entries'" in done.stderr) == (OTHER_HOST, True)
    assert node.verify().returncode == OTHER_HOST
    node.write("var/lib/cdk-training-cluster/verify.json", json.dumps({**before, "instance_id": "i-other"}))
    assert node.verify().returncode == FAILED, "the image was made of another node"


def test_rows_that_wait_to_be_remapped_are_for_the_watchdog_to_report(node: VerifiedNode) -> None:
    assert node.verify(NVML_REMAP_PENDING="2").returncode == 0
    [event] = json.loads((node.root / "events").read_text())
    assert json.loads(event["Detail"])["faults"] == []


def test_a_full_disk_neither_keeps_a_bad_node_at_work_nor_its_report_from_being_sent(node: VerifiedNode) -> None:
    (node.root / "sys/class/infiniband/rdmap1").rename(node.root / "gone")
    node.write("var/lib/cdk-training-cluster", "in place of a folder")
    done = node.verify()
    assert done.returncode == OTHER_HOST
    assert done.stderr.count("cluster-node verify: a part of the result is not written down or sent: ") == 1
    assert (node.root / DRAIN[1:] / "verify").exists()
    [event] = json.loads((node.root / "events").read_text())
    assert json.loads(event["Detail"])["faults"][0]["code"] == "efa_count"
    assert ["failed 20" in call for call in node.calls] == [False, True, False, False]
    assert list((node.root / SPOOL_IN_MEMORY[1:]).iterdir()) == []


Break = Callable[[VerifiedNode], object]


FAULTS: list[tuple[Break, int, str]] = [
    (lambda node: node.command("fi_info", "exit 61"), FAILED, "efa_provider: fi_info ended with exit status 61"),
    (
        lambda node: node.write("sys/class/infiniband/rdmap1/ports/1/state", "1: DOWN\n"),
        FAILED,
        "efa_state: rdmap1 is 1: DOWN",
    ),
    (
        lambda node: node.command("systemctl", "if [[ $1 == show ]]; then echo 8388608; else echo active; fi"),
        FAILED,
        "memlock: services may pin 8388608 bytes, not all",
    ),
    (
        lambda node: (node.root / "sys/class/nvme/nvme2/model").unlink(),
        OTHER_HOST,
        "local_disks: the node has 1 local NVMe disk, and p5.48xlarge has 2; at least 2 is expected",
    ),
    (
        lambda node: node.command(ALL_REDUCE, f"echo '{nccl_row(2**30, 466, wrong=3)}'"),
        OTHER_HOST,
        "gpu_test: 6 results of all_reduce_perf are wrong",
    ),
    (
        lambda node: node.command(ALL_REDUCE, "echo 'CUDA failure uncorrectable ECC error encountered'; exit 3"),
        OTHER_HOST,
        "exit status 3: CUDA failure uncorrectable ECC error encountered",
    ),
    (
        lambda node: node.configure({"p5.48xlarge": {**EXPECTED["p5.48xlarge"], "gpu": "H200"}}),
        FAILED,
        "gpu_model: GPU 0 is 'NVIDIA H100 80GB HBM3', and p5.48xlarge has H200",
    ),
    (
        lambda node: node.configure({"trn1.2xlarge": {"neuron_devices": 1}}),
        OTHER_HOST,
        "neuron_count: the node has 0 Neuron devices, and",
    ),
]


@pytest.mark.parametrize(("breaks", "status", "sentence"), FAULTS)
def test_a_node_fails_by_each_fault(node: VerifiedNode, breaks: Break, status: int, sentence: str) -> None:
    breaks(node)
    done = node.verify()
    assert sentence in done.stdout.splitlines()[-1], done.stdout
    assert done.returncode == status


def test_a_floor_that_was_never_measured_fails_no_node_and_is_said(node: VerifiedNode) -> None:
    node.command(ALL_REDUCE, f"echo '{nccl_row(2**30, 120)}'")
    done = node.verify()
    assert done.returncode == 0
    said = "all_reduce: 120 GB/s at 1073741824 bytes over 1 node, below the provisional floor of 350 GB/s"
    assert f"-- {said} (the node passes)\n" in done.stdout
    assert said in (node.root / "dev/console").read_text()
    assert node.result["passed"]
    [event] = json.loads((node.root / "events").read_text())
    assert json.loads(event["Detail"])["faults"] == []


@pytest.mark.parametrize(("gb_per_s", "status"), [(64, 0), (63, OTHER_HOST), (20, OTHER_HOST)])
def test_gpus_no_faster_than_pcie_fail_without_a_measured_floor(
    node: VerifiedNode, gb_per_s: float, status: int
) -> None:
    node.command(ALL_REDUCE, f"echo '{nccl_row(2**30, gb_per_s)}'")
    done = node.verify()
    assert done.returncode == status
    assert ("1 node; at least 64 GB/s is expected" in done.stdout) is (status != 0), done.stdout


@pytest.mark.parametrize(
    ("rows", "nodes", "status", "said"),
    [
        ([(2**31, 442.0)], 2, 0, "ok all_reduce: 442 GB/s at 2147483648 bytes over 2 nodes"),
        (
            [(2**31, 442.0), (2**32, 210.0)],
            2,
            FAILED,
            "all_reduce: 210 GB/s at 4294967296 bytes over 2 nodes; at least 380",
        ),
        # A floor of fewer nodes says something, and fails none.
        ([(2**31, 210.0)], 64, 0, "-- all_reduce: 210 GB/s at 2147483648 bytes over 64 nodes, below the provisional"),
        ([(2**20, 16.0)], 2, 0, "p5.48xlarge has a floor for runs of 2147483648 bytes or more only"),
        ([], 2, FAILED, "gpu_test: all_reduce_perf printed no results"),
    ],
)
def test_a_run_over_several_nodes_is_judged(
    node: VerifiedNode, rows: list[tuple[int, float]], nodes: int, status: int, said: str
) -> None:
    output = node.root / "nccl.out"
    output.write_text("# nThread 1\n" + "".join(f"[1,0]<stdout>:{nccl_row(*row, wrong='N/A')}\n" for row in rows))
    done = node.verify("--nccl-output", str(output), "--nodes", str(nodes))
    assert said in done.stdout
    assert done.returncode == status
    assert not node.calls


def test_a_wrong_call_is_one_sentence(node: VerifiedNode, tmp_path: Path) -> None:
    done = node.verify("--nccl-output", str(tmp_path / "none"), "--nodes", "2")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "cannot be read: No such file" in done.stderr


def test_a_job_asks_for_less_and_gets_one_sentence(node: VerifiedNode) -> None:
    # Auto Scaling did not take the answer of a node that has all it needs.
    node.write("var/lib/cdk-training-cluster/complete")
    node.write(
        "var/lib/cdk-training-cluster/bootstrap.json", '{"state": "failed", "step": "hook", "message": "none"}'
    )
    for moment in ("job-start", "job-end", "job"):
        assert node.verify("--at", moment).stdout == ""
    node.command("stat", "exit 1")
    node.write(
        "var/lib/cdk-training-cluster/bootstrap.json", '{"state": "failed", "step": "mount", "message": "none"}'
    )
    found = {
        moment: len(node.verify("--at", moment, NVML_DEAD="1").stdout.splitlines())
        for moment in ("job-start", "job-end", "job")
    }
    assert found == {"job-start": 3, "job-end": 1, "job": 0}
    node.write(f"{DRAIN}/xid"[1:], "Xid 79 of GPU 3\n{}\n")
    assert node.verify("--at", "job").stdout == "Xid 79 of GPU 3\n"
    assert not node.calls


def test_versions_are_compared_among_nodes_of_one_image_and_the_same_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "settings", lambda: {"SCRIPTS": "s3://assets/1.zip"})
    facts = Facts(cluster="llama", node_group="workers", mount_point=str(tmp_path))

    def check(instance: str, image: str, nccl: str) -> tuple[bool, str]:
        [found] = check_versions(facts, {"NVIDIA driver": "580.95.05", "NCCL": nccl}, instance, image)
        # Which of the nodes is right, none of them knows.
        assert not found.fails
        return found.passed, found.found

    fine = "NVIDIA driver 580.95.05, NCCL "
    assert check("i-1", "ami-1", "2.27.7") == (True, f"{fine}2.27.7")
    assert check("i-2", "ami-2", "2.28.3") == (True, f"{fine}2.28.3")
    assert check("i-3", "ami-1", "2.28.3") == (False, "NCCL 2.28.3, and i-1 of the same image has 2.27.7")
    [file] = tmp_path.glob("**/ami-1-*/i-1.json")
    for age, is_kept in ((2, True), (31, False)):
        os.utime(file, (written := time.time() - age * 86_400, written))
        assert check("i-3", "ami-1", "2.28.3")[0]
        assert file.exists() == is_kept
    assert check("", "ami-1", "2.28.3")[1].startswith("not checked: ")
    assert not check("i-4", "ami-1", "2.29.1")[0]
    monkeypatch.setattr(versions, "settings", lambda: {"SCRIPTS": "s3://assets/2.zip"})
    assert check("i-4", "ami-1", "2.29.1")[0]


def test_jobs_learn_which_cards_are_near_a_gpu(node: VerifiedNode) -> None:
    bridge = "sys/devices/pci0000:50/0000:50:01.0"
    for address in ("0000:53:00.0", "0000:51:00.0"):
        node.write(f"{bridge}/{address}/numa_node", "0\n")
        node.write(f"{bridge}/{address}/local_cpulist", "0-47\n")
    node.write("sys/devices/pci0000:a0/0000:a0:01.0/numa_node", "1\n")
    (node.root / "sys/bus/pci/devices").mkdir(parents=True)
    (node.root / "sys/bus/pci/devices/0000:53:00.0").symlink_to(node.root / bridge / "0000:53:00.0")
    for number, target in enumerate((f"{bridge}/0000:51:00.0", "sys/devices/pci0000:a0/0000:a0:01.0")):
        (node.root / f"sys/class/infiniband/rdmap{number}/device").symlink_to(node.root / target)
        (node.root / f"sys/devices/system/node/node{number}").mkdir(parents=True)
    done = node.verify()
    affinity = node.read(AFFINITY[1:])
    assert affinity["gpus"][0] == {
        "index": 0,
        "pci": "0000:53:00.0",
        "numa_node": 0,
        "cpus": "0-47",
        "nics": ["rdmap0"],
    }
    assert affinity["nics"][1] == {"name": "rdmap1", "numa_node": 1, "cpus": ""}
    assert "-- affinity: GPU 1 has no NUMA node; GPU 2 has no NUMA node; GPU 3 has no NUMA node" in done.stdout
    assert done.returncode == 0


def test_every_floor_is_of_a_type_that_exists_and_says_whether_it_was_measured() -> None:
    for name, floors in FLOORS["machines"].items():
        assert instance_type_info(name).nvidia_gpu_count > 1
        assert floors["nvlinks"] > 0
    for floor in FLOORS["all_reduce"]:
        assert floor["type"] in FLOORS["machines"]
        assert floor["provisional"] or floor["source"].startswith("https://")
    # What PCIe carries is no measurement, and below what any node with NVSwitch reaches.
    proven = {row["type"] for row in FLOORS["all_reduce"] if row["nodes"] == 1 and not row["provisional"]}
    assert proven == {name for name, floors in FLOORS["machines"].items() if floors.get("fabric_manager")}
