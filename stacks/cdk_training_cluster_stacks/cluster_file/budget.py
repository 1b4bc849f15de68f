"""What the account may cost: `budget:` in a cluster file."""

from typing import Annotated

from pydantic import Field

from cdk_training_cluster import Budget
from cdk_training_cluster.guardrails.budget import MONTHLY_USD, THRESHOLD
from cdk_training_cluster_stacks.cluster_file import fields
from cdk_training_cluster_stacks.cluster_file.settings import Settings

_Usd = Annotated[float, fields.within(MONTHLY_USD)]
_Percent = Annotated[float, fields.within(THRESHOLD)]


class BudgetSettings(Settings):
    """What the AWS account may cost in a month; alarms in us-east-1 go off at shares of it."""

    monthly_usd: _Usd = Field(examples=[20000])
    """The budget in USD a month. AWS reports charges by account, so it is for all that the account does."""

    thresholds: Annotated[tuple[_Percent, ...], Field(min_length=1)] = Field(
        default=(50, 80, 100), examples=[[50, 80, 100]]
    )
    """The shares at which alarms go off, in percent: above 0, at most 1000."""

    services: tuple[fields.BilledService, ...] = Field(default=(), examples=[["AmazonEC2", "AmazonFSx"]])
    """Services with alarms of their own, under the names that AWS's billing metrics have."""

    linked_accounts: tuple[fields.AccountId, ...] = Field(default=(), examples=[["111122223333"]])
    """Accounts of the organization with alarms of their own, in quotes. Only the management account has them."""

    emails: tuple[fields.Email, ...] | None = Field(default=None, examples=[["ml-platform@example.com"]])
    """Addresses that get the alarms; AWS asks each one to confirm first. Left out: those of alerts."""

    def to_budget(self, alert_emails: tuple[str, ...] = ()) -> Budget:
        """Return the budget as the constructs take it.

        Args:
            alert_emails: The addresses that hear of other trouble.

        Raises:
            ValueError: The settings contradict each other; every reason, a line each.
        """
        return Budget(
            monthly_usd=self.monthly_usd,
            thresholds=self.thresholds,
            services=self.services,
            linked_accounts=self.linked_accounts,
            emails=alert_emails if self.emails is None else self.emails,
        )
