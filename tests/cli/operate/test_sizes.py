"""`training-cluster start`, `stop` and `terminate`, against the power function's own code."""

import io
import json
from datetime import timedelta
from typing import Any

import pytest
from rich.console import Console

from cdk_training_cluster_cli.operate.sizes import Asked, run, terminate
from cdk_training_cluster_cli.operate.wait import Waiting
from operated_cluster import Operated
from power_scene import Scene


@pytest.fixture
def cluster() -> Operated:
    """A cluster of eight workers that is stopped."""
    made = Operated(scene=Scene(counts={"workers": 8}))
    made.scene.add()
    made.scene.order("stop", reason="the beginning")
    return made


def asked(cluster: Operated, **given: Any) -> Asked:
    def clock() -> float:
        return cluster.scene.now.timestamp()

    return Asked(pause=cluster.pause, clock=clock, **given)


def running(cluster: Operated) -> int:
    return cluster.scene.auto_scaling.groups["workers-asg"].in_service


def ids(cluster: Operated) -> list[str]:
    nodes = cluster.scene.auto_scaling.groups["workers-asg"].nodes
    return [one for one, state in nodes if state == "InService"]


def started(cluster: Operated) -> Operated:
    cluster.scene.order("start")
    cluster.scene.minute(5)
    return cluster


def test_a_start_that_waits_ends_when_all_nodes_are_there(
    cluster: Operated, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("start", cluster.target, asked(cluster, wait=True, reason="monday"), []) == 0
    assert running(cluster) == 8
    assert cluster.sent[0] == {"action": "start", "reason": "Operators/alice: monday"}
    shown = capsys.readouterr()
    assert ["workers", "8", "8", "running"] in [line.split() for line in shown.out.splitlines()]
    assert shown.err.startswith("workers should have 8 nodes (running, by an operator in request 1111: Operators/")


def test_a_terminal_gets_a_bar_for_each_group(
    cluster: Operated, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Console, "is_terminal", True)
    monkeypatch.setenv("TERM", "xterm")
    assert run("start", cluster.target, asked(cluster, wait=True), []) == 0
    shown = capsys.readouterr().err
    assert "━" in shown
    assert "8/8" in shown


def test_a_start_that_ends_without_the_nodes_says_what_ec2_lacks(
    cluster: Operated, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.scene.auto_scaling.groups["workers-asg"].capacity = 3
    assert run("start", cluster.target, asked(cluster, wait=True, timeout="20m"), ["workers"]) == 1
    shown = capsys.readouterr()
    assert "EC2 has no more p4de.24xlarge" in " ".join(shown.out.split())
    assert shown.err.endswith("not yet after 20m: start goes on without this command\n")


def test_a_start_does_not_wait_for_nodes_that_an_orchestrator_launches_for_jobs() -> None:
    waiting = Waiting(action="start", timeout=timedelta(), given="", pause=lambda _: None, clock=lambda: 0.0)
    group = {"in_service": 0, "wanted": 4, "decision": "running"}
    assert not waiting.is_done(group)
    assert waiting.is_done({**group, "scheduler_sized": True})
    assert not waiting.is_done({**group, "scheduler_sized": True, "decision": "held"})


def test_the_time_that_looks_take_is_waited_too(cluster: Operated) -> None:
    cluster.scene.auto_scaling.groups["workers-asg"].capacity = 3
    cluster.seconds = 50
    began = cluster.scene.now
    assert run("start", cluster.target, asked(cluster, wait=True, timeout="5m"), []) == 1
    assert (cluster.scene.now - began).total_seconds() <= 300 + 2 * 50


def test_a_lost_answer_says_what_to_do_and_a_look_that_fails_is_followed_by_another(
    cluster: Operated, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.lost = {"start"}
    lost = (
        r"^the power function's answer was lost: start may have been done; look with training-cluster status base-p"
    )
    with pytest.raises(ValueError, match=lost):
        run("start", cluster.target, asked(cluster), [])
    cluster.scene.order("stop", reason="again")
    cluster.lost = {"status"}
    assert run("start", cluster.target, asked(cluster, wait=True, output="json"), []) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["action"] == "start"
    assert "looking again, since the power function's answer was lost; look with" in shown.err


def test_a_program_gets_the_function_s_answer(cluster: Operated, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("start", cluster.target, asked(cluster, output="json"), []) == 0
    (group,) = json.loads(capsys.readouterr().out)["node_groups"]
    assert (group["node_group"], group["state"], group["wanted"]) == ("workers", "running", 8)


@pytest.mark.parametrize(("answer", "status", "left"), [("n", 1, 8), ("y", 0, 0)])
def test_a_stop_of_nodes_that_run_asks_first(
    cluster: Operated, monkeypatch: pytest.MonkeyPatch, answer: str, status: int, left: int
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{answer}\n"))
    assert run("stop", started(cluster).target, asked(cluster, asks=True, wait=True), []) == status
    assert running(cluster) == left


def test_a_stop_of_nothing_asks_nothing(cluster: Operated) -> None:
    assert run("stop", cluster.target, asked(cluster, asks=True), []) == 0


def test_nodes_are_terminated_by_their_place_or_id_and_waited_for(
    cluster: Operated, capsys: pytest.CaptureFixture[str]
) -> None:
    _, second, *others = ids(started(cluster))
    assert terminate(cluster.target, asked(cluster, wait=True), ["workers/0", second]) == 0
    assert ids(cluster) == others
    assert "2 of its nodes were terminated, by an operator in request 1111: Operators/alice: no reason given" in (
        " ".join(capsys.readouterr().out.split())
    )


def test_the_refusals_are_sentences(cluster: Operated, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="the power function refuses: base-pod has no node group worker; its node"):
        run("start", cluster.target, asked(cluster), ["worker"])
    with pytest.raises(ValueError, match=r"^workers/0 is no live node of the cluster 'base-pod': no node of it is"):
        terminate(cluster.target, asked(cluster), ["workers/0"])
    with pytest.raises(ValueError, match="--reason must be at most 239 characters"):
        run("start", cluster.target, asked(cluster, reason="x" * 240), [])
    cluster.scene.fail_next("SetDesiredCapacity", "AccessDenied")
    assert run("start", cluster.target, asked(cluster), []) == 1
    assert capsys.readouterr().err.startswith("error: workers")


def test_while_the_function_is_busy_the_command_is_sent_again_for_a_minute(cluster: Operated) -> None:
    cluster.throttled = 6
    assert run("start", cluster.target, asked(cluster), []) == 0
    assert sum(cluster.scene.pauses) == 63
    cluster.throttled = 7
    with pytest.raises(ValueError, match=r"^the power function is busy with another invocation for a minute"):
        run("start", cluster.target, asked(cluster), [])
    assert [one["action"] for one in cluster.sent] == ["start"]
