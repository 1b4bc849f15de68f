"""What a cluster file says of idle nodes: read, refused in its own words, shown, and read by the function."""

from datetime import timedelta
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App
from aws_cdk.assertions import Template
from typer.testing import CliRunner

from cdk_training_cluster import IdlePolicy, IdleScope, IdleSignal
from cdk_training_cluster_cli.main import training_cluster
from cdk_training_cluster_file import ClusterFile, read_cluster_file
from cdk_training_cluster_stacks.cluster import ClusterStack
from cdk_training_cluster_stacks.foundation import FoundationStack
from cluster_contract.idle import Policy
from cluster_files import RIGHT, problems
from synthesis import warnings

COUNT = "    count: 8\n"
EVERYTHING = """\
idle:
  window_minutes: 90
  warning_minutes: 45
  grace_minutes: 0
  utilization_below_percent: 2.5
  coverage: 0.75
  scope: node
  host_activity: false
  signals:
    network_mib_per_second: 2
    efa_mib_per_second: 1
    gpu_memory_mib: 512
    heartbeat: true
    session: true
    metrics: [{namespace: CWAgent, name: mem_used_percent, statistic: Maximum, below: 20}]
  dry_run: true
  max_stops: 7
  max_unknown_share: 0.2
  off: false
"""


def parsed(directory: Path, text: str) -> ClusterFile:
    (directory / "cluster.yaml").write_text(text)
    return read_cluster_file("cluster.yaml", relative_to=directory)


def policy_of(directory: Path, text: str) -> IdlePolicy:
    settings = parsed(directory, text).idle
    assert settings is not None
    return settings.for_constructs()


def test_every_setting_is_read(tmp_path: Path) -> None:
    policy = policy_of(tmp_path, RIGHT + EVERYTHING)
    assert (policy.max_stops, policy.max_unknown_share) == (7, 0.2)
    signals = [
        IdleSignal.network(2),
        IdleSignal.efa(1),
        IdleSignal.gpu_memory(512),
        IdleSignal.heartbeat(),
        IdleSignal.session(),
        IdleSignal.metric("CWAgent", "mem_used_percent", "Maximum", 20),
    ]
    assert policy.to_contract() == Policy(
        below=2.5,
        window=timedelta(minutes=90),
        coverage=0.75,
        grace=timedelta(0),
        warning=timedelta(minutes=45),
        scope=IdleScope.NODE,
        signals=tuple(row for signal in signals for row in signal.settings),
        dry_run=True,
    )


def test_the_host_s_thresholds_are_read(tmp_path: Path) -> None:
    given = policy_of(tmp_path, RIGHT + "idle: {signals: {host_vcpus: 2, host_mib_per_second: 0.5}}\n")
    assert given == IdlePolicy(signals=[IdleSignal.host(2, 0.5)])
    assert policy_of(tmp_path, RIGHT + "idle: {signals: {host_vcpus: 2}}\n") == IdlePolicy(
        signals=[IdleSignal.host(2)]
    )


def test_what_is_left_out_is_no_choice(tmp_path: Path) -> None:
    assert parsed(tmp_path, RIGHT).idle is None
    assert policy_of(tmp_path, f"{RIGHT}idle: {{}}\n") == IdlePolicy()
    assert policy_of(tmp_path, f"{RIGHT}idle: {{off: true}}\n") == IdlePolicy.off()
    group = parsed(tmp_path, RIGHT.replace(COUNT, f"{COUNT}    idle: {{signals: {{}}}}\n")).node_groups[0]
    policy = group.to_node_group("us-east-1").idle_policy
    assert policy is not None
    assert policy == IdlePolicy(signals=[])


CHANGES: dict[str, tuple[str, str, list[str]]] = {
    "a window between two points": (
        "",
        "idle: {window_minutes: 62}",
        ["12: idle.window_minutes: must be a multiple of 5, got 62"],
    ),
    "another scope": (
        "",
        "idle: {scope: nodes}",
        ['12: idle.scope: must be gang or node, got "nodes"; did you mean node?'],
    ),
    "a word": (
        "",
        "idle: off",
        ['12: idle: must be a mapping (key: value), such as idle: {window_minutes: 90}, got "off"'],
    ),
    "an empty name": (
        "",
        "idle: {signals: {metrics: [{namespace: '', name: m, statistic: Sum, below: 1}]}}",
        ['12: idle.signals.metrics[0].namespace: must hold at least 1 character, got ""'],
    ),
    "what is the cluster's": (
        "idle: {max_stops: 5}",
        "",
        [
            "11: node_groups[0].idle.max_stops: unknown key; known here: window_minutes, warning_minutes, "
            "grace_minutes, utilization_below_percent, coverage, scope, host_activity, signals, dry_run, off"
        ],
    ),
}


@pytest.mark.parametrize(("in_group", "below", "said"), CHANGES.values(), ids=CHANGES)
def test_wrong_idle_settings_are_one_sentence_with_their_place(
    tmp_path: Path, in_group: str, below: str, said: list[str]
) -> None:
    text = RIGHT.replace(COUNT, f"{COUNT}    {in_group}\n") if in_group else RIGHT
    assert problems(tmp_path, f"{text}{below}\n") == [f"cluster.yaml:{line}" for line in said]


def test_one_mistake_hides_no_other(tmp_path: Path) -> None:
    text = RIGHT.replace(COUNT, f"{COUNT}    idle: {{scope: nodes, off: 1}}\n") + "idle: {windw_minutes: 30}\n"
    assert [said.split(": ")[1] for said in problems(tmp_path, text)] == [
        "node_groups[0].idle.scope",
        "node_groups[0].idle.off",
        "idle.windw_minutes",
    ]


@pytest.mark.parametrize(
    ("in_group", "below", "places"),
    [
        # The scope of a fleet needs no window.
        ("idle: {scope: node}", "idle: {window_minutes: 7}", ["node_groups[0].idle.scope", "idle.window_minutes"]),
        ("", "idle: {scope: node, coverage: 2}", ["idle.scope", "idle.coverage"]),
        (
            "idle: {scope: node, window_minutes: 7}",
            "",
            ["node_groups[0].idle.scope", "node_groups[0].idle.window_minutes"],
        ),
        # A warning cannot be held against a window that is not known.
        ("idle: {warning_minutes: 90}", "idle: {window_minutes: 7}", ["idle.window_minutes"]),
        ("idle: {warning_minutes: 90, window_minutes: 7}", "", ["node_groups[0].idle.window_minutes"]),
        # Nor is anything known of a group that may be off.
        ("idle: {scope: node}", "idle: {off: 1}", ["idle.off"]),
        ("idle: {scope: node}", "idle: [1]", ["idle"]),
    ],
)
def test_what_is_right_in_idle_settings_is_held_against_the_rules(
    tmp_path: Path, in_group: str, below: str, places: list[str]
) -> None:
    group = f"{COUNT}    capacity: spot_fleet\n    {in_group}\n".rstrip(" ")
    said = problems(tmp_path, RIGHT.replace(COUNT, group) + below + "\n")
    assert sorted(each.split(": ")[1] for each in said) == sorted(places)


def test_warnings_speak_the_words_of_the_file(tmp_path: Path) -> None:
    file = RIGHT.replace("p5.48xlarge]", "p5.48xlarge, g6.48xlarge]").replace(
        COUNT, f"{COUNT}    capacity: spot_fleet\n    placement: cluster\n    efa: false\n"
    )
    cluster, app = parsed(tmp_path, file), App()
    foundation = FoundationStack(app, "Foundation", cluster=cluster)
    said = "\n".join(warnings(ClusterStack(app, "Cluster", cluster=cluster, foundation=foundation)))
    assert "or set placement to none" in said
    assert "efa is false for p5.48xlarge" in said
    assert "spot buys the same instances" in said
    assert "Pin the image you have tested with image." in said
    assert "Placement." not in said
    assert "Capacity." not in said


@pytest.mark.parametrize(
    ("in_group", "below", "shown"),
    [
        ("", "", ["Idle nodes: warned after 60 minutes, stopped 30 minutes later"]),
        (
            "",
            "idle: {window_minutes: 15, warning_minutes: 10, scope: node}",
            ["Idle nodes: warned after 15 minutes, stopped 10 minutes later, each by itself"],
        ),
        (
            "",
            "idle: {host_activity: false}",
            ["Idle nodes: warned after 60 minutes, stopped 30 minutes later; accelerators alone say it"],
        ),
        (
            "",
            "idle: {dry_run: true, signals: {session: true, network_mib_per_second: 1}}",
            ["Idle nodes: warned after 60 minutes, not stopped (dry run); network and session must agree"],
        ),
        ("", "idle: {off: true}", ["Idle nodes: never stopped"]),
        ("idle: {window_minutes: 120}", "idle: {off: true}", ["Idle nodes: never stopped"]),
        (
            "idle: {window_minutes: 120, off: false}",
            "idle: {off: true}",
            ["Idle nodes: never stopped", "  workers: warned after 120 minutes, stopped 30 minutes later"],
        ),
        ("idle: {off: true}", "", ["Idle nodes: never stopped"]),
        ("idle: {window_minutes: 60}", "", ["Idle nodes: warned after 60 minutes, stopped 30 minutes later"]),
    ],
)
def test_what_becomes_of_idle_nodes_is_shown(tmp_path: Path, in_group: str, below: str, shown: list[str]) -> None:
    text = RIGHT.replace(COUNT, f"{COUNT}    {in_group}\n") if in_group else RIGHT
    (tmp_path / "cluster.yaml").write_text(f"{text}{below}\n")
    result = CliRunner(env={"COLUMNS": "120"}).invoke(training_cluster, ["check", str(tmp_path / "cluster.yaml")])
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("Idle nodes"))
    assert [lines[start], *takewhile(lambda line: line.startswith("  "), lines[start + 1 :])] == shown


def stack_of(cluster: ClusterFile) -> ClusterStack:
    app = App()
    foundation = FoundationStack(app, cluster.foundation_stack_name, cluster=cluster)
    return ClusterStack(app, cluster.cluster_stack_name, cluster=cluster, foundation=foundation)


def outputs(cluster: ClusterFile) -> dict[str, Any]:
    return dict(Template.from_stack(stack_of(cluster)).to_json()["Outputs"])


def test_the_command_that_starts_the_groups_again_is_an_output(tmp_path: Path) -> None:
    found = outputs(parsed(tmp_path, RIGHT))
    before, document, after = found["ResumeCommand"]["Value"]["Fn::Join"][1]
    assert (before, after) == (
        "aws ssm start-automation-execution --document-name ",
        " --region us-east-1",
    )
    assert "Resume" in document["Ref"]
    assert "IdleFunctionName" in found


def test_a_cluster_that_is_never_stopped_has_no_idle_function(tmp_path: Path) -> None:
    found = outputs(parsed(tmp_path, f"{RIGHT}idle: {{off: true}}\n"))
    assert "IdleFunctionName" not in found
    assert "ResumeCommand" in found
