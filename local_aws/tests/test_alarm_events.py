"""Alarms that change their state are events, which rules bring to topics that they may publish to."""

import json
from typing import Any

import pytest

from local_aws import LocalAws

_TRUST = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "events.amazonaws.com"}}
_PATTERN = {"source": ["aws.cloudwatch"], "detail": {"configuration": {"description": [{"prefix": "pod: "}]}}}


def _document(statement: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


class _Alarms:
    """An alarm, a rule with a dead-letter queue, and a topic with a queue as its subscriber."""

    def __init__(self, aws: LocalAws) -> None:
        self.aws = aws
        self.topic = aws.client("sns").create_topic(Name="alarms")["TopicArn"]
        self.urls = {
            name: aws.client("sqs").create_queue(QueueName=name)["QueueUrl"]
            for name in ("alarms-read", "alarms-dead")
        }
        self.arns = {name: f"arn:aws:sqs:{aws.region}:{aws.account}:{name}" for name in self.urls}
        aws.client("sns").subscribe(TopicArn=self.topic, Protocol="sqs", Endpoint=self.arns["alarms-read"])
        aws.client("events").put_rule(Name="alarms", EventPattern=json.dumps(_PATTERN))
        aws.client("cloudwatch").put_metric_alarm(
            AlarmName="it",
            AlarmDescription="pod: broken",
            Namespace="N",
            MetricName="M",
            Statistic="Sum",
            Period=60,
            EvaluationPeriods=1,
            Threshold=1,
            ComparisonOperator="GreaterThanThreshold",
        )

    def target(self, **more: Any) -> None:
        dead = {"Arn": self.arns["alarms-dead"]}
        target = {"Id": "1", "Arn": self.topic, "DeadLetterConfig": dead, **more}
        self.aws.client("events").put_targets(Rule="alarms", Targets=[target])

    def ring(self) -> tuple[list[str], int]:
        """Change the alarm's state twice, and return what the topic's subscriber got and how many events are dead."""
        for state in ("ALARM", "OK", "OK"):
            self.aws.client("cloudwatch").set_alarm_state(AlarmName="it", StateValue=state, StateReason=state)
        read, dead = (self._receive(url) for url in self.urls.values())
        return [json.loads(each)["Message"] for each in read], len(dead)

    def _receive(self, url: str) -> list[str]:
        client = self.aws.client("sqs")
        found = client.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        for message in found:
            client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return [message["Body"] for message in found]


@pytest.fixture(scope="module")
def alarms(aws: LocalAws) -> _Alarms:
    return _Alarms(aws)


def test_a_topic_that_does_not_let_eventbridge_publish_gets_nothing(alarms: _Alarms) -> None:
    alarms.target()
    assert alarms.ring() == ([], 2)
    allowed = {
        "Effect": "Allow",
        "Principal": {"Service": "events.amazonaws.com"},
        "Action": "sns:Publish",
        "Resource": alarms.topic,
    }
    alarms.aws.client("sns").set_topic_attributes(
        TopicArn=alarms.topic, AttributeName="Policy", AttributeValue=_document(allowed)
    )
    got, dead = alarms.ring()
    assert ([json.loads(each)["detail"]["state"]["value"] for each in got], dead) == (["ALARM", "OK"], 0)


@pytest.mark.parametrize(("trusts", "may", "delivered"), [(True, True, 2), (True, False, 0), (False, True, 0)])
def test_a_role_publishes_that_trusts_eventbridge_and_may(
    alarms: _Alarms, trusts: bool, may: bool, delivered: int
) -> None:
    iam, name = alarms.aws.client("iam"), f"publisher-{trusts}-{may}"
    service = "events.amazonaws.com" if trusts else "lambda.amazonaws.com"
    role = iam.create_role(
        RoleName=name, AssumeRolePolicyDocument=_document({**_TRUST, "Principal": {"Service": service}})
    )["Role"]["Arn"]
    resource = alarms.topic if may else f"{alarms.topic}-2"
    statement = {"Effect": "Allow", "Action": "sns:Publish", "Resource": resource}
    iam.put_role_policy(RoleName=name, PolicyName="it", PolicyDocument=_document(statement))
    paths = {"alarm": "$.detail.alarmName", "why": "$.detail.state.reason"}
    template = '{"alarm": <alarm>, "why": <why>}'
    alarms.target(RoleArn=role, InputTransformer={"InputPathsMap": paths, "InputTemplate": template})
    got, dead = alarms.ring()
    assert (len(got), dead) == (delivered, 2 - delivered)
    assert got[1:] == ['{"alarm": "it", "why": "OK"}'][: delivered // 2]
