"""Which budget the function watches, where, and under which names."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from cluster_contract.billing import BILLING_REGION, BILLING_VARIABLE, BillingFunctionSettings
from cluster_contract.codec import InvalidSettingsError, decode

_FUNCTION_ARN = re.compile(r"arn:([a-z-]+):lambda:[a-z0-9-]+:([0-9]{12}):function:([^:]+)(?::.+)?")


@dataclass(frozen=True, kw_only=True)
class WatchedBudget(BillingFunctionSettings):
    """The function's settings, and where it runs.

    Attributes:
        function: The function's name.
        account: The account that the function runs in, whose charges the alarms watch.
    """

    function: str
    account: str

    @property
    def owner(self) -> str:
        """The name of the budget, as the tag on its topic says it."""
        return self.prefix.rstrip("/")

    @property
    def charged(self) -> str:
        """Whose charges the total is: a budget names linked accounts in a management account only."""
        return "the organization" if self.accounts else "this AWS account"

    @property
    def topic_arn(self) -> str:
        """The topic beside the alarms: an alarm notifies topics of its own region only."""
        return f"arn:aws:sns:{BILLING_REGION}:{self.account}:{self.owner.replace('/', '-')}"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], function_arn: str) -> "WatchedBudget":
        """Read the function's environment.

        Args:
            environment: The function's environment.
            function_arn: The function's ARN, which says the partition and the account.

        Raises:
            InvalidSettingsError: The partition has no billing metrics, or what is there is not what the construct
                writes.
        """
        place = _FUNCTION_ARN.fullmatch(function_arn)
        if place is None or place[1] != "aws":
            raise InvalidSettingsError(
                f"billing alarms need {BILLING_REGION}, which has the only billing metrics and is in the partition "
                f"aws; the function is {function_arn}: leave the budget out"
            )
        settings = decode(BillingFunctionSettings, environment, BILLING_VARIABLE)
        return cls(**vars(settings), function=place[3], account=place[2])
