"""How an operator drains a node and takes it back, and what the files say to Slurm and to jobs."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cdk_training_cluster.nodes.agent.cluster_node import drain_files


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(drain_files, "ROOT", str(tmp_path))
    monkeypatch.setenv("SUDO_USER", "ada")
    return tmp_path


def test_an_operator_drains_a_node_and_takes_it_back(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert drain_files.drain(["swap", "the\nfan"]) == 0
    lines = (root / "run/cdk-training-cluster/drain/operator").read_text().splitlines()
    assert lines[0] == "ada drained the node: swap the fan"
    assert json.loads(lines[1]).keys() == {"code", "action", "deadline", "at"}
    assert drain_files.undrain([]) == 0
    assert (drain_files.names(), capsys.readouterr().out.splitlines()[-1]) == ([], "Removed: operator.")


def test_jobs_of_other_users_read_the_files_whatever_roots_umask_is(root: Path) -> None:
    before = os.umask(0o077)
    try:
        drain_files.add("operator", "ada drained the node", code="operator", action="observe")
    finally:
        os.umask(before)
    run = root / "run/cdk-training-cluster"
    modes = [path.stat().st_mode & 0o777 for path in (run, run / "drain", run / "drain/operator")]
    assert modes == [0o755, 0o755, 0o644]


def test_other_users_are_told_to_use_sudo(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    drain_files.add("operator", "ada drained the node", code="operator", action="observe")
    monkeypatch.setattr(Path, "unlink", refuse)
    monkeypatch.setattr(Path, "write_text", refuse)
    assert [drain_files.drain(["why"]), drain_files.undrain([])] == [1, 1]
    assert capsys.readouterr().err.count("only root may do this; call it with sudo") == 2


def test_a_fault_stays_until_an_operator_says_all(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deadline = datetime(2026, 11, 23, 8, tzinfo=UTC)
    drain_files.add("xid-79", "A GPU fell", code="79", action="reboot", deadline=deadline)
    assert (
        json.loads((drain_files.folder() / "xid-79").read_text().splitlines()[1])["deadline"]
        == "2026-11-23T08:00:00Z"
    )
    assert drain_files.undrain([]) == 1
    said = "There was nothing to remove. The node stays drained by xid-79: A GPU fell (undrain --all removes it).\n"
    assert capsys.readouterr().out == said
    (root / "opt/cdk-training-cluster/slurm").mkdir(parents=True)
    assert drain_files.undrain(["--all"]) == 0
    assert drain_files.names() == []
    assert capsys.readouterr().out.startswith("Removed: xid-79. Slurm keeps it drained for some minutes")
