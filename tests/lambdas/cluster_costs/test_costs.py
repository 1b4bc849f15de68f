"""The weekly report: sent once, made up for where a run fails, and readable."""

from datetime import date, timedelta

import pytest
from botocore.exceptions import ClientError

from cluster_contract.bill import MAX_REQUESTS
from cost_scene import TUESDAY, CostScene


def test_the_report_says_the_week_beside_the_weeks_before() -> None:
    scene = CostScene()
    assert scene.run(TUESDAY) == {"cluster": "pod", "week_before": "2026-11-23", "sent": True}
    ((title, text),) = scene.reports
    assert title == "pod: costs of the week to 2026-11-22"
    assert text.splitlines() == [
        "pod was billed 8,286.74 USD from 2026-11-16 to 2026-11-22.",
        "The 28 days before cost 7,231.70 USD a week in the mean.",
        "",
        "      8,000.00  p5.48xlarge",
        "        231.70  Amazon FSx",
        "         55.04  p5.48xlarge unused reservation",
        "",
        "2026-11-19 was a spike: it cost 2,033.10 USD, above the limit of 1,136.41.",
        "No node ran in reserved p5.48xlarge that cost 55.04 USD.",
        "Credits, refunds and taxes are left out. For the idle share and for what would have cost less, run: "
        "training-cluster costs with the cluster file.",
        "Cost Explorer bills this report at $0.01.",
    ]


def test_each_week_is_sent_once_from_tuesday_on(capsys: pytest.CaptureFixture[str]) -> None:
    scene = CostScene()
    ticks = [TUESDAY - timedelta(days=1) + timedelta(hours=6 * tick) for tick in range(4 * 14)]
    sent = [(now.date(), answer["week_before"]) for now in ticks if (answer := scene.run(now))["sent"]]
    assert sent == [
        (date(2026, 11, 23), "2026-11-16"),  # the first comes with the deployment
        (date(2026, 11, 24), "2026-11-23"),
        (date(2026, 12, 1), "2026-11-30"),
    ]
    assert len(scene.explorer.calls) == 3
    assert capsys.readouterr().out.count('"SuccessfulCostTicks":[1.0]') == len(ticks)


@pytest.mark.parametrize(
    ("service", "operation", "code"),
    [
        ("explorer", "GetCostAndUsage", "LimitExceededException"),
        ("explorer", "GetCostAndUsage", "AccessDeniedException"),
        ("topic", "Publish", "ThrottledException"),
        ("dynamodb", "GetItem", "ProvisionedThroughputExceededException"),
        ("dynamodb", "PutItem", "ProvisionedThroughputExceededException"),
    ],
)
def test_what_fails_is_no_success_and_the_next_run_sends_it(
    service: str, operation: str, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = CostScene()
    getattr(scene, service).fail_next(operation, code)
    with pytest.raises(ClientError):
        scene.run(TUESDAY)
    assert "SuccessfulCostTicks" not in capsys.readouterr().out
    assert scene.run(TUESDAY + timedelta(hours=6))["sent"] is True
    assert scene.run(TUESDAY + timedelta(hours=12))["sent"] is False


def test_cost_explorer_is_asked_once_for_a_report_that_the_topic_refuses() -> None:
    scene = CostScene()
    for tick in range(3):
        scene.topic.fail_next("Publish", "ThrottledException")
        with pytest.raises(ClientError):
            scene.run(TUESDAY + timedelta(hours=6 * tick))
    assert scene.run(TUESDAY + timedelta(days=1))["sent"] is True
    assert len(scene.explorer.calls) == 1
    assert scene.reports[-1][1].startswith("pod was billed 8,286.74 USD")
    # A report that was never sent is not sent in place of the next week's.
    scene.topic.fail_next("Publish", "ThrottledException")
    with pytest.raises(ClientError):
        scene.run(TUESDAY + timedelta(days=7))
    assert scene.run(TUESDAY + timedelta(days=14))["week_before"] == "2026-12-07"
    assert scene.reports[-1][1].splitlines()[0].endswith("from 2026-11-30 to 2026-12-06.")


def test_a_bill_of_too_many_pages_is_asked_for_once_a_week() -> None:
    scene = CostScene()
    scene.explorer.is_endless = True
    assert [scene.run(TUESDAY + timedelta(hours=6 * tick))["sent"] for tick in range(3)] == [True, False, False]
    assert len(scene.explorer.calls) == MAX_REQUESTS
    ((_, text),) = scene.reports
    assert text.startswith("Cost Explorer has more than 20 pages of these days, and bills $0.01 each: ")


def test_without_a_charge_the_report_says_how_to_activate_the_tag() -> None:
    scene = CostScene()
    scene.explorer.first = date.max
    assert scene.run(TUESDAY)["sent"] is True
    ((_, text),) = scene.reports
    assert text.startswith("Cost Explorer has no charge with the tag cdk-training-cluster:cluster = pod in us-east-1")
    assert text.endswith("TagKey=cdk-training-cluster:cluster,Status=Active\n")


@pytest.mark.parametrize("days", [7, 11])
def test_a_bill_that_has_begun_lately_is_compared_with_nothing(days: int) -> None:
    scene = CostScene()
    scene.explorer.first = date(2026, 11, 23) - timedelta(days=days)
    scene.run(TUESDAY)
    ((_, text),) = scene.reports
    assert text.splitlines()[1].startswith(f"Nothing was billed before {scene.explorer.first} in these 35 days: ")
    assert [line[:10] for line in text.splitlines() if "spike" in line or "a week" in line] == ["2026-11-19"]
