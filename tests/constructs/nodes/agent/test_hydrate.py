"""The program on the nodes restores a data set: run for real, with the stand-in for Lustre's `lfs`."""

import ast
import errno
import os
import signal
import subprocess
import sys
import time
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest

from cdk_training_cluster.nodes.agent.cluster_node import hydrate, progress
from cdk_training_cluster.nodes.agent.cluster_node.clock import Deadline
from cdk_training_cluster.nodes.agent.cluster_node.lfs import Lfs
from cdk_training_cluster.nodes.agent.cluster_node.request import Request, parse
from cdk_training_cluster.nodes.agent.cluster_node.restoring import Counts, Restoring
from cdk_training_cluster.nodes.agent.cluster_node.space import Space
from cdk_training_cluster.nodes.agent.cluster_node.walk import Walk
from cdk_training_cluster.nodes.bootstrap.asset import AGENT
from cluster_contract.hydration import HydrationAction, HydrationRequest
from hydrated_node import HydratedNode
from local_aws.lustre_client import LFS
from max_seconds import MAX_SECONDS

STRANGE: list[str | bytes] = [
    "two words",
    "two\nlines",
    "-dash",
    b"\xff\xfe",
    "-r",
    "a: (0x0000000d)",
    "deep/" * 40 + "file",
    "'\"$(x)\\",
]


@pytest.fixture
def node(tmp_path: Path) -> HydratedNode:
    return HydratedNode(tmp_path)


def _add(node: HydratedNode, *names: str | bytes, contents: bytes = b"contents") -> None:
    for name in names:
        node.lustre.add(b"data/" + os.fsencode(name), contents)


@pytest.mark.parametrize("module", [path.name for path in AGENT.glob("*.py")])
def test_it_needs_python_3_9_and_its_standard_library(module: str) -> None:
    tree = ast.parse((AGENT / module).read_text(), feature_version=(3, 9))
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level == 0}
    beside = {"cluster_contract", "pynvml"}
    assert {name.partition(".")[0] for name in imported} - beside <= sys.stdlib_module_names


def test_the_fields_of_a_request_are_those_of_the_contract() -> None:
    contract = {field.name: field.default for field in fields(HydrationRequest)}
    assert {name: Request._field_defaults.get(name, MISSING) for name in Request._fields} == contract
    sent = HydrationRequest(
        action=HydrationAction.FAIL, run="r", directory="/fsx/a", mount_point="/fsx", patterns=("*.bin",), reason="x"
    )
    assert {**parse(sent.to_parameter())._asdict()} == {name: getattr(sent, name) for name in contract}


def test_a_data_set_is_restored_by_several_shards_and_is_then_ready(node: HydratedNode) -> None:
    _add(node, *STRANGE, *(f"part-{number}" for number in range(40)))
    _add(node, "empty", contents=b"")
    (node.lustre.files / "data/link").symlink_to("part-1")
    os.mkfifo(node.lustre.files / "data/pipe")
    for part in (node.lustre.files, node.lustre.objects):
        (part / "data/other name").hardlink_to(part / "data/part-2")
    answers = [node.hydrate(shard=shard, shards=3) for shard in range(3)]
    assert node.lustre.released() == []
    assert all(answer.counted and answer.finished for answer in answers)
    files = len(STRANGE) + 40 + 1
    assert [sum(getattr(answer, name) for answer in answers) for name in ("files", "restored_files")] == [files] * 2
    assert sum(answer.restored_bytes for answer in answers) == 8 * (files - 1)
    assert node.progress("ready.json") == {}
    last = node.hydrate("finish")
    assert (last.finished, last.files, last.bytes) == (True, files, 8 * (files - 1))
    ready = node.progress("ready.json")
    assert (ready["run"], ready["files"], ready["bytes"]) == ("r1", files, 8 * (files - 1))


def test_what_changed_since_is_restored_by_the_last_look_and_another_run_is_not_ready(node: HydratedNode) -> None:
    _add(node, "a", "b")
    assert node.hydrate().finished
    _add(node, "b", "c", contents=b"of another size")
    assert node.hydrate("finish").finished
    assert node.lustre.released() == []
    assert (node.lustre.files / "data/b").read_bytes() == b"of another size"
    calls = node.root / "calls"
    assert node.hydrate(run="r2", environment={"LFS_CALLS": str(calls)}).finished
    assert "hsm_restore" not in calls.read_text()
    assert node.progress("ready.json") == {}


@pytest.mark.parametrize("link", ["", "r1", ".."])
def test_a_link_in_the_place_of_the_progress_costs_no_file_of_the_node(node: HydratedNode, link: str) -> None:
    _add(node, "a")
    dataset = node.lustre.files / ".cdk-training-cluster/hydration/science/%2Ffsx%2Fdata"
    outside = node.root / "var"
    for name in ("cache", "lib", "log", "spool", dataset.name):
        (outside / name).mkdir(parents=True)
    place = Path(os.path.normpath(dataset / link))
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(outside)
    before = sorted(outside.rglob("*"))
    for action in ("begin", "restore", "fail"):
        done = node.run("hydrate", node.request(action, reason="x"))
        assert done.returncode in {0, 3}, done.stderr
    assert sorted(outside.rglob("*")) == before


def test_a_link_that_takes_the_place_of_the_progress_meanwhile_costs_no_file_of_the_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Lfs, "why_not_lustre", lambda *_: "")
    mount_point, outside = tmp_path / "fsx", tmp_path / "var"
    for name in ("cache", "lib", "log", "spool"):
        (outside / name).mkdir(parents=True)
    mount_point.mkdir()
    dataset, forget = progress.dataset_directory(str(mount_point), f"{mount_point}/data"), progress.forget_other_runs

    def swap_and_forget(*given: Any) -> None:
        dataset.rename(tmp_path / "fsx/was")
        dataset.symlink_to(outside)
        forget(*given)

    monkeypatch.setattr(progress, "forget_other_runs", swap_and_forget)
    dataset.mkdir(parents=True)
    sent = HydrationRequest(
        action=HydrationAction.BEGIN, run="r", directory=f"{mount_point}/data", mount_point=str(mount_point)
    )
    hydrate._Hydration(parse(sent.to_parameter()), Deadline(MAX_SECONDS)).act()
    assert sorted(path.name for path in outside.iterdir()) == ["cache", "lib", "log", "spool"]


def test_what_no_node_wrote_neither_holds_a_node_nor_fills_its_memory(tmp_path: Path) -> None:
    pipe, large = tmp_path / "ready.json", tmp_path / "0.json"
    os.mkfifo(pipe)
    large.touch()
    os.truncate(large, 2**40)
    assert [progress.read(path) for path in (pipe, large, tmp_path)] == [{}, {}, {}]


def test_lustre_is_asked_for_no_more_files_at_once_than_its_client_takes(node: HydratedNode) -> None:
    _add(node, *(f"part-{number}" for number in range(120)))
    parts = sorted((node.lustre.files / "data").iterdir())
    refused = subprocess.run([LFS, "hsm_restore", *parts[:53]], capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stderr.rpartition(": ")[2]) == (errno.E2BIG, "Argument list too long\n")
    calls = node.root / "calls"
    assert node.hydrate(environment={"LFS_CALLS": str(calls)}).restored_files == 120
    sent = [int(line.split()[1]) for line in calls.read_text().splitlines() if line.startswith("hsm_restore")]
    assert sent == [50, 50, 20]


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ({"call": "hsm_restore", "error": "EPERM", "times": 2}, None),
        ({"call": "hsm_restore", "error": "EPERM"}, "Operation not permitted"),
        ({"call": "hsm_state", "error": "EIO", "times": 2}, None),
        ({"call": "hsm_state", "error": "EIO"}, "Input/output error"),
        ({"call": "copy", "error": "EACCES", "times": 2}, None),
        (
            {"call": "copy", "error": "EACCES"},
            "Lustre ended the restore without the contents: check the object in S3, and that FSx may read it",
        ),
        ({"call": "copy", "latency": 1}, None),
    ],
)
def test_a_file_that_fails_is_tried_again_and_holds_up_no_other(
    node: HydratedNode, fault: dict[str, Any], error: str | None
) -> None:
    _add(node, *(f"part-{number}" for number in range(20)), "bad")
    node.lustre.faults({"path": "data/bad", **fault})
    answer = node.hydrate()
    assert (answer.files, answer.restored_files, answer.finished) == (21, 20 + (error is None), True)
    assert [(failure.path, failure.error) for failure in answer.failures] == (
        [(f"{node.root}/fsx/data/bad", error)] if error else []
    )
    last = node.hydrate("finish")
    assert (last.finished, last.counted, last.failed_files) == (error is None, True, int(error is not None))
    assert bool(node.progress("ready.json")) is (error is None)


def test_files_that_lustre_may_not_read_are_all_asked_about_at_once(node: HydratedNode) -> None:
    _add(node, *(f"part-{number}" for number in range(300)))
    node.lustre.faults({"path": "data/*", "call": "copy", "error": "EACCES"})
    calls = node.root / "calls"
    answer = node.hydrate(environment={"LFS_CALLS": str(calls)})
    assert (answer.failed_files, answer.restored_files, answer.finished) == (300, 0, True)
    assert [line for line in calls.read_text().splitlines() if "hsm_action" in line] == ["hsm_action 300"] * 3


def test_the_next_request_begins_with_the_attempts_of_the_one_before(
    node: HydratedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    _add(node, "bad", "large")
    node.lustre.faults(
        {"path": "data/bad", "call": "copy", "error": "EACCES"},
        {"path": "data/large", "call": "copy", "latency": 600},
    )
    monkeypatch.setenv("PATH", f"{LFS.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("LFS_CALLS", str(node.root / "calls"))
    for pause in ("FIRST_POLL", "LAST_POLL", "FIRST_PATIENCE", "LAST_PATIENCE"):
        monkeypatch.setattr(f"{Restoring.__module__}.{pause}_SECONDS", 0.01)
    monkeypatch.setattr(os, "statvfs", node.lustre.statvfs)
    attempts, space = dict[str, int](), Space(b"/fsx", 1)
    for _ in range(2):
        deadline = Deadline(MAX_SECONDS)
        request = Request(action="restore", run="r", directory="/data", mount_point="/")
        walk = Walk(os.fsencode(node.lustre.files / "data"), request)
        restoring = Restoring(walk, Counts(), Lfs(deadline), deadline, space)
        restoring.attempts = attempts

        def stop(of: Restoring = restoring, at: Deadline = deadline) -> None:
            if of.now.failed and of.copying:
                at.end()

        restoring.run(stop)
        attempts = restoring.attempts
        assert (restoring.now.failed, restoring.copying, restoring.is_complete) == (1, True, False)
    sent = [line.split()[1] for line in (node.root / "calls").read_text().splitlines() if "hsm_restore" in line]
    assert sent == ["2", "1", "1", "2"]


@pytest.mark.parametrize("call", ["hsm_state", "hsm_restore", "hsm_action"])
def test_a_call_that_hangs_is_ended_and_made_again(node: HydratedNode, call: str) -> None:
    _add(node, "a", "b", "c")
    copy = {"path": "data/c", "call": "copy", "error": "EIO", "times": 1}
    node.lustre.faults({"path": "data/c", "call": call, "latency": 600, "times": 1}, copy)
    answer = node.hydrate(environment={"CLUSTER_NODE_CALL_SECONDS": "3"})
    assert (answer.restored_files, answer.failed_files, answer.finished) == (3, 0, True)


def test_a_file_that_lustre_still_copies_is_told_of(node: HydratedNode) -> None:
    _add(node, "large", "small")
    node.lustre.faults({"path": "data/large", "call": "copy", "latency": 3_600})
    answer = node.hydrate(seconds=3)
    assert (answer.copying, answer.restored_files, answer.finished) == (True, 1, False)
    for request in (node.lustre.home / "requests").iterdir():
        os.utime(request, (0, 0))
    answer = node.hydrate()
    assert (answer.copying, answer.restored_files, answer.finished) == (False, 2, True)


@pytest.mark.parametrize("selection", [{"patterns": ("*.bni",)}, {"max_bytes": 3}, {}])
def test_a_selection_without_files_is_not_ready_and_an_empty_directory_is(
    node: HydratedNode, selection: dict[str, Any]
) -> None:
    if selection:
        _add(node, "a.bin")
    last = node.hydrate("finish", **selection)
    assert (last.files, last.counted, last.finished) == (0, True, not selection)
    assert bool(node.progress("ready.json")) is not bool(selection)


def test_a_file_whose_object_is_gone_is_a_failure_and_a_deleted_file_is_none(
    node: HydratedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    _add(node, "a", "b", "c")
    (node.lustre.objects / "data/c").unlink()
    monkeypatch.setenv("PATH", f"{LFS.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(os, "statvfs", node.lustre.statvfs)
    deadline, space = Deadline(MAX_SECONDS), Space(b"/fsx", 1)
    request = Request(action="restore", run="r", directory="/data", mount_point="/")

    class Deleting(Walk):
        def __iter__(self) -> Any:
            files = list(super().__iter__())
            (node.lustre.files / "data/a").unlink()
            return iter(files)

    walk = Deleting(os.fsencode(node.lustre.files / "data"), request)
    restoring = Restoring(walk, Counts(), Lfs(deadline), deadline, space)
    # The second file comes; the third would take its patience, which the program's own test shortens.
    (node.lustre.files / "data/c").unlink()
    restoring.run(lambda: None)
    assert (restoring.counts.files, restoring.counts.failed, restoring.is_complete) == (1, 0, True)


def test_a_signal_ends_it_with_its_progress_and_another_request_goes_on(node: HydratedNode) -> None:
    _add(node, *(f"part-{number}" for number in range(100)))
    with node.restoring(LFS_LATENCY="600") as process:
        while not (node.lustre.home / "requests").exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=MAX_SECONDS)
    assert process.returncode == 0
    assert '"finished": false' in output
    assert node.progress("r1/0.json")["restored_files"] == 0
    for request in (node.lustre.home / "requests").iterdir():
        os.utime(request, (0, 0))
    answer = node.hydrate()
    assert (answer.restored_files, answer.finished) == (100, True)
    assert node.lustre.released() == []


def test_only_what_is_selected_is_restored(node: HydratedNode) -> None:
    _add(node, "a.bin", "b.txt", "train/c.bin", "train/d.bin")
    assert node.hydrate(patterns=("*.bin",), max_bytes=20).restored_files == 2
    assert [path.name for path in node.lustre.released()] == ["b.txt", "d.bin"]


def test_a_restore_leaves_the_reserve_of_the_file_system_free_and_says_what_it_lacks(node: HydratedNode) -> None:
    _add(node, *(f"part-{number}" for number in range(10)), contents=b"x" * 1_000)
    (node.lustre.home / "size").write_text("10000")
    calls = node.root / "calls"
    answer = node.hydrate(environment={"LFS_CALLS": str(calls)})
    assert (answer.restored_files, answer.failed_files, answer.finished) == (9, 0, False)
    assert answer.shortage == (
        "the next file has 1000 B, and 1000 B of 9.8 KiB are available, of which 500 B (5 %) stay free for jobs"
    )
    assert node.lustre.statvfs().f_bavail == 1_000
    assert sum(int(line.split()[1]) for line in calls.read_text().splitlines() if "hsm_restore" in line) == 9
    assert node.hydrate("finish").shortage == answer.shortage
    assert node.progress("ready.json") == {}
    (node.lustre.home / "size").write_text("11000")
    assert node.hydrate("finish").finished


def test_a_restore_with_several_nodes_takes_the_part_of_one(node: HydratedNode) -> None:
    _add(node, "large", contents=b"x" * 1_000)
    (node.lustre.home / "size").write_text("2000")
    answers = [node.hydrate(shard=shard, shards=2) for shard in range(2)]
    assert sorted((bool(answer.shortage), answer.finished) for answer in answers) == [(False, True), (True, False)]
    assert node.hydrate("finish").finished


def test_a_restore_counts_what_is_under_way_and_waits_for_its_end(node: HydratedNode) -> None:
    _add(node, "a", "b", contents=b"x" * 1_000)
    node.lustre.faults({"path": "data/a", "call": "copy", "latency": 600})
    (node.lustre.home / "size").write_text("2000")
    subprocess.run([LFS, "hsm_restore", node.lustre.files / "data/a"], check=True)
    # It is found under way, although most of its contents have come and the rest would not fit as a whole.
    (node.lustre.files / "data/partly").write_bytes(b"x" * 1_500)
    answer = node.hydrate(seconds=3)
    assert (answer.shortage, [path.name for path in node.lustre.released()]) == (None, ["a", "b"])
    for request in (node.lustre.home / "requests").iterdir():
        os.utime(request, (0, 0))
    (node.lustre.files / "data/partly").unlink()
    answer = node.hydrate()
    assert (bool(answer.shortage), [path.name for path in node.lustre.released()]) == (True, ["b"])


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        ("no base64", "the request must be a JSON object in base64"),
        ("e30=", "the request has no action, run, directory, mount_point"),
        ({"directory": "/data"}, "directory must lie below the mount point /fsx, got /data"),
        ({"shard": 4, "shards": 4}, "shard must be from 0 to below shards, got 4"),
        ({"run": "../x"}, "run must be letters, digits, '.', '_' and '-', got \"../x\""),
    ],
)
def test_a_bad_request_is_refused_in_a_sentence(
    node: HydratedNode, request_: str | dict[str, Any], sentence: str
) -> None:
    text = request_ if isinstance(request_, str) else node.request(**request_)
    done = node.run("hydrate", text)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"cluster-node: {sentence}")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("why", "environment"),
    [("No such file or directory", {}), ("lfs, the Lustre client, is not installed", {"PATH": "/nowhere"})],
)
def test_without_a_file_system_it_says_so(node: HydratedNode, why: str, environment: dict[str, str]) -> None:
    done = node.run("hydrate", node.request(directory="/fsx/nothing"), **environment)
    assert (done.returncode, done.stdout) == (3, "")
    assert f"/fsx/nothing cannot be restored: {why}" in done.stderr


@pytest.mark.parametrize(
    ("ends", "said"),
    [("kill -9 $$", "was ended by signal 9 (Killed)"), ("exit 5", "ended with exit status 5 and said nothing")],
)
def test_a_call_that_ends_without_a_word_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str, said: str
) -> None:
    program = tmp_path / "lfs"
    program.write_text(f"#!/bin/sh\n{ends}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    lfs, path = Lfs(Deadline(60)), os.fsencode(program)
    assert lfs.why_not_lustre(path) == f"lfs path2fid {said}"
    assert lfs.restore([path]) == {path: f"lfs hsm_restore {said}"}
    assert lfs.states([path]) == {path: f"lfs hsm_state {said}"}
