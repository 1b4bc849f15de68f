"""AWS budgets.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-budgets-budget.html
"""

from typing import Any

from local_aws.cloudformation.resources.base import Attributes, Call, Handler, Properties


class _Budget(Handler):
    """A budget: with other notifications or another name it is replaced, and without a name AWS makes one."""

    type = "AWS::Budgets::Budget"
    supported = frozenset({"Budget", "NotificationsWithSubscribers", "ResourceTags"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        budget = _as_asked(properties)
        budget.setdefault("BudgetName", call.physical_name(100))
        more = {name: value for name, value in properties.items() if name != "Budget"}
        call.client("budgets").create_budget(AccountId=call.account, Budget=budget, **more)
        call.made(budget["BudgetName"])
        return {}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        self.only_changed(properties, before, "Budget")
        new = {**_as_asked(properties), "BudgetName": call.physical_id}
        call.client("budgets").update_budget(AccountId=call.account, NewBudget=new)
        return {}

    def delete(self, call: Call) -> None:
        call.client("budgets").delete_budget(AccountId=call.account, BudgetName=call.physical_id)


def _as_asked(properties: Properties) -> dict[str, Any]:
    """Return the budget as the service takes it: an amount is text there."""
    budget = dict(properties["Budget"])
    limit = budget.get("BudgetLimit")
    return {**budget, "BudgetLimit": {**limit, "Amount": f"{limit['Amount']:f}"}} if limit else budget


HANDLERS: tuple[Handler, ...] = (_Budget(),)
