"""The commands that look at a cluster, against one that is deployed to the local AWS."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cdk_training_cluster import Budget
from cdk_training_cluster_stacks.commands import training_cluster
from cdk_training_cluster_stacks.looking.deployed import deployed
from cluster_plans import ClusterPlan
from deployed_cluster import Deployed, prepare
from local_aws import LocalAws
from local_aws_scene import aws

__all__ = ["aws"]

_NAME, _TYPE = "looked-at", "g5.xlarge"
_WORKERS = {"name": "workers", "instance_types": [_TYPE], "count": 2, "call": "on_demand"}


def ran(*arguments: str) -> Result:
    return CliRunner().invoke(training_cluster, [arguments[0], _NAME, *arguments[1:]])


def told(*arguments: str) -> Any:
    found = ran(*arguments, "--output", "json")
    assert found.stdout, found.stderr
    return json.loads(found.stdout)


def test_a_cluster_is_looked_at_from_its_start_to_a_stop(
    aws: LocalAws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in aws.environment().items():
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, value)
    prepare(aws, [_TYPE])
    made = Deployed(aws, tmp_path, _NAME)
    made.deploy(ClusterPlan(groups=(_WORKERS,), existing_network=True, budget=Budget(monthly_usd=1000)))
    assert made.status == "CREATE_COMPLETE", made.failures
    cluster = deployed(_NAME, region=None, profile=None, asker="test")
    # As its schedule does: without the alias of operators.
    power = cluster.description.functions["power"].invoke.removesuffix(":operate")
    cluster.client("lambda").invoke(FunctionName=power, Payload=b"{}")
    first, second = (node["InstanceId"] for node in made.nodes("workers"))
    alarms = aws.client("cloudwatch").describe_alarms()["MetricAlarms"]
    silent = next(one["AlarmName"] for one in alarms if "PowerSilence" in one["AlarmName"])
    aws.client("cloudwatch").set_alarm_state(AlarmName=silent, StateValue="ALARM", StateReason="a test")

    status = ran("status")
    assert (status.exit_code, status.stderr) == (0, "")
    lines = status.stdout.splitlines()
    assert lines[0].startswith("Alarms: ALARM for ")
    assert "Node groups: workers, 2 of 2, running, has all of its 2 nodes" in lines
    assert any(line.startswith(f"Nodes: workers, {_TYPE}: 0, ") for line in lines)
    assert "Idle stop: Nodes: 2 new." in lines
    assert any(line.startswith("Spend: 2.") and " an hour now; " in line for line in lines)

    shown = told("dashboard")
    assert shown["url"].endswith(f"#dashboards/dashboard/{shown['dashboard']}")
    body = aws.client("cloudwatch").get_dashboard(DashboardName=shown["dashboard"])["DashboardBody"]
    assert {"alarm", "log", "metric", "text"} == {widget["type"] for widget in json.loads(body)["widgets"]}

    assert told("logs", "workers/0")["node"] in (first, second)
    stopped = ran("stop", "--node-group", "workers", "--yes", "--reason", "the weekend")
    assert (stopped.exit_code, stopped.stderr) == (0, ""), stopped.stderr

    events = told("events")
    assert events["unknown"] == {}
    commands = [one for one in events["events"] if one["what"].startswith("stop: ")]
    assert [one["node_group"] for one in commands] == ["workers"]
    sources = {one["source"] for one in events["events"]}
    assert sources == {"the power function", "Auto Scaling", "CloudFormation"}

    logs = ran("logs", "power")
    assert "power           INFO      workers has all of its 2 nodes" in logs.stdout
    assert told("logs", "--errors")["records"] == []

    assert "the weekend" in ran("why", "workers").stdout
    of_node = told("why", first)
    assert of_node["unknown"] == {}
    assert of_node["findings"][0]["text"].startswith(f"{first} of workers, {_TYPE}, on-demand, launched ")

    wrong = ran("logs", "worker")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("error: logs takes power, ")
