"""What each part of a status asks AWS, and what it says."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from cdk_training_cluster_cli.core.output import Table
from cdk_training_cluster_cli.observe.status.alarms import Alarms
from cdk_training_cluster_cli.observe.status.groups import NodeGroups
from cdk_training_cluster_cli.observe.status.idle import IdleClock
from cdk_training_cluster_cli.observe.status.nodes import Nodes
from cdk_training_cluster_cli.observe.status.part import Moment, Part
from cdk_training_cluster_cli.observe.status.report import ask_status
from cdk_training_cluster_cli.observe.status.spend import SpendSoFar
from stubbed_cluster import NOW, stubbed

_IDS = [f"i-{number:017x}" for number in range(120)]


def group(**more: Any) -> dict[str, Any]:
    return {
        "node_group": "workers",
        "state": "running",
        "in_service": 4,
        "wanted": 4,
        "reason": "workers has all of its 4 nodes",
        **more,
    }


def reservation(**more: Any) -> dict[str, Any]:
    block = {"id": "cr-1", "state": "active", "instances": 4, "used": 4, "starts": None, "ends": None}
    return {"reservations": [{**block, **more}]}


def said(part: Part[Any], answer: Any, notes: Mapping[str, str] | None = None, *, all: bool = False) -> list[Any]:
    moment = Moment(now=NOW, notes=notes or {}, all=all)
    return [item.rows if isinstance(item, Table) else item for item in part.lines(answer, moment)]


_GROUPS: dict[str, tuple[Mapping[str, Any], list[Any]]] = {
    "all is well": (group(), [(("workers", "4 of 4", "running", "has all of its 4 nodes"),)]),
    "nodes are missing": (
        group(in_service=1, reason="workers: 1 of 4 nodes are running: EC2 has no capacity"),
        [(("workers", "1 of 4", "running", "1 of 4 nodes are running: EC2 has no capacity"),)],
    ),
    "it was stopped": (
        group(state="stopped", ordered_at="2026-11-21T20:00:00Z", by="ada", why="the weekend"),
        ["workers: stopped by ada since 2026-11-21T20:00:00Z: the weekend."],
    ),
    "its block ends": (
        group(**reservation(ends="2026-11-22T15:05:00Z")),
        ["workers: cr-1 is active, 4 of 4 instances used, ends in 3 h 5 min (2026-11-22T15:05:00Z)"],
    ),
    "its block has not started": (
        group(**reservation(state="scheduled", used=None, starts="2026-11-23T12:00:00Z")),
        ["workers: cr-1 is scheduled, with 4 instances, starts in 1 d 0 h (2026-11-23T12:00:00Z)"],
    ),
    "it has a schedule": (
        group(
            schedule={
                "words": "weekdays 08:00-20:00 Europe/Berlin",
                "now": "it runs: a window is open",
                "then": "it is stopped",
                "next_edge": "2026-11-23T19:00:00Z",
            }
        ),
        [
            "workers: schedule weekdays 08:00-20:00 Europe/Berlin: it runs: a window is open; it is stopped at "
            "2026-11-23T19:00:00Z"
        ],
    ),
    "its schedule does nothing at a time": (
        group(schedule={"words": "daily 08:00-20:00 UTC", "now": "it runs", "then": "it stays", "next_edge": None}),
        ["workers: schedule daily 08:00-20:00 UTC: it runs; it stays"],
    ),
    "its block is over": (
        group(**reservation(state="expired", used=0, ends="2026-11-22T11:00:00Z")),
        ["workers: cr-1 is expired, 0 of 4 instances used, ended 2026-11-22T11:00:00Z"],
    ),
}


@pytest.mark.parametrize(("found", "expected"), _GROUPS.values(), ids=_GROUPS)
def test_a_node_group_says_how_many_nodes_it_has_and_why(found: Mapping[str, Any], expected: list[Any]) -> None:
    assert said(NodeGroups(), {"node_groups": [found]})[-len(expected) :] == expected


def test_what_the_power_function_could_not_read_is_unknown() -> None:
    answer = {"node_groups": [], "failures": ["workers: its nodes could not be read"]}
    assert said(NodeGroups(), answer)[-1] == "unknown: workers: its nodes could not be read"


def instance(id: str, **more: Any) -> dict[str, Any]:
    return {
        "InstanceId": id,
        "InstanceType": "p5.48xlarge",
        "State": {"Name": "running"},
        "Placement": {"AvailabilityZone": "eu-west-1a"},
        "LaunchTime": NOW - timedelta(hours=3),
        "Tags": [{"Key": "cdk-training-cluster:node-group", "Value": "workers"}],
        **more,
    }


_ASKED = {
    "Filters": [
        {"Name": "tag:cdk-training-cluster:cluster", "Values": ["pod"]},
        {"Name": "instance.group-id", "Values": ["sg-0123456789abcdef0"]},
        {"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped", "shutting-down"]},
    ]
}


def nodes(*instances: dict[str, Any], statuses: tuple[dict[str, Any], ...] = ()) -> Any:
    running = [each["InstanceId"] for each in instances if each["State"]["Name"] == "running"]
    batches = [running[start : start + 100] for start in range(0, len(running), 100)]
    health = [
        ("DescribeInstanceStatus", {"InstanceIds": ids}, {"InstanceStatuses": list(statuses)}) for ids in batches
    ]
    page = {"Reservations": [{"Instances": list(instances)}]}
    with stubbed({"ec2": [("DescribeInstances", _ASKED, page), *health]}) as cluster:
        return Nodes().ask(cluster)


@pytest.mark.parametrize(
    ("more", "bought"),
    [
        ({}, "on-demand"),
        ({"InstanceLifecycle": "spot"}, "spot"),
        ({"CapacityReservationId": "cr-1"}, "reserved"),
        ({"CapacityReservationId": "cr-1", "InstanceLifecycle": "capacity-block"}, "block"),
    ],
)
def test_a_node_says_how_it_is_bought(more: Mapping[str, Any], bought: str) -> None:
    found = nodes(instance(_IDS[0], **more))
    row = ("0", _IDS[0], "running", "11-22 09:00", bought, "idle 1h5m")
    assert said(Nodes(), found, {_IDS[0]: "idle 1h5m"}) == [(row,)]


@pytest.mark.parametrize(
    ("status", "condition"),
    [
        ({"InstanceStatus": {"Status": "ok"}, "SystemStatus": {"Status": "ok"}}, "running"),
        ({"InstanceStatus": {"Status": "impaired"}, "SystemStatus": {"Status": "ok"}}, "running, impaired"),
        (
            {
                "InstanceStatus": {"Status": "ok"},
                "Events": [
                    {"Code": "instance-reboot", "Description": "[Completed] reboot", "NotBefore": NOW},
                    {"Code": "instance-retirement", "Description": "hardware", "NotBefore": NOW},
                ],
            },
            "running, instance-retirement at 2026-11-22T12:00:00Z",
        ),
    ],
)
def test_a_node_says_what_the_checks_of_ec2_say(status: dict[str, Any], condition: str) -> None:
    (found,) = nodes(instance(_IDS[0]), statuses=({"InstanceId": _IDS[0], **status},))
    assert found.condition == condition


def test_types_are_a_column_where_there_are_several() -> None:
    found = nodes(instance(_IDS[0]), instance(_IDS[1], InstanceType="p5en.48xlarge"))
    assert [row[2] for row in said(Nodes(), found)[0]] == ["p5.48xlarge", "p5en.48xlarge"]


def test_many_nodes_are_counted_and_those_in_trouble_come_first() -> None:
    impaired = {"InstanceId": _IDS[70], "SystemStatus": {"Status": "impaired"}}
    found = nodes(*map(instance, _IDS), statuses=(impaired,))
    table, more = said(Nodes(), found)
    assert (len(table), table[0][:2]) == (16, ("70", _IDS[70]))
    assert more == "104 more nodes of workers: --all shows every node."
    assert len(said(Nodes(), found, all=True)[0]) == 120


def idle_node(id: str, verdict: str, reason: str = "", since: str | None = None) -> dict[str, Any]:
    return {
        "instance_id": id,
        "node_group": "workers",
        "verdict": verdict,
        "reason": reason,
        "idle_since": since,
    }


def test_the_idle_clock_is_on_each_node_and_only_what_a_word_does_not_say_is_a_sentence() -> None:
    why = "is idle since 10:55, and is stopped at 12:25"
    answer = {
        "verdicts": {"warn": 2, "busy": 1},
        "dry_run": True,
        "breaker": None,
        "nodes": [
            idle_node("i-1", "warn", f"i-1 of workers {why}", "2026-11-22T10:55:00Z"),
            idle_node("i-2", "warn", f"i-2 of workers {why}", "2026-11-22T10:55:00Z"),
            idle_node("i-3", "busy", "works: GPUs"),
        ],
    }
    assert IdleClock().notes(answer, NOW) == {"i-1": "idle 1h5m", "i-2": "idle 1h5m", "i-3": "busy"}
    assert said(IdleClock(), answer) == [
        "Nodes: 2 idle, 1 busy.",
        "It only reports what it would stop (dry run).",
        f"workers, i-1 and 1 more: {why}",
    ]


def test_spend_is_said_with_the_budget_and_what_it_is_about_to_do() -> None:
    answer = {
        "usd_per_hour": 220.16,
        "month": "2026-11",
        "month_to_date_usd": 9000.0,
        "forecast_usd": 50000.0,
        "budget_usd": 10000.0,
        "acts": {"stops_at": "2026-11-22T13:00:00Z", "stops": ["workers"]},
        "unknown_prices": ["spot p5.48xlarge eu-west-1a"],
    }
    assert said(SpendSoFar(), answer) == [
        "220.16 USD an hour now; 9,000 USD in 2026-11 so far, 90% of the budget of 10,000 USD; 50,000 USD at the "
        "month's end if it goes on like this.",
        "The budget stops workers at 2026-11-22T13:00:00Z.",
        "Not counted, since their prices are not known: spot p5.48xlarge eu-west-1a.",
    ]


def alarm(name: str, description: str) -> dict[str, Any]:
    since = NOW - timedelta(minutes=20)
    return {"AlarmName": name, "AlarmDescription": description, "StateTransitionedTimestamp": since}


def test_alarms_are_those_whose_descriptions_name_the_cluster_here_and_where_charges_are() -> None:
    charges = (
        "Estimated charges of this account have reached 80 USD, 80 percent of the budget of 100 USD for pod. They"
    )
    here = [alarm("a", "pod: nodes are missing. Look in the log."), alarm("b", "pod-2: no."), alarm("c", "else")]
    asked = {"StateValue": "ALARM"}
    replies = {
        "cloudwatch": [("DescribeAlarms", asked, {"MetricAlarms": here})],
        "cloudwatch us-east-1": [("DescribeAlarms", asked, {"MetricAlarms": [alarm("d", charges)]})],
    }
    with stubbed(replies) as cluster:
        found = Alarms().ask(cluster)
    assert said(Alarms(), found) == [
        "ALARM for 20 min: nodes are missing (a)",
        f"ALARM for 20 min: {charges.removesuffix('. They')} (d)",
    ]
    assert said(Alarms(), []) == ["None is in ALARM."]


def test_a_part_that_is_refused_is_unknown_and_one_that_is_not_there_is_nothing() -> None:
    with stubbed({}, power=ValueError("the power function failed: no")) as cluster:
        status = ask_status(cluster, [NodeGroups(), IdleClock()])
    assert list(status.sections()) == [("Node groups", ["unknown: the power function failed: no"])]
    values = status.values()
    assert (values["node_groups"], values["idle"], status.has_failed) == (None, None, False)
