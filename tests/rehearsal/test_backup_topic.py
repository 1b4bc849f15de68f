"""The alert topic is deleted: warnings of idle nodes and alarms arrive at the backup topic, and the stop follows."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from aws_cdk import App, Environment, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs

from cdk_training_cluster.functions import forward_alarms
from cluster_contract.codec import BACKUP_TOPIC_VARIABLE
from idle_on_aws import IdleOnAws
from local_aws import LocalAws

_ALARM = "FailedNotifications"


def _template(name: str, topic: str, backup: str, region: str) -> dict[str, Any]:
    """Return a stack with an alarm of the cluster, one of another, and what forwards the cluster's."""
    app = App()
    stack = Stack(app, name, env=Environment(region=region))
    for cluster in (name, f"{name}-2"):
        cloudwatch.Alarm(
            stack,
            f"Of{cluster}",
            alarm_name=f"{cluster}-{_ALARM}",
            alarm_description=f'{cluster}: warnings do not arrive. Send {{"action": "status"}}',
            metric=cloudwatch.Metric(namespace="N", metric_name="M"),
            threshold=1,
            evaluation_periods=1,
        )
    forward_alarms(
        stack,
        name,
        alert_topic=sns.Topic.from_topic_arn(stack, "Alerts", topic),
        backup=sns.Topic.from_topic_arn(stack, "Backup", backup),
        queue=sqs.Queue(stack, "Failed"),
    )
    template: dict[str, Any] = app.synth().get_stack_by_name(name).template
    return {"Resources": template["Resources"]}


def _queue(aws: LocalAws, topic: str) -> Callable[[], list[dict[str, Any]]]:
    """Subscribe a queue to a topic, and return what receives its messages."""
    client = aws.client("sqs")
    url = client.create_queue(QueueName=topic.rpartition(":")[2])["QueueUrl"]
    arn = client.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    aws.client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)

    def receive() -> list[dict[str, Any]]:
        found = client.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        for message in found:
            client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return [json.loads(message["Body"]) for message in found]

    return receive


def _ring(aws: LocalAws, cluster: str, state: str = "ALARM") -> None:
    aws.client("cloudwatch").set_alarm_state(
        AlarmName=f"{cluster}-{_ALARM}", StateValue=state, StateReason='a point was "1"'
    )


def test_without_the_alert_topic_the_backup_gets_warnings_and_alarms(
    aws: LocalAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = IdleOnAws(aws, "lost-topic")
    backup = aws.client("sns").create_topic(Name="lost-topic-backup")["TopicArn"]
    received = _queue(aws, backup)
    aws.client("cloudformation").create_stack(
        StackName=cluster.name,
        TemplateBody=json.dumps(_template(cluster.name, cluster.topic, backup, aws.region)),
        Capabilities=["CAPABILITY_IAM"],
    )
    monkeypatch.setenv(BACKUP_TOPIC_VARIABLE, backup)
    idle = cluster.launch()
    aws.client("sns").delete_topic(TopicArn=cluster.topic)

    cluster.run()
    (warning,) = received()
    assert warning["Subject"] == "lost-topic: 1 node idle, stopped in 30 minutes"
    assert f"because {cluster.topic} refused it: NotFound" in warning["Message"]

    for name in (f"{cluster.name}-2", cluster.name, cluster.name):  # the last one changes no state
        _ring(aws, name)
    _ring(aws, cluster.name, "OK")
    (alarm,) = received()
    told = json.loads(alarm["Message"])
    assert told.pop("time").endswith("Z")
    assert told == {
        "alarm": f"{cluster.name}-{_ALARM}",
        "description": f'{cluster.name}: warnings do not arrive. Send {{"action": "status"}}',
        "reason": 'a point was "1"',
    }

    cluster.run(after=30)
    assert cluster.states(idle) == ["stopped"]

    # Without the backup topic, too, an alarm goes to the queue of failed events.
    aws.client("sns").delete_topic(TopicArn=backup)
    _ring(aws, cluster.name)
    (failed,) = (url for url in aws.client("sqs").list_queues()["QueueUrls"] if "Failed" in url)
    (event,) = aws.client("sqs").receive_message(QueueUrl=failed)["Messages"]
    assert json.loads(event["Body"])["detail"]["alarmName"] == f"{cluster.name}-{_ALARM}"
