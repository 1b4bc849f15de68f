import pytest
from aws_cdk import Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Match, Template

from cdk_training_cluster.metrics import FUNCTION_NAMESPACE
from cdk_training_cluster.power import POWER_METRICS, ClusterPower, PowerGroup
from synthesis import new_stack, only, resources


def make_power(stack: Stack, **settings: object) -> ClusterPower:
    whole: dict[str, object] = {"cluster_name": "base-pod", "groups": {"workers": PowerGroup(count=8)}} | settings
    return ClusterPower(stack, "Power", alert_topic=sns.Topic(stack, "Alerts"), **whole)  # type: ignore[arg-type]  # a test's settings


@pytest.fixture(scope="module")
def stack() -> Stack:
    stack = new_stack()
    make_power(stack)
    return stack


def test_the_function_ticks_each_minute_and_a_missed_tick_is_not_made_up_for(stack: Stack) -> None:
    only(
        stack,
        "AWS::Scheduler::Schedule",
        {
            "ScheduleExpression": "rate(1 minute)",
            "FlexibleTimeWindow": {"Mode": "OFF"},
            "State": Match.absent(),
            "Target": {
                "Input": '{"action":"tick"}',
                "RetryPolicy": {"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 60},
            },
        },
    )
    once = {"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 60}
    only(stack, "AWS::Lambda::EventInvokeConfig", {"Qualifier": "$LATEST", **once})
    only(stack, "AWS::Lambda::EventInvokeConfig", {"Qualifier": "operate", **once})


def test_what_orders_are_sent_to_is_there_although_nobody_was_granted_it() -> None:
    stack = new_stack()
    ordered = stack.resolve(make_power(stack).order_name)

    aliases = Template.from_stack(stack).find_resources("AWS::Lambda::Alias", {"Properties": {"Name": "operate"}})
    assert [{"Ref": alias} for alias in aliases] == [ordered]


def test_two_ticks_do_not_overlap(stack: Stack) -> None:
    function = only(stack, "AWS::Lambda::Function")

    assert function["Properties"]["Timeout"] < 60


def test_the_schedule_comes_after_its_permission(stack: Stack) -> None:
    [policy] = resources(
        stack,
        "AWS::IAM::Policy",
        {"PolicyDocument": {"Statement": Match.array_with([Match.object_like({"Action": "lambda:InvokeFunction"})])}},
    )

    assert policy in only(stack, "AWS::Scheduler::Schedule")["DependsOn"]


def test_only_schedules_of_this_account_may_use_the_role_of_the_tick(stack: Stack) -> None:
    only(
        stack,
        "AWS::IAM::Role",
        {
            "AssumeRolePolicyDocument": {
                "Statement": [
                    {
                        "Principal": {"Service": "scheduler.amazonaws.com"},
                        "Condition": {
                            "StringEquals": {
                                "aws:SourceAccount": {"Ref": "AWS::AccountId"},
                                "aws:SourceArn": Match.any_value(),
                            }
                        },
                    }
                ]
            }
        },
    )


@pytest.mark.parametrize("metric", ["MissingNodes", "SurplusNodes"])
def test_nodes_missing_or_too_many_alarm_after_a_quarter_of_an_hour_and_silence_is_no_proof_of_anything(
    stack: Stack, metric: str
) -> None:
    only(
        stack,
        "AWS::CloudWatch::Alarm",
        {
            "Namespace": "CdkTrainingCluster/Functions",
            "MetricName": metric,
            "Dimensions": [{"Name": "Cluster", "Value": "base-pod"}],
            "Statistic": "Minimum",
            "Threshold": 1,
            "ComparisonOperator": "GreaterThanOrEqualToThreshold",
            "Period": 300,
            "EvaluationPeriods": 3,
            "DatapointsToAlarm": 3,
            "TreatMissingData": "missing",
        },
    )


@pytest.mark.parametrize(
    ("metric", "remedy"),
    [
        ("MissingNodes", "If it is capacity, the function asks again every 10 minutes; otherwise mend what it names"),
        ("SurplusNodes", "a node group that has left the file, a suspended Terminate or protection from scale-in"),
    ],
)
def test_the_alarms_of_nodes_name_what_helps_whatever_the_reason(stack: Stack, metric: str, remedy: str) -> None:
    (alarm,) = resources(stack, "AWS::CloudWatch::Alarm", {"MetricName": metric}).values()
    assert remedy in str(alarm["Properties"]["AlarmDescription"])


def test_a_group_that_is_held_for_an_hour_alarms_though_a_point_is_missing_now_and_then(stack: Stack) -> None:
    alarm = {"MetricName": "HeldGroups", "Statistic": "Minimum", "EvaluationPeriods": 12, "DatapointsToAlarm": 9}
    description = only(stack, "AWS::CloudWatch::Alarm", alarm)["Properties"]["AlarmDescription"]
    assert "then with start or stop" in str(description)


def test_silence_alarms(stack: Stack) -> None:
    only(
        stack,
        "AWS::CloudWatch::Alarm",
        {
            "MetricName": "SuccessfulTicks",
            "Dimensions": [{"Name": "Cluster", "Value": "base-pod"}],
            "Statistic": "Sum",
            "Threshold": 1,
            "ComparisonOperator": "LessThanThreshold",
            "Period": 300,
            "EvaluationPeriods": 3,
            "TreatMissingData": "breaching",
        },
    )


def test_errors_alarm_when_they_come_back(stack: Stack) -> None:
    only(
        stack,
        "AWS::CloudWatch::Alarm",
        {
            "Namespace": "AWS/Lambda",
            "MetricName": "Errors",
            "EvaluationPeriods": 3,
            "DatapointsToAlarm": 2,
            "TreatMissingData": "missing",
        },
    )


def test_every_alarm_tells_people_when_it_begins(stack: Stack) -> None:
    topic = next(iter(resources(stack, "AWS::SNS::Topic")))
    alarms = resources(stack, "AWS::CloudWatch::Alarm")

    assert len(alarms) == 7
    for alarm in alarms.values():
        assert alarm["Properties"]["AlarmActions"] == [{"Ref": topic}]


def test_no_new_stack_tells_of_the_end_of_a_problem_that_never_was(stack: Stack) -> None:
    """An alarm without a state that gets its first good points goes to OK; silence has a state from the start."""
    topic = next(iter(resources(stack, "AWS::SNS::Topic")))
    ok_actions = {
        alarm["Properties"]["MetricName"]: alarm["Properties"].get("OKActions")
        for alarm in resources(stack, "AWS::CloudWatch::Alarm").values()
    }

    assert ok_actions == {
        "Errors": None,
        "NumberOfMessagesSent": None,
        "HeldGroups": None,
        "MixedGroups": None,
        "MissingNodes": None,
        "SurplusNodes": None,
        "SuccessfulTicks": [{"Ref": topic}],
    }


def test_no_resource_is_made_silently(stack: Stack) -> None:
    kinds = sorted(resource["Type"] for resource in resources_of(stack).values())

    assert kinds == [
        *["AWS::CloudWatch::Alarm"] * 7,
        "AWS::IAM::Policy",
        "AWS::IAM::Policy",
        "AWS::IAM::Role",
        "AWS::IAM::Role",
        "AWS::Lambda::Alias",
        *["AWS::Lambda::EventInvokeConfig"] * 2,
        "AWS::Lambda::Function",
        "AWS::Logs::LogGroup",
        "AWS::SNS::Topic",
        "AWS::SQS::Queue",
        "AWS::SQS::QueuePolicy",
        "AWS::SSM::Parameter",
        "AWS::Scheduler::Schedule",
    ]


def resources_of(stack: Stack) -> dict[str, dict[str, str]]:
    return dict(Template.from_stack(stack).to_json()["Resources"])


def test_metrics_have_the_dimensions_of_the_nodes() -> None:
    power = make_power(new_stack())

    missing = power.metric_missing_nodes(node_group="workers")
    running = power.metric_running_nodes(statistic="Maximum", period=Duration.minutes(1))
    held, mixed = power.metric_held_groups(), power.metric_mixed_groups()
    surplus = power.metric_surplus_nodes(node_group="workers")

    assert (missing.namespace, missing.metric_name, missing.dimensions) == (
        FUNCTION_NAMESPACE,
        POWER_METRICS.missing_nodes,
        {"Cluster": "base-pod", "NodeGroup": "workers"},
    )
    assert (running.metric_name, running.dimensions, running.statistic, running.period.to_minutes()) == (
        "RunningNodes",
        {"Cluster": "base-pod"},
        "Maximum",
        1,
    )
    assert (surplus.metric_name, surplus.dimensions, surplus.statistic) == (
        "SurplusNodes",
        {"Cluster": "base-pod", "NodeGroup": "workers"},
        "Minimum",
    )
    assert (held.metric_name, held.dimensions) == ("HeldGroups", {"Cluster": "base-pod"})
    assert (mixed.metric_name, mixed.dimensions) == ("MixedGroups", {"Cluster": "base-pod"})


def test_the_alarms_are_there_for_other_actions() -> None:
    power = make_power(new_stack())

    assert power.surplus_nodes_alarm.node.id == "SurplusNodes"
    assert power.missing_nodes_alarm.node.id == "MissingNodes"


def test_grant_power_lets_somebody_invoke_the_function_and_nothing_else() -> None:
    stack = new_stack()
    power = make_power(stack)
    role = iam.Role(stack, "Operator", assumed_by=iam.AccountRootPrincipal())

    power.grant_power(role)

    policy = next(one for name, one in resources(stack, "AWS::IAM::Policy").items() if name.startswith("Operator"))
    assert policy["Properties"]["PolicyDocument"]["Statement"] == [
        {
            "Action": "lambda:InvokeFunction",
            "Effect": "Allow",
            "Resource": {"Ref": next(iter(resources(stack, "AWS::Lambda::Alias")))},
        }
    ]


def test_a_function_without_node_groups_is_refused() -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the whole text is compared)
        make_power(new_stack(), groups={})

    assert str(caught.value) == "groups must name at least one node group, got none"


def test_a_grace_so_long_that_cloudformation_would_roll_back_first_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^launch_grace must be at most 30 minutes, got 31 minutes: Cloud"):
        make_power(new_stack(), launch_grace=Duration.minutes(31))


def test_settings_that_lambda_does_not_take_are_refused() -> None:
    groups = {f"a-node-group-with-a-long-name-{number:03}": PowerGroup(count=1) for number in range(120)}

    with pytest.raises(ValueError, match=r"^settings of cluster_power must fit into 4096 bytes of environment, got"):
        make_power(new_stack(), groups=groups)


def test_fifty_groups_fit() -> None:
    make_power(new_stack(), groups={f"workers-of-team-{number:03}": PowerGroup(count=64) for number in range(50)})


def test_ids_that_are_known_at_deployment_only_are_counted_as_long_as_they_will_be() -> None:
    stack = new_stack()
    token = sns.Topic(stack, "Stand-in").topic_name

    with pytest.raises(ValueError, match=r"must fit into 4096 bytes"):
        make_power(
            stack,
            groups={f"extras-of-team-{number:02}": PowerGroup(count=64, spot_fleet_id=token) for number in range(50)},
        )


def test_thirty_spot_fleets_fit() -> None:
    stack = new_stack()
    token = sns.Topic(stack, "Stand-in").topic_name

    make_power(
        stack,
        groups={f"extras-of-team-{number:02}": PowerGroup(count=64, spot_fleet_id=token) for number in range(30)},
    )
