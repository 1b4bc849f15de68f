"""What AWS Budgets refuses, what it keeps of a budget, and which change of its template makes a new one."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_aws import LocalAws
from local_aws.defaults import ACCOUNT
from local_aws_scene import Stacks, Template

_SERVICE = "budgets.amazonaws.com"


def _topic(aws: LocalAws, name: str = "alerts", service: str = _SERVICE, **attributes: str) -> str:
    arn = f"arn:aws:sns:us-east-1:{ACCOUNT}:{name}"
    statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sns:Publish", "Resource": arn}
    statement["Condition"] = {"StringEquals": {"aws:SourceAccount": ACCOUNT}}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    return str(aws.client("sns").create_topic(Name=name, Attributes={"Policy": policy, **attributes})["TopicArn"])


def _told(*subscribers: str, threshold: float = 80, kind: str = "ACTUAL") -> dict[str, Any]:
    return {
        "Notification": {"NotificationType": kind, "ComparisonOperator": "GREATER_THAN", "Threshold": threshold},
        "Subscribers": [
            {"SubscriptionType": "SNS" if each.startswith("arn:") else "EMAIL", "Address": each}
            for each in subscribers
        ],
    }


_BUDGET: dict[str, Any] = {
    "BudgetType": "COST",
    "TimeUnit": "MONTHLY",
    "BudgetLimit": {"Amount": 100, "Unit": "USD"},
    "CostFilters": {"TagKeyValue": ["user:team:cluster$pod"]},
}


def _template(*notifications: dict[str, Any], **budget: Any) -> Template:
    properties = {"Budget": _BUDGET | budget, "NotificationsWithSubscribers": list(notifications)}
    return {"Resources": {"Budget": {"Type": "AWS::Budgets::Budget", "Properties": properties}}}


def _refusal(aws: LocalAws, *notifications: dict[str, Any], **budget: Any) -> tuple[str, str]:
    asked = {**_BUDGET, "BudgetName": "refused", "BudgetLimit": {"Amount": "100", "Unit": "USD"}, **budget}
    with pytest.raises(ClientError) as refused:
        aws.client("budgets").create_budget(
            AccountId=ACCOUNT, Budget=asked, NotificationsWithSubscribers=list(notifications)
        )
    error = refused.value.response["Error"]
    return error["Code"], error["Message"]


def test_a_budget_with_wrong_notifications_is_refused(aws: LocalAws) -> None:
    mails = [f"m{number}@example.com" for number in range(11)]
    topics = [_topic(aws), _topic(aws, "more")]
    key = aws.client("kms").create_key()["KeyMetadata"]["Arn"]
    invalid, limit = "InvalidParameterException", "CreationLimitExceededException"

    def refused(*notifications: dict[str, Any], **budget: Any) -> tuple[str, str]:
        return _refusal(aws, *notifications, **budget)

    many = [_told(mails[0], threshold=number) for number in range(1, 12)]
    assert refused(*many)[1].endswith("length less than or equal to 10")
    assert refused(*many[:6]) == (limit, "one budget can only have 5 notifications")
    assert refused(_told(*mails)) == (limit, "one notification can only have 10 subscribers with type of EMAIL")
    assert refused(_told(*topics)) == (limit, "one notification can only have 1 subscribers with type of SNS")
    assert refused(many[0], many[0])[0] == "DuplicateRecordException"
    strange = _topic(aws, "strange", "cloudwatch.amazonaws.com")
    assert refused(_told(strange)) == (invalid, f"Invalid SNS topic: AWS Budgets doesn't have access to {strange}")
    assert refused(_told(_topic(aws, "sealed", KmsMasterKeyId=key)))[1].startswith("The SNS topic is encrypted")
    assert refused(CostFilters={"TagKeyValue": ["team$pod"]})[0] == invalid
    assert refused(BudgetName="a:b")[0] == "ValidationException"
    assert refused(Metrics=["UnblendedCost"])[0] == invalid


def test_a_budget_tells_who_is_notified_and_is_replaced_with_other_notifications(
    aws: LocalAws, stacks: Stacks
) -> None:
    budgets, told = aws.client("budgets"), _told(_topic(aws), "a@example.com")
    name = stacks.create(_template(told))
    first = stacks.physical_ids(name)["Budget"]
    notification = told["Notification"] | {"ThresholdType": "PERCENTAGE"}
    asked = {"AccountId": ACCOUNT, "BudgetName": first, "Notification": notification}
    assert budgets.describe_subscribers_for_notification(**asked)["Subscribers"] == told["Subscribers"]

    stacks.update(name, _template(told, BudgetLimit={"Amount": 250.5, "Unit": "USD"}))
    assert stacks.physical_ids(name)["Budget"] == first
    changed = budgets.describe_budget(AccountId=ACCOUNT, BudgetName=first)["Budget"]
    assert float(changed["BudgetLimit"]["Amount"]) == 250.5
    stacks.update(name, _template(told, _told("a@example.com", kind="FORECASTED")))
    (second,) = (each["BudgetName"] for each in budgets.describe_budgets(AccountId=ACCOUNT)["Budgets"])
    assert stacks.physical_ids(name)["Budget"] == second != first

    stacks.api.delete_stack(StackName=name)
    assert budgets.describe_budgets(AccountId=ACCOUNT)["Budgets"] == []


def test_a_region_without_the_type_refuses_the_whole_template(aws: LocalAws) -> None:
    with pytest.raises(
        ClientError, match=r"Template format error: Unrecognized resource types: \[AWS::Budgets::Budget]"
    ):
        aws.client("cloudformation", "eu-north-1").create_stack(
            StackName="north", TemplateBody=json.dumps(_template(_told("a@example.com")))
        )
