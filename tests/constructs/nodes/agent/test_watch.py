"""How the watchdog runs: as a service of systemd, within its memory, with reports that outlive a lost network."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cdk_training_cluster.nodes.agent.cluster_node import drain_files, grace, reports, use, watch
from cdk_training_cluster.nodes.agent.cluster_node.kernel_log import KernelLog, sighting
from cdk_training_cluster.nodes.agent.cluster_node.metadata import Metadata
from cdk_training_cluster.nodes.agent.cluster_node.node_facts import Facts
from cdk_training_cluster.nodes.agent.cluster_node.notices import LIFECYCLE_NOTICES, Notice, Notices
from cdk_training_cluster.nodes.agent.cluster_node.programs import Answer
from cdk_training_cluster.nodes.agent.cluster_node.readings import Readings
from cdk_training_cluster.nodes.agent.cluster_node.watched import NodeIdentity, Watched
from cdk_training_cluster.nodes.bootstrap.asset import AGENT, CONTRACT
from cluster_contract.faults import FaultAction, FaultKind
from cluster_contract.health import NodeReport, ReportedFault, ReportKind
from cluster_contract.node_files import DRAIN, FAULT_HISTORY, HEALTH, HEALTH_SOCKET
from fake_metadata_service import FakeMetadataService
from max_seconds import MAX_SECONDS
from verified_node import VerifiedNode, nvml

NOW = datetime(2026, 11, 23, 8, tzinfo=UTC)
OFF_THE_BUS = "4,7,5140900,-;NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', GPU has fallen off the bus.\n"
_MEBIBYTES = 40


def _report(action: FaultAction = FaultAction.REBOOT, kind: ReportKind = ReportKind.FAULT) -> NodeReport:
    fault = ReportedFault("79", FaultKind.XID, action, "0000:05:00", 1, "Xid 79")
    return NodeReport("llama", "workers", "i-1", "boot-1", kind, NOW, (fault,))


class Aws:
    """The AWS CLI: what it was asked, and what it answers."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.entries: list[list[dict[str, str]]] = []
        self.network = True
        self.refused: set[int] = set()
        self.state = "Terminating:Wait"
        self.waits_for_node = True

    def ask(self, command: tuple[str, ...], _: float) -> Answer:
        self.calls.append(" ".join(command[3:5]))
        if not self.network:
            return Answer(255, "", "aws ended with exit status 255: Could not connect to the endpoint URL")
        if "get-caller-identity" in command:
            return Answer(0, "AROAEXAMPLE:i-1\n", "")
        if "put-events" in command:
            entries = json.loads(Path(command[-1].removeprefix("file://")).read_text())
            self.entries.append(entries)
            taken = [
                {"ErrorCode": "ThrottlingException"} if at in self.refused else {"EventId": str(at)}
                for at in range(len(entries))
            ]
            return Answer(0, json.dumps({"FailedEntryCount": len(self.refused), "Entries": taken}), "")
        if "complete-lifecycle-action" in command and not self.waits_for_node:
            return Answer(254, "", "An error occurred (ValidationError): No active Lifecycle Action found")
        return Answer(0, f"llama-workers\t{self.state}\n" if "--query" in command else "", "")


@pytest.fixture
def aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Aws:
    fake = Aws()
    monkeypatch.setattr(reports, "ROOT", str(tmp_path))
    monkeypatch.setattr(reports, "ask", fake.ask)
    monkeypatch.setattr(grace, "ask", fake.ask)
    own = {"CLUSTER": "llama", "FAILURE_METRIC": '[{"MetricName": "BootstrapFailed"}]'}
    monkeypatch.setattr(reports, "settings", lambda: own)
    reports._user_id.cache_clear()
    monkeypatch.setattr(drain_files, "ROOT", str(tmp_path))
    return fake


def test_reports_wait_for_the_network_and_are_sent_in_order(aws: Aws) -> None:
    aws.network = False
    for kind in (ReportKind.FAULT, ReportKind.DRAINED):
        reports.spool(_report(kind=kind))
        assert not reports.send("us-east-1")
    aws.network = True
    assert reports.send("us-east-1")
    assert reports.waiting() == []
    (entries,) = aws.entries
    assert [json.loads(entry["Detail"])["kind"] for entry in entries] == ["fault", "drained"]
    assert {entry["Source"] for entry in entries} == {"cdk-training-cluster/llama/AROAEXAMPLE:i-1"}
    assert NodeReport.from_json(entries[0]["Detail"]) == _report()


def test_what_eventbridge_refuses_is_kept_and_more_than_ten_go_in_parts(aws: Aws) -> None:
    for _ in range(12):
        reports.spool(_report(FaultAction.APPLICATION))
    aws.refused = {1}
    assert not reports.send("us-east-1")
    assert len(reports.waiting()) == 3
    aws.refused = set()
    assert reports.send("us-east-1")
    assert [len(entries) for entries in aws.entries] == [10, 3]


def test_a_report_that_another_process_sends_meanwhile_is_nothing_to_send(
    aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(command: tuple[str, ...], seconds: float) -> Answer:
        answer = aws.ask(command, seconds)
        for path in reports.waiting():
            path.unlink()
        return answer

    monkeypatch.setattr(reports, "ask", ask)
    reports.spool(_report())
    assert reports.send("us-east-1")
    # It goes between the look into the folder and the reading of the file.
    reports.spool(_report())
    (gone,) = reports.waiting()
    gone.unlink()
    monkeypatch.setattr(reports, "waiting", lambda found=[[gone], []]: found.pop(0))
    assert reports.send("us-east-1")
    assert len(aws.entries) == 1


@pytest.mark.parametrize(
    ("report", "counted"),
    [(_report(), 1), (_report(FaultAction.APPLICATION), 0), (_report(kind=ReportKind.DRAINED), 0)],
)
def test_a_fault_that_drains_is_counted(aws: Aws, report: NodeReport, counted: int) -> None:
    reports.spool(report)
    assert reports.send("us-east-1")
    assert aws.calls.count("cloudwatch put-metric-data") == counted


def test_a_node_without_network_for_days_keeps_the_newest_reports(aws: Aws) -> None:
    for _ in range(210):
        reports.spool(_report())
    assert len(reports.waiting()) == 200
    assert aws.calls == []


@pytest.mark.parametrize(
    ("state", "waits", "gone", "asked"),
    [
        ("Terminating:Wait", True, True, True),
        ("Terminating:Wait", False, False, True),
        ("Warmed:Terminating:Wait", True, True, True),
        ("Terminating", True, False, False),
        ("Terminating:Proceed", True, True, False),
        # A node that returns to its warm pool, and a new one, for which the launching hook waits.
        ("Warmed:Pending:Wait", True, True, True),
        ("Warmed:Pending:Wait", False, True, True),
    ],
)
def test_the_node_completes_its_own_termination(aws: Aws, state: str, waits: bool, gone: bool, asked: bool) -> None:
    aws.state, aws.waits_for_node = state, waits
    assert grace.let_go("us-east-1", "i-1") is gone
    assert ("autoscaling complete-lifecycle-action" in aws.calls) is asked


def test_the_node_lets_go_only_when_no_job_uses_it_and_asks_once(aws: Aws) -> None:
    watched = Watched(NodeIdentity("llama", "workers", "i-1", "boot-1"), report=lambda _: None, clock=lambda: NOW)
    outbox = watch.Outbox(watched, "us-east-1")
    for reading, calls in ((True, 0), (False, 0), (False, 2), (False, 2)):
        watched.used(reading)
        watched.noticed({"terminating"}, [Notice("terminating", "Auto Scaling terminates the node")])
        outbox.turn()
        assert len(aws.calls) == calls


def test_the_node_writes_its_own_tag_before_it_reports_and_again_after_a_boot(aws: Aws) -> None:
    def node(boot: str) -> Watched:
        return Watched(NodeIdentity("llama", "workers", "i-1", boot), report=reports.spool, clock=lambda: NOW)

    first = node("boot-1")
    outbox = watch.Outbox(first, "us-east-1")
    assert (outbox.turn(), aws.calls) == (True, [])
    for _ in range(2):
        first.checked({"gpu_lost"}, [("gpu_lost", "0000:05:00", "7 GPUs of 8")])
    assert first.claim == "boot-1 check-gpu_lost"
    aws.network = False
    assert not outbox.turn()
    aws.network = True
    assert outbox.turn()
    assert [call for call in aws.calls[-4:] if "metric" not in call][-3:] == [
        "ec2 create-tags",
        "sts get-caller-identity",
        "events put-events",
    ]
    second = node("boot-2")
    second.restore(first.document(), [])
    assert second.claim == "boot-2"


def test_a_node_that_went_to_its_warm_pool_lets_go_again_when_it_is_terminated_there(aws: Aws) -> None:
    watched = Watched(NodeIdentity("llama", "workers", "i-1", "boot-1"), report=lambda _: None, clock=lambda: NOW)
    outbox = watch.Outbox(watched, "us-east-1")
    for target, state, completions in (
        ("Warmed:Stopped", "Warmed:Pending:Wait", 1),
        ("Warmed:Terminated", "Warmed:Terminating:Wait", 2),
    ):
        watched.noticed({"terminating"}, [Notice(*LIFECYCLE_NOTICES[target])])
        aws.state = state
        for _ in range(3):
            watched.used(in_use=False)
            outbox.turn()
        assert aws.calls.count("autoscaling complete-lifecycle-action") == completions


@pytest.mark.parametrize(("facts", "goes"), [(Facts(), True), (Facts(gpus=8), False)])
def test_a_node_that_cannot_show_a_job_goes_at_once_unless_its_type_has_accelerators(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, facts: Facts, goes: bool
) -> None:
    (tmp_path / "proc").mkdir()
    monkeypatch.setattr(use, "ROOT", str(tmp_path))
    monkeypatch.setattr(drain_files, "ROOT", str(tmp_path))
    watched = Watched(NodeIdentity("llama", "workers", "i-1", "boot-1"), report=lambda _: None, clock=lambda: NOW)
    watched.noticed({"terminating"}, [Notice("terminating", "Auto Scaling terminates the node")])
    watchdog = watch.Watchdog(watched, watch.DeviceReader(Readings(facts)), Notices(Metadata()))
    assert not watched.may_go
    watchdog._look_at_use()
    assert watched.may_go is goes


def test_what_cannot_be_read_is_unknown_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, aws: Aws) -> None:
    monkeypatch.setattr(watch, "ROOT", str(tmp_path))
    watched = Watched(NodeIdentity("llama", "workers", "i-1", "boot-1"), report=reports.spool, clock=lambda: NOW)

    with FakeMetadataService().running() as metadata:
        metadata.failing = True
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata.address)
        watchdog = watch.Watchdog(watched, watch.DeviceReader(Readings(Facts())), Notices(Metadata()))
        watched.noticed({"spot"}, [Notice("spot", "EC2 is about to terminate the Spot Instance")])
        assert watchdog.turn(0.0) <= 5
    assert (drain_files.names(), aws.calls) == (["spot"], [])
    assert json.loads((tmp_path / HEALTH[1:]).read_text())["unread"].keys() == {"metadata", "scheduled maintenance"}


@pytest.mark.usefixtures("aws")
def test_a_gpu_that_does_not_answer_delays_no_notice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "ROOT", str(tmp_path))
    sources = Readings(Facts())
    monkeypatch.setattr(sources, "read", threading.Event().wait)
    watched = Watched(NodeIdentity("llama", "workers", "i-1", "boot-1"), report=reports.spool, clock=lambda: NOW)
    with FakeMetadataService().running() as metadata:
        metadata.documents |= {
            "instance-life-cycle": "spot",
            "spot/instance-action": '{"action": "terminate", "time": "2026-11-23T08:02:00Z"}',
        }
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata.address)
        watchdog = watch.Watchdog(watched, watch.DeviceReader(sources), Notices(Metadata()))
        watchdog.devices.start()
        assert watchdog.turn(0.0) <= 5
        assert (drain_files.names(), watchdog.unread) == (["spot"], {})
        monkeypatch.setattr(watch, "_MOST_DEVICE_SECONDS", -1)
        watchdog.turn(5.0)
    assert watchdog.unread.keys() == {"devices"}


def test_a_full_disk_keeps_no_report_from_being_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, aws: Aws
) -> None:
    # A file where folders should be made refuses as a full disk does.
    (tmp_path / "var").write_text("")
    monkeypatch.setattr(watch, "ROOT", str(tmp_path))
    monkeypatch.setattr(watch, "instance_id", lambda: "i-1")
    watchdog, _ = watch.make_watchdog()
    found = sighting(OFF_THE_BUS.partition(";")[2].rstrip("\n"))
    assert found is not None
    watchdog.watched.saw(found)
    assert (drain_files.names(), aws.calls) == (["xid-79"], [])
    assert reports.send("us-east-1")
    assert len(aws.entries) == 1
    # Readers in other threads never see a state that changes.
    assert watchdog.state["faults"] == []
    monkeypatch.setattr(watchdog, "_jobs", [("nothing", lambda: 5, lambda: None)])
    watchdog.turn(0.0)
    assert watchdog.unread.keys() == {"kernel log", "disk"}
    assert watchdog.state["fail_count"] == 1
    (tmp_path / "var").unlink()
    watchdog.turn(5.0)
    assert watchdog.unread.keys() == {"kernel log"}
    (kept,) = json.loads((tmp_path / FAULT_HISTORY[1:]).read_text())["faults"]
    assert kept["code"] == "79"


@pytest.mark.usefixtures("aws")
@pytest.mark.parametrize(("facts", "drained_by"), [(Facts(gpus=8), ["xid-79"]), (Facts(neuron_devices=16), [])])
def test_a_job_that_writes_through_the_neuron_driver_forges_no_fault_of_a_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, facts: Facts, drained_by: list[str]
) -> None:
    monkeypatch.setattr(watch, "ROOT", str(tmp_path))
    watched = Watched(NodeIdentity("llama", "workers", "i-1", "boot-1"), report=lambda _: None, clock=lambda: NOW)
    watchdog = watch.Watchdog(watched, watch.DeviceReader(Readings(facts)), Notices(Metadata()))
    monkeypatch.setattr(watchdog, "_jobs", [("nothing", lambda: 5, lambda: None)])
    records = [OFF_THE_BUS.encode()]
    watchdog.log = KernelLog(0, read=lambda *_: records.pop() if records else b"")
    watchdog.turn(0.0)
    assert drain_files.names() == drained_by


_START = (
    "import sys; sys.path[:0] = [sys.argv.pop(1), sys.argv.pop(1)]; from cluster_node.__main__ import main; main()"
)


def _until(found: Callable[[], Any]) -> Any:
    end = time.monotonic() + MAX_SECONDS
    while time.monotonic() < end:
        result = found()
        if result:
            return result
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


@pytest.fixture
def short_path() -> Iterator[Path]:
    """Return a directory whose sockets' addresses stay below the 108 bytes that they may have."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        yield Path(directory)


def test_the_service_sees_a_fault_tells_systemd_and_stays_small(tmp_path: Path, short_path: Path) -> None:
    node = VerifiedNode(short_path)
    kernel = node.root / "dev/kmsg"
    os.mkfifo(kernel)
    node.write("proc/sys/kernel/random/boot_id", "boot-1\n")
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify.bind(str(tmp_path / "notify"))
    notify.settimeout(MAX_SECONDS)
    with FakeMetadataService().running() as metadata:
        environment = {
            "PATH": f"{node.programs}:{os.defpath}",
            "ROOT": str(node.root),
            "LD_LIBRARY_PATH": str(nvml()),
            "NOTIFY_SOCKET": str(tmp_path / "notify"),
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata.address,
        }
        service = subprocess.Popen(
            [sys.executable, "-I", "-c", _START, str(AGENT.parent), str(CONTRACT.parent), "watch"], env=environment
        )
        try:
            assert [notify.recv(64), notify.recv(64)] == [b"READY=1", b"WATCHDOG=1"]
            with kernel.open("w") as log:
                log.write(OFF_THE_BUS)
            _until((node.root / DRAIN[1:] / "xid-79").exists)
            state = _until(lambda: node.read(HEALTH[1:]) if node.read(HEALTH[1:])["fail_count"] else None)
            assert (state["failed_checks"], state["kernel_line"], state["unread"]) == (["xid-79"], 7, {})
            status = Path(f"/proc/{service.pid}/status").read_text()
            assert int(status.split("VmRSS:")[1].split()[0]) < _MEBIBYTES * 1024
            with socket.socket(socket.AF_UNIX) as asked:
                asked.settimeout(MAX_SECONDS)
                asked.connect(str(node.root / HEALTH_SOCKET[1:]))
                # A preface and settings, and headers that end the stream 1.
                asked.sendall(
                    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                    + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
                    + bytes([0, 0, 0, 1, 5, 0, 0, 0, 1])
                )
                answer = b""
                while b"grpc-status" not in answer:
                    answer += asked.recv(4096)
            assert b'{"fail_count": 1, "failed_checks": ["xid-79"]}' in answer
        finally:
            service.terminate()
            assert service.wait(MAX_SECONDS) == 0
            notify.close()
