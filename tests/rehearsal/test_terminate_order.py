"""The power function's order to terminate single nodes, on the local AWS."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aws_lambda_powertools import Logger

from cluster_common.clients import Clients
from cluster_common.errors import PartialFailureError
from cluster_contract.power import PowerFunctionSettings, PowerGroupSettings
from cluster_power.commands import parse_command
from cluster_power.power import Power
from local_aws import LocalAws
from local_aws_scene import Stacks, Template
from power_scene import caller_of

CLUSTER = "base-pod"
SETTINGS = PowerFunctionSettings(
    cluster=CLUSTER,
    groups={"workers": PowerGroupSettings(count=3)},
    launch_grace=timedelta(minutes=10),
    state_table="terminate-order",
)


@pytest.fixture
def group(aws: LocalAws, stacks: Stacks, nodes: Template) -> str:
    """The name of a cluster's group that may have four nodes."""
    name = stacks.physical_ids(stacks.create(nodes))["Nodes"]
    aws.client("dynamodb").create_table(
        TableName=SETTINGS.state_table,
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in ("part", "name")],
        KeySchema=[{"AttributeName": "part", "KeyType": "HASH"}, {"AttributeName": "name", "KeyType": "RANGE"}],
        BillingMode="PAY_PER_REQUEST",
    )
    of_cluster = {"cdk-training-cluster:cluster": CLUSTER, "cdk-training-cluster:node-group": "workers"}
    aws.client("autoscaling").create_or_update_tags(
        Tags=[
            {
                "ResourceId": name,
                "ResourceType": "auto-scaling-group",
                "Key": key,
                "Value": value,
                "PropagateAtLaunch": False,
            }
            for key, value in of_cluster.items()
        ]
    )
    return name


def _order(aws: LocalAws, **event: Any) -> dict[str, Any]:
    clients = Clients(
        auto_scaling=lambda: aws.client("autoscaling"),
        auto_scaling_once=lambda: aws.client("autoscaling"),
        dynamodb=lambda: aws.client("dynamodb"),
        ec2=lambda: aws.client("ec2"),
        sns=lambda: aws.client("sns"),
    )
    of_cluster = [{"Name": "tag:cdk-training-cluster:cluster", "Values": [CLUSTER]}]
    [group] = aws.client("autoscaling").describe_auto_scaling_groups(Filters=of_cluster)["AutoScalingGroups"]
    tags = {tag["Key"]: tag["Value"] for tag in group["Tags"]}
    settings = replace(SETTINGS, stack_id=tags["aws:cloudformation:stack-id"])
    power = Power(settings, clients, Logger(service="test"), datetime.now(UTC))
    summary: Any = power.apply(parse_command(event, settings, caller_of(event)))
    [told] = summary["node_groups"]
    return dict(told)


def _nodes(aws: LocalAws, group: str) -> list[str]:
    [described] = aws.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[group])[
        "AutoScalingGroups"
    ]
    return [node["InstanceId"] for node in described["Instances"]]


def test_named_nodes_go_and_come_back_with_a_start(
    aws: LocalAws, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "CdkTrainingCluster/Functions")
    _order(aws)
    first, second, third = _nodes(aws, group)

    told = _order(aws, action="terminate", node_groups=["workers"], instance_ids=[third, first])

    assert (told["terminated"], told["desired"], told["decision"]) == ([third, first], 1, "held")
    assert (_order(aws)["decision"], _nodes(aws, group)) == ("held", [second])
    with pytest.raises(PartialFailureError, match=f"workers: {first} is none of its nodes"):
        _order(aws, action="terminate", node_groups=["workers"], instance_ids=[first])
    _order(aws, action="start")
    assert len(_nodes(aws, group)) == 3
