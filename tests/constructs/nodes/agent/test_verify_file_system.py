"""What `cluster-node verify` does where the file system is full, late, missing or holds links of others."""

import os
import socket
import time
from pathlib import Path

import pytest

from cdk_training_cluster.nodes.agent.cluster_node import machine, progress, versions
from cdk_training_cluster.nodes.agent.cluster_node.node_facts import Facts
from cdk_training_cluster.nodes.agent.cluster_node.programs import Answer
from cdk_training_cluster.nodes.agent.cluster_node.versions import check_versions
from cluster_contract.node_files import FILE_SYSTEM_LATE
from verified_node import ALL_REDUCE, VerifiedNode

FAILED, OTHER_HOST = 1, 3


@pytest.fixture
def node(tmp_path: Path) -> VerifiedNode:
    return VerifiedNode(tmp_path)


def test_what_an_image_or_a_full_file_system_is_to_blame_for_fails_no_node(node: VerifiedNode) -> None:
    node.command(ALL_REDUCE, "echo 'CUDA driver version is insufficient for CUDA runtime version'; exit 3")
    node.command("dd", "echo 'No space left on device' >&2; exit 1")
    node.command("timedatectl", "echo no")
    node.command(
        "chronyc", "echo 'A9FEA97B,169.254.169.123,4,1795419738.1,0.0000,0.0000,0.0,0.1,0.0,0.1,0.0,0.0,16.1,Normal'"
    )
    done = node.verify()
    assert done.returncode == 0
    assert "ok gpu_test: not checked: " in done.stdout
    assert "ok file_system_throughput: not checked: dd ended with exit status 1: No space left" in done.stdout


def test_nothing_is_written_where_the_file_system_is_not_mounted(node: VerifiedNode) -> None:
    node.command("stat", "echo tmpfs")
    done = node.verify()
    assert done.stdout.splitlines()[-1].startswith("file_system: /fsx is tmpfs, not lustre")
    assert (done.returncode, list((node.root / "fsx").iterdir())) == (FAILED, [node.root / "fsx/here"])


def test_a_file_system_in_maintenance_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    late, here = Answer(None, "", "stat did not answer in 30 seconds", True), Answer(0, "lustre\n", "")
    answers = iter([late, late, here, late])
    passed: list[float] = []
    monkeypatch.setattr(machine, "ask", lambda *_: next(answers))
    monkeypatch.setattr(time, "sleep", passed.append)
    facts = Facts(mount_point="/fsx")
    [found] = machine.check_file_system(facts, 300)
    assert (found.passed, passed) == (True, [2, 2])
    [found] = machine.check_file_system(facts)
    assert (found.passed, found.found) == (False, "/fsx does not answer: stat did not answer in 30 seconds")


def test_a_job_starts_on_a_file_system_in_maintenance_which_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late, here, gone = Answer(None, "", "stat still hangs", True), Answer(0, "lustre\n", ""), Answer(1, "", "no such")
    answers = [late]
    monkeypatch.setattr(machine, "ROOT", str(tmp_path))
    monkeypatch.setattr(machine, "ask", lambda *_: answers[0])
    facts = Facts(mount_point="/fsx")

    def found(*, starts: bool) -> list[tuple[bool, str]]:
        return [(check.fails, check.found) for check in machine.check_file_system_of_job(facts, starts=starts)]

    assert found(starts=False) == []
    waits = [(False, "not checked: /fsx does not answer: stat still hangs")]
    assert (found(starts=True), found(starts=False)) == (waits, waits)
    mark = Path(f"{tmp_path}{FILE_SYSTEM_LATE}")
    os.utime(mark, (time.time() - 29 * 60,) * 2)
    assert found(starts=False) == waits
    os.utime(mark, (time.time() - 31 * 60,) * 2)
    fails = [(True, "/fsx does not answer: stat still hangs")]
    assert (found(starts=False), found(starts=True)) == (fails, fails)
    answers[0] = here
    assert (found(starts=False), found(starts=False)) == ([(False, "/fsx is lustre")], [])
    answers[0] = gone
    assert found(starts=True) == [(True, "/fsx does not answer: no such")]
    assert not list(machine.check_file_system_of_job(Facts(mount_point=""), starts=True))


def test_a_file_system_that_hangs_holds_other_programs_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (machine, versions):
        monkeypatch.setattr(
            module, "ask", lambda _command, _, name="sh": Answer(None, "", f"{name} did not answer", is_late=True)
        )
    facts = Facts(mount_point=str(tmp_path))
    found = [*machine.check_throughput(facts), *check_versions(facts, {"NCCL": "2.27.7"}, "i-1", "ami-1")]
    assert [check.found for check in found] == [
        "not checked: dd did not answer",
        "not checked: NCCL 2.27.7; sh did not answer",
    ]
    assert list(tmp_path.iterdir()) == []


def test_a_link_that_a_root_of_the_file_system_made_leads_no_program_out_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getpid", lambda: 7)
    monkeypatch.setattr(machine, "_SAMPLE_MIB", 16)
    facts = Facts(cluster="llama", node_group="workers", mount_point=str(tmp_path / "fsx"))
    outside, folder = tmp_path / "device", tmp_path / "fsx/.cdk-training-cluster/verify"
    outside.write_text("of the node")
    folder.mkdir(parents=True)
    (folder / f"{socket.gethostname()}.7").symlink_to(outside)
    assert next(check.found for check in machine.check_throughput(facts)).startswith("not checked: ")
    new = tmp_path / f".x.json.{socket.gethostname()}.7"
    new.symlink_to(outside)
    progress.write(tmp_path / "x.json", {"a": 1})
    assert progress.read(tmp_path / "x.json")["a"] == 1
    assert outside.read_text() == "of the node"


@pytest.mark.parametrize("link", [".", "verify", "versions", "versions/llama", "versions/llama/workers"])
def test_a_link_in_the_place_of_a_directory_writes_nothing_to_the_node(
    tmp_path: Path, link: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "settings", dict)
    monkeypatch.setattr(machine, "_SAMPLE_MIB", 16)
    place, outside = tmp_path / "fsx/.cdk-training-cluster" / link, tmp_path / "drain"
    outside.mkdir()
    place.parent.mkdir(parents=True)
    place.symlink_to(outside)
    facts = Facts(cluster="llama", node_group="workers", mount_point=str(tmp_path / "fsx"))
    found = [*machine.check_throughput(facts), *check_versions(facts, {"NCCL": "2.27.7"}, "i-1", "ami-1")]
    assert "is a link out of it: remove it" in " ".join(check.found for check in found)
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"instance_id": 1, "versions": 2}', '{"versions": {"NCCL": []}}'])
def test_what_another_wrote_among_the_versions_fails_no_verification(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "settings", dict)
    facts = Facts(cluster="llama", node_group="workers", mount_point=str(tmp_path))
    assert next(check_versions(facts, {"NCCL": "2.27.7"}, "i-1", "ami-1")).passed
    [file] = tmp_path.glob("**/i-1.json")
    file.with_name("i-0.json").write_text(f"{text}\n")
    assert next(check_versions(facts, {"NCCL": "2.27.7"}, "i-1", "ami-1")).passed
    file.with_name("i-0.json").write_text('{"instance_id": "i-0", "versions": {"NCCL": "2\\n\\u001b[2J"}}\n')
    said = next(check_versions(facts, {"NCCL": "2.27.7"}, "i-1", "ami-1")).found
    assert said == "NCCL 2.27.7, and i-0 of the same image has 2\\n\\x1b[2J"
