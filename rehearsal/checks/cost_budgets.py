"""AWS budgets of a cluster's bill: the amount, what they count, and who is notified at what."""

from collections.abc import Iterator, Mapping
from typing import Any

from rehearsal.checks.check import Check, Deployment, Facts
from rehearsal.templates import of_type

_TYPE = "AWS::Budgets::Budget"


def _said(deployment: Deployment) -> Facts:
    return {
        one.id: _facts(
            one.properties["Budget"],
            ((each["Notification"], each["Subscribers"]) for each in one.properties["NotificationsWithSubscribers"]),
        )
        for one in of_type(deployment.resources, _TYPE)
    }


def _found(deployment: Deployment) -> Facts:
    names = {one.id for one in of_type(deployment.resources, _TYPE)}
    if not names:
        return {}
    client = deployment.client("budgets")
    account = deployment.client("sts").get_caller_identity()["Account"]
    found = client.describe_budgets(AccountId=account)["Budgets"]
    return {
        budget["BudgetName"]: _facts(budget, _notifications(client, account, budget["BudgetName"]))
        for budget in found
        if budget["BudgetName"] in names
    }


def _notifications(client: Any, account: str, name: str) -> Iterator[tuple[Mapping[str, Any], Any]]:
    asked = {"AccountId": account, "BudgetName": name}
    for notification in client.describe_notifications_for_budget(**asked)["Notifications"]:
        yield (
            notification,
            client.describe_subscribers_for_notification(**asked, Notification=notification)["Subscribers"],
        )


def _facts(budget: Mapping[str, Any], notifications: Any) -> Mapping[str, Any]:
    return {
        "monthly_usd": float(budget["BudgetLimit"]["Amount"]),
        "counts": budget["CostFilters"],
        "notifications": sorted(
            (what["NotificationType"], float(what["Threshold"]), sorted(each["Address"] for each in subscribers))
            for what, subscribers in notifications
        ),
    }


COST_BUDGETS = Check("AWS budget", _said, _found)
