"""AWS Budgets: what it refuses of a budget, and what moto cannot change or tell.

Sources: https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_budgets_CreateBudget.html,
https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_budgets_NotificationWithSubscribers.html and
https://docs.aws.amazon.com/cost-management/latest/userguide/budgets-sns-policy.html
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any

from moto.sns.models import sns_backends

from local_aws.policies import Call, as_list, is_allowed
from local_aws.refusal import Refusal
from local_aws.services.keys import DATA_KEYS, usable

_SERVICE = "budgets.amazonaws.com"
_MOST_SUBSCRIBERS = {"EMAIL": 10, "SNS": 1}
# CloudFormation's and the API's documents say both "up to five notifications" and ten.
# https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-resource-budgets-budget.html and
# https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_budgets_Notification.html
_MOST_NOTIFICATIONS = 5
# What a filter by tag is written with: the tag of a user, or one that AWS makes.
# https://docs.aws.amazon.com/cost-management/latest/userguide/budgets-create-filters.html
_TAG = re.compile(r"(user|aws):[^$]+\$.*")


def checked(original: Callable[[Any], str]) -> Callable[[Any], str]:
    """Return CreateBudget so that it reads the budget, its notifications and their topics first."""

    @wraps(original)
    def create_budget(response: Any) -> str:
        _check(response._get_param("Budget"))
        _check_notifications(response._get_param("NotificationsWithSubscribers") or [], response.current_account)
        return original(response)

    return create_budget


def update_budget(response: Any) -> str:
    """Change everything of a budget but its name, notifications and tags."""
    account, new = response._get_param("AccountId"), response._get_param("NewBudget")
    response.backend.describe_budget(account, new["BudgetName"])
    _check(new)
    kept = response.backend.budgets[account][new["BudgetName"]]
    kept.budget = {"TimePeriod": kept.budget["TimePeriod"], **new}
    return "{}"


def describe_subscribers_for_notification(response: Any) -> str:
    """Say who is notified of what."""
    account, name = response._get_param("AccountId"), response._get_param("BudgetName")
    response.backend.describe_budget(account, name)
    wanted = _plain(response._get_param("Notification"))
    for one in response.backend.budgets[account][name].notifications:
        if _plain(one.details) == wanted:
            return json.dumps({"Subscribers": one.subscribers})
    raise Refusal("NotFoundException", "Unable to get notification - the notification doesn't exist.")


def _check(budget: Mapping[str, Any]) -> None:
    new, old = {"FilterExpression", "Metrics"} & budget.keys(), {"CostFilters", "CostTypes"} & budget.keys()
    if new and old:
        raise Refusal("InvalidParameterException", f"Only one of {sorted(new)} and {sorted(old)} can be present")
    for tag in (budget.get("CostFilters") or {}).get("TagKeyValue", []):
        if not _TAG.fullmatch(tag):
            raise Refusal(
                "InvalidParameterException",
                f"{tag} is not of the form user:key$value. (AWS takes such a budget, which stays at 0 for ever.)",
            )


def _check_notifications(notifications: Sequence[Mapping[str, Any]], account: str) -> None:
    said = [_plain(each["Notification"]) for each in notifications]
    if len(said) != len({json.dumps(one) for one in said}):
        raise Refusal("DuplicateRecordException", "Unable to create notification - the notification already exists.")
    if len(notifications) > _MOST_NOTIFICATIONS:
        raise Refusal(
            "CreationLimitExceededException", f"one budget can only have {_MOST_NOTIFICATIONS} notifications"
        )
    for each in notifications:
        for problem in _problems(each["Subscribers"], account):
            raise problem


def _problems(subscribers: Sequence[Mapping[str, str]], account: str) -> Iterator[Refusal]:
    for kind, count in Counter(one["SubscriptionType"] for one in subscribers).items():
        most = _MOST_SUBSCRIBERS[kind]
        if count > most:
            yield Refusal(
                "CreationLimitExceededException",
                f"one notification can only have {most} subscribers with type of {kind}",
            )
    for one in subscribers:
        if one["SubscriptionType"] == "SNS":
            yield from _problems_of_a_topic(one["Address"], account)


def _problems_of_a_topic(arn: str, account: str) -> Iterator[Refusal]:
    """Yield why AWS Budgets cannot publish to a topic; AWS's console says so, and its messages are lost otherwise."""
    _, _, _, region, owner, _ = arn.split(":", 5)
    topic = sns_backends[owner][region].topics.get(arn)
    call = Call(
        action="sns:Publish",
        resource=arn,
        context={"aws:SourceAccount": account, "aws:SecureTransport": "true"},
        principal=_SERVICE,
    )
    if topic is None or owner != account or not is_allowed(as_list(json.loads(topic.policy)["Statement"]), call):
        yield Refusal("InvalidParameterException", f"Invalid SNS topic: AWS Budgets doesn't have access to {arn}")
    elif topic.kms_master_key_id and not usable(topic.kms_master_key_id, owner, region, _SERVICE, *DATA_KEYS):
        yield Refusal(
            "InvalidParameterException", f"The SNS topic is encrypted: AWS Budgets cannot use the key of {arn}"
        )


def _plain(notification: Mapping[str, Any]) -> list[Any]:
    """Return what makes a notification another one."""
    return [
        notification["NotificationType"],
        notification["ComparisonOperator"],
        float(notification["Threshold"]),
        notification.get("ThresholdType", "PERCENTAGE"),
    ]
