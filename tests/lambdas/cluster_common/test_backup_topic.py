"""A message that the alert topic refuses goes to the backup topic, and counts as sent."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cluster_common.errors import PartialFailureError
from cluster_common.messages import publish
from cluster_contract.codec import BACKUP_TOPIC_VARIABLE
from cluster_contract.spend import OnExceed
from idle_scene import TOPIC, IdleScene
from power_scene import FakeSns, Scene
from spend_scene import SpendScene

BACKUP = "arn:aws:sns:us-east-1:111122223333:backup"


@pytest.fixture(autouse=True)
def backup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BACKUP_TOPIC_VARIABLE, BACKUP)


def lose_topic(sns: FakeSns, *, backup: bool = True) -> None:
    """Delete the alert topic, and the backup topic, too, if it is not to take messages."""
    sns.fails, sns.takes = "NotFound", {BACKUP} if backup else set()


def topics(sns: FakeSns) -> list[str]:
    return [message["TopicArn"] for message in sns.messages]


def test_the_backup_topic_gets_nothing_that_the_topic_takes() -> None:
    sns: Any = FakeSns()
    assert publish(sns, TOPIC, "nodes are idle", "text")
    assert topics(sns) == [TOPIC]


def test_the_backup_topic_gets_what_the_topic_refuses_with_the_reason() -> None:
    sns: Any = FakeSns()
    lose_topic(sns)
    assert not publish(sns, TOPIC, "nodes are idle", "text")
    assert sns.messages == [
        {
            "TopicArn": BACKUP,
            "Subject": "nodes are idle",
            "Message": f"text\n\nThe backup topic got this message, because {TOPIC} refused it: NotFound: no",
        }
    ]


@pytest.mark.parametrize("configured", [True, False])
def test_a_message_that_no_topic_takes_fails_with_the_refusal_of_the_first(
    configured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sns: Any = FakeSns()
    lose_topic(sns, backup=False)
    if not configured:
        monkeypatch.delenv(BACKUP_TOPIC_VARIABLE)
    with pytest.raises(ClientError, match="NotFound"):
        publish(sns, TOPIC, "nodes are idle", "text")
    assert [call.resource for call in sns.calls] == [TOPIC, BACKUP][: 1 + configured]


def _failed_notifications(capsys: pytest.CaptureFixture[str]) -> float:
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return sum(float(record.get("IdleFailedNotifications", [0])[0]) for record in records)


def test_a_warning_that_the_backup_topic_took_is_followed_by_the_stop(capsys: pytest.CaptureFixture[str]) -> None:
    scene = IdleScene()
    node = scene.add()
    lose_topic(scene.sns)
    scene.tick()
    assert (topics(scene.sns), node.state) == ([BACKUP], "running")
    # The alarm FailedNotifications reports the topic all the same.
    assert _failed_notifications(capsys) == 1

    scene.ticks(25)
    assert node.state == "running"
    scene.ticks(10)
    assert node.state in ("stopping", "stopped")


def test_a_node_is_not_stopped_where_neither_topic_takes_the_warning() -> None:
    scene = IdleScene()
    node = scene.add()
    lose_topic(scene.sns, backup=False)
    for _ in range(12):
        with pytest.raises(PartialFailureError, match="the notification could not be published"):
            scene.tick()
    assert node.state == "running"


@pytest.mark.parametrize("takes", [True, False])
def test_a_warning_that_no_subscriber_reads_goes_to_the_backup_topic_too(
    takes: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = IdleScene()
    scene.add()
    scene.sns.confirmed = "0"
    if not takes:
        scene.sns.fails, scene.sns.takes = "NotFound", {TOPIC}
    scene.tick()
    assert topics(scene.sns) == [TOPIC, BACKUP][: 1 + takes]
    assert _failed_notifications(capsys) == 1


def test_a_budget_stops_nodes_after_a_warning_that_the_backup_topic_took() -> None:
    scene = SpendScene(details={"monthly_usd": 100.0, "thresholds": (100.0,), "on_exceed": OnExceed.STOP})
    group = scene.deploy(2)
    scene.tick(0)
    lose_topic(scene.sns)
    scene.tick(60)
    assert (topics(scene.sns), group.desired) == ([BACKUP], 2)
    scene.tick(30)
    assert (topics(scene.sns), group.desired) == ([BACKUP] * 2, 0)


def test_an_alert_of_the_power_function_that_the_backup_topic_took_is_sent_once() -> None:
    scene = Scene()
    scene.add(capacity=3)
    scene.order()
    lose_topic(scene.sns)
    scene.minute(3)
    assert topics(scene.sns) == [BACKUP]
