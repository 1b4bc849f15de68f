"""The commands that act, from the command line to a deployed cluster and back."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cdk_training_cluster_stacks.commands import training_cluster
from cluster_contract.tags import KEEP_UNTIL_TAG
from cluster_plans import ClusterPlan
from deployed_cluster import Deployed, prepare
from local_aws import LocalAws

_TYPE, _NAME = "g5.xlarge", "acted"


@pytest.fixture
def cluster(aws: LocalAws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deployed:
    for name, value in aws.environment().items():
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, value)
    prepare(aws, [_TYPE])
    made = Deployed(aws, tmp_path, _NAME)
    workers = {"name": "workers", "instance_types": [_TYPE], "count": 2, "call": "on_demand"}
    made.deploy(ClusterPlan(groups=(workers,), existing_network=True))
    assert made.failures == []
    return made


def _ran(verb: str, *arguments: str, status: int = 0) -> Any:
    found = CliRunner().invoke(training_cluster, [verb, _NAME, "--output", "json", *arguments])
    assert found.exit_code == status, found.output
    return json.loads(found.stdout)


def test_a_deployed_cluster_is_operated_by_its_name_alone(cluster: Deployed) -> None:
    (started,) = _ran("start", "--wait", "--reason", "a run")["node_groups"]
    assert (started["in_service"], started["why"].split("/")[-1][-7:]) == (2, ": a run")
    first, second = (node["InstanceId"] for node in cluster.nodes("workers"))

    told = _ran("exec", "--node", first, "--node", second, "--", "echo", "on $node")["nodes"]
    assert [(one["instance_id"], one["output"], one["exit_status"]) for one in told] == [
        (one, "on $node\n", 0) for one in sorted((first, second))
    ]

    _ran("keep", "--until", "2h")
    assert KEEP_UNTIL_TAG in _tags(cluster)
    _ran("keep", "--off")
    assert KEEP_UNTIL_TAG not in _tags(cluster)

    _ran("terminate", first)
    assert [node["InstanceId"] for node in cluster.nodes("workers")] == [second]
    (stopped,) = _ran("stop", "--wait")["node_groups"]
    assert (stopped["state"], stopped["alive"], cluster.nodes("workers")) == ("stopped", 0, [])


def _tags(cluster: Deployed) -> set[str]:
    groups = cluster.aws.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    return {tag["Key"] for group in groups for tag in group["Tags"] if group["AutoScalingGroupName"] in cluster.own()}
