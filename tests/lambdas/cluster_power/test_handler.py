"""The handler as Lambda calls it, against moto's Auto Scaling in this process."""

import io
import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import boto3
import pytest
from aws_lambda_powertools.utilities.typing import LambdaContext
from moto import mock_aws

from cluster_common import clients
from cluster_common.errors import InvalidEventError
from cluster_contract.codec import InvalidSettingsError
from cluster_power.handler import handler, logger
from fake_service import STACK

if TYPE_CHECKING:
    from mypy_boto3_autoscaling.client import AutoScalingClient

REQUEST = "11111111-2222-3333-4444-555555555555"
ARN = "arn:aws:lambda:us-east-1:111122223333:function:power"


def context(alias: str = "") -> LambdaContext:
    """Return what Lambda tells the function of an invocation."""
    told = {"function_name": "power", "memory_limit_in_mb": 256, "aws_request_id": REQUEST}
    return cast("LambdaContext", SimpleNamespace(invoked_function_arn=f"{ARN}{alias}", **told))


@pytest.fixture
def auto_scaling(monkeypatch: pytest.MonkeyPatch) -> Iterator["AutoScalingClient"]:
    settings = {"cluster": "base-pod", "groups": {"workers": {"count": 2}}}
    monkeypatch.setenv("CLUSTER_POWER_SETTINGS", json.dumps(settings))
    _forget_clients()
    with mock_aws():
        monkeypatch.setenv("ALERT_TOPIC_ARN", boto3.client("sns").create_topic(Name="alerts")["TopicArn"])
        monkeypatch.setenv("STATE_TABLE", _make_table())
        monkeypatch.setenv("STACK_ID", STACK)
        client = boto3.client("autoscaling")
        _make_group(client)
        yield client
    _forget_clients()


def _forget_clients() -> None:
    for client in (clients.auto_scaling, clients.auto_scaling_once, clients.dynamodb, clients.sns):
        client.cache_clear()


def _make_table() -> str:
    keys = {"part": "HASH", "name": "RANGE"}
    boto3.client("dynamodb").create_table(
        TableName="state",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in keys],
        KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys.items()],  # type: ignore[typeddict-item]  # a literal
        BillingMode="PAY_PER_REQUEST",
    )
    return "state"


def _make_group(client: "AutoScalingClient") -> None:
    ec2 = boto3.client("ec2")
    template = ec2.create_launch_template(
        LaunchTemplateName="nodes", LaunchTemplateData={"ImageId": "ami-1", "InstanceType": "p4de.24xlarge"}
    )
    client.create_auto_scaling_group(
        AutoScalingGroupName="workers-asg",
        MinSize=0,
        MaxSize=2,
        LaunchTemplate={"LaunchTemplateId": template["LaunchTemplate"]["LaunchTemplateId"]},
        VPCZoneIdentifier=ec2.describe_subnets()["Subnets"][0]["SubnetId"],
        Tags=[
            {"Key": "cdk-training-cluster:cluster", "Value": "base-pod", "PropagateAtLaunch": True},
            {"Key": "cdk-training-cluster:node-group", "Value": "workers", "PropagateAtLaunch": True},
            {"Key": "aws:cloudformation:stack-id", "Value": STACK, "PropagateAtLaunch": True},
        ],
    )


def _size(client: "AutoScalingClient") -> tuple[int, int]:
    [group] = client.describe_auto_scaling_groups()["AutoScalingGroups"]
    return group["DesiredCapacity"], len(group["Instances"])


def _invoke(event: dict[str, Any]) -> list[Any]:
    summary: Any = handler(event, context("" if event.get("action", "tick") == "tick" else ":operate"))
    return cast("list[Any]", summary["node_groups"])


def test_ticks_start_the_cluster_and_orders_stop_and_start_it(auto_scaling: "AutoScalingClient") -> None:
    _invoke({})
    [started] = _invoke({"action": "tick"})
    assert (started["in_service"], started["decision"], _size(auto_scaling)) == (2, "keep", (2, 2))

    [stopped] = _invoke({"action": "stop", "reason": "weekend"})
    assert (stopped["state"], _size(auto_scaling)) == ("stopped", (0, 0))
    _invoke({})
    assert _size(auto_scaling) == (0, 0)

    _invoke({"action": "start", "reason": "monday"})
    assert _size(auto_scaling) == (2, 2)


def test_a_node_that_is_terminated_does_not_come_back_before_a_start(auto_scaling: "AutoScalingClient") -> None:
    _invoke({})
    [group] = auto_scaling.describe_auto_scaling_groups()["AutoScalingGroups"]
    idle, busy = (node["InstanceId"] for node in group["Instances"])

    [told] = _invoke({"action": "terminate", "node_groups": ["workers"], "instance_ids": [idle]})
    _invoke({})

    [group] = auto_scaling.describe_auto_scaling_groups()["AutoScalingGroups"]
    assert (told["terminated"], told["desired"]) == ([idle], 1)
    assert [node["InstanceId"] for node in group["Instances"]] == [busy]
    _invoke({"action": "start"})
    assert _size(auto_scaling) == (2, 2)


def test_what_people_read_on_a_group_is_not_put_on_its_nodes(auto_scaling: "AutoScalingClient") -> None:
    _invoke({})

    tags = auto_scaling.describe_tags()["Tags"]

    assert {tag["Key"]: tag["PropagateAtLaunch"] for tag in tags if "power" in tag["Key"]} == {
        "cdk-training-cluster:power": False
    }


@pytest.mark.usefixtures("auto_scaling")
def test_every_record_names_the_cluster_and_the_one_on_a_group_names_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = io.StringIO()
    monkeypatch.setattr(logger.registered_handler, "stream", log)

    _invoke({})

    logs = [json.loads(line) for line in log.getvalue().splitlines()]
    metrics = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["cluster"], one["node_group"], one["verdict"]) for one in logs] == [("base-pod", "workers", "size")]
    assert logs[0]["function_request_id"] == REQUEST
    assert [one["_aws"]["CloudWatchMetrics"][0]["Dimensions"] for one in metrics] == [
        [["Cluster"]],
        [["Cluster", "NodeGroup"]],
    ]
    assert (metrics[0]["MissingNodes"], metrics[0]["HeldGroups"], metrics[0]["SuccessfulTicks"]) == (
        [2.0],
        [0.0],
        [1.0],
    )


@pytest.mark.usefixtures("auto_scaling")
def test_orders_and_questions_count_as_no_tick(capsys: pytest.CaptureFixture[str]) -> None:
    _invoke({"action": "status"})
    _invoke({"action": "stop"})

    assert "_aws" not in capsys.readouterr().out


def test_a_wrong_event_does_nothing(auto_scaling: "AutoScalingClient") -> None:
    with pytest.raises(InvalidEventError, match="base-pod has no node group worker; its node groups are workers"):
        _invoke({"action": "start", "node_groups": ["worker"]})

    assert _size(auto_scaling) == (0, 0)


def test_a_function_without_settings_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLUSTER_POWER_SETTINGS", raising=False)

    with pytest.raises(InvalidSettingsError, match="CLUSTER_POWER_SETTINGS is missing"):
        _invoke({})
