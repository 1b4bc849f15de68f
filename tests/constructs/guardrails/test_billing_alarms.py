"""The billing alarms' construct: what a budget may be, its settings, and what it may do."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from aws_cdk import App, CfnParameter, Environment, Stack, Stage
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from aws_cdk.assertions import Template

from billing_alarms.decisions import decide
from billing_alarms.watched_budget import WatchedBudget
from billing_scene import ALERTS, BILLING, PREFIX, TOPIC, BillingScene
from cdk_training_cluster import BillingAlarms, Budget, NodeGroup, OnExceed, TrainingCluster
from cdk_training_cluster.validation import text_problems
from fake_service import ACCOUNT
from policy_evaluator import Call, is_allowed, resolve, role_statements, unused
from synthesis import new_stack, only, resources, warnings

HOME = "eu-west-1"
MAIL = "ml@example.com"
FUNCTION = f"arn:aws:lambda:{HOME}:{ACCOUNT}:function:billing"
BUDGET = Budget(
    monthly_usd=20_000, services=["AmazonEC2"], linked_accounts=["222233334444"], emails=[MAIL, "second@example.com"]
)


def made(stack: Stack | None = None, budget: Budget = BUDGET, **settings: Any) -> BillingAlarms:
    stack = stack or new_stack(region=HOME)
    topic = sns.Topic(stack, "Alerts")
    topic.add_subscription(subscriptions.EmailSubscription(MAIL))
    return BillingAlarms(stack, "Billing", **{"budget": budget, "name": "pod", "alert_topic": topic, **settings})


def template_of(alarms: BillingAlarms) -> dict[str, Any]:
    return dict(Template.from_stack(Stack.of(alarms)).to_json())


def values_of(template: dict[str, Any]) -> dict[str, str]:
    kinds = {name: resource["Type"] for name, resource in template["Resources"].items()}
    return {
        "AWS::AccountId": ACCOUNT,
        "AWS::Partition": "aws",
        "AWS::Region": HOME,
        **{name: f"arn:aws:sns:{HOME}:{ACCOUNT}:alerts" for name, kind in kinds.items() if kind == "AWS::SNS::Topic"},
        **{
            f"{name}.Arn": f"arn:aws:logs:x:{name}:*" for name, kind in kinds.items() if kind == "AWS::Logs::LogGroup"
        },
        **{f"{name}.Arn": FUNCTION for name, kind in kinds.items() if kind == "AWS::Lambda::Function"},
        **{f"{name}.Arn": f"arn:aws:sqs:x:{name}" for name, kind in kinds.items() if kind == "AWS::SQS::Queue"},
    }


def read(alarms: BillingAlarms) -> WatchedBudget:
    """Return what the function reads of what the construct writes."""
    template = template_of(alarms)
    (function,) = (one for one in template["Resources"].values() if one["Type"] == "AWS::Lambda::Function")
    variables = resolve(function["Properties"]["Environment"]["Variables"], values_of(template))
    return WatchedBudget.from_environment(variables, FUNCTION)


def test_the_function_reads_the_budget_and_makes_as_many_alarms_as_it_says() -> None:
    settings = read(made())

    assert replace(settings, prefix="", alert_topic_arn="") == WatchedBudget(
        cluster="pod",
        prefix="",
        function="billing",
        account=ACCOUNT,
        monthly_usd=20_000.0,
        thresholds=(50.0, 80.0, 100.0),
        services=("AmazonEC2",),
        accounts=("222233334444",),
        emails=(MAIL, "second@example.com"),
        alert_topic_arn="",
    )
    assert settings.prefix.startswith(f"Test/{HOME}/billing-")
    scene = BillingScene(services=settings.services, accounts=settings.accounts, thresholds=settings.thresholds)
    scene.run()
    assert len(scene.own_alarms) == BUDGET.alarm_count == 12


def test_the_names_of_the_longest_budget_are_within_cloudwatchs_and_snss_limits() -> None:
    settings = replace(
        read(made(name="n" * 128)),
        prefix=f"{'s' * 128}/ap-southeast-5/billing-1a2b3c4d/",
        services=("S" * 64,),
        thresholds=(999.999,),
    )
    for alarm in decide(settings, []):
        assert alarm.request is not None
        assert text_problems("name", alarm.name, "alarmName") == []
        assert text_problems("description", alarm.request["AlarmDescription"], "alarmDescription") == []
    assert text_problems("topic", settings.topic_arn.rpartition(":")[2], "topicName") == []


def test_two_budgets_never_have_names_in_common() -> None:
    stack = new_stack(region=HOME)
    first = made(stack)
    second = BillingAlarms(stack, "Second", budget=BUDGET, name="pod", alert_topic=sns.Topic(stack, "More"))
    template = Template.from_stack(stack).to_json()
    prefixes = {
        json.loads(one["Properties"]["Environment"]["Variables"]["BILLING_ALARMS_SETTINGS"])["prefix"]
        for one in template["Resources"].values()
        if one["Type"] == "AWS::Lambda::Function"
    }

    assert len(prefixes) == len({first, second})
    assert len({len(prefix) for prefix in prefixes}) == 1


def test_a_stack_that_moves_into_a_stage_keeps_its_alarms() -> None:
    prefixes = {
        read(made(Stack(scope, name, stack_name="pod", env=Environment(region=HOME)))).prefix
        for scope, name in ((App(), "Pod"), (Stage(App(), "Production"), "PodStack"))
    }

    assert len(prefixes) == 1


def test_the_removal_is_deleted_after_the_schedule_and_before_all_that_it_needs() -> None:
    template = template_of(made())
    found = template["Resources"]
    (removal,) = (name for name, one in found.items() if one["Type"] == "AWS::CloudFormation::CustomResource")
    (schedule,) = (one for one in found.values() if one["Type"] == "AWS::Scheduler::Schedule")
    needed = {found[name]["Type"] for name in found[removal]["DependsOn"]}

    assert removal in schedule["DependsOn"]
    assert {
        "AWS::IAM::Policy",
        "AWS::IAM::Role",
        "AWS::Lambda::EventInvokeConfig",
        "AWS::Lambda::Function",
        "AWS::Logs::LogGroup",
        "AWS::SNS::Subscription",
        "AWS::SNS::Topic",
    } <= needed
    assert found[removal]["Properties"]["ServiceTimeout"] == 900


def test_a_removal_waits_for_a_tick_and_is_answered_before_cloudformation_gives_up() -> None:
    alarms = made()
    stack = Stack.of(alarms)
    function = only(stack, "AWS::Lambda::Function")["Properties"]
    events = only(stack, "AWS::Lambda::EventInvokeConfig")["Properties"]

    assert function["ReservedConcurrentExecutions"] == 1
    assert function["Timeout"] < events["MaximumEventAgeInSeconds"]
    assert function["Timeout"] + events["MaximumEventAgeInSeconds"] < 900
    only(stack, "AWS::Scheduler::Schedule", {"ScheduleExpression": "rate(5 minutes)"})


def a_life(settings: WatchedBudget) -> Sequence[Call]:
    """Do all that is ever done, from the first run to the removal."""
    scene = BillingScene()
    scene.settings = settings
    scene.cloudwatch.charges[None, None] = 1e6
    scene.run()
    scene.run()
    for address in settings.emails:
        scene.topics.confirm(address, settings.topic_arn)
    scene.topics.topics[settings.topic_arn]["policy"] = "{}"
    for _ in range(3):
        scene.run()
        scene.settings = replace(settings, emails=settings.emails[:1], services=())
    scene.cloudwatch.fail_next("DeleteAlarms", "Throttling")
    scene.remove()
    scene.remove()
    assert scene.own_alarms == set()
    return [
        *scene.calls,
        *(
            Call(action=action, resource="arn:aws:logs:x:Logs:1")
            for action in ("logs:CreateLogStream", "logs:PutLogEvents")
        ),
        Call(action="sqs:SendMessage", resource="arn:aws:sqs:x:Queue"),
    ]


def test_the_policy_allows_what_the_function_does_and_no_more() -> None:
    alarms = made()
    template = template_of(alarms)
    (function,) = (one for one in template["Resources"].values() if one["Type"] == "AWS::Lambda::Function")
    values = values_of(template)
    values |= {name: "arn:aws:logs:x:Logs:*" for name, value in values.items() if value.startswith("arn:aws:logs")}
    values |= {name: "arn:aws:sqs:x:Queue" for name, value in values.items() if value.startswith("arn:aws:sqs")}
    statements = role_statements(template, function["Properties"]["Role"]["Fn::GetAtt"][0], values)
    settings = read(alarms)
    calls = [
        replace(call, resource=f"arn:aws:sns:{HOME}:{ACCOUNT}:alerts") if call.resource == ALERTS else call
        for call in a_life(settings)
    ]

    assert [call for call in calls if not is_allowed(statements, call)] == []
    assert unused(statements, calls) == []
    foreign = (
        Call(
            action="cloudwatch:DeleteAlarms",
            resource=f"arn:aws:cloudwatch:{BILLING}:{ACCOUNT}:alarm:{PREFIX}total/80",
        ),
        Call(
            action="cloudwatch:PutMetricAlarm",
            resource=f"arn:aws:cloudwatch:{HOME}:{ACCOUNT}:alarm:{settings.prefix}x",
        ),
        Call(action="cloudwatch:DescribeAlarms", resource="*", context={"aws:RequestedRegion": HOME}),
        Call(action="sns:DeleteTopic", resource=TOPIC),
        Call(action="sns:Subscribe", resource=settings.topic_arn, context={"sns:Protocol": "https"}),
        Call(action="sns:Unsubscribe", resource="*", context={"aws:RequestedRegion": HOME}),
        Call(action="sns:Publish", resource=TOPIC),
        Call(action="lambda:PutFunctionConcurrency", resource=f"{FUNCTION}-of-somebody-else"),
    )
    assert [call for call in foreign if is_allowed(statements, call)] == []


_AT_MOST = "and at most 1000000000000"
_FROM_A_CENT = "from 0.01 to 1000000000000"

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no money": ({"monthly_usd": 0}, f"monthly_usd must be {_FROM_A_CENT}, got 0"),
    "a slip": (
        {"monthly_usd": 1e308},
        f"monthly_usd must be {_FROM_A_CENT}, got 1e+308",
    ),
    "nan": ({"monthly_usd": float("nan")}, f"monthly_usd must be a number {_FROM_A_CENT}, got nan"),
    "infinite": (
        {"monthly_usd": float("inf")},
        f"monthly_usd must be a number {_FROM_A_CENT}, got inf",
    ),
    "a flag": ({"monthly_usd": True}, f"monthly_usd must be a number {_FROM_A_CENT}, got True"),
    "text": ({"monthly_usd": "20000"}, f"monthly_usd must be a number {_FROM_A_CENT}, got '20000'"),
    "no threshold": ({"thresholds": []}, "thresholds must hold at least one percentage, such as 100, got none"),
    "a threshold of 0": ({"thresholds": [0]}, "thresholds must be from 0.1 to 1000, got 0"),
    "a threshold above": ({"thresholds": [1001]}, "thresholds must be from 0.1 to 1000, got 1001"),
    "a threshold twice": (
        {"thresholds": [50, 50.0]},
        "thresholds must be different, got 50 2 times: leave out all but one",
    ),
    "one threshold": (
        {"thresholds": 80},
        "thresholds must be a list, each item of it a number, got 80",
    ),
    "services as text": (
        {"services": "AmazonEC2"},
        "services must be a list, each item of it text, got 'AmazonEC2'",
    ),
    "a service's title": (
        {"services": ["Amazon EC2"]},
        "services must be names of billing metrics, such as AmazonEC2, got 'Amazon EC2'",
    ),
    **{
        name: ({"services": [name]}, f"services must be names of billing metrics, got {name!r}: write {right}")
        for name, right in (("EC2", "AmazonEC2"), ("AmazonFSX", "AmazonFSx"), ("AmazonLambda", "AWSLambda"))
    },
    "a service twice": (
        {"services": ["AmazonS3", "AmazonS3"]},
        "services must be different, got AmazonS3 2 times: leave out all but one",
    ),
    "an account as a number": (
        {"linked_accounts": [111122223333]},
        "linked_accounts must be 12 digits, as text, got 111122223333",
    ),
    "an account too short": ({"linked_accounts": ["1"]}, "linked_accounts must be 12 digits, as text, got '1'"),
    "an address": (
        {"emails": ["me"]},
        "emails must have the form of an e-mail address, such as ml-platform@example.com, got 'me': write it in that "
        "form",
    ),
    "too many addresses": (
        {"emails": [f"m{number}@example.com" for number in range(11)]},
        "emails must be at most 10, got 11: use a mailing list",
    ),
    "too many alarms": (
        {"services": [f"Service{number}" for number in range(33)]},
        "thresholds, services and linked_accounts must make at most 100 alarms, got 102: leave some out",
    ),
    "too many notifications": (
        {"thresholds": range(1, 9), "forecast_thresholds": [1, 2, 3]},
        "thresholds and forecast_thresholds must be at most 10 together, got 11: leave some out",
    ),
    "a forecast twice": (
        {"forecast_thresholds": [100, 100]},
        "forecast_thresholds must be different, got 100 2 times: leave out all but one",
    ),
    "a word": (
        {"on_exceed": "stop"},
        "on_exceed must be OnExceed.NOTIFY or OnExceed.NO_NEW_NODES or OnExceed.STOP, got 'stop'",
    ),
    "a short warning": ({"warning_minutes": 9}, "warning_minutes must be from 10 to 660, got 9"),
    "no rate": ({"max_usd_per_hour": 0}, f"max_usd_per_hour must be above 0 {_AT_MOST}, got 0"),
    "several": (
        {"monthly_usd": -1, "services": ["?"]},
        f"monthly_usd must be {_FROM_A_CENT}, got -1\n"
        "services must be names of billing metrics, such as AmazonEC2, got '?'",
    ),
}


@pytest.mark.parametrize(("settings", "says"), WRONG.values(), ids=WRONG)
def test_a_wrong_budget_is_refused_in_one_sentence_a_problem(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match="must") as refused:
        Budget(**{"monthly_usd": 100, **settings})

    assert str(refused.value) == says


def test_a_budget_says_what_the_clusters_own_dollars_set_off() -> None:
    budget = Budget(
        monthly_usd=20_000, thresholds=[100], max_usd_per_hour=99.5, on_exceed=OnExceed.STOP, warning_minutes=45
    )
    assert list(budget.describe_spend()) == [
        "Cluster's dollars: alarms at 100 % (20,000 USD) of a month's 20,000 USD",
        "  when the month is forecast to reach 100 % (20,000 USD)",
        "  above 99.50 USD an hour",
        "  at the whole budget: node groups are stopped 45 minutes after a warning",
    ]
    quiet = Budget(monthly_usd=5, thresholds=[100], forecast_thresholds=[])
    assert list(quiet.describe_spend()) == [
        "Cluster's dollars: alarms at 100 % (5 USD) of a month's 5 USD",
        "  at the whole budget: the alert topic is notified, and the nodes run on",
    ]
    *_, effect = replace(quiet, on_exceed=OnExceed.NO_NEW_NODES).describe_spend()
    assert effect == "  at the whole budget: no new nodes are started"


def test_an_amount_that_only_the_deployment_knows_is_refused() -> None:
    amount = CfnParameter(new_stack(), "Amount", type="Number").value_as_number
    with pytest.raises(
        ValueError,
        match=r"^monthly_usd must be known when the template is made, got a token, which is known at deployment only",
    ):
        Budget(monthly_usd=amount)


@pytest.mark.parametrize(
    ("region", "partition"), [("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov"), ("us-iso-east-1", "aws-iso")]
)
def test_a_region_without_billing_metrics_is_refused(region: str, partition: str) -> None:
    with pytest.raises(ValueError, match="budget") as refused:
        made(new_stack(region=region))

    assert str(refused.value) == (
        f"budget must be left out in {region}: billing metrics exist in us-east-1 only, which the partition "
        f"{partition} does not have"
    )


def test_a_stack_without_a_region_can_have_a_budget() -> None:
    assert read(made(new_stack(region=None))).prefix.startswith(f"Test/{HOME}/billing-")


def test_what_is_no_budget_and_no_name_is_refused() -> None:
    with pytest.raises(ValueError, match="budget") as refused:
        made(budget=20_000, name="")  # type: ignore[arg-type]  # what is tried

    assert str(refused.value) == (
        "budget must be a Budget, such as Budget(monthly_usd=20_000), got 20000\n"
        "name must be text of 1 to 128 characters, got ''"
    )


def test_a_budget_without_subscribers_warns() -> None:
    (warning,) = warnings(Stack.of(made(budget=Budget(monthly_usd=5))))

    assert "no address receives the billing alarms of pod" in warning
    assert "cdk-training-cluster:noBudgetEmails" in warning


def test_a_cluster_has_billing_alarms_where_it_has_a_budget() -> None:
    stack = new_stack(region=HOME)
    groups = [NodeGroup("workers", instance_types=["g5.xlarge"], count=1)]
    cluster = TrainingCluster(
        stack, "Cluster", availability_zone=f"{HOME}b", cluster_name="pod", node_groups=groups, budget=BUDGET
    )

    assert cluster.billing_alarms is not None
    assert cluster.billing_alarms.budget is BUDGET
    assert len(resources(stack, "AWS::CloudFormation::CustomResource")) == 1
    with pytest.raises(ValueError, match="budget must be a Budget, such as Budget"):
        TrainingCluster(stack, "Other", availability_zone=f"{HOME}b", node_groups=groups, budget=5)  # type: ignore[arg-type]  # what is tried
