"""What Cost Explorer is asked, what its answers become, and what is said in place of an answer."""

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from cdk_training_cluster_cli.money.costs.bill import ask_bill
from cluster_contract.bill import MAX_REQUESTS, Bill
from recorded_costs import RecordedSession, group, result

_START, _END = date(2026, 11, 20), date(2026, 11, 22)
_REQUEST = {
    "TimePeriod": {"Start": "2026-11-20", "End": "2026-11-22"},
    "Granularity": "DAILY",
    "Metrics": ["AmortizedCost", "UsageQuantity"],
    "GroupBy": [{"Type": "DIMENSION", "Key": "SERVICE"}, {"Type": "DIMENSION", "Key": "USAGE_TYPE"}],
    "Filter": {
        "And": [
            {"Tags": {"Key": "cdk-training-cluster:cluster", "Values": ["pod"], "MatchOptions": ["EQUALS"]}},
            {"Dimensions": {"Key": "REGION", "Values": ["us-east-1"]}},
            {"Not": {"Dimensions": {"Key": "RECORD_TYPE", "Values": ["Credit", "Refund", "Tax"]}}},
        ]
    },
}
_EC2 = "Amazon Elastic Compute Cloud - Compute"


def asked(session: RecordedSession) -> Bill:
    bill = ask_bill(session.client("ce", region_name="us-east-1"), "pod", "us-east-1", _START, _END)
    session.explorer.assert_no_pending_responses()
    return bill


def answered(*pages: list[dict[str, Any]]) -> RecordedSession:
    session = RecordedSession()
    for number, page in enumerate(pages):
        more = {"NextPageToken": str(number)} if number < len(pages) - 1 else {}
        token = {"NextPageToken": str(number - 1)} if number else {}
        session.explorer.add_response("get_cost_and_usage", {"ResultsByTime": page, **more}, {**_REQUEST, **token})
    return session


def test_all_pages_are_one_bill_by_day_and_item() -> None:
    first = result(
        _START,
        group(_EC2, "USW2-BoxUsage:p5.48xlarge", "110.0800000000", 2),
        group(_EC2, "USW2-SpotUsage:p5.48xlarge", "20.5", 1),
        group(_EC2, "USW2-UnusedBox:p5.48xlarge", "55.04", 1),
    )
    second = result(
        _START,
        group(_EC2, "BoxUsage:p5.48xlarge", "55.04", 1),
        group("Amazon FSx", "EU-Storage", "3"),
        # A Local Zone's, and those of dedicated instances; the host is what is billed of one on a Dedicated Host.
        group(_EC2, "USW2-LAX1-BoxUsage:g5.48xlarge", "19.5", 1),
        group(_EC2, "EU-DedicatedUsage:p4d.24xlarge", "36", 1),
        group(_EC2, "USW2-UnusedDed:p4d.24xlarge", "35", 1),
        group(_EC2, "USW2-HostBoxUsage:p4d.24xlarge", "0", 1),
        group(_EC2, "USW2-HostUsage:p4d", "30", 1),
    )
    bill = asked(answered([first], [second], [result(date(2026, 11, 21))]))
    assert {(charge.item, charge.amount, charge.hours) for charge in bill.charges} == {
        ("p5.48xlarge", Decimal("165.12"), Decimal(3)),
        ("p5.48xlarge Spot", Decimal("20.5"), Decimal(1)),
        ("p5.48xlarge unused reservation", Decimal("55.04"), Decimal(1)),
        ("Amazon FSx", Decimal(3), None),
        ("g5.48xlarge", Decimal("19.5"), Decimal(1)),
        ("p4d.24xlarge Dedicated", Decimal(36), Decimal(1)),
        ("p4d.24xlarge unused reservation", Decimal(35), Decimal(1)),
        (_EC2, Decimal(30), None),
    }
    assert bill.by_day() == {date(2026, 11, 20): Decimal("364.16"), date(2026, 11, 21): 0}
    assert next(iter(bill.by_item())) == "p5.48xlarge"
    assert (bill.currency, bill.requests) == ("USD", 3)


_REFUSED = {
    "off": (
        "AccessDeniedException",
        "User not enabled for cost explorer access",
        "Cost Explorer is off for this account, or billing is closed to its IAM users: the management account turns "
        "it on, and the first figures come within 24 hours: "
        "https://docs.aws.amazon.com/cost-management/latest/userguide/ce-enable.html",
    ),
    "denied": (
        "AccessDeniedException",
        "User is not authorized to perform: ce:GetCostAndUsage with an explicit deny in a service control policy",
        "these credentials may not ask Cost Explorer: allow ce:GetCostAndUsage (User is not authorized to perform: "
        "ce:GetCostAndUsage with an explicit deny in a service control policy)",
    ),
    "no data yet": (
        "DataUnavailableException",
        "Data is not available. Please try to adjust the time period.",
        "Cost Explorer has no data of these days yet: after it is turned on, the first figures come within 24 hours: "
        "https://docs.aws.amazon.com/cost-management/latest/userguide/ce-enable.html",
    ),
    "throttled": (
        "LimitExceededException",
        "Rate exceeded",
        "Cost Explorer was asked too often: wait a minute and ask again",
    ),
    "throttled otherwise": (
        "ThrottlingException",
        "Rate exceeded",
        "Cost Explorer was asked too often: wait a minute and ask again",
    ),
    "expired": (
        "ExpiredTokenException",
        "The security token included in the request is expired",
        "the credentials have expired: run aws sso login, or get new ones",
    ),
    "unknown credentials": (
        "UnrecognizedClientException",
        "The security token included in the request is invalid.",
        "AWS does not know these credentials: check AWS_PROFILE, and that the keys are whole and active",
    ),
    "another": (
        "BillExpirationException",
        "gone",
        "Cost Explorer did not answer: An error occurred (BillExpirationException) when calling the GetCostAndUsage "
        "operation: gone",
    ),
}


@pytest.mark.parametrize(("code", "message", "sentence"), _REFUSED.values(), ids=_REFUSED)
def test_a_refusal_is_a_sentence(code: str, message: str, sentence: str) -> None:
    session = RecordedSession()
    session.explorer.add_client_error("get_cost_and_usage", code, message)
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole sentence is compared
        asked(session)
    assert str(caught.value) == sentence


def test_without_a_charge_the_tag_may_be_inactive() -> None:
    with pytest.raises(ValueError, match=r"no charge with the tag cdk-training-cluster:cluster = pod in us-east-1 "):
        asked(answered([result(_START), result(date(2026, 11, 21))]))


def test_no_more_is_asked_than_was_told_before() -> None:
    session = RecordedSession()
    for _ in range(MAX_REQUESTS):
        session.explorer.add_response("get_cost_and_usage", {"ResultsByTime": [], "NextPageToken": "more"})
    with pytest.raises(ValueError, match=r"^Cost Explorer has more than 20 pages of these days, and bills \$0\.01 "):
        asked(session)


def test_yuan_stay_yuan_and_two_currencies_have_no_sum() -> None:
    yuan = group(_EC2, "CNN1-BoxUsage:p4d.24xlarge", "9", unit="CNY")
    assert asked(answered([result(_START, yuan)])).currency == "CNY"
    with pytest.raises(ValueError, match=r"^Cost Explorer answers in CNY and USD, which have no common sum$"):
        asked(answered([result(_START, yuan, group("Amazon FSx", "Storage", "3"))]))
