"""What a node does about what it sees: one drain file and one report for each thing that is new."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cdk_training_cluster.nodes.agent.cluster_node import drain_files
from cdk_training_cluster.nodes.agent.cluster_node.evidence import Evidence
from cdk_training_cluster.nodes.agent.cluster_node.kernel_log import sighting
from cdk_training_cluster.nodes.agent.cluster_node.notices import Notice
from cdk_training_cluster.nodes.agent.cluster_node.watched import NodeIdentity, Watched
from cluster_contract.health import NodeReport

OFF_THE_BUS = "NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
NO_DEVICE = "NVRM: fallen off the bus and is not responding to commands."
OUT_OF_RANGE = "NVRM: Xid (PCI:0000:38:00): 13, pid=7, name=python, Graphics SM Warp Exception: Out Of Range Address"
NEEDS_RESET = (
    "NVRM: Xid (PCI:0000:05:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
)
NO_REMAP = "NVRM: Xid (PCI:0000:05:00): 64, pid=1"
BROKEN = Evidence(frozenset({"0000:05:00", "0000:38:00"}), frozenset({"0000:05:00"}))
SPOT = Notice("spot", "EC2 is about to terminate the Spot Instance", datetime(2026, 11, 23, 8, 2, tzinfo=UTC))
TERMINATING = Notice("terminating", "Auto Scaling terminates the node")
CODES = {"spot", "terminating"}


class Scene:
    """A node over some boots, and what it reported."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 23, 8, tzinfo=UTC)
        self.reports: list[NodeReport] = []
        self.boots = 1
        self.watched = self._watched()

    def boot(self) -> None:
        """Boot, which empties /run."""
        self.boots += 1
        for name in drain_files.names():
            drain_files.remove(name)
        self.restart()

    def restart(self) -> None:
        """Start the watchdog again."""
        document, history = json.loads(json.dumps([self.watched.document(), self.watched.history]))
        self.watched = self._watched()
        self.watched.restore(document, history)

    def _watched(self) -> Watched:
        node = NodeIdentity("llama", "workers", "i-1", f"boot-{self.boots}")
        return Watched(node, report=self.reports.append, clock=lambda: self.now)

    def read(self, *lines: str) -> None:
        """Let the kernel write lines."""
        for line in lines:
            found = sighting(line)
            assert found is not None
            self.watched.saw(found)

    @property
    def kinds(self) -> list[str]:
        """What was reported."""
        return [report.kind.value for report in self.reports]

    @property
    def drained_by(self) -> list[str]:
        """The names of drain files."""
        return drain_files.names()


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setattr(drain_files, "ROOT", str(tmp_path))
    return Scene()


def test_a_gpu_that_falls_off_the_bus_drains_the_node_and_is_reported_once(scene: Scene) -> None:
    scene.read(OFF_THE_BUS, NO_DEVICE, OFF_THE_BUS)
    assert (scene.kinds, scene.drained_by) == (["fault"], ["xid-79"])
    (fault,) = scene.reports[0].faults
    assert (fault.code, fault.device, fault.action.value) == ("79", "0000:05:00", "reboot")
    assert drain_files.sentence_of("xid-79") == "Xid 79 of 0000:05:00: The GPU has fallen off the bus (reboot)"
    assert scene.watched.document()["faults"][0]["times"] == 3


def test_an_error_of_the_job_is_reported_and_drains_nothing(scene: Scene) -> None:
    scene.read(*[OUT_OF_RANGE] * 1000)
    assert (scene.kinds, scene.drained_by) == (["fault"], [])


def test_the_driver_s_own_advice_drains_where_the_fault_alone_did_not(scene: Scene) -> None:
    scene.read(OUT_OF_RANGE, NEEDS_RESET)
    assert scene.drained_by == ["xid-154"]


@pytest.mark.parametrize(
    ("after", "serials", "action"),
    [
        (timedelta(minutes=20), ("1", "1"), "replace"),
        (timedelta(minutes=20), ("", ""), "replace"),
        (timedelta(minutes=20), ("1", "2"), "reboot"),
        (timedelta(hours=25), ("1", "1"), "reboot"),
    ],
)
def test_a_fault_that_a_reboot_did_not_end_asks_for_another_node(
    scene: Scene, after: timedelta, serials: tuple[str, str], action: str
) -> None:
    scene.watched.serials = {"0000:05:00": serials[0]}
    scene.read(OFF_THE_BUS, OFF_THE_BUS)
    scene.now += after
    scene.boot()
    assert scene.drained_by == []
    scene.watched.serials = {"0000:05:00": serials[1]}
    scene.watched.checked((), (), BROKEN)
    scene.read(OFF_THE_BUS)
    [fault] = scene.reports[-1].faults
    assert (fault.action.value, fault.serial) == (action, serials[1])


@pytest.mark.parametrize(
    ("line", "evidence", "action"),
    [
        # Nothing answers, all devices are sound, or another one is broken: the node is drained and rebooted.
        (NO_REMAP, Evidence(), "reboot"),
        (NO_REMAP, Evidence(frozenset({"0000:05:00"})), "reboot"),
        (NO_REMAP, Evidence(frozenset({"0000:05:00", "0000:38:00"}), frozenset({"0000:38:00"})), "reboot"),
        (NO_REMAP.replace("0000:05", "0000:06"), BROKEN, "reboot"),
        # Of another GPU that is gone nothing follows for one that answers.
        (NO_REMAP, Evidence(frozenset({"0000:05:00"}), missing=True), "reboot"),
        (NO_REMAP, BROKEN, "replace"),
        (NO_REMAP, Evidence(frozenset({"0000:38:00"}), missing=True), "replace"),
        ("NEURON_HW_ERR=NC_UNCORRECTABLE_ERROR instance-id=i-1 nd-id=0", Evidence(), "reboot"),
        (
            "NEURON_HW_ERR=HBM_UNCORRECTABLE_ERROR instance-id=i-1 nd-id=0",
            *(Evidence(broken=frozenset({"neuron0"})), "replace"),
        ),
    ],
)
@pytest.mark.parametrize("restarts", [False, True])
def test_a_line_alone_replaces_no_node(
    scene: Scene, line: str, evidence: Evidence, action: str, *, restarts: bool
) -> None:
    scene.read(line, line)
    assert [report.faults[0].action.value for report in scene.reports] == ["reboot"]
    (name,) = scene.drained_by
    assert drain_files.sentence_of(name).endswith(" (reboot; replace is not confirmed)")
    if restarts:
        scene.restart()
    for _ in range(2):
        scene.watched.checked((), (), evidence)
    told = ["reboot"] if action == "reboot" else ["reboot", "replace"]
    assert [report.faults[0].action.value for report in scene.reports] == told
    assert scene.drained_by == [name]
    if action == "replace":
        assert drain_files.sentence_of(name).endswith(" (replace)")


def test_a_state_of_an_older_watchdog_is_read(scene: Scene) -> None:
    scene.read(OFF_THE_BUS)
    document = scene.watched.document()
    del document["faults"][0]["asks"]
    scene.watched.restore(document, [])
    assert scene.watched.document()["faults"][0]["asks"] == "reboot"


def test_a_restart_of_the_watchdog_repeats_nothing(scene: Scene) -> None:
    scene.read(OFF_THE_BUS)
    scene.watched.noticed(CODES, [SPOT])
    scene.restart()
    scene.read(OFF_THE_BUS)
    scene.watched.noticed(CODES, [SPOT])
    assert (scene.kinds, scene.drained_by) == (["fault", "notice"], ["spot", "xid-79"])
    assert scene.reports[0].faults[0].action.value == "reboot"


def test_a_check_counts_when_it_fails_twice_and_ends_when_it_passes_five_times(scene: Scene) -> None:
    def link(*, down: bool, readable: bool = True) -> list[str]:
        found = [("nvlink_down", "0000:05:00", "GPU 0 has 17 active NVLinks of 18")] if down else []
        scene.watched.checked({"nvlink_down"} if readable else set(), found)
        return scene.drained_by

    assert link(down=True) == link(down=False) == link(down=True) == []
    assert link(down=True) == ["check-nvlink_down"]
    for _ in range(9):
        assert link(down=False, readable=False) == ["check-nvlink_down"]
    for _ in range(4):
        assert link(down=False) == ["check-nvlink_down"]
    assert link(down=False) == []
    assert scene.kinds == ["fault", "recovered"]


def test_a_check_that_returns_in_the_same_boot_waits_for_its_reboot(scene: Scene) -> None:
    def cycle() -> list[str]:
        for found in ([("nvlink_down", "0000:05:00", "17 of 18")], []):
            for _ in range(6):
                scene.watched.checked({"nvlink_down"}, found)
        return scene.drained_by

    assert cycle() == []
    scene.now += timedelta(hours=25)
    assert cycle() == []
    scene.now += timedelta(hours=23)
    scene.restart()
    assert cycle() == cycle() == ["check-nvlink_down"]
    assert scene.kinds == ["fault", "recovered", "fault", "recovered", "fault"]
    # The reboot ends it, and the next time another node does.
    scene.boot()
    assert scene.drained_by == []
    scene.watched.checked(set(), [("nvlink_down", "0000:05:00", "17 of 18")])
    scene.watched.checked(set(), [("nvlink_down", "0000:05:00", "17 of 18")])
    assert scene.reports[-1].faults[0].action.value == "replace"


def test_an_operator_overrules_a_check_that_returns(scene: Scene) -> None:
    for _ in range(2):
        for found in ([("nvlink_down", "0000:05:00", "17 of 18")], []):
            for _ in range(6):
                scene.watched.checked({"nvlink_down"}, found)
    drain_files.undrain(["--all"])
    scene.watched.look_at_files()
    scene.watched.checked({"nvlink_down"}, [])
    assert (scene.drained_by, scene.watched.faults) == ([], {})


def test_rows_to_remap_ask_for_the_reboot_when_no_job_uses_the_node(scene: Scene) -> None:
    for in_use, drained_by in ((True, []), (None, []), (False, []), (False, []), (False, ["check-remap_pending"])):
        scene.watched.used(in_use)
        scene.watched.checked({"remap_pending"}, [("remap_pending", "0000:05:00", "GPU 0 has rows")])
        assert scene.drained_by == drained_by
    assert [fault.action.value for fault in scene.reports[0].faults] == ["reboot"]


def test_a_notice_drains_until_it_is_over(scene: Scene) -> None:
    scene.watched.noticed(CODES, [SPOT])
    scene.watched.noticed(CODES, [SPOT])
    assert (scene.drained_by, scene.reports[0].deadline) == (["spot"], SPOT.deadline)
    scene.watched.noticed({"maintenance"}, [])
    assert scene.drained_by == ["spot"]
    scene.watched.noticed(CODES, [])
    assert (scene.drained_by, scene.kinds) == ([], ["notice", "recovered"])


def test_a_fault_outlives_a_notice_that_is_over(scene: Scene) -> None:
    scene.watched.noticed(CODES, [SPOT])
    scene.read(OFF_THE_BUS)
    scene.watched.noticed(CODES, [])
    assert (scene.drained_by, scene.kinds) == (["xid-79"], ["notice", "fault"])


def test_maintenance_that_comes_near_drains_then(scene: Scene) -> None:
    far = Notice("maintenance", "EC2 has scheduled system-reboot of the node", scene.now, drains=False)
    scene.watched.noticed({"maintenance"}, [far])
    assert scene.drained_by == []
    scene.watched.noticed({"maintenance"}, [far._replace(drains=True)])
    assert (scene.drained_by, scene.kinds) == (["maintenance"], ["notice"])
    # That one is over, and the next is two weeks away.
    scene.watched.noticed({"maintenance"}, [far._replace(deadline=scene.now + timedelta(days=14))])
    assert (scene.drained_by, scene.kinds) == ([], ["notice", "notice", "recovered"])


@pytest.mark.parametrize(
    ("readings", "drained"),
    [([False, False], True), ([True, False], False), ([None, None, None], False), ([False, True, False], False)],
)
def test_a_node_is_drained_when_it_is_known_that_no_job_uses_it(
    scene: Scene, readings: list[bool | None], drained: bool
) -> None:
    scene.watched.noticed(CODES, [TERMINATING])
    for reading in readings:
        scene.watched.used(reading)
    assert ("drained" in scene.kinds) is scene.watched.may_go is drained


def test_drained_is_reported_once_and_again_after_another_job(scene: Scene) -> None:
    for reading in (False, False, False):
        scene.watched.used(reading)
    assert scene.kinds == []
    scene.read(OFF_THE_BUS)
    for reading in (False, False, True, False, False, False):
        scene.watched.used(reading)
    assert scene.kinds == ["fault", "drained", "drained"]


@pytest.mark.parametrize(
    "begin", [lambda scene: scene.read(OFF_THE_BUS), lambda scene: scene.watched.noticed(CODES, [SPOT])]
)
def test_an_operator_overrules_until_it_is_seen_again(scene: Scene, begin: Callable[[Scene], None]) -> None:
    begin(scene)
    drain_files.undrain(["--all"])
    scene.watched.look_at_files()
    scene.watched.noticed(CODES, [SPOT] if scene.watched.notices else [])
    assert scene.drained_by == []
    scene.watched.noticed(CODES, [])
    begin(scene)
    assert len(scene.drained_by) == 1


def test_nvidia_s_resiliency_extension_reads_both_meanings_of_healthy(scene: Scene) -> None:
    both = ("fail_count", "failed_checks")
    assert [scene.watched.document()[name] for name in both] == [0, []]
    scene.read(OFF_THE_BUS)
    assert [scene.watched.document()[name] for name in both] == [1, ["xid-79"]]
