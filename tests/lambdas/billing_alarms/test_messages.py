"""What the function publishes: missing metrics, unconfirmed addresses, charges at the start, what it left behind."""

import json
from collections.abc import Callable

import pytest

from billing_scene import ALERTS, MAIL, PREFIX, TOPIC, BillingScene, settled
from cluster_common.errors import PartialFailureError
from fake_service import ACCOUNT

LINKED = "222233334444"


def test_of_an_account_without_billing_metrics_a_message_comes_once_a_day_after_a_day(
    capsys: pytest.CaptureFixture[str],
) -> None:
    scene = BillingScene(accounts=(LINKED,))
    scene.cloudwatch.charges = {}
    for _ in range(3):
        assert scene.run()["no_billing_metrics_of"] == []
    scene.topics.confirm(MAIL)
    assert _points(capsys)["BillingSilentAccounts"] == [0, 0, 0]

    for day in range(1, 3):
        scene.pass_days(1)
        assert scene.run()["no_billing_metrics_of"] == [f"account {ACCOUNT}", f"linked account {LINKED}"]
        scene.run()
        assert len(scene.home.messages) == day
    assert _points(capsys)["BillingSilentAccounts"] == [2, 2, 2, 2]
    told = scene.home.messages[0]
    assert (told["TopicArn"], told["Subject"]) == (ALERTS, "base-pod: billing alarms have no metrics")
    assert f"of account {ACCOUNT}, linked account {LINKED}, so the billing alarms" in told["Message"]

    scene.cloudwatch.charges = {(None, None): 5.0, (LINKED, None): 2.0}
    scene.pass_days(1)
    assert scene.run()["no_billing_metrics_of"] == []
    assert len(scene.home.messages) == 2


def test_of_a_service_without_charges_for_a_week_a_message_comes_once_a_week() -> None:
    scene = settled(services=("AmazonEC2", "AmazonFSX"))
    scene.cloudwatch.charges[None, "AmazonEC2"] = 5.0
    for _ in range(13):
        scene.pass_days(1)
        said = scene.run()

    assert said["no_charges_yet_or_a_wrong_name"] == [f"AmazonFSX of account {ACCOUNT}"]
    assert said["no_billing_metrics_of"] == []
    (told,) = scene.home.messages
    assert f"for a week of AmazonFSX of account {ACCOUNT}. Either there are no charges yet, or" in told["Message"]


@pytest.mark.parametrize("value", ["tomorrow", "2062-01-01T00:00:00Z"])
def test_a_tag_that_was_changed_by_hand_silences_no_message(value: str) -> None:
    scene = settled()
    scene.cloudwatch.charges = {}
    scene.cloudwatch.evaluate()
    scene.pass_days(2)
    scene.topics.topics[TOPIC]["tags"]["cdk-training-cluster:billing-told-silent"] = value

    assert scene.run()["no_billing_metrics_of"] == [f"account {ACCOUNT}"]
    assert len(scene.home.messages) == 1


@pytest.mark.parametrize(
    ("operation", "metric"),
    [("DescribeAlarms", "BillingSilentAccounts"), ("ListTagsForResource", "BillingUnconfirmedAddresses")],
)
def test_what_could_not_be_read_is_never_reported_as_well(
    operation: str, metric: str, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = settled()
    service = scene.cloudwatch if operation == "DescribeAlarms" else scene.topics
    service.fail_next(operation, "Throttling")
    _points(capsys)
    with pytest.raises(PartialFailureError):
        scene.run()

    points = _points(capsys)
    assert points["BillingEvaluations"] == [0]
    assert metric not in points


def test_an_address_that_is_not_confirmed_is_asked_again_and_reported_once_a_week(
    capsys: pytest.CaptureFixture[str],
) -> None:
    scene = BillingScene(emails=(MAIL, "second@example.com"))
    scene.run()
    scene.topics.confirm(MAIL)
    for _ in range(13):
        scene.pass_days(1)
        scene.run()
        scene.topics.expire()

    assert scene.topics.asked == [MAIL, "second@example.com", "second@example.com"]
    told = [message["Message"] for message in scene.home.messages]
    assert len(told) == 2
    assert "second@example.com" in told[0]
    assert MAIL not in told[0]
    assert _points(capsys)["BillingUnconfirmedAddresses"][-1] == 1


def test_charges_above_a_threshold_from_the_start_reach_an_address_that_is_confirmed_later() -> None:
    scene = BillingScene()
    scene.cloudwatch.charges[None, None] = 17_000.0
    scene.run()
    said = scene.run()

    reached = [f"{PREFIX}total/50", f"{PREFIX}total/80"]
    assert said["reached"] == reached
    (told,) = scene.home.messages
    assert f"are in alarm: {', '.join(reached)}" in told["Message"]
    scene.topics.confirm(MAIL)
    scene.cloudwatch.rung.clear()
    for _ in range(3):
        scene.run()
    assert scene.cloudwatch.rung == reached
    assert len(scene.home.messages) == 1


REMOVALS: dict[str, tuple[Callable[[BillingScene], object], str]] = {
    "denied": (
        lambda scene: scene.cloudwatch.fail_next("DeleteAlarms", "AccessDenied"),
        "base-pod: the alarms could not be removed (AccessDenied",
    ),
    "throttled": (
        lambda scene: scene.topics.fail_next("DeleteTopic", "Throttled"),
        "base-pod: the topic could not be removed (Throttled",
    ),
}


@pytest.mark.parametrize(("fault", "left"), REMOVALS.values(), ids=REMOVALS)
def test_what_could_not_be_removed_is_in_a_message(fault: Callable[[BillingScene], object], left: str) -> None:
    scene = settled()
    fault(scene)

    assert left in scene.remove()
    (message,) = scene.home.messages
    assert message["Subject"] == "base-pod: billing alarms were left behind"
    assert scene.topics.topics[TOPIC]["published"] == message["Message"]
    for part in (
        left,
        f"start with {PREFIX},",
        f"--alarm-name-prefix {PREFIX} ",
        f"\n\naws sns delete-topic --region us-east-1 --topic-arn {TOPIC}\n",
    ):
        assert part in message["Message"]
    assert scene.functions.reserved == 0


def _points(capsys: pytest.CaptureFixture[str]) -> dict[str, list[float]]:
    """Return the values of each metric that was written since the last look."""
    points: dict[str, list[float]] = {}
    for line in capsys.readouterr().out.splitlines():
        record = json.loads(line)
        for group in record.get("_aws", {}).get("CloudWatchMetrics", []):
            assert group["Dimensions"] == [["Cluster"]]
            for metric in group["Metrics"]:
                points.setdefault(metric["Name"], []).extend(record[metric["Name"]])
    return points
