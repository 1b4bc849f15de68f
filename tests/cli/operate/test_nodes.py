"""`training-cluster keep`, `connect` and `exec`: what they ask of AWS, and what they say."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cdk_training_cluster_cli.operate import connect as connecting
from cdk_training_cluster_cli.operate import keep as keeping
from cdk_training_cluster_cli.operate.keep import Keep
from cdk_training_cluster_cli.operate.nodes import find_nodes
from cdk_training_cluster_cli.operate.power import PowerFunction
from cdk_training_cluster_cli.operate.run import Execution
from cluster_contract.schedule import ScheduleSettings
from operated_cluster import Operated
from power_scene import Scene

_NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
_UNTIL = "cdk-training-cluster:keep-until"


@pytest.fixture
def cluster() -> Operated:
    """A cluster of two workers that run, and a Spot Fleet."""
    made = Operated(scene=Scene(counts={"workers": 2}))
    made.scene.add()
    made.scene.add_fleet("extras")
    made.scene.minute(5)
    return made


@pytest.fixture
def ids(cluster: Operated) -> list[str]:
    return [one for one, _ in cluster.scene.auto_scaling.groups["workers-asg"].nodes]


def keep(cluster: Operated, keep: Keep, *groups: str, nodes: Sequence[str] = ()) -> list[tuple[str, Any]]:
    power = PowerFunction(target=cluster.target, pause=cluster.pause)
    keeping.run(power, keep, node_groups=groups, nodes=nodes, output="json")
    return cluster.tags


def test_what_owns_the_nodes_is_kept_until_a_time(cluster: Operated) -> None:
    tags = keep(cluster, Keep.read("12h", off=False, now=_NOW))
    value = {"Key": _UNTIL, "Value": "2026-11-24T00:00:00Z"}
    group = {"ResourceId": "workers-asg", "ResourceType": "auto-scaling-group", "PropagateAtLaunch": False}
    assert sorted(tags) == [
        ("create_or_update_tags", {"Tags": [{**group, **value}]}),
        ("create_tags", {"Resources": ["sfr-extras"], "Tags": [value]}),
    ]


def test_an_owner_is_tagged_by_the_calls_of_its_service(cluster: Operated) -> None:
    group = cluster.scene.add_compute_node_group()
    cluster.scene.minute()
    tags = keep(cluster, Keep.read("12h", off=False, now=_NOW), "slurm")
    keep(cluster, Keep.read(None, off=True, now=_NOW), "slurm")
    keys = ["cdk-training-cluster:keep", _UNTIL]
    assert tags == [
        ("tag_resource", {"resourceArn": group.arn, "tags": {_UNTIL: "2026-11-24T00:00:00Z"}}),
        ("untag_resource", {"resourceArn": group.arn, "tagKeys": keys}),
    ]


def test_what_the_schedule_of_a_kept_group_does_is_said(
    cluster: Operated, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.scene.details["workers"] = {"schedule": 0}
    cluster.scene.schedules = (ScheduleSettings(windows=("daily 00:00-23:59 UTC",)),)
    power = PowerFunction(target=cluster.target, pause=cluster.pause)
    keeping.run(power, Keep.read("12h", off=False, now=_NOW), node_groups=["workers"], nodes=[], output="table")
    said = " ".join(capsys.readouterr().out.split())
    assert "its schedule does not read the tag: it runs: a window is open; it is stopped at " in said


def test_single_nodes_are_kept_or_no_longer(cluster: Operated, ids: list[str]) -> None:
    (tagged,) = keep(cluster, Keep.read("2026-11-23T14:00+01:00", off=False, now=_NOW), nodes=["workers/1"])
    assert tagged == (
        "create_tags",
        {"Resources": ids[1:], "Tags": [{"Key": _UNTIL, "Value": "2026-11-23T13:00:00Z"}]},
    )
    *_, untagged = keep(cluster, Keep.read(None, off=True, now=_NOW), nodes=ids)
    assert (untagged[0], untagged[1]["Resources"], len(untagged[1]["Tags"])) == ("delete_tags", ids, 2)


def test_a_kept_node_s_group_is_named_since_the_budget_stops_none_of_it(
    cluster: Operated, capsys: pytest.CaptureFixture[str]
) -> None:
    power = PowerFunction(target=cluster.target, pause=cluster.pause)
    kept = Keep.read("12h", off=False, now=_NOW)
    keeping.run(power, kept, node_groups=["extras"], nodes=["workers/1"], output="table")
    said = " ".join(capsys.readouterr().out.split())
    assert "not stopped for being idle, and the budget stops no node of workers" in said
    assert "extras is kept until 2026-11-24T00:00:00Z: before that it is stopped neither for being idle nor" in said


def test_what_iam_denies_is_a_sentence(cluster: Operated) -> None:
    cluster.denied = frozenset({"create_or_update_tags"})
    with pytest.raises(ValueError, match="Auto Scaling group workers-asg: AWS denies CreateOrUpdateTags"):
        keep(cluster, Keep.read("12h", off=False, now=_NOW), "workers")


@pytest.mark.parametrize(
    "until",
    "12 tomorrow 2026-11-24 2026-11-24T10:00 2026-11-23T11:59Z 31d 2026-12-24T18:00Z 2026-W48 0h".split(),  # noqa: SIM905
)
def test_a_time_that_the_idle_function_might_read_otherwise_is_refused(until: str) -> None:
    with pytest.raises(ValueError, match="--until must be a time ahead with its zone"):
        Keep.read(until, off=False, now=_NOW)


@pytest.mark.parametrize(("until", "off"), [(None, False), ("12h", True)])
def test_a_time_and_none_exclude_each_other(until: str | None, off: bool) -> None:
    with pytest.raises(ValueError, match="keep takes either --until TIME"):
        Keep.read(until, off=off, now=_NOW)


def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    for name in names:
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))


def test_a_shell_is_opened_with_the_aws_cli(
    cluster: Operated, ids: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs(tmp_path, monkeypatch, "aws", "session-manager-plugin")
    called: list[Sequence[str]] = []

    def call(command: Sequence[str]) -> int:
        called.append(command)
        return 7

    assert connecting.run(cluster.target, "workers/0", profile="ops", call=call) == 7
    assert " ".join(called[0]) == f"aws ssm start-session --target {ids[0]} --region us-east-1 --profile ops"
    cluster.offline.add(ids[0])
    with pytest.raises(ValueError, match=f"workers/0 .{ids[0]}. cannot be reached: its SSM agent is not connected"):
        connecting.run(cluster.target, "workers/0", profile=None, call=call)


@pytest.mark.parametrize(
    ("there", "said"),
    [([], "the AWS CLI: .* and the Session Manager plugin"), (["aws"], "install the Session Manager")],
)
def test_what_is_missing_for_a_shell_is_said(
    cluster: Operated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: list[str], said: str
) -> None:
    programs(tmp_path, monkeypatch, *there)
    with pytest.raises(ValueError, match=said):
        connecting.run(cluster.target, "workers/0", profile=None, call=len)


def execution(cluster: Operated, *words: str, **given: Any) -> Execution:
    settings = {"timeout": "10m", "output": "table", "pause": cluster.pause, **given}
    return Execution(target=cluster.target, words=words, **settings)


def test_output_comes_node_by_node_whichever_ends_first(
    cluster: Operated, ids: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = ids
    cluster.answers = {
        first: ["InvocationDoesNotExist", "InProgress", (0, "one\n", "")],
        second: [(3, "two", "\x1b[31mno\n")],
    }
    assert execution(cluster, "nvidia-smi", "-q x").run([], []) == 1
    (sent,) = cluster.commands
    assert sent["Parameters"] == {"commands": ["nvidia-smi '-q x'"], "executionTimeout": ["600"]}
    shown = capsys.readouterr()
    assert shown.out == f"== workers/0 ({first})\none\n== workers/1 ({second})\ntwo\n"
    assert shown.err == f"\\x1b[31mno\nerror: workers/1 ({second}): the command ended with exit status 3\n"


def test_an_instance_of_another_owner_with_the_tags_of_the_cluster_is_none_of_its_nodes(
    cluster: Operated, ids: list[str]
) -> None:
    cluster.foreign = ["i-0000000000000bad0"]
    assert [(node.name, node.id) for node in find_nodes(cluster.target)] == [
        ("workers/0", ids[0]),
        ("workers/1", ids[1]),
    ]
    cluster.answers = {one: [(0, "", "")] for one in ids}
    assert execution(cluster, "hostname").run(["workers"], []) == 0
    assert [sent["InstanceIds"] for sent in cluster.commands] == [ids]
    with pytest.raises(ValueError, match="i-0000000000000bad0 is no live node of the cluster"):
        execution(cluster, "hostname").run([], cluster.foreign)


@pytest.mark.parametrize(
    ("denied", "security_group", "says"),
    [
        (
            {"get_parameter"},
            "sg-1",
            "the SSM parameter /training-cluster/.*: AWS denies GetParameter .*policy must allow",
        ),
        (set(), "", "does not name the security group of the nodes: deploy the cluster again"),
    ],
)
def test_no_node_is_looked_for_by_tags_alone(
    cluster: Operated, denied: set[str], security_group: str, says: str
) -> None:
    cluster.denied = frozenset(denied)
    cluster.description = replace(cluster.description, security_group=security_group)
    with pytest.raises(ValueError, match=says):
        execution(cluster, "hostname").run([], [])
    assert not cluster.commands


def test_a_program_gets_each_node_s_result(
    cluster: Operated, ids: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.offline.add(ids[0])
    cluster.answers = {ids[1]: ["ExecutionTimedOut"]}
    assert execution(cluster, "sleep 9; date", output="json").run(["workers"], []) == 1
    assert cluster.commands[0]["InstanceIds"] == ids[1:]
    assert cluster.commands[0]["Parameters"]["commands"] == ["sleep 9; date"]
    away, late = json.loads(capsys.readouterr().out)["nodes"]
    assert (away["node"], away["exit_status"], away["problem"][:42]) == (
        "workers/0",
        None,
        "its SSM agent is not connected, as in the ",
    )
    assert (late["status"], late["problem"]) == (
        "ExecutionTimedOut",
        "the command did not end in the time that --timeout gives",
    )


def test_output_that_run_command_has_cut_is_said_to_be_cut(
    cluster: Operated, ids: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    # The agent keeps so many bytes, its mark among them.
    kept = f"{'é' * 11_990}--output truncated--"
    cluster.answers = {ids[0]: [(0, kept, "")]}
    assert execution(cluster, "yes").run([], ["workers/0"]) == 0
    shown = capsys.readouterr()
    assert shown.out == f"{kept}\n"
    assert shown.err.startswith("warning: workers/0: Run Command keeps the first 24,000 bytes of standard output")


def test_an_interrupt_cancels_the_command(cluster: Operated, ids: list[str]) -> None:
    cluster.answers = {ids[0]: ["InProgress"]}

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execution(cluster, "sleep 1000", pause=interrupt).run([], ["workers/0"])
    assert cluster.cancelled == ["1"]


def test_a_throttled_look_is_repeated_and_a_refused_one_tells_what_has_ended(
    cluster: Operated, ids: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.answers = {ids[0]: [(0, "one", "")], ids[1]: ["InProgress"]}
    cluster.refusals = ["ThrottlingException", "", "AccessDeniedException"]
    refusal = "AWS denies ListCommandInvocations .*; the command is being cancelled: see aws ssm .* --command-id 1$"
    with pytest.raises(ValueError, match=refusal):
        execution(cluster, "sleep 9").run([], [])
    assert cluster.cancelled == ["1"]
    shown = capsys.readouterr()
    assert "\none\n" in shown.out
    assert shown.err == f"error: workers/1 ({ids[1]}): it is not known what became of the command\n"


def test_more_nodes_than_one_request_takes_get_several(cluster: Operated) -> None:
    cluster.scene.counts["workers"] = 60
    cluster.scene.auto_scaling.groups["workers-asg"].maximum = 60
    cluster.scene.minute(5)
    every = [one for one, _ in cluster.scene.auto_scaling.groups["workers-asg"].nodes]
    cluster.answers = {one: [(0, "", "")] for one in every}
    assert execution(cluster, "true").run(["workers"], []) == 0
    assert [len(one["InstanceIds"]) for one in cluster.commands] == [50, 10]


def test_groups_and_nodes_that_are_not_there_are_refused(cluster: Operated) -> None:
    with pytest.raises(
        ValueError, match="no node of worker lives in the cluster 'base-pod': its nodes are workers/0 to"
    ):
        execution(cluster, "true").run(["worker"], [])
    with pytest.raises(ValueError, match=r"^workers/2 is no live node of the cluster"):
        execution(cluster, "true").run([], ["workers/2"])
