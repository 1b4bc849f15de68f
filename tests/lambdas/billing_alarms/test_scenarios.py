"""What the function does with alarms, topic and addresses."""

import json
from typing import Any

import pytest

from billing_alarms.billing import Request
from billing_alarms.topic import topic_policy
from billing_scene import ALERTS, MAIL, OTHERS, PREFIX, TOPIC, BillingScene, settled
from cluster_common.errors import PartialFailureError

LINKED = "222233334444"
UPDATED = "AlarmConfigurationUpdatedTimestamp"


def test_a_first_run_makes_the_topic_then_its_subscriptions_then_the_alarms() -> None:
    scene = BillingScene(services=("AmazonEC2",), accounts=(LINKED,), thresholds=(80.0,))
    said = scene.run()

    order = [each for each in scene.requests if each.startswith(("Create", "Put", "Subscribe", "Tag"))]
    assert scene.topics.asked == [MAIL]
    assert [operation for operation, _ in scene.topics.requests[-3:]] == ["CreateTopic", "Subscribe", "TagResource"]
    assert order.count("PutMetricAlarm") == 4
    assert scene.own_alarms == {"total/80", "AmazonEC2/80", f"{LINKED}/80", f"{LINKED}/AmazonEC2/80"}
    assert json.loads(scene.topics.topics[TOPIC]["policy"]) == topic_policy(scene.settings)
    assert {each["action"] for each in said["alarms"]} == {"create"}
    assert said["waiting_for_confirmation"] == [MAIL]


def test_an_alarm_is_what_aws_documents_for_estimated_charges() -> None:
    scene = settled(services=("AmazonEC2",), accounts=(LINKED,), thresholds=(80.0,))
    alarm = scene.cloudwatch.alarms[f"{PREFIX}{LINKED}/AmazonEC2/80"]
    total = scene.cloudwatch.alarms[f"{PREFIX}total/80"]

    assert (
        alarm
        | {
            "Namespace": "AWS/Billing",
            "MetricName": "EstimatedCharges",
            "Dimensions": [
                {"Name": "Currency", "Value": "USD"},
                {"Name": "LinkedAccount", "Value": LINKED},
                {"Name": "ServiceName", "Value": "AmazonEC2"},
            ],
            "Statistic": "Maximum",
            "Period": 21_600,
            "Threshold": 16_000.0,
            "AlarmActions": [TOPIC],
        }
        == alarm
    )
    assert total["AlarmDescription"].startswith("Estimated charges of the organization this month have reached")
    assert alarm["AlarmDescription"] == (
        f"Estimated charges of the linked account {LINKED} for AmazonEC2 this month have reached 16,000.00 USD, "
        "80 percent of the budget of 20,000.00 USD for base-pod. They count everything that the linked account "
        f"{LINKED} is charged for, not base-pod alone, and are hours late. Cost Explorer shows which services and "
        "resources cost most; stop what is not needed."
    )


def test_a_run_with_nothing_to_do_changes_nothing() -> None:
    scene = settled()
    # SNS gives a policy back in other words.
    policy = topic_policy(scene.settings)
    policy["Statement"][0]["Action"] = ["sns:Publish"]
    scene.topics.topics[TOPIC]["policy"] = json.dumps(policy)
    said = scene.run()

    assert sorted(scene.requests) == [
        "DescribeAlarms",
        "GetTopicAttributes",
        "ListSubscriptionsByTopic",
        "ListTagsForResource",
    ]
    assert {each["action"] for each in said["alarms"]} == {"keep"}
    assert said["waiting_for_confirmation"] == []


def test_a_first_run_over_20_alarms_makes_at_most_10_calls_beside() -> None:
    scene = BillingScene(services=("AmazonEC2", "AmazonFSx", "AmazonS3"), thresholds=(10.0, 20.0, 50.0, 80.0, 100.0))
    scene.run()

    assert len(scene.own_alarms) == 20
    assert len(scene.requests) - 20 <= 10


HAND: dict[str, tuple[dict[str, Any], str]] = {
    "threshold": ({"Threshold": 9e9}, "Threshold was 9000000000.0, should be 16000.0"),
    "no action": ({"AlarmActions": []}, f"AlarmActions was None, should be ['{TOPIC}']"),
    "another action": ({"OKActions": [ALERTS]}, f"OKActions was ['{ALERTS}'], should be None"),
    "an expression": ({"Metrics": [{"Id": "m1"}]}, "Metrics was [{'Id': 'm1'}], should be None"),
}


@pytest.mark.parametrize(("change", "reason"), HAND.values(), ids=HAND)
def test_an_alarm_that_was_changed_by_hand_is_repaired(change: dict[str, Any], reason: str) -> None:
    scene = settled()
    name = f"{PREFIX}total/80"
    before = dict(scene.cloudwatch.alarms[name])
    scene.cloudwatch.alarms[name].update(change)

    found = {each["name"]: each for each in scene.run()["alarms"] if each["action"] != "keep"}

    assert found == {name: {"name": name, "action": "update", "reason": reason}}
    assert before == {**scene.cloudwatch.alarms[name], UPDATED: before[UPDATED]}


def test_what_was_deleted_by_hand_comes_back_and_what_is_superfluous_goes() -> None:
    scene = settled()
    del scene.cloudwatch.alarms[f"{PREFIX}total/50"]
    scene.cloudwatch.alarms[f"{PREFIX}total/75"] = {"AlarmName": f"{PREFIX}total/75"}
    scene.topics.topics[TOPIC]["policy"] = "{}"
    scene.run()

    assert scene.own_alarms == {"total/50", "total/80", "total/100"}
    assert json.loads(scene.topics.topics[TOPIC]["policy"]) == topic_policy(scene.settings)
    del scene.topics.topics[TOPIC]
    scene.run()
    assert scene.topics.asked == [MAIL, MAIL]
    assert scene.cloudwatch.alarms["of-another-team"] == OTHERS


FAULTS: dict[str, tuple[str, str, str | None]] = {
    "a throttled alarm": ("PutMetricAlarm", "Throttling", f"{PREFIX}total/80"),
    "too many alarms": ("PutMetricAlarm", "LimitExceeded", f"{PREFIX}total/100"),
    "a refused address": ("Subscribe", "InvalidParameter", MAIL),
    "a denied topic": ("CreateTopic", "AuthorizationError", None),
    "a topic that cannot be read": ("ListTagsForResource", "Throttled", None),
    "alarms that cannot be read": ("DescribeAlarms", "Throttling", None),
    "tags that cannot be written": ("TagResource", "ConcurrentAccess", None),
}


@pytest.mark.parametrize(("operation", "code", "name"), FAULTS.values(), ids=FAULTS)
def test_what_a_failed_run_did_not_finish_the_next_one_does(operation: str, code: str, name: str | None) -> None:
    scene = BillingScene()
    service = scene.cloudwatch if "Alarm" in operation else scene.topics
    if operation == "TagResource":
        scene.topics.before_next("Subscribe", MAIL, lambda: service.fail_next(operation, code))
    else:
        service.fail_next(operation, code, group=name)

    with pytest.raises(PartialFailureError, match=code):
        scene.run()

    # No alarm without its topic.
    assert not scene.own_alarms or TOPIC in scene.topics.topics
    scene.run()
    scene.run()
    assert scene.own_alarms == {"total/50", "total/80", "total/100"}
    assert scene.topics.asked == [MAIL]


def test_a_topic_of_that_name_of_another_owner_is_left_alone() -> None:
    scene = BillingScene()
    scene.topics.topics[TOPIC] = {"tags": {}, "subscriptions": {}, "policy": "{}"}

    with pytest.raises(PartialFailureError, match="not this budget's: rename or move the stack; or"):
        scene.run()

    assert scene.own_alarms == set()
    assert "not this budget's" in scene.remove()
    assert scene.topics.topics[TOPIC]["policy"] == "{}"


def test_two_clusters_in_an_account_have_alarms_of_their_own_and_a_removal_takes_those_alone() -> None:
    scene = settled()
    other = BillingScene(prefix="base-pod-2-cluster/eu-west-1/billing-5e6f7a8b/", monthly_usd=100.0)
    other.cloudwatch.alarms = scene.cloudwatch.alarms
    other.topics.topics = scene.topics.topics
    other.run()
    before = dict(scene.cloudwatch.alarms)
    scene.run()

    assert scene.cloudwatch.alarms == before
    assert len(before) == 7
    assert scene.remove() == scene.remove() == ""
    assert len(scene.cloudwatch.alarms) == 4
    assert scene.cloudwatch.alarms["of-another-team"] == OTHERS
    assert list(scene.topics.topics) == [other.settings.topic_arn]
    assert scene.functions.reserved == 0


def test_5000_alarms_of_others_cost_no_call() -> None:
    scene = settled()
    scene.cloudwatch.alarms |= {f"alarm-{number}": {"AlarmName": f"alarm-{number}"} for number in range(5000)}
    scene.run()

    assert scene.requests.count("DescribeAlarms") == 1
    scene.cloudwatch.alarms |= {f"{PREFIX}x/{number}": {"AlarmName": f"{PREFIX}x/{number}"} for number in range(250)}
    scene.forget()
    scene.run(Request.STATUS)
    assert scene.requests.count("DescribeAlarms") == 3
    assert scene.remove() == ""
    assert scene.requests.count("DeleteAlarms") == 3
    assert len(scene.cloudwatch.alarms) == 5001


def test_status_changes_nothing() -> None:
    scene = BillingScene()
    said = scene.run(Request.STATUS)

    assert {each["action"] for each in said["alarms"]} == {"create"}
    assert scene.own_alarms == set()
    assert scene.topics.topics == {}


def test_an_address_that_leaves_the_budget_leaves_topic_and_tags_and_others_stay() -> None:
    scene = settled(emails=(MAIL, "second@example.com"))
    topic = scene.topics.topics[TOPIC]
    before = len(topic["tags"])
    topic["subscriptions"]["chat@example.com"] = f"{TOPIC}:chat"
    scene.settings = BillingScene(emails=("second@example.com",)).settings
    scene.run()
    scene.run()

    assert set(topic["subscriptions"]) == {"second@example.com", "chat@example.com"}
    assert len(topic["tags"]) == before - 1


def test_a_subscription_that_was_deleted_is_asked_for_again() -> None:
    scene = settled()
    scene.topics.topics[TOPIC]["subscriptions"][MAIL] = "Deleted"

    assert scene.run()["waiting_for_confirmation"] == [MAIL]
    assert scene.topics.asked[1:] == [MAIL]


def test_an_alarm_that_was_muted_notifies_after_the_repair() -> None:
    scene = settled()
    scene.cloudwatch.alarms[f"{PREFIX}total/80"]["AlarmActions"] = []
    scene.cloudwatch.charges[None, None] = 17_000.0
    scene.run()
    scene.cloudwatch.rung.clear()
    scene.run()

    assert scene.cloudwatch.rung == [f"{PREFIX}total/80"]
