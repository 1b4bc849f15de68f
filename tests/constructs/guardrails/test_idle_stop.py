"""The idle stop: its tick, its alarms, its settings, and what it may do."""

from typing import Any

import pytest
from aws_cdk import Duration, Stack
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Match

from cdk_training_cluster import ClusterPower, ClusterState, IdleGroup, IdlePolicy, IdleSignal, IdleStop
from cdk_training_cluster.guardrails.power import PowerGroup
from cluster_contract.metrics import FUNCTION_NAMESPACE
from synthesis import new_stack, only, resources

_IDLE = {"Handler": "cluster_idle.handler.handler"}


def make_idle_stop(stack: Stack, **settings: Any) -> IdleStop:
    return IdleStop(
        stack, "IdleStop", **{"cluster_name": "pod", "alert_topic": sns.Topic(stack, "Alerts"), **settings}
    )


def make_power(stack: Stack, *names: str) -> ClusterPower:
    return ClusterPower(
        stack,
        "Power",
        cluster_name="pod",
        groups={name: PowerGroup(count=8) for name in names},
        alert_topic=sns.Topic(stack, "PowerAlerts"),
    )


def allowed(stack: Stack) -> set[str]:
    """Return the actions that the function's role may do."""
    (role,) = (name for name in resources(stack, "AWS::IAM::Role") if name.startswith("IdleStopFunctionRole"))
    found = set()
    for policy in resources(stack, "AWS::IAM::Policy", {"Roles": [{"Ref": role}]}).values():
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            actions = statement["Action"]
            found |= {actions} if isinstance(actions, str) else set(actions)
    return found


@pytest.fixture(scope="module")
def stack() -> Stack:
    stack = new_stack()
    make_idle_stop(stack)
    return stack


def test_an_hour_of_idle_dollars_alarms_and_of_nodes_whose_price_is_unknown(stack: Stack) -> None:
    alarm = only(
        stack,
        "AWS::CloudWatch::Alarm",
        {
            "Metrics": Match.array_with(
                [Match.object_like({"Expression": "IF(dollars > 0, dollars, nodes)", "ReturnData": True})]
            ),
            "Threshold": 0.01,
            "ComparisonOperator": "GreaterThanOrEqualToThreshold",
            # One gap an hour does not defeat it.
            "EvaluationPeriods": 12,
            "DatapointsToAlarm": 9,
            "TreatMissingData": "missing",
        },
    )
    read = {
        query["Id"]: (query["MetricStat"]["Metric"]["MetricName"], query["MetricStat"]["Stat"])
        for query in alarm["Properties"]["Metrics"]
        if "MetricStat" in query
    }
    assert read == {"dollars": ("IdleDollarsReserved", "Minimum"), "nodes": ("IdleReservedNodes", "Minimum")}


@pytest.mark.parametrize(
    ("policy", "own", "reads"),
    [
        (None, None, False),
        (IdlePolicy(signals=[IdleSignal.session()]), None, True),
        (None, IdlePolicy(signals=[IdleSignal.session()]), True),
        (IdlePolicy.off(), IdlePolicy(signals=[IdleSignal.network()]), False),
        (IdlePolicy(signals=[IdleSignal.session()], is_off=True), IdlePolicy(signals=[]), False),
    ],
)
def test_sessions_are_read_where_a_policy_asks_for_them(
    policy: IdlePolicy | None, own: IdlePolicy | None, reads: bool
) -> None:
    stack = new_stack()
    groups = {"workers": IdleGroup(policy=own)}
    make_idle_stop(stack, policy=policy, node_groups=groups, power=make_power(stack, "workers"))
    assert ("ssm:DescribeSessions" in allowed(stack)) is reads


def test_writes_end_at_a_tag_of_one_s_own() -> None:
    stack = new_stack()
    make_idle_stop(stack, tag_key="Team", cluster_name="research")
    conditions = [
        statement["Condition"]["StringEquals"]
        for policy in resources(stack, "AWS::IAM::Policy").values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if "ec2:" in str(statement["Action"]) and statement["Resource"] != "*"
    ]
    assert conditions == [{"aws:ResourceTag/Team": "research"}] * 2


def test_the_power_function_is_called_by_its_name_where_there_are_node_groups() -> None:
    stack = new_stack()
    make_idle_stop(stack, node_groups={"workers": IdleGroup()}, power=make_power(stack, "workers"))
    (power,) = resources(stack, "AWS::Lambda::Function", {"Handler": "cluster_power.handler.handler"})
    variables = only(stack, "AWS::Lambda::Function", _IDLE)["Properties"]["Environment"]["Variables"]
    assert variables["POWER_FUNCTION"] == {"Ref": power}


@pytest.mark.parametrize(
    ("has_power", "has_state", "tables"), [(True, False, 1), (True, True, 2), (False, True, 1), (False, False, 1)]
)
def test_the_warnings_are_kept_in_the_table_that_is_given_or_that_of_the_power_function(
    has_power: bool, has_state: bool, tables: int
) -> None:
    stack = new_stack()
    given = {"power": make_power(stack, "workers"), "node_groups": {"workers": IdleGroup()}} if has_power else {}
    state = ClusterState(stack, "Mine") if has_state else None
    idle_stop = make_idle_stop(stack, **given, state=state)

    variables = only(stack, "AWS::Lambda::Function", _IDLE)["Properties"]["Environment"]["Variables"]
    assert variables["STATE_TABLE"] == stack.resolve(idle_stop.state.table_name)
    assert len(resources(stack, "AWS::DynamoDB::Table")) == tables


def test_metrics_have_the_dimensions_of_the_nodes() -> None:
    idle_stop = make_idle_stop(new_stack())
    metrics = [
        idle_stop.metric_idle_nodes(),
        idle_stop.metric_stopped_nodes(),
        idle_stop.metric_unknown_nodes(),
        idle_stop.metric_stuck_nodes(),
        idle_stop.metric_dollars_saved(period=Duration.hours(1)),
        idle_stop.metric_dollars_reserved(statistic="Average"),
    ]
    assert {(metric.namespace, str(metric.dimensions)) for metric in metrics} == {
        (FUNCTION_NAMESPACE, "{'Cluster': 'pod'}")
    }
    assert [(metric.metric_name, metric.statistic, metric.period.to_minutes()) for metric in metrics] == [
        ("IdleNodes", "Maximum", 5),
        ("IdleStoppedNodes", "Sum", 5),
        ("IdleUnknownNodes", "Minimum", 5),
        ("IdleStuckNodes", "Minimum", 5),
        ("IdleDollarsSaved", "Sum", 60),
        ("IdleDollarsReserved", "Average", 5),
    ]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"policy": "off"},
            "policy must be an IdlePolicy, such as IdlePolicy(window=Duration.minutes(90)), got 'off'",
        ),
        ({"power": "pod"}, "power must be a ClusterPower, such as cluster.power, got 'pod'"),
        (
            {"node_groups": {"workers": 8}},
            "node_groups['workers'] must be an IdleGroup, such as IdleGroup(), got 8",
        ),
        (
            {"node_groups": {"workers": IdleGroup()}},
            "power is required beside node_groups: the power function owns their sizes; give cluster.power",
        ),
        (
            {"prices": {"p5.48xlarge": 0, "p4d.24xlarge": 1e308, "g5.xlarge": 1_000_000}},
            "prices['p5.48xlarge'] must be above 0 and at most 1000000, got 0\n"
            "prices['p4d.24xlarge'] must be above 0 and at most 1000000, got 1e+308",
        ),
        ({"gpu_counts": {"p9.48xlarge": 0}}, "gpu_counts['p9.48xlarge'] must be at least 1, got 0"),
    ],
)
def test_what_is_no_policy_power_function_group_or_price_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        make_idle_stop(new_stack(), **settings)
    assert str(refused.value) == message
