"""What a run reports to the alarms and the log."""

import json
from datetime import timedelta
from typing import Any

import pytest

from cluster_common.actions import Action
from cluster_common.errors import PartialFailureError
from cluster_contract.idle import Policy, Signal, SignalKind
from cluster_idle.executor import Outcome
from cluster_idle.instances import Instance, Owner
from cluster_idle.reports import summarize
from cluster_idle.verdicts import Decisions, IdleFinding, IdleVerdict
from idle_function_settings import idle_settings
from idle_scene import START, IdleScene

COUNTS = {
    "BusyNodes",
    "IdleNodes",
    "IdleStoppedNodes",
    "IdleWarnedNodes",
    "IdleDeferredNodes",
    "IdleUnknownNodes",
    "IdleStuckNodes",
    "IdleLingeringNodes",
    "IdleReservedNodes",
    "IdleEvaluations",
    "IdleBreaker",
    "IdleUnclearTags",
    "IdleFailedNotifications",
}
DOLLARS = {"IdleDollars", "IdleDollarsSaved", "IdleDollarsReserved"}


def records(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def metrics(capsys: pytest.CaptureFixture[str]) -> dict[str, float]:
    """Return the values of the last run that are not zero."""
    found: dict[str, float] = {}
    for record in records(capsys):
        if "_aws" in record:
            (directive,) = record.pop("_aws")["CloudWatchMetrics"]
            assert (directive["Namespace"], directive["Dimensions"]) == (
                "CdkTrainingCluster/Functions",
                [["Cluster"]],
            )
            assert record.pop("Cluster") == "base-pod"
            values = {name: value for name, [value] in record.items()}
            found = found | values if values.keys() == DOLLARS else values
    return {name: value for name, value in found.items() if value}


def test_every_metric_is_measured_in_every_run(capsys: pytest.CaptureFixture[str]) -> None:
    IdleScene().run()

    found = [record for record in records(capsys) if "_aws" in record]
    units = {
        metric["Name"]: metric["Unit"]
        for record in found
        for directive in record["_aws"]["CloudWatchMetrics"]
        for metric in directive["Metrics"]
    }
    assert units == dict.fromkeys(COUNTS, "Count") | dict.fromkeys(DOLLARS, "None")
    assert {name for record in found for name in record} == {*COUNTS, *DOLLARS, "Cluster", "_aws"}


def test_nodes_are_counted_by_what_becomes_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    scene = IdleScene(max_stops=2)
    for _ in range(3):
        scene.add()
    scene.add(load=90)
    scene.add(load=None)
    scene.add(raw={"Operator": {"Managed": True, "Principal": "eks.amazonaws.com"}})
    scene.add(raw={"RootDeviceType": "instance-store"})
    scene.add(raw={"CapacityReservationId": "cr-1"})
    scene.add(tags={"cdk-training-cluster:keep": "true"})
    scene.add(age=timedelta(minutes=10))

    scene.tick()
    assert metrics(capsys) == {
        # Also those that are kept, another service's, or reserved.
        "BusyNodes": 1,
        "IdleNodes": 7,
        "IdleWarnedNodes": 3,
        "IdleUnknownNodes": 1,
        "IdleStuckNodes": 2,
        "IdleReservedNodes": 1,
        "IdleDollars": 385.28,
        "IdleDollarsReserved": 55.04,
        "IdleEvaluations": 1,
    }

    scene.ticks(30)
    found = metrics(capsys)
    assert (found["IdleStoppedNodes"], found["IdleDeferredNodes"]) == (2, 1)
    assert "IdleWarnedNodes" not in found


def test_idle_ones_that_wait_for_those_they_work_with_are_not_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    scene = IdleScene()
    *_, last = scene.add_group(count=4)
    last.points.clear()
    last.load = None

    scene.tick()

    assert metrics(capsys) == {
        "IdleNodes": 3,
        "IdleUnknownNodes": 1,
        "IdleLingeringNodes": 3,
        "IdleEvaluations": 1,
        "IdleDollars": 165.12,
    }


_HOST = (Signal(kind=SignalKind.CPU, below=0.5), Signal(kind=SignalKind.HEARTBEAT), Signal(kind=SignalKind.SESSION))


@pytest.mark.parametrize(
    ("shown", "signal", "lingering"),
    [
        # A process that spins, or a session that was forgotten, keeps the whole gang.
        ({"cpu_usage_active": 0.6 / 1.92}, "cpu", 4),
        ({"session": 1}, "session", 4),
        # A job, though it be one that only says so, does not.
        ({"JobHeartbeat": 1, "session": 1}, "heartbeat", 0),
        ({"cpu_usage_active": 0.6 / 1.92, "load": 90}, None, 0),
    ],
)
def test_nodes_that_only_their_host_keeps_are_counted_and_named(
    shown: dict[str, float],
    signal: str | None,
    lingering: int,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = IdleScene(policy=Policy(signals=_HOST))
    first, *_ = nodes = scene.add_group()
    for node in nodes:
        node.others["cpu_usage_active"] = dict.fromkeys(node.points, 0.1)
    first.others |= {metric: dict.fromkeys(first.points, value) for metric, value in shown.items()}
    first.points = dict.fromkeys(first.points, shown.get("load", 0.0))
    scene.ssm.targets = [first.id] if "session" in shown else []

    scene.run()

    assert metrics(capsys).get("IdleLingeringNodes", 0) == lingering
    told = [vars(record) for record in caplog.records]
    assert {(one["verdict"], one["lingering"], one["usd_per_hour"]) for one in told} == {
        ("busy", bool(lingering), 55.04)
    }
    assert [one["signal"] for one in told] == [signal, None, None, None]


def test_a_dry_run_saves_and_stops_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    scene = IdleScene(policy=Policy(dry_run=True))
    scene.add()

    scene.ticks(60)

    assert metrics(capsys) == {"IdleNodes": 1, "IdleEvaluations": 1, "IdleDollars": 55.04}


@pytest.mark.parametrize(
    ("instance_type", "prices", "raw", "dollars"),
    [
        ("p5.48xlarge", {}, {}, 110.08),
        ("p5.48xlarge", {"p5.48xlarge": 40}, {}, 80),
        ("p9.48xlarge", {}, {}, None),
        ("p9.48xlarge", {"p9.48xlarge": 0.105}, {}, 0.21),
        ("p5.48xlarge", {}, {"InstanceLifecycle": "spot", "SpotInstanceRequestId": "sir-1"}, None),
    ],
)
def test_what_is_saved_is_what_is_known_to_be(
    instance_type: str,
    prices: dict[str, float],
    raw: dict[str, Any],
    dollars: float | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    scene = IdleScene(prices=prices)
    scene.ec2.spot_requests["sir-1"] = {"Type": "persistent"}
    for _ in range(2):
        scene.add(instance_type=instance_type, raw=raw)

    scene.ticks(35)

    found = metrics(capsys)
    assert (found["IdleStoppedNodes"], found.get("IdleDollarsSaved")) == (2, dollars)
    scene.tick()
    assert metrics(capsys) == {"IdleEvaluations": 1}


def test_a_topic_that_takes_no_message_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    scene = IdleScene()
    scene.add()
    scene.sns.fails = True

    with pytest.raises(PartialFailureError, match="the notification could not be published"):
        scene.tick()

    assert metrics(capsys)["IdleFailedNotifications"] == 1


@pytest.mark.parametrize(("confirmed", "failed"), [("0", [0, 1, 0]), ("1", [0, 0, 0]), (None, [0, 0, 0])])
def test_a_topic_without_a_confirmed_subscription_is_counted_and_stops_go_on(
    confirmed: str | None, failed: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    scene = IdleScene()
    node, _ = scene.add(90.0), scene.tick()
    counted = [metrics(capsys).get("IdleFailedNotifications", 0)]
    scene.sns.confirmed = confirmed
    node.load, node.points = 0.0, dict.fromkeys(node.points, 0.0)
    for _ in range(2):
        scene.tick()
        counted.append(metrics(capsys).get("IdleFailedNotifications", 0))

    asked = [call.action for call in scene.sns.calls]
    assert (counted, asked) == (failed, ["sns:Publish", "sns:GetTopicAttributes"])
    scene.ticks(30)
    assert node.state in ("stopping", "stopped")


@pytest.mark.parametrize(
    ("release", "works", "saved", "reserved"),
    [
        (False, False, None, 220.16),
        (True, False, 220.16, None),
        # Those of a group that works cost the same.
        (False, True, None, 165.12),
        (True, True, None, None),
    ],
)
def test_what_is_reserved_saves_nothing_unless_it_is_released(
    release: bool, works: bool, saved: float | None, reserved: float | None, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = IdleScene()
    *_, last = scene.add_group("held", release=release, raw={"CapacityReservationId": "cr-1"})
    if works:
        last.load, last.points = 90, dict.fromkeys(last.points, 90.0)

    scene.ticks(35)

    found = metrics(capsys)
    assert (found.get("IdleDollarsSaved"), found.get("IdleDollarsReserved")) == (saved, reserved)
    assert len(scene.lambda_.orders) == (release and not works)


def test_the_circuit_breaker_is_measured_and_logged(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    scene = IdleScene()
    nodes = [scene.add(load=80) for _ in range(2)]
    scene.tick()
    for node in nodes:
        node.load = None
    scene.tick()
    capsys.readouterr()

    scene.tick()

    assert metrics(capsys) == {"IdleBreaker": 1, "IdleUnknownNodes": 2, "IdleEvaluations": 1}
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == [
        "2 of 2 nodes had complete data 15 minutes ago and have none now, more than 50%: the function warns of no "
        "node and stops none"
    ]


@pytest.mark.parametrize(
    ("service", "operation"),
    [
        ("cloudwatch", "GetMetricData"),
        ("auto_scaling", "DescribeAutoScalingGroups"),
        ("ec2", "DescribeSpotFleetRequests"),
        ("ec2", "DescribeSpotInstanceRequests"),
    ],
)
def test_a_run_that_could_not_read_everything_is_no_evaluation(
    service: str, operation: str, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = IdleScene()
    scene.add(raw={"InstanceLifecycle": "spot", "SpotInstanceRequestId": "sir-1"})
    scene.ec2.spot_requests["sir-1"] = {"Type": "persistent"}
    scene.add_group()
    scene.add_fleet()
    getattr(scene, service).fail_next(operation, "AccessDenied")

    with pytest.raises(PartialFailureError):
        scene.tick()

    found = metrics(capsys)
    assert "IdleEvaluations" not in found
    assert found["IdleUnknownNodes"] >= 1


def test_of_what_a_run_did_not_see_it_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    scene = IdleScene()
    scene.add()
    scene.ec2.fail_next("DescribeInstances", "RequestLimitExceeded")

    with pytest.raises(PartialFailureError, match="its instances could not be read: nothing is stopped"):
        scene.tick()

    (record,) = [record for record in records(capsys) if "_aws" in record]
    assert {name for name in record if name.startswith("Idle")} == {"IdleEvaluations"}
    assert record["IdleEvaluations"] == [0]


def test_a_question_measures_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    scene = IdleScene()
    scene.add()

    scene.run(Action.STATUS)

    assert not [record for record in records(capsys) if "_aws" in record]


def test_each_instance_is_one_record_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    scene = IdleScene()
    idle, busy = scene.add(), scene.add(load=90)
    scene.add_group(count=2)
    scene.ticks(30)
    caplog.clear()

    scene.tick()

    # Beside them there is one of each stop.
    log = [vars(record) for record in caplog.records if hasattr(record, "instance_id")]
    assert [(one["instance_id"], one["verdict"], one["stopped"]) for one in log] == [
        (idle.id, "stop", True),
        (busy.id, "busy", False),
        ("i-00000000000000003", "stop", True),
        ("i-00000000000000004", "stop", True),
    ]
    assert log[1]["message"] == f"{busy.id} works: its utilization was 90 % at 08:35 UTC"
    assert {key: log[2][key] for key in ("instance_type", "node_group", "owner", "idle_since")} == {
        "instance_type": "p5.48xlarge",
        "node_group": "workers",
        "owner": "workers-asg",
        "idle_since": "2026-11-02T07:00:00Z",
    }
    assert log[1]["idle_since"] is None


def test_the_record_of_what_changed_meanwhile_says_so(caplog: pytest.LogCaptureFixture) -> None:
    scene = IdleScene()
    node = scene.add()
    scene.ticks(30)
    scene.pass_time(timedelta(minutes=5))
    caplog.clear()
    original = scene.cloudwatch.get_metric_data

    def keep_meanwhile(**parameters: Any) -> dict[str, Any]:
        node.tags["cdk-training-cluster:keep"] = "true"
        return original(**parameters)

    scene.cloudwatch.get_metric_data = keep_meanwhile  # type: ignore[method-assign]  # an operator keeps it right then

    scene.run()

    (record,) = caplog.records
    assert record.message.endswith("; it changed while the function looked: the next run decides")
    assert (vars(record)["stopped"], node.state) == (False, "running")


def test_the_summary_has_counts_and_as_many_nodes_as_people_read() -> None:
    owner = Owner.itself("i-1")
    instance = Instance(id="i-1", instance_type="p5.48xlarge", launched=START, owner=owner, node_group="dev")
    kept = IdleFinding(instance=instance, verdict=IdleVerdict.KEEP, reason="i-1 of dev has the tag", unit="dev")
    settings = idle_settings(policy=Policy(dry_run=True))

    summary = summarize(settings, "status", Decisions(findings=(kept,) * 2003, breaker="dark"), Outcome())

    nodes: Any = summary.pop("nodes")
    assert summary == {
        "cluster": "base-pod",
        "action": "status",
        "dry_run": True,
        "instances": 2003,
        "verdicts": {"keep": 2003},
        "breaker": "dark",
        "nodes_left_out": 3,
    }
    assert len(nodes) == 2000
    assert nodes[0] == {
        "instance_id": "i-1",
        "node_group": "dev",
        "instance_type": "p5.48xlarge",
        "verdict": "keep",
        "reason": "i-1 of dev has the tag",
        "idle_since": None,
        "stopped": False,
    }
