"""The names under which the billing alarms' function reports; a test compares them with what it writes."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class BillingMetrics:
    """The metrics of the billing alarms, one point a run each.

    Attributes:
        evaluations: 1 for a run in which nothing failed, else 0.
        silent_accounts: How many accounts have no billing metrics, so that their alarms never go off.
        unconfirmed_addresses: How many addresses have not confirmed their subscription.
    """

    evaluations: str
    silent_accounts: str
    unconfirmed_addresses: str


BILLING_METRICS = BillingMetrics(
    evaluations="BillingEvaluations",
    silent_accounts="BillingSilentAccounts",
    unconfirmed_addresses="BillingUnconfirmedAddresses",
)
"""What the function reports."""
