"""A file of progress with an entry of the wrong kind is a damaged file: it is taken for none."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdk_training_cluster.nodes.agent.cluster_node import progress, waiting
from cdk_training_cluster.nodes.agent.cluster_node.clock import Deadline
from cdk_training_cluster.nodes.agent.cluster_node.request import parse
from cdk_training_cluster.nodes.agent.cluster_node.restoring import Counting, Counts
from cdk_training_cluster.nodes.agent.cluster_node.saved import is_sound
from cdk_training_cluster.nodes.agent.cluster_node.walk import Walk
from cluster_contract.hydration import HydrationAction, HydrationRequest
from hydrated_node import HydratedNode

_DATASET = "fsx/.cdk-training-cluster/hydration/science/%2Ffsx%2Fdata"
_WALK: dict[str, Any] = {"cursor": "a/b", "selected_bytes": 3, "links": [7]}
_WHOLE: dict[str, Any] = {
    "run": "r1",
    "shard": 0,
    "shards": 2,
    "files": 4,
    "bytes": 32,
    "restored_files": 1,
    "restored_bytes": 8,
    "failed_files": 1,
    "failures": [{"path": "a", "error": "no"}],
    "copying": True,
    "counted": False,
    "finished": False,
    "directory": "/fsx/data",
    "moved": 1.5,
    "selection": [["*"], None],
    "settled": {"restored_files": 1, "restored_bytes": 8, "failed_files": 0, "failures": []},
    "walk": _WALK,
    "count": {"files": 4, "bytes": 32, "is_complete": False, "walk": _WALK},
    "attempts": {"a": 1},
    "host": "node",
    "updated": 2,
}
_SENT = HydrationRequest(action=HydrationAction.RESTORE, run="r1", directory="/fsx/data", mount_point="/fsx")
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)
# Each entry, also within others: the way to it.
_WAYS: list[tuple[str, ...]] = [
    *((name,) for name in _WHOLE),
    *((name, inner) for name, value in _WHOLE.items() if isinstance(value, dict) for inner in value),
    *(("count", "walk", name) for name in _WALK),
]
_WRONG: list[object] = [None, "5", {"x": []}, [{}]]


def _with(way: tuple[str, ...], value: object) -> dict[str, Any]:
    content = json.loads(json.dumps(_WHOLE))
    place = content
    for name in way[:-1]:
        place = place[name]
    place[way[-1]] = value
    return dict(content)


@pytest.fixture
def node(tmp_path: Path) -> HydratedNode:
    return HydratedNode(tmp_path)


def test_what_the_program_writes_is_sound(node: HydratedNode) -> None:
    node.lustre.add("data/a", b"contents")
    node.hydrate()
    written = node.progress("r1/0.json")
    assert set(written) == set(_WHOLE)
    assert is_sound(written)
    assert is_sound(_WHOLE)
    assert is_sound({})


@given(st.sampled_from(_WAYS), _JSON)
def test_nothing_that_is_sound_surprises_what_reads_it(way: tuple[str, ...], value: object) -> None:
    content = _with(way, value)
    if not is_sound(content):
        return
    request, deadline = parse(_SENT.to_parameter()), Deadline(1)
    walk = Walk(b"/nowhere", request, content.get("walk"))
    walk.save(walk.place)
    Counts(content.get("settled")).save()
    Counting(walk, content.get("count") or {}, deadline).save()
    for read in (waiting._text, waiting._late, waiting._bar):
        read([content])
    deadline.end()


@pytest.mark.parametrize(
    "text",
    [
        *(json.dumps(_with(way, wrong)) for way in _WAYS for wrong in _WRONG),
        '{"walk": {"cursor": "\\ud800"}}',
        "[" * 100_000,
        "null",
        "[]",
        '"text"',
        "{",
        "\xff",
        "",
    ],
)
def test_a_damaged_file_is_taken_for_none_or_read_as_it_is(tmp_path: Path, text: str) -> None:
    file = tmp_path / "0.json"
    file.write_text(text, encoding="latin-1")
    found = progress.read_sound(file)
    assert found == {} or found == json.loads(text)


@pytest.mark.parametrize("way", [("walk", "cursor"), ("settled",), ("attempts",), ("count", "walk"), ("shards",)])
def test_a_hydration_begins_anew_where_its_file_is_damaged(node: HydratedNode, way: tuple[str, ...]) -> None:
    node.lustre.add("data/a", b"contents")
    file = node.root / _DATASET / "r1/0.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(_with(way, 5 if way != ("shards",) else "5")))
    done = node.run("wait-for-dataset", "/fsx/data", "--timeout", "0s")
    assert (done.returncode, "Traceback" in done.stderr) == (1, False), done.stderr
    answer = node.hydrate()
    assert (answer.restored_files, answer.finished) == (1, True)
