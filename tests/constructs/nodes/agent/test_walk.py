"""Which files a walk finds: each in exactly one shard, in the same order, after any interruption too."""

import fnmatch
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdk_training_cluster.nodes.agent.cluster_node.request import Request
from cdk_training_cluster.nodes.agent.cluster_node.walk import File, Walk

# Few letters, so that names begin alike, among them what sorts before and after "/", and a byte that is no UTF-8.
NAMES = st.lists(st.sampled_from([b"a", b"b", b".", b"-", b" ", b"\n", b"\xff", b"0"]), min_size=1, max_size=3).map(
    lambda parts: b"".join([b"n", *parts])
)
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(b"/".join)
TREES = st.dictionaries(PATHS, st.integers(0, 9), max_size=25)
REQUEST = Request(action="restore", run="r", directory="/d", mount_point="/")


def _make(root: bytes, tree: dict[bytes, int]) -> dict[bytes, int]:
    """Make the files, and return those whose path was free."""
    made = {}
    for path, size in tree.items():
        file = Path(os.fsdecode(root + b"/" + path))
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch(exist_ok=False)
            os.truncate(file, size)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue
        made[path] = size
    return made


def _in_order(tree: dict[bytes, int]) -> list[bytes]:
    return sorted(tree, key=lambda path: path.split(b"/"))


def _relative(root: bytes, files: list[File]) -> list[bytes]:
    return [file.path[len(root) + 1 :] for file in files]


def test_a_walk_that_is_stopped_goes_on_after_the_last_file_that_it_saw_selected_or_not(tmp_path: Path) -> None:
    root = os.fsencode(tmp_path)
    _make(root, {b"a%d" % number: 1 for number in range(9)} | {b"z": 1})
    request, asked, saved, found = REQUEST._replace(patterns=("z",)), 0, dict[str, Any](), list[File]()

    def has_ended() -> bool:
        nonlocal asked
        asked += 1
        return asked % 4 == 0

    for _ in range(5):
        walk = Walk(root, request, saved, has_ended=has_ended)
        found += walk
        saved = walk.save(walk.place)
    assert (_relative(root, found), saved["cursor"]) == ([b"z"], "z")


@given(tree=TREES, shards=st.integers(1, 4), chunk=st.integers(1, 4), stop=st.integers(0, 25))
def test_every_file_is_in_one_shard_and_an_interrupted_walk_finds_what_another_does(
    tree: dict[bytes, int], shards: int, chunk: int, stop: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = os.fsencode(name)
        made = _make(root, tree)
        found: list[bytes] = []
        for shard in range(shards):
            request = REQUEST._replace(shard=shard, shards=shards)
            whole = list(Walk(root, request, chunk=chunk))
            assert _relative(root, whole) == [path for path in _in_order(made) if path in _relative(root, whole)]
            first = Walk(root, request, chunk=chunk)
            before = [file for file, _ in zip(first, range(stop), strict=False)]
            saved = first.save(before[-1].place) if before else None
            assert before + list(Walk(root, request, saved, chunk=chunk)) == whole
            found += _relative(root, whole)
        assert sorted(found) == sorted(made)


@given(
    tree=TREES,
    shards=st.integers(1, 3),
    pattern=st.sampled_from(["*", "n*a*", "*/n*", "n[ab]*"]),
    limit=st.integers(0, 60),
    stop=st.integers(0, 25),
)
def test_a_limit_selects_the_same_files_whatever_the_shards(
    tree: dict[bytes, int], shards: int, pattern: str, limit: int, stop: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = os.fsencode(name)
        made = _make(root, tree)
        selected, total = [], 0
        for path in _in_order(made):
            if fnmatch.fnmatchcase(path.decode("utf-8", "surrogateescape"), pattern):
                total += made[path]
                if total > limit:
                    break
                selected.append(path)
        found: list[bytes] = []
        for shard in range(shards):
            request = REQUEST._replace(shard=shard, shards=shards, patterns=(pattern,), max_bytes=limit)
            first = Walk(root, request)
            before = [file for file, _ in zip(first, range(stop), strict=False)]
            after = Walk(root, request, first.save(before[-1].place) if before else None)
            found += _relative(root, before + list(after))
        assert sorted(found) == sorted(selected)


@pytest.mark.parametrize("shards", [1, 3])
def test_a_file_with_several_names_is_found_once(tmp_path: Path, shards: int) -> None:
    (tmp_path / "b").write_text("x")
    for name in ("a", "c", "d/e"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).hardlink_to(tmp_path / "b")
    root = os.fsencode(tmp_path)
    found = [
        file.path for shard in range(shards) for file in Walk(root, REQUEST._replace(shard=shard, shards=shards))
    ]
    assert found == [root + b"/a"]


def test_what_cannot_be_listed_is_said_by_one_shard_once(tmp_path: Path) -> None:
    too_long = tmp_path
    directory = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):  # A path that is longer than the kernel takes.
        os.mkdir("d" * 250, dir_fd=directory)
        inner = os.open("d" * 250, os.O_RDONLY, dir_fd=directory)
        os.close(directory)
        directory = inner
    os.close(directory)
    (tmp_path / "e").write_text("x")
    walks = [Walk(os.fsencode(too_long), REQUEST._replace(shard=shard, shards=2)) for shard in range(2)]
    found = [list(walk) for walk in walks]
    errors = [file.error for files in found for file in files if file.error]
    assert errors == ["cannot list the directory: File name too long"]
    assert sum(len(files) for files in found) == 2
    again = list(Walk(os.fsencode(too_long), REQUEST._replace(shards=2), walks[0].save(found[0][0].place)))
    assert found[0][1:] == again
