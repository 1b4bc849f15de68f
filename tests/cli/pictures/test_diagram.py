"""Architectures of clusters: their parts, the actions on the arrows, and the syntax of Mermaid."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cdk_training_cluster_cli.main import training_cluster
from cdk_training_cluster_cli.pictures.diagram import architecture, fenced
from cdk_training_cluster_cli.pictures.mermaid import Arrow, Box, Group, Shape, flowchart
from cdk_training_cluster_file import read_cluster_file
from examples import EXAMPLES, PROJECT, swept

_SAFE = r"(?:[A-Za-z0-9 ,./()-]|:(?=[ /<\"])|#\d+;)+"
_LABEL = rf'"{_SAFE}(?:<br/>{_SAFE})*"'
_LINES = re.compile(
    rf" +(?:subgraph (?P<group>n\w+)\[{_LABEL}\]|(?P<end>end)"
    rf"|(?P<node>n\w+)(?:\[{_LABEL}\]|\[\({_LABEL}\)\]|\(\[{_LABEL}\]\))"
    rf"|(?P<source>n\w+) -->\|{_LABEL}\| (?P<target>n\w+))"
)
# What Mermaid renders unless a page's configuration raises it: https://mermaid.js.org/config/schema-docs/config.html
_MAX_CHARACTERS, _MAX_ARROWS = 50_000, 500
_HOSTILE = [
    *(
        "end",
        '"]; x-->y["',
        "</text><script>alert(1)</script>",
        "1. list",
        "- item",
        "`it` **bold** _it_",
        "%%{init: {}}%%",
    ),
    *("#quot; &lt;", "a\nb\x00\u202e]", "subgraph x", "é日本", "$$x$$", "fa:fa-ban", "::icon(x)", "a|b", "\\"),
]


def _checked(text: str) -> dict[tuple[str, str], str]:
    """Check each line of a flowchart, and return its arrows with their labels."""
    first, *lines = text.splitlines()
    assert first == "flowchart LR"
    depth, ids, arrows = 0, set(), {}
    for line in lines:
        found = _LINES.fullmatch(line)
        assert found, line
        depth += bool(found["group"]) - bool(found["end"])
        assert depth >= 0
        if one := found["group"] or found["node"]:
            assert one not in ids
            ids.add(one)
        if found["source"]:
            arrows[found["source"], found["target"]] = line.split("|")[1]
    assert depth == 0
    assert {each for arrow in arrows for each in arrow} <= ids
    assert len(text) < _MAX_CHARACTERS
    assert len(arrows) < _MAX_ARROWS
    return arrows


@pytest.mark.parametrize("hostile", _HOSTILE)
def test_no_text_is_read_as_syntax(hostile: str) -> None:
    inner = [Box(id=f"n{shape.name}", lines=[hostile, hostile], shape=shape) for shape in Shape]
    text = flowchart(
        [Group(id="nGroup", title=hostile, inner=inner), Box(id="nOne", lines=[hostile])],
        [Arrow(source="nOne", target="nGroup", lines=[hostile])],
    )
    assert list(_checked(text)) == [("nOne", "nGroup")]
    assert len(text.splitlines()) == 8


@pytest.mark.parametrize("start", ["1. a", "12) a", "- a"])
def test_no_label_begins_as_a_list(start: str) -> None:
    text = flowchart([Box(id="nOne", lines=[start])], [])
    assert f'["#{ord(start[0])};{start[1:]}"]' in text


@pytest.mark.parametrize("example", [swept(each, ("base-pod", "spot-elastic")) for each in EXAMPLES])
def test_every_example_is_a_flowchart(example: str) -> None:
    cluster = read_cluster_file(PROJECT / example)
    text = architecture(cluster)
    arrows = _checked(text)
    for group in cluster.node_groups:
        assert f'"{group.name}: {group.count} x ' in text
    assert ("nScheduler", "nNodes") in arrows or cluster.orchestrator.settings is None
    assert ("nFiles", "nNodes") in arrows or cluster.file_system is None


def test_arrows_show_the_actions_that_roles_allow() -> None:
    arrows = _checked(architecture(read_cluster_file(PROJECT / "scripts/site/everything.yaml")))
    assert arrows["nClusterPower", "nNodes"] == (
        '"may create or update tags<br/>may resume processes<br/>may set desired capacity"'
    )
    assert arrows["nIdleStop", "nClusterPower"] == arrows["nClusterSpend", "nClusterPower"] == '"may invoke function"'
    assert "may stop instances" in arrows["nIdleStop", "nNodes"]
    assert arrows["nDatasetHydration", "nFiles"] == '"may create data repository task"'
    reports = {source for (source, _), label in arrows.items() if label == '"reports only"'}
    assert reports == {"nCheckpointWatch", "nWeeklyCostReport"}
    assert all((source, "nTopic") in arrows for source, _ in arrows if source in reports)


def test_the_health_function_acts_where_its_policy_says_so(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(
        (PROJECT / "clusters/p5-reservation.yaml").read_text() + "\nhealth: {act: true, max_repairs: 2}\n"
    )
    text = architecture(read_cluster_file(file))
    assert "drained, then rebooted or replaced, at most 2 of a node group" in text
    assert "may reboot instances" in _checked(text)["nNodeHealth", "nNodes"]


def test_many_groups_stay_below_the_limits_of_mermaid(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    group = "  - {{name: group-{}, instance_types: [p5.48xlarge], count: 2, image: latest}}\n"
    file.write_text(
        f"name: many\navailability_zone: us-east-1b\nnode_groups:\n{''.join(map(group.format, range(12)))}"
    )
    text = architecture(read_cluster_file(file))
    _checked(text)
    assert text.count(": 2 x p5.48xlarge") == 12


def test_the_command_says_what_it_wrote_and_what_it_cannot_write(tmp_path: Path) -> None:
    def ran(*arguments: str) -> tuple[int, str, str]:
        result = CliRunner().invoke(training_cluster, ["diagram", str(file), *arguments])
        return result.exit_code, result.stdout, result.stderr

    file = tmp_path / "dev-box.yaml"
    file.write_bytes((PROJECT / "clusters/dev-box.yaml").read_bytes())
    beside, markdown, missing = tmp_path / "dev-box.mmd", tmp_path / "it.md", tmp_path / "no" / "it.mmd"
    assert ran() == (0, f"{beside}\n", "")
    text = beside.read_text()
    assert ran("-o", str(markdown)) == (0, f"{markdown}\n", "")
    assert markdown.read_text() == fenced(text) == f"```mermaid\n{text}```\n"
    assert ran("-o", "-") == (0, text, "")
    assert ran("-o", "it.svg") == (2, "", "error: --out must name a .mmd or .md file, or be -, got 'it.svg'\n")
    assert ran("-o", str(missing)) == (2, "", f"error: {missing} cannot be written: No such file or directory\n")
