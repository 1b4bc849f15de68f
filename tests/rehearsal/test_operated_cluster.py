"""The commands that look at a cluster and act on it, from the command line to one that is deployed, and back."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cdk_training_cluster import Budget
from cdk_training_cluster_cli.main import training_cluster
from cdk_training_cluster_cli.observe.deployed import deployed
from cluster_contract.tags import KEEP_UNTIL_TAG
from cluster_plans import ClusterPlan
from deployed_cluster import Deployed, prepare
from local_aws import LocalAws

_NAME, _TYPE = "operated", "g5.xlarge"
_WORKERS = {"name": "workers", "instance_types": [_TYPE], "count": 2, "call": "on_demand"}


@pytest.fixture(scope="module")
def cluster(aws: LocalAws, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """A cluster that is deployed once for all commands; its power function has not run yet."""
    prepare(aws, [_TYPE])
    made = Deployed(aws, tmp_path_factory.mktemp(_NAME), _NAME)
    made.deploy(ClusterPlan(groups=(_WORKERS,), existing_network=True, budget=Budget(monthly_usd=1000)))
    assert made.status == "CREATE_COMPLETE", made.failures
    yield made
    made.destroy()


@pytest.fixture(autouse=True)
def _user(aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in aws.environment().items():
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, value)


def ran(verb: str, *arguments: str) -> Result:
    return CliRunner().invoke(training_cluster, [verb, _NAME, *arguments])


def told(verb: str, *arguments: str) -> Any:
    found = ran(verb, "--output", "json", *arguments)
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)


def test_a_cluster_is_looked_at_from_its_start_to_a_stop(cluster: Deployed) -> None:
    client = cluster.aws.client
    description = deployed(_NAME, region=None, profile=None, asker="test").description
    # As its schedule does: without the alias of operators.
    power = description.functions["power"].invoke.removesuffix(":operate")
    client("lambda").invoke(FunctionName=power, Payload=b"{}")
    first, second = (node["InstanceId"] for node in cluster.nodes("workers"))
    alarms = client("cloudwatch").describe_alarms(AlarmNamePrefix=_NAME)["MetricAlarms"]
    silent = next(one["AlarmName"] for one in alarms if "PowerSilence" in one["AlarmName"])
    client("cloudwatch").set_alarm_state(AlarmName=silent, StateValue="ALARM", StateReason="a test")

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
    body = client("cloudwatch").get_dashboard(DashboardName=shown["dashboard"])["DashboardBody"]
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


def test_a_cluster_is_operated_by_its_name_alone(cluster: Deployed) -> None:
    (started,) = told("start", "--wait", "--reason", "a run")["node_groups"]
    assert (started["in_service"], started["why"].split("/")[-1][-7:]) == (2, ": a run")
    first, second = (node["InstanceId"] for node in cluster.nodes("workers"))

    refused = ran("exec", "--node", first, "--", "echo", "on $node")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "its lines would run on this machine, and not on a node" in refused.stderr
    cluster.aws.set_up_nodes(runs_any_shell=True)
    nodes = told("exec", "--node", first, "--node", second, "--", "echo", "on $node")["nodes"]
    cluster.aws.set_up_nodes()
    assert [(one["instance_id"], one["output"], one["exit_status"]) for one in nodes] == [
        (one, "on $node\n", 0) for one in sorted((first, second))
    ]

    told("keep", "--until", "2h")
    assert KEEP_UNTIL_TAG in _tags(cluster)
    told("keep", "--off")
    assert KEEP_UNTIL_TAG not in _tags(cluster)

    told("terminate", first)
    assert [node["InstanceId"] for node in cluster.nodes("workers")] == [second]
    (stopped,) = told("stop", "--wait")["node_groups"]
    assert (stopped["state"], stopped["alive"], cluster.nodes("workers")) == ("stopped", 0, [])


def _tags(cluster: Deployed) -> set[str]:
    groups = cluster.aws.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    return {tag["Key"] for group in groups for tag in group["Tags"] if group["AutoScalingGroupName"] in cluster.own()}
