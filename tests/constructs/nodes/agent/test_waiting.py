"""A job waits for its data set."""

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

from hydrated_node import HydratedNode
from max_seconds import MAX_SECONDS


@pytest.fixture
def node(tmp_path: Path) -> HydratedNode:
    node = HydratedNode(tmp_path)
    for number in range(20):
        node.lustre.add(f"data/part-{number}", b"x" * 2048)
    return node


def _wait(node: HydratedNode, *arguments: str) -> tuple[int, str]:
    done = node.run("wait-for-dataset", *arguments)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


def test_it_waits_for_what_has_not_begun_restores_and_is_ready(node: HydratedNode) -> None:
    assert _wait(node, "/fsx/data", "--timeout", "0s") == (
        1,
        "/fsx/data: its hydration has not begun\nwait-for-dataset: /fsx/data is not ready: the timeout is over\n",
    )
    first = node.hydrate(shard=0, shards=2)
    status, said = _wait(node, "/fsx/data", "--timeout", "0s")
    assert status == 1
    assert "still counting" in said
    assert said.endswith("is not ready: shard 2 of 2 has not begun\n")
    assert node.hydrate(shard=1, shards=2).restored_files == 20 - first.restored_files
    status, said = _wait(node, "/fsx/data", "--timeout", "0s")
    assert "/fsx/data: 100 % of 40.0 KiB, 20 of 20 files" in said
    assert said.endswith("all shards are restored, and the final check has not ended\n")
    node.hydrate("finish")
    # A directory within the data set is as ready as the whole.
    for directory in ("/fsx/data", "/fsx/data/", "/fsx/data/part"):
        status, said = _wait(node, directory)
        assert (status, said.partition(": ")[2]) == (0, "ready: 20 files, 40.0 KiB\n")


def test_a_failure_is_told_with_its_reason(node: HydratedNode) -> None:
    node.hydrate("finish")
    node.hydrate("fail", reason="access to the bucket is denied")
    assert _wait(node, "/fsx/data") == (
        3,
        "wait-for-dataset: the hydration of /fsx/data failed: access to the bucket is denied\n",
    )


def test_no_file_of_the_file_system_controls_the_terminal_of_who_waits(node: HydratedNode) -> None:
    node.hydrate(shard=0, shards=2)
    working = node.lustre.files / ".cdk-training-cluster/hydration/science"
    (working / "\x1b[2J").mkdir()
    (written,) = (working / "%2Ffsx%2Fdata").glob("*/0.json")
    shard = {**json.loads(written.read_text()), "shards": 1, "host": "\x1b]0;node\x07", "moved": 1, "finished": False}
    written.write_text(json.dumps(shard))
    (_, slow), (_, unknown) = (_wait(node, each, "--timeout", "0s") for each in ("/fsx/data", "/fsx/other"))
    assert "on \\x1b]0;node\\x07 has restored nothing since 00:00:01 UTC" in slow
    assert "; that of \\x1b[2J, /fsx/data has" in unknown
    node.hydrate("fail", reason="x")
    (working / "%2Ffsx%2Fdata/failed.json").write_text(json.dumps({"run": "r1", "reason": "\x1b[2J\nready"}))
    _, failed = _wait(node, "/fsx/data")
    assert failed.endswith(" failed: \\x1b[2J\\nready\n")
    assert "\x1b" not in slow + unknown + failed


def test_another_run_or_cluster_takes_only_its_own_markers_away(node: HydratedNode) -> None:
    other = {"CLUSTER_NODE_CLUSTER": "other"}
    node.hydrate("finish")
    node.hydrate("begin", other, run="b1")
    node.hydrate("fail", other, run="b1", reason="no node")
    assert _wait(node, "/fsx/data", "--timeout", "0s")[0] == 0
    node.hydrate("fail", reason="mended since")
    for run in ("r2", "r3", "r4"):
        node.hydrate(run=run)
        assert node.hydrate("finish", run=run).finished
    node.hydrate("begin", run="r5", directory="/fsx/data")
    assert _wait(node, "/fsx/data", "--timeout", "0s")[0] == 1
    runs = (node.lustre.files / ".cdk-training-cluster/hydration/science/%2Ffsx%2Fdata").iterdir()
    assert sorted(path.name for path in runs) == ["r3", "r4"]


def test_a_directory_is_known_by_a_link_and_one_elsewhere_is_refused(node: HydratedNode) -> None:
    node.hydrate("finish")
    (node.root / "link").symlink_to(node.root / "fsx/data")
    assert _wait(node, "/link/part", "--timeout", "0s")[0] == 0
    status, said = _wait(node, "/fsx/dta", "--timeout", "0s")
    assert (status, said.startswith("/fsx/dta: its hydration has not begun; that of /fsx/data has\n")) == (1, True)
    assert _wait(node, "/data") == (
        2,
        "wait-for-dataset: /data is not on the cluster's file system, which is mounted at /fsx\n",
    )


@pytest.mark.parametrize("arguments", [(), ("/fsx/data", "--timeout", "soon")])
def test_a_wrong_call_is_refused(node: HydratedNode, arguments: tuple[str, ...]) -> None:
    assert _wait(node, *arguments)[0] == 2


def test_a_terminal_shows_a_bar(node: HydratedNode) -> None:
    node.hydrate()
    outer, inner = pty.openpty()
    with subprocess.Popen(
        node.command("wait-for-dataset", "/fsx/data", "--timeout", "0s"),
        env=node.environment(COLUMNS="200"),
        stderr=inner,
    ) as process:
        os.close(inner)
        process.wait(timeout=MAX_SECONDS)
    said = os.read(outer, 65_536).decode()
    os.close(outer)
    assert said.startswith(f"\r/fsx/data [{'#' * 20}] 100 % of 40.0 KiB, 20 of 20 files")
