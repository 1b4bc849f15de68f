"""Asks Cost Explorer for a cluster's bill, and says in a sentence why there is none.

GetCostForecast takes no tag and Cost Explorer's recommendations are of whole accounts, so that neither speaks of one
cluster: https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_GetCostForecast.html
"""

from datetime import date

from cdk_training_cluster_cli.core.session import about_credentials, refusal
from cluster_contract.bill import Bill, CostExplorer, fetch_bill

MAX_DAYS = 393
"""The 13 months before this one that Cost Explorer keeps, where they are shortest: with two Februaries of 28 days.

https://docs.aws.amazon.com/cost-management/latest/userguide/ce-api-best-practices.html
"""
ENABLING = "https://docs.aws.amazon.com/cost-management/latest/userguide/ce-enable.html"


def ask_bill(client: CostExplorer, cluster: str, region: str, start: date, end: date) -> Bill:
    """Return what a cluster was billed.

    Args:
        client: Cost Explorer.
        cluster: The cluster's name.
        region: Its region.
        start: The first day.
        end: The day after the last.

    Raises:
        ValueError: Cost Explorer refuses, or has nothing with the cluster's tag.
    """
    try:
        return fetch_bill(client, cluster, region, start, end)
    except ValueError:
        raise
    except Exception as error:
        raise ValueError(_sentence(str(refusal(error)), str(error))) from error


def _sentence(code: str, message: str) -> str:
    """Say why Cost Explorer does not answer, and what to do."""
    credentials = about_credentials(code)
    if credentials is not None:
        return credentials
    if "not enabled for cost explorer" in message.lower():
        return (
            "Cost Explorer is off for this account, or billing is closed to its IAM users: the management account "
            f"turns it on, and the first figures come within 24 hours: {ENABLING}"
        )
    too_often = "Cost Explorer was asked too often: wait a minute and ask again"
    return {
        # A policy of the organization denies with the same code; only AWS's sentence says which one did.
        "AccessDeniedException": "these credentials may not ask Cost Explorer: allow ce:GetCostAndUsage "
        f"({message.rpartition(' operation: ')[2].rstrip('.')})",
        "DataUnavailableException": "Cost Explorer has no data of these days yet: after it is turned on, the first "
        f"figures come within 24 hours: {ENABLING}",
        "LimitExceededException": too_often,
        "ThrottlingException": too_often,
    }.get(code, f"Cost Explorer did not answer: {message.rstrip('.')}")
