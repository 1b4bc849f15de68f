"""The AWS budget's construct: what it counts, whom it notifies at what, and where it can be made."""

from typing import Any

import pytest
from aws_cdk import Stack
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns

from cdk_training_cluster import Budget, CostBudget, NodeGroup, TrainingCluster
from cdk_training_cluster.guardrails.money.cost_budget import REGIONS
from local_aws.cloudformation import schemas
from synthesis import new_stack, only, resources, warnings

HOME = "eu-west-1"
BUDGET = Budget(monthly_usd=20_000, thresholds=[50, 100], forecast_thresholds=[120], emails=["ml@example.com"])


def made(stack: Stack, **settings: Any) -> CostBudget:
    given = {"budget": BUDGET, "cluster_name": "pod", "alert_topic": sns.Topic(stack, "Alerts"), **settings}
    return CostBudget(stack, "Bill", **given)


def cluster(stack: Stack, region: str = HOME, **settings: Any) -> TrainingCluster:
    groups = [NodeGroup("workers", instance_types=["g5.xlarge"], count=1)]
    name, zone = settings.pop("cluster_name", "pod"), f"{region}b"
    return TrainingCluster(
        stack, "Cluster", availability_zone=zone, cluster_name=name, node_groups=groups, budget=BUDGET, **settings
    )


def test_the_cluster_s_bill_is_counted_by_its_tag_without_credits() -> None:
    stack = new_stack(region=HOME)
    made(stack)
    properties = only(stack, "AWS::Budgets::Budget")["Properties"]

    assert properties["Budget"] == {
        "BudgetType": "COST",
        "TimeUnit": "MONTHLY",
        "BudgetLimit": {"Amount": 20_000, "Unit": "USD"},
        "CostFilters": {"TagKeyValue": ["user:cdk-training-cluster:cluster$pod"]},
        "CostTypes": {"IncludeCredit": False, "IncludeRefund": False, "UseAmortized": True},
    }


def test_each_threshold_notifies_the_topic_and_every_address() -> None:
    stack = new_stack(region=HOME)
    made(stack)
    (topic,) = resources(stack, "AWS::SNS::Topic")
    told = only(stack, "AWS::Budgets::Budget")["Properties"]["NotificationsWithSubscribers"]

    assert [(one["Notification"]["NotificationType"], one["Notification"]["Threshold"]) for one in told] == [
        *(("ACTUAL", 50), ("ACTUAL", 100), ("FORECASTED", 120)),
    ]
    for one in told:
        assert one["Subscribers"] == [
            {"SubscriptionType": "SNS", "Address": {"Ref": topic}},
            {"SubscriptionType": "EMAIL", "Address": "ml@example.com"},
        ]


@pytest.mark.parametrize(("actual", "forecast", "sizes"), [(3, 2, [5]), (5, 1, [5, 1]), (2, 8, [5, 5])])
def test_every_five_notifications_have_a_budget_and_a_second_one_warns(
    actual: int, forecast: int, sizes: list[int]
) -> None:
    stack = new_stack(region=HOME)
    shares, forecasts = (list(range(1, 1 + count)) for count in (actual, forecast))
    made(stack, budget=Budget(monthly_usd=20_000, thresholds=shares, forecast_thresholds=forecasts))
    budgets = [each["Properties"] for each in resources(stack, "AWS::Budgets::Budget").values()]
    told = [each["NotificationsWithSubscribers"] for each in budgets]

    assert [len(each) for each in told] == sizes
    assert all(each["Budget"] == budgets[0]["Budget"] for each in budgets)
    assert len({str(one["Notification"]) for each in told for one in each}) == actual + forecast
    warned = [text for text in warnings(stack) if "manyNotifications" in text]
    assert [f"{actual + forecast} together" in text for text in warned] == [True] * (len(sizes) - 1)


def test_it_is_made_where_cloudformation_has_the_type() -> None:
    # Of CloudFormation's own lists; nothing of a region that has none is known.
    regions = [file.stem for file in (schemas.directory() / "providers").glob("*-*-*.json")]
    aws = [each for each in regions if not each.startswith(("cn-", "us-gov-", "us-iso", "eu-iso", "eusc-"))]
    assert {each for each in aws if schemas.is_in("AWS::Budgets::Budget", each)} == REGIONS


@pytest.mark.parametrize(
    ("region", "where"), [("eu-north-1", "eu-north-1"), (None, "a stack whose region is known at deployment only")]
)
def test_a_cluster_elsewhere_has_none_and_says_so(region: str | None, where: str) -> None:
    stack = new_stack(region=region)
    assert cluster(stack, region or HOME).cost_budget is None
    assert resources(stack, "AWS::Budgets::Budget") == {}
    (warning,) = [text for text in warnings(stack) if "noCostBudget" in text]
    assert f"pod has no AWS budget: CloudFormation cannot make one in {where}" in warning


def test_alone_it_is_refused_elsewhere() -> None:
    says = "budget must be left out in eu-north-1: CloudFormation has no AWS::Budgets::Budget there"
    with pytest.raises(ValueError, match=f"^{says}$"):
        made(new_stack(region="eu-north-1"))


def test_the_cluster_s_topic_and_its_key_let_aws_budgets_publish_before_it_is_made() -> None:
    stack = new_stack(region=HOME, account="111122223333")
    cluster(stack, encryption_key=kms.Key(stack, "Key"))
    ((name, policy),) = resources(stack, "AWS::SNS::TopicPolicy").items()
    statements = {one["Sid"]: one for one in policy["Properties"]["PolicyDocument"]["Statement"]}
    key = {one.get("Sid"): one for one in only(stack, "AWS::KMS::Key")["Properties"]["KeyPolicy"]["Statement"]}

    assert statements["BudgetsOfThisAccount"]["Principal"] == {"Service": "budgets.amazonaws.com"}
    assert statements["BudgetsOfThisAccount"]["Condition"] == statements["AlarmsOfThisAccount"]["Condition"]
    assert key["Budgets"] == {**key["Alarms"], "Sid": "Budgets", "Principal": {"Service": "budgets.amazonaws.com"}}
    assert name in only(stack, "AWS::Budgets::Budget")["DependsOn"]
