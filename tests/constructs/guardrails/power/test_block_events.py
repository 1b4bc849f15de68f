"""The rule that makes a tick when a Capacity Block starts or is about to end."""

import json
from typing import Any

import pytest
from aws_cdk import CfnResource, Stack
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Template

from cdk_training_cluster.guardrails.power import ClusterPower, PowerGroup
from cluster_contract.power import PowerFunctionSettings
from cluster_power.callers import Action, Caller
from cluster_power.commands import parse_command
from power_scene import plain
from synthesis import new_stack, only, resources

GROUPS = {
    "pod": PowerGroup(count=8, capacity_block="cr-0b1"),
    "workers": PowerGroup(count=8),
    "other-pod": PowerGroup(count=4, capacity_block="cr-0a2"),
    "same-pod": PowerGroup(count=4, capacity_block="cr-0b1"),
}
SPELLINGS = (
    "Capacity Block Delivered",
    "Capacity Block Reservation Delivered",
    "Capacity Block Expiration Warning",
    "Capacity Block Reservation Expiration Warning",
)


def make_power(stack: Stack, groups: dict[str, PowerGroup]) -> ClusterPower:
    return ClusterPower(
        stack, "Power", cluster_name="base-pod", groups=groups, alert_topic=sns.Topic(stack, "Alerts")
    )


@pytest.fixture(scope="module")
def stack() -> Stack:
    stack = new_stack()
    make_power(stack, GROUPS)
    return stack


def event(detail_type: str, block: str, source: str = "aws.ec2") -> dict[str, Any]:
    """Return an event as AWS's document describes it."""
    return {
        "version": "0",
        "detail-type": detail_type,
        "source": source,
        "account": "111122223333",
        "resources": [f"arn:aws:ec2:us-east-1:111122223333:capacity-reservation/{block}"],
        "detail": {"capacity-reservation-id": block, "end-date": "2026-11-03T11:30:00.0Z"},
    }


def matches(pattern: dict[str, Any], found: dict[str, Any]) -> bool:
    """Say whether a pattern of plain values matches, as EventBridge does: one of the values, for every key."""
    for key, allowed in pattern.items():
        value = found.get(key)
        if isinstance(allowed, dict):
            if not isinstance(value, dict) or not matches(allowed, value):
                return False
        elif value not in allowed:
            return False
    return True


@pytest.mark.parametrize("detail_type", SPELLINGS)
@pytest.mark.parametrize("block", ["cr-0a2", "cr-0b1"])
def test_both_spellings_of_both_events_of_each_block_make_a_tick(stack: Stack, detail_type: str, block: str) -> None:
    rule = only(stack, "AWS::Events::Rule")["Properties"]
    [target] = rule["Targets"]

    assert matches(rule["EventPattern"], event(detail_type, block))
    order = parse_command(json.loads(target["Input"]), _settings(), Caller(alias=None, request_id="1"))
    assert (order.action, order.node_groups) == (Action.TICK, ("pod",))


@pytest.mark.parametrize(
    "other",
    [
        event("Capacity Block Delivered", "cr-another"),
        event("EC2 Capacity Reservation Active", "cr-0a2"),
        event("Capacity Block Delivered", "cr-0a2", source="aws.autoscaling"),
        {"source": "aws.ec2", "detail-type": "Capacity Block Delivered", "detail": {}},
    ],
)
def test_nothing_else_makes_a_tick(stack: Stack, other: dict[str, Any]) -> None:
    assert not matches(only(stack, "AWS::Events::Rule")["Properties"]["EventPattern"], other)


def test_a_missed_event_is_not_made_up_for(stack: Stack) -> None:
    [target] = only(stack, "AWS::Events::Rule")["Properties"]["Targets"]

    assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 60, "MaximumRetryAttempts": 0}
    assert target["Input"] == '{"action":"tick"}'


def test_each_block_is_named_once(stack: Stack) -> None:
    pattern = only(stack, "AWS::Events::Rule")["Properties"]["EventPattern"]

    assert pattern["detail"] == {"capacity-reservation-id": ["cr-0a2", "cr-0b1"]}


def test_only_this_rule_may_call_the_function(stack: Stack) -> None:
    [rule] = resources(stack, "AWS::Events::Rule")
    [function] = resources(stack, "AWS::Lambda::Function")

    assert only(stack, "AWS::Lambda::Permission")["Properties"] == {
        "Action": "lambda:InvokeFunction",
        "FunctionName": {"Fn::GetAtt": [function, "Arn"]},
        "Principal": "events.amazonaws.com",
        "SourceArn": {"Fn::GetAtt": [rule, "Arn"]},
    }


def test_a_cluster_without_blocks_has_no_rule() -> None:
    stack = new_stack()

    extras, listed = PowerGroup(count=4, spot_fleet_id="sfr-1"), PowerGroup(count=8, capacity_blocks=["cr-1"])
    power = make_power(stack, {"workers": PowerGroup(count=8), "extras": extras, "any": listed})

    assert power.block_events is None
    types = {resource["Type"] for resource in Template.from_stack(stack).to_json()["Resources"].values()}
    assert not types & {"AWS::Events::Rule", "AWS::Lambda::Permission"}


def test_a_block_that_is_known_at_deployment_only_is_in_the_pattern() -> None:
    stack = new_stack()
    block = CfnResource(stack, "Block", type="AWS::EC2::CapacityReservation")

    make_power(stack, {"pod": PowerGroup(count=8, capacity_block=block.ref)})

    pattern = only(stack, "AWS::Events::Rule")["Properties"]["EventPattern"]
    assert pattern["detail"] == {"capacity-reservation-id": [{"Ref": "Block"}]}


def _settings() -> PowerFunctionSettings:
    text = json.dumps({"cluster": "base-pod", "groups": {"pod": {"count": 8}}})
    settings = PowerFunctionSettings.from_environment({"CLUSTER_POWER_SETTINGS": text})
    assert settings.groups == plain(pod=8)
    return settings
