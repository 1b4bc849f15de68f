"""What is said of files that cannot be read, and of files with many mistakes."""

from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from cdk_training_cluster_cli.main import training_cluster
from cdk_training_cluster_file import CapacitySettings, ClusterFile, NodeGroupSettings
from cluster_files import RIGHT, problems, read_problems

TEXTS = {
    "empty": ("", "cluster.yaml: is empty; a cluster file begins with its name, such as name: base-pod"),
    "only comments": (
        "# later\n",
        "cluster.yaml: is empty; a cluster file begins with its name, such as name: base-pod",
    ),
    "a list": ("- a\n", "cluster.yaml: must be a mapping of settings, such as name: base-pod, got a list"),
    "a word": ("hello\n", 'cluster.yaml: must be a mapping of settings, such as name: base-pod, got "hello"'),
    "not YAML": (
        "name: pod\nnode_groups: [a, b\n",
        "cluster.yaml:3: is not YAML in column 1: expected ',' or ']', but got '<stream end>'",
    ),
    "tabs": (
        "name: pod\nfile_system:\n\tmount_point: /fsx\n",
        "cluster.yaml:3: is not YAML in column 1: a tab; indent with spaces",
    ),
    "an unknown tag": (
        "name: !Ref x\n",
        "cluster.yaml:1: is not YAML in column 7: the tag '!Ref' is not one of a cluster file; write the "
        "value without it",
    ),
    "two documents": (
        "name: a\n---\nname: b\n",
        "cluster.yaml:2: is not YAML in column 1: but found another document",
    ),
    "an unknown anchor": (
        "name: *nobody\n",
        "cluster.yaml:1: is not YAML in column 7: found undefined alias 'nobody'",
    ),
    "an anchor in itself": (
        "tags: &a {x: *a}\n",
        "cluster.yaml:1: is not YAML in column 7: an anchor that contains itself",
    ),
    "a key that is a list": (
        "? [a]\n: b\n",
        "cluster.yaml:1: is not YAML in column 3: a key that is not text",
    ),
    "a control character": (
        "name: a\x07\n",
        "cluster.yaml: is not YAML: unacceptable character #x0007: special characters are not allowed",
    ),
}


@pytest.mark.parametrize(("text", "said"), TEXTS.values(), ids=TEXTS)
def test_what_is_not_settings_is_said_to_be_so(tmp_path: Path, text: str, said: str) -> None:
    assert problems(tmp_path, text) == [said]


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_bytes(b"name: \xff\xfe")
    assert read_problems(tmp_path, "cluster.yaml") == ["cluster.yaml: is not text in UTF-8"]


def test_a_missing_file_has_a_near_match(tmp_path: Path) -> None:
    (tmp_path / "clusters").mkdir()
    for name in ("base-pod.yaml", "dev-box.yml", "notes.txt"):
        (tmp_path / "clusters" / name).write_text(RIGHT)
    for name, text in {"mkdocs.yml": "nav: [a.md]", "base-pot.yaml": "node_groups: [", "list.yaml": "[1]"}.items():
        (tmp_path / "clusters" / name).write_text(text)
    assert read_problems(tmp_path, "clusters/bsae-pod.yaml") == [
        "clusters/bsae-pod.yaml: there is no such file; did you mean clusters/base-pod.yaml?"
    ]
    assert read_problems(tmp_path, "clusters/zzz") == [
        "clusters/zzz: there is no such file; there are clusters/base-pod.yaml, clusters/dev-box.yml"
    ]
    assert read_problems(tmp_path, "clusters") == [
        "clusters: is a directory; name a file; there are clusters/base-pod.yaml, clusters/dev-box.yml"
    ]
    assert read_problems(tmp_path, "nowhere/at-all.yaml") == ["nowhere/at-all.yaml: there is no such file"]
    assert read_problems(tmp_path, "clusters/base-pod.yaml/x") == [
        "clusters/base-pod.yaml/x: cannot be read: Not a directory"
    ]


def test_every_mistake_is_told_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = """\
name: pod
zone: us-east-1b
file_systm: {}
datasets: [{file_system_path: /data}, {file_system_path: /data/more, prefix: x}]
node_groups:
  - name: workers
    instance_types: [p5.48xlarg]
    count: 0
    image:
  - name: workers
    instance_types: [g4dn.xlarge]
    count: 1
    image: latest
    efa: true
"""
    places = [line.split(": ")[:2] for line in problems(tmp_path, text)]
    assert places == [
        ["cluster.yaml:1", "availability_zone"],
        ["cluster.yaml:2", "zone"],
        ["cluster.yaml:3", "file_systm"],
        ["cluster.yaml:4", "datasets[1].file_system_path"],
        ["cluster.yaml:4", "datasets[1].prefix"],
        ["cluster.yaml:7", "node_groups[0].instance_types[0]"],
        ["cluster.yaml:8", "node_groups[0].count"],
        ["cluster.yaml:9", "node_groups[0].image"],
        ["cluster.yaml:10", "node_groups[1].name"],
        ["cluster.yaml:14", "node_groups[1].efa"],
    ]


def test_an_anchor_keeps_the_line_of_each_place(tmp_path: Path) -> None:
    text = RIGHT.replace("  - name: workers", "  - &workers\n    name: workers").replace("count: 8", "count: 0")
    assert problems(tmp_path, f"{text}  - <<: *workers\n    name: more\n") == [
        "cluster.yaml:11: node_groups[0].count: must be at least 1, got 0",
        "cluster.yaml:11: node_groups[1].count: must be at least 1, got 0",
    ]


def test_what_is_long_is_shown_in_part(tmp_path: Path) -> None:
    (said,) = problems(tmp_path, RIGHT.replace("image: latest", f"image: {'x' * 500}"))
    assert said.endswith(f'got "{"x" * 59}…"')


WORDS = ["latest", "/", "p5.48xlarge", "us-east-1b", "ami-0a1b2c3d"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
FILES = st.dictionaries(st.sampled_from(sorted(ClusterFile.model_fields)), VALUES)
GROUPS = st.dictionaries(st.sampled_from(sorted(NodeGroupSettings.model_fields)), VALUES)
ENDS = st.sampled_from(["until_cancelled", "2026-12-24T18:00:00Z", "2026-02-30T18:00:00Z", "cr-0a1b2c3d"])
CALLS = st.dictionaries(
    st.sampled_from(sorted(CapacitySettings.model_fields)),
    st.dictionaries(st.sampled_from(["id", "end", "max_price", "reservations", "on_demand"]), ENDS | VALUES) | VALUES,
    max_size=2,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(FILES, GROUPS, CALLS)
def test_whatever_a_file_holds_the_answer_is_problems(
    tmp_path: Path, top: dict[str, object], group: dict[str, object], calls: dict[str, object]
) -> None:
    document = {**top, "node_groups": [group, {**group, "capacity": calls}]}
    for problem in problems(tmp_path, yaml.safe_dump(document)):
        assert problem.startswith("cluster.yaml")


def test_a_name_that_is_too_long_is_not_repeated(tmp_path: Path) -> None:
    name = f"{'a' * 296}.yaml"
    assert read_problems(tmp_path, name) == [
        f"{'a' * 40}…: is no file: the name has 301 characters, and the system takes no name of that length"
    ]


@pytest.mark.parametrize("name", ["nope.yaml", "a" * 300 + ".yaml", ".", "with\0null.yaml"])
def test_check_ends_with_2_if_it_cannot_read_the_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(training_cluster, ["check", name])
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
