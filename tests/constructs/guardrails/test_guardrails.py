"""What every guardrail is: one table, a row for each kind, and what its description says is what is made."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from aws_cdk import Stack
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Match

from cdk_training_cluster import Budget, ClusterPower, ClusterSpend, NodeHealth
from cdk_training_cluster.functions import Guardrail, Watch
from cdk_training_cluster.guardrails import GUARDRAILS
from cdk_training_cluster.guardrails.power import PowerGroup
from fleet_scene import bought
from public_calls import RIGHT
from synthesis import new_stack, only, resources

_GROUPS = {"workers": PowerGroup(count=8)}
# Arguments of guardrails in place of those in `public_calls`, which make a cluster with guardrails of its own.
_ARGUMENTS: dict[type[Guardrail], Callable[[Stack], dict[str, Any]]] = {
    ClusterPower: lambda stack: {"cluster_name": "pod", "groups": _GROUPS, "alert_topic": sns.Topic(stack, "T")},
    NodeHealth: lambda stack: {
        "cluster_name": "pod",
        "fleets": [bought(stack).fleet],
        "alert_topic": sns.Topic(stack, "T"),
    },
    ClusterSpend: lambda stack: {
        **RIGHT["ClusterSpend"](stack),
        "budget": Budget(monthly_usd=100, max_usd_per_hour=5),
    },
}
_WATCHES = [(kind, watch) for kind in GUARDRAILS for watch in kind.spec.watches]


@pytest.fixture(scope="module")
def stacks() -> dict[type[Guardrail], Stack]:
    """Return a stack for each kind, with one guardrail in it."""
    made = {kind: new_stack() for kind in GUARDRAILS}
    for kind, stack in made.items():
        kind(stack, "It", **_ARGUMENTS.get(kind, RIGHT[kind.__name__])(stack))
    return made


@pytest.fixture(params=GUARDRAILS, ids=lambda kind: kind.__name__)
def kind(request: pytest.FixtureRequest) -> type[Guardrail]:
    """Return each kind of guardrail."""
    found: type[Guardrail] = request.param
    return found


@pytest.fixture
def stack(stacks: dict[type[Guardrail], Stack], kind: type[Guardrail]) -> Stack:
    """Return the stack of a kind."""
    return stacks[kind]


def alarms(stack: Stack) -> list[dict[str, Any]]:
    return [alarm["Properties"] for alarm in resources(stack, "AWS::CloudWatch::Alarm").values()]


def test_a_tick_comes_as_often_as_it_says_and_one_that_is_missed_is_not_made_up_for(
    stack: Stack, kind: type[Guardrail]
) -> None:
    minutes = kind.spec.every.total_seconds() / 60
    only(
        stack,
        "AWS::Scheduler::Schedule",
        {
            "ScheduleExpression": f"rate({minutes:g} minute{'' if minutes == 1 else 's'})",
            "FlexibleTimeWindow": {"Mode": "OFF"},
            "State": Match.absent(),
            "Target": {
                "Input": '{"action":"tick"}',
                "RetryPolicy": {"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 60},
                "DeadLetterConfig": {"Arn": {"Fn::GetAtt": [next(iter(resources(stack, "AWS::SQS::Queue"))), "Arn"]}},
            },
        },
    )


def test_two_ticks_do_not_overlap(stack: Stack, kind: type[Guardrail]) -> None:
    function = only(stack, "AWS::Lambda::Function", {"Handler": f"{kind.spec.package}.handler.handler"})
    assert function["Properties"]["Timeout"] < kind.spec.every.total_seconds()
    assert function["Properties"]["ReservedConcurrentExecutions"] == 1


def test_the_schedule_comes_after_its_permission_and_its_role_is_for_schedules_of_this_account(stack: Stack) -> None:
    (policy,) = (name for name in resources(stack, "AWS::IAM::Policy") if name.startswith("ItScheduleRole"))
    assert policy in only(stack, "AWS::Scheduler::Schedule")["DependsOn"]
    trusted = {"aws:SourceAccount": {"Ref": "AWS::AccountId"}, "aws:SourceArn": Match.any_value()}
    statement = {"Principal": {"Service": "scheduler.amazonaws.com"}, "Condition": {"StringEquals": trusted}}
    only(stack, "AWS::IAM::Role", {"AssumeRolePolicyDocument": {"Statement": [statement]}})


def test_no_permission_is_without_an_end(stack: Stack) -> None:
    for policy in resources(stack, "AWS::IAM::Policy").values():
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            assert "*" not in str(statement["Action"])
            assert statement["Resource"] != "*" or "aws:RequestedRegion" in str(statement["Condition"])


def test_silence_alarms(stack: Stack, kind: type[Guardrail]) -> None:
    only(
        stack,
        "AWS::CloudWatch::Alarm",
        {
            "Namespace": "CdkTrainingCluster/Functions",
            "MetricName": kind.spec.silence.metric,
            "Dimensions": [{"Name": "Cluster", "Value": "pod"}],
            "Statistic": "Sum",
            "Threshold": 1,
            "ComparisonOperator": "LessThanThreshold",
            "Period": 300,
            "EvaluationPeriods": kind.spec.silence.periods,
            "DatapointsToAlarm": kind.spec.silence.periods,
            "TreatMissingData": "breaching",
        },
    )


def test_errors_alarm_when_they_come_back(stack: Stack) -> None:
    errors = {"MetricName": "Errors", "EvaluationPeriods": 3, "DatapointsToAlarm": 2, "TreatMissingData": "missing"}
    only(stack, "AWS::CloudWatch::Alarm", {"Namespace": "AWS/Lambda", **errors})


@pytest.mark.parametrize(("watching", "watch"), _WATCHES, ids=[watch.id for _, watch in _WATCHES])
def test_what_lasts_alarms_and_silence_is_no_proof_of_anything(
    stacks: dict[type[Guardrail], Stack], watching: type[Guardrail], watch: Watch
) -> None:
    only(
        stacks[watching],
        "AWS::CloudWatch::Alarm",
        {
            "Namespace": "CdkTrainingCluster/Functions",
            "MetricName": watch.metric,
            "Dimensions": [{"Name": "Cluster", "Value": "pod"}],
            "Statistic": watch.statistic,
            "Threshold": watch.threshold,
            "ComparisonOperator": "GreaterThanOrEqualToThreshold",
            "Period": 300,
            "EvaluationPeriods": watch.periods,
            "DatapointsToAlarm": watch.datapoints or watch.periods,
            "TreatMissingData": "missing",
        },
    )


def test_every_alarm_notifies_and_only_silence_of_its_end_which_has_a_state_from_the_start(
    stack: Stack, kind: type[Guardrail]
) -> None:
    topic = next(iter(resources(stack, "AWS::SNS::Topic")))
    assert all(alarm["AlarmActions"] == [{"Ref": topic}] for alarm in alarms(stack))
    assert [alarm["MetricName"] for alarm in alarms(stack) if "OKActions" in alarm] == [kind.spec.silence.metric]


def test_every_alarm_says_what_is_wrong_where_to_look_and_what_to_do(stack: Stack, kind: type[Guardrail]) -> None:
    said = [alarm["AlarmDescription"]["Fn::Join"][1] for alarm in alarms(stack)]
    assert len(said) >= len(kind.spec.watches) + 3
    for wrong, place, *remedy in said:
        assert re.fullmatch(r"pod: [^.;]+\. Look in the (log group|queue) ", wrong)
        assert ("Logs" if "log group" in wrong else "FailedEvents") in str(place)
        assert re.match(r"\. [A-Z]", remedy[0])
        assert "$" not in str(remedy)


def test_all_alarms_call_a_function_by_one_name(stack: Stack, kind: type[Guardrail]) -> None:
    said = [alarm["AlarmDescription"]["Fn::Join"][1][0] for alarm in alarms(stack)]
    assert not [text for text in said if kind.spec.package in text]
    assert sum(kind.spec.called in text for text in said) >= 3


def test_an_alarm_on_nodes_says_how_to_find_them_in_the_log() -> None:
    # By the keys of the records that the functions write.
    found = {watch.id: set(re.findall(r"(\w+) (?:=|>|in)", watch.records)) for _, watch in _WATCHES}
    asked = {name for name in found if name.endswith("Nodes") or name in ("ReservedIdle", "UnclearTags")}
    assert {name for name, keys in found.items() if keys} == asked
    assert set().union(*found.values()) == {"lingering", "missing", "stopped", "surplus", "verdict", "waiting"}


def test_every_kind_has_an_output_of_its_own() -> None:
    assert len({kind.spec.output for kind in GUARDRAILS}) == len(GUARDRAILS)
