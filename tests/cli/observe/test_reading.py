"""What events, logs and why ask AWS, and what they make of the answers."""

import json
import sys
from base64 import b64encode
from collections.abc import Mapping
from datetime import datetime, timedelta
from subprocess import run
from typing import Any, cast

import pytest

from cdk_training_cluster_cli.observe.console import console_output, failed_steps
from cdk_training_cluster_cli.observe.history import activities, fleet_events, read_history
from cdk_training_cluster_cli.observe.records import ERRORS, Record, read_records
from cdk_training_cluster_cli.observe.why import find, short_groups
from stubbed_cluster import NOW, Reply, stubbed

_DAY = timedelta(days=1)
_START = int((NOW - _DAY).timestamp() * 1000)
_NODE = "i-0123456789abcdef0"
_GROUPS = {"Filters": [{"Name": "tag:cdk-training-cluster:cluster", "Values": ["pod"]}]}
_CONSOLE = "[    1.0] boot\ncdk-training-cluster: bootstrap failed at mount: no route\nlogin:"


def logged(kind: str, pattern: str, *records: dict[str, Any] | str) -> Reply:
    asked = {"logGroupName": f"/pod/{kind}", "startTime": _START}
    texts = [one if isinstance(one, str) else json.dumps(one) for one in records]
    stamp = int(NOW.timestamp() * 1000)
    events = [{"timestamp": stamp - 1000 * number, "message": text} for number, text in enumerate(texts)]
    return "FilterLogEvents", asked | ({"filterPattern": pattern} if pattern else {}), {"events": events}


def activity(description: str, status: str, ago: timedelta, message: str = "") -> dict[str, Any]:
    return {
        "ActivityId": "1",
        "AutoScalingGroupName": "asg",
        "Description": f"{description}.",
        "Cause": "At 2026-11-22T09:00:00Z a user request changed the desired capacity.",
        "StartTime": NOW - ago,
        "StatusCode": status,
        **({"StatusMessage": message} if message else {}),
    }


def scaling(*found: dict[str, Any]) -> list[Reply]:
    tag = {"Key": "cdk-training-cluster:node-group", "Value": "workers"}
    group = {
        "AutoScalingGroupName": "asg",
        "MinSize": 0,
        "MaxSize": 4,
        "DesiredCapacity": 4,
        "DefaultCooldown": 300,
        "AvailabilityZones": ["eu-west-1a"],
        "HealthCheckType": "EC2",
        "CreatedTime": NOW,
        "Tags": [tag],
    }
    return [
        ("DescribeAutoScalingGroups", _GROUPS, {"AutoScalingGroups": [group]}),
        ("DescribeScalingActivities", {"AutoScalingGroupName": "asg"}, {"Activities": list(found)}),
    ]


_NO_FLEETS: Reply = ("DescribeSpotFleetRequests", {}, {"SpotFleetRequestConfigs": []})
_STOP = {
    "level": "INFO",
    "message": "workers should have 0 nodes",
    "cluster_event": "command",
    "action": "stop",
    "node_group": "workers",
    "by": "an operator",
    "why": "ada: the weekend",
}
_RECORDS = (
    "START RequestId: 1 Version: $LATEST\n",
    {"_aws": {}, "MissingNodes": [0]},
    {"level": "ERROR", "message": "could not be stopped", "node_group": "workers"},
    "2026 Task timed out after 50.00 seconds",
    _STOP,
)


def test_records_are_those_of_the_function_without_lambdas_and_metrics() -> None:
    with stubbed({"logs": [logged("power", "", *_RECORDS)]}) as cluster:
        found = list(read_records(cluster, "power", _DAY))
    assert [(one.level, one.message, one.is_error) for one in found] == [
        ("ERROR", "could not be stopped", True),
        ("", "2026 Task timed out after 50.00 seconds", True),
        ("INFO", "workers should have 0 nodes", False),
    ]
    assert found[0].fields == {"node_group": "workers"}


def test_a_spoiled_marker_is_no_event() -> None:
    assert Record(time=NOW, kind="power", level="INFO", message="", fields={"cluster_event": "new"}).event is None


def test_errors_are_searched_for_by_cloudwatch() -> None:
    with stubbed({"logs": [logged("power", ERRORS)]}) as cluster:
        assert list(read_records(cluster, "power", _DAY, ERRORS)) == []


def stack_event(name: str, kind: str, status: str, ago: timedelta = timedelta(0), reason: str = "") -> dict[str, Any]:
    return {
        "StackId": "arn",
        "EventId": "1",
        "StackName": "pod",
        "LogicalResourceId": name,
        "ResourceType": kind,
        "ResourceStatus": status,
        "Timestamp": NOW - timedelta(minutes=5) - ago,
        **({"ResourceStatusReason": reason} if reason else {}),
    }


def test_what_happened_is_told_in_order_with_who_did_it() -> None:
    message = {"level": "INFO", "message": "pod: nodes are missing", "cluster_event": "message"}
    resource = {
        "StackName": "pod",
        "LogicalResourceId": "Function",
        "ResourceType": "AWS::Lambda::Function",
        "Timestamp": NOW,
        "ResourceStatus": "CREATE_COMPLETE",
    }
    stack, fleet = "AWS::CloudFormation::Stack", "AWS::AutoScaling::AutoScalingGroup"
    events = [
        stack_event("Fleet", fleet, "UPDATE_FAILED", reason="no subnet"),
        stack_event("Other", fleet, "UPDATE_COMPLETE"),
        stack_event("pod", stack, "UPDATE_IN_PROGRESS", timedelta(minutes=1), "User Initiated"),
        stack_event("pod", stack, "CREATE_COMPLETE", timedelta(days=2)),
    ]
    replies: dict[str, list[Reply]] = {
        "logs": [logged("power", '"cluster_event"', _STOP, message)],
        "autoscaling": scaling(activity("Launching", "Successful", timedelta(hours=3))),
        "ec2": [_NO_FLEETS],
        "cloudformation": [
            ("DescribeStackResources", {"PhysicalResourceId": "pod-power"}, {"StackResources": [resource]}),
            ("DescribeStackEvents", {"StackName": "pod"}, {"StackEvents": events}),
        ],
    }
    with stubbed(replies, kinds=("power",)) as cluster:
        history = read_history(cluster, _DAY)
    assert [(one.source, one.what, one.who, one.failed) for one in history.happenings] == [
        ("Auto Scaling", "successful: Launching", "a user request changed the desired capacity", False),
        ("CloudFormation", "pod is UPDATE_IN_PROGRESS: User Initiated", "", False),
        ("CloudFormation", "Fleet is UPDATE_FAILED: no subnet", "", True),
        ("the power function", "sent a message: pod: nodes are missing", "", False),
        (
            "the power function",
            "stop: workers should have 0 nodes",
            "by an operator: ada: the weekend",
            False,
        ),
    ]
    assert history.unknown == {}


def fleets(*records: dict[str, Any]) -> list[Reply]:
    tags = [
        {"Key": "cdk-training-cluster:cluster", "Value": "pod"},
        {"Key": "cdk-training-cluster:node-group", "Value": "extras"},
    ]
    config = {"IamFleetRole": "role", "TargetCapacity": 4}
    of_others = {"SpotFleetRequestId": "sfr-2", "SpotFleetRequestConfig": config, "Tags": []}
    own = {**of_others, "SpotFleetRequestId": "sfr-1", "Tags": tags}
    asked = {"SpotFleetRequestId": "sfr-1", "StartTime": NOW - _DAY}
    history: list[Reply] = [
        ("DescribeSpotFleetRequestHistory", asked | more, {"HistoryRecords": [record], **token})
        for record, more, token in zip(records, ({}, {"NextToken": "2"}), ({"NextToken": "2"}, {}), strict=False)
    ]
    return [("DescribeSpotFleetRequests", {}, {"SpotFleetRequestConfigs": [of_others, own]}), *history]


def fleet_event(kind: str, **what: str) -> dict[str, Any]:
    return {"EventType": kind, "Timestamp": NOW, "EventInformation": what}


def test_spot_fleets_say_what_they_did_and_what_they_could_not() -> None:
    launched = fleet_event("instanceChange", EventSubType="launched", InstanceId=_NODE)
    refused = fleet_event("error", EventSubType="spotInstanceCountLimitExceeded", EventDescription="at the limit")
    with stubbed({"ec2": fleets(launched, refused)}) as cluster:
        found = list(fleet_events(cluster, _DAY))
    assert [(one.what, one.node_group, one.failed) for one in found] == [
        (f"instanceChange: launched, {_NODE}", "extras", False),
        ("error: spotInstanceCountLimitExceeded, at the limit", "extras", True),
    ]


def test_activities_end_where_they_are_too_old_and_say_why_they_failed() -> None:
    found = [
        activity("Launching", "Failed", timedelta(hours=1), "We currently do not have sufficient capacity"),
        activity("Launching. Status Reason: no capacity", "Failed", timedelta(hours=1), "no capacity."),
        activity("Launching", "Successful", timedelta(days=3)),
        activity("Launching", "Successful", timedelta(hours=1)),
    ]
    with stubbed({"autoscaling": scaling(*found)}) as cluster:
        told_of = [(one.what, one.failed) for one in activities(cluster, _DAY)]
    assert told_of == [
        ("failed: Launching: We currently do not have sufficient capacity", True),
        ("failed: Launching. Status Reason: no capacity", True),
    ]


def test_what_cannot_be_read_is_unknown_and_the_rest_is_told() -> None:
    replies: dict[str, list[Reply]] = {
        "logs": [logged("power", '"cluster_event"', _STOP)],
        "autoscaling": [("DescribeAutoScalingGroups", _GROUPS, "AccessDenied")],
        "ec2": [_NO_FLEETS],
        "cloudformation": [("DescribeStackResources", {"PhysicalResourceId": "pod-power"}, "ValidationError")],
    }
    with stubbed(replies, kinds=("power",)) as cluster:
        history = read_history(cluster, _DAY)
    assert (len(history.happenings), list(history.unknown)) == (1, ["Auto Scaling", "CloudFormation"])


def console(*answers: Mapping[str, Any] | str) -> list[Reply]:
    latest: list[dict[str, Any]] = [{"InstanceId": _NODE, "Latest": True}, {"InstanceId": _NODE}]
    return [("GetConsoleOutput", asked, answer) for asked, answer in zip(latest, answers, strict=False)]


def test_the_console_of_a_type_without_the_nitro_system_is_the_one_of_its_last_start() -> None:
    with stubbed({"ec2": console("UnsupportedOperation", {"Output": "Ym9vdA=="})}) as cluster:
        assert console_output(cluster, _NODE) == "boot"
    assert list(failed_steps(_CONSOLE)) == ["bootstrap failed at mount: no route"]


def test_a_node_that_ec2_has_forgotten_is_one_sentence() -> None:
    with (
        stubbed({"ec2": console("InvalidInstanceID.NotFound")}) as cluster,
        pytest.raises(ValueError, match=f"^EC2 has no instance {_NODE} in eu-west-1, or no longer: it forgets a"),
    ):
        console_output(cluster, _NODE)


def encoded(text: str) -> dict[str, str]:
    return {"Output": b64encode(text.encode()).decode()}


def told(findings: Any) -> list[tuple[str, str, datetime | None]]:
    return [(one.source, one.text, one.time) for one in findings]


def group(name: str = "workers", **more: Any) -> dict[str, Any]:
    return {
        "node_group": name,
        "auto_scaling_group": "asg",
        "state": "running",
        "reason": "workers: 1 of 4 nodes are running",
        **more,
    }


def running(**more: Any) -> Reply:
    raw = {
        "InstanceId": _NODE,
        "InstanceType": "p5.48xlarge",
        "State": {"Name": "running"},
        "Placement": {"AvailabilityZone": "eu-west-1a"},
        "LaunchTime": NOW - timedelta(hours=3),
        "Tags": [{"Key": "cdk-training-cluster:node-group", "Value": "workers"}],
        **more,
    }
    states = ["pending", "running", "stopping", "stopped", "shutting-down"]
    filters = [
        *_GROUPS["Filters"],
        {"Name": "instance.group-id", "Values": ["sg-0123456789abcdef0"]},
        {"Name": "instance-state-name", "Values": states},
    ]
    return "DescribeInstances", {"Filters": filters}, {"Reservations": [{"Instances": [raw]}]}


_HEALTH: Reply = ("DescribeInstanceStatus", {"InstanceIds": [_NODE]}, {"InstanceStatuses": []})


def test_a_group_says_what_the_power_function_its_consoles_auto_scaling_and_the_log_say() -> None:
    capacity = "We currently do not have sufficient p5.48xlarge capacity"
    tried = [activity("Launching", "Failed", timedelta(minutes=minutes), capacity) for minutes in (1, 2, 3)]
    replies: dict[str, list[Reply]] = {
        "ec2": [running(), _HEALTH, *console(encoded(_CONSOLE))],
        "autoscaling": scaling(*tried, activity("Terminating", "Successful", timedelta(minutes=4))),
        "logs": [logged("power", '"workers"', _STOP, {**_STOP, "node_group": "workers-2"})],
    }
    stopped = group(state="stopped", by="an operator", ordered_at="2026-11-22T09:00:00Z", why="ada: the weekend")
    with stubbed(replies, kinds=("power",), power={"node_groups": [stopped, group("workers-2")]}) as cluster:
        findings, unknown = find(cluster, "workers", _DAY)
    cause = "a user request changed the desired capacity"
    assert told(findings) == [
        ("power", "workers: 1 of 4 nodes are running", None),
        ("power", "workers is stopped by an operator since 2026-11-22T09:00:00Z: ada: the weekend", None),
        (f"console of {_NODE}", "bootstrap failed at mount: no route", None),
        ("Auto Scaling", f"failed: Launching: {capacity} ({cause})", NOW - timedelta(minutes=1)),
        ("power", "stop: workers should have 0 nodes (by an operator: ada: the weekend)", NOW),
    ]
    assert unknown == {}


class _Denied:
    def __getattr__(self, name: str) -> None:
        raise ValueError(f"AWS denies {name}")


def test_a_group_whose_power_function_does_not_answer_is_told_of_by_the_rest() -> None:
    replies: dict[str, list[Reply]] = {
        "autoscaling": scaling(activity("Launching", "Failed", timedelta(minutes=1))),
        "logs": [logged("power", '"workers"', _STOP)],
    }
    with stubbed(replies, kinds=("power",), power=ValueError("AWS denies Invoke")) as cluster:
        cast("dict[str, Any]", cluster.clients)["ec2 eu-west-1"] = _Denied()
        findings, unknown = find(cluster, "workers", _DAY)
    assert [one.source for one in findings] == ["Auto Scaling", "power"]
    assert list(unknown) == ["the power function", "the nodes", "Spot Fleet"]


def test_a_group_that_is_not_there_is_one_sentence() -> None:
    with (
        stubbed({}, power={"node_groups": [group()]}) as cluster,
        pytest.raises(ValueError, match=r"or a node group of pod \(workers\), got 'worker'$"),
    ):
        find(cluster, "worker", _DAY)


def test_the_groups_that_lack_nodes_are_those_with_fewer_in_service_than_wanted() -> None:
    groups = [group(wanted=4, in_service=1), group("box", wanted=1, in_service=1), group(wanted=4, in_service=0)]
    groups.append(group("for-jobs", wanted=4, in_service=0, scheduler_sized=True))
    with stubbed({}, power={"node_groups": groups}) as cluster:
        assert short_groups(cluster) == ["workers"]


def test_a_look_at_a_cluster_by_its_name_starts_no_node_js() -> None:
    modules = ("observe.status.command", "observe.events", "observe.logs", "observe.why")
    imports = "; ".join(f"import cdk_training_cluster_cli.{module}" for module in modules)
    run([sys.executable, "-c", f"{imports}; import sys; assert 'jsii' not in sys.modules"], check=True)
