"""The backup topic of a cluster: which alarms reach it, who may publish to it, and what is refused."""

import json
import re
from typing import Any

import pytest
from aws_cdk import Duration, Stack
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from moto.events.models import EventPattern, EventPatternParser

from cdk_training_cluster import Budget, NodeGroup, TrainingCluster
from cdk_training_cluster.functions.cluster_function import ClusterFunction
from cluster_contract.codec import BACKUP_TOPIC_VARIABLE
from synthesis import ZONE, new_stack, only, resources, warnings

BACKUP = "arn:aws:sns:us-east-1:111122223333:on-call"


def _cluster(stack: Stack, backup: sns.ITopic, **settings: Any) -> TrainingCluster:
    return TrainingCluster(
        stack,
        "Cluster",
        availability_zone=ZONE,
        node_groups=[NodeGroup(name="workers", instance_types=["p5.48xlarge"], count=2)],
        cluster_name="pod",
        backup_alert_topic=backup,
        **settings,
    )


@pytest.fixture(scope="module")
def stack() -> Stack:
    """Return the stack of a cluster with all its guardrails and a backup topic that is made elsewhere."""
    stack = new_stack(account="111122223333")
    _cluster(
        stack,
        sns.Topic.from_topic_arn(stack, "Backup", BACKUP),
        budget=Budget(monthly_usd=1000, emails=["a@example.com"], weekly_report=True),
    )
    return stack


def _pattern(stack: Stack) -> EventPattern:
    rule = only(stack, "AWS::Events::Rule", {"EventPattern": {"source": ["aws.cloudwatch"]}})
    text = json.dumps(rule["Properties"]["EventPattern"])
    # https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html
    assert len(text) <= 2048
    return EventPattern(text, EventPatternParser(text).parse())


def _event(description: object, state: str = "ALARM") -> dict[str, Any]:
    """Return the event of an alarm, as CloudWatch's documentation shows it.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-and-eventbridge.html
    """
    text = description if isinstance(description, str) else "".join(map(str, dict(description)["Fn::Join"][1]))  # type: ignore[call-overload]
    return {
        "source": "aws.cloudwatch",
        "detail-type": "CloudWatch Alarm State Change",
        "detail": {"alarmName": "it", "configuration": {"description": text}, "state": {"value": state}},
    }


def test_the_rule_selects_every_alarm_of_the_cluster_and_no_other(stack: Stack) -> None:
    pattern = _pattern(stack)
    alarms = resources(stack, "AWS::CloudWatch::Alarm")
    assert len(alarms) > 20
    for alarm in alarms.values():
        description = alarm["Properties"]["AlarmDescription"]
        assert pattern.matches_event(_event(description))
        assert not pattern.matches_event(_event(description, "OK"))
    for other in ("pod2: nodes are missing", "pod-2: nodes are missing", "a pod: nodes are missing", ""):
        assert not pattern.matches_event(_event(other))


def test_an_alarm_that_cannot_be_delivered_goes_to_a_queue_after_an_hour(stack: Stack) -> None:
    rule = only(stack, "AWS::Events::Rule", {"EventPattern": {"source": ["aws.cloudwatch"]}})
    (target,) = rule["Properties"]["Targets"]
    assert target["Arn"] == BACKUP
    assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 3600}
    assert "FailedEvents" in target["DeadLetterConfig"]["Arn"]["Fn::GetAtt"][0]
    paths, template = (target["InputTransformer"][name] for name in ("InputPathsMap", "InputTemplate"))
    # The values stand without quotation marks, as JSON.
    fields = dict(re.findall(r'"(\w+)":<([\w-]+)>', template))
    assert {name: paths[key] for name, key in fields.items()} == {
        "alarm": "$.detail.alarmName",
        "time": "$.time",
        "description": "$.detail.configuration.description",
        "reason": "$.detail.state.reason",
    }


def _publishers(stack: Stack) -> set[str]:
    """Return the roles that may publish to the backup topic."""
    return {
        role["Ref"]
        for policy in resources(stack, "AWS::IAM::Policy").values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if statement["Action"] == "sns:Publish" and statement["Resource"] == BACKUP
        for role in policy["Properties"]["Roles"]
    }


def test_every_guardrail_and_the_rule_may_publish_to_it_and_know_it(stack: Stack) -> None:
    (cluster,) = (child for child in stack.node.children if isinstance(child, TrainingCluster))
    functions = cluster.guardrails
    told = resources(stack, "AWS::Lambda::Function", {"Environment": {"Variables": {BACKUP_TOPIC_VARIABLE: BACKUP}}})
    assert len(functions) == len(told) > 4
    roles = {function["Properties"]["Role"]["Fn::GetAtt"][0] for function in told.values()}
    rule = only(stack, "AWS::Events::Rule", {"EventPattern": {"source": ["aws.cloudwatch"]}})
    of_rule = rule["Properties"]["Targets"][0]["RoleArn"]["Fn::GetAtt"][0]
    assert _publishers(stack) == {*roles, of_rule}


def test_a_topic_that_is_made_elsewhere_brings_one_warning(stack: Stack) -> None:
    found = [text for text in warnings(stack) if "backupTopicPolicy" in text]
    assert len(found) == 1
    assert "a topic of another account must allow this account sns:Publish" in found[0]


def test_a_topic_that_is_made_here_brings_none_and_its_key_lets_the_publishers_use_it() -> None:
    stack = new_stack()
    _cluster(stack, sns.Topic(stack, "Backup", master_key=kms.Key(stack, "Key")))
    assert not [text for text in warnings(stack) if "backupTopicPolicy" in text]
    grants = [
        statement
        for policy in resources(stack, "AWS::IAM::Policy").values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if statement["Action"] == ["kms:Decrypt", "kms:GenerateDataKey*"]
    ]
    assert len(grants) == 1 + len(resources(stack, "AWS::Scheduler::Schedule"))


def _named(stack: Stack, arn: str) -> sns.ITopic:
    return sns.Topic.from_topic_arn(stack, "Backup", arn)


@pytest.mark.parametrize(
    ("arn", "sentence"),
    [
        (
            f"{BACKUP}.fifo",
            "backup topic must be a standard topic, got the FIFO topic on-call.fifo: name another one",
        ),
        (
            BACKUP.replace("us-east-1", "us-west-2"),
            "backup topic must be in the cluster's region us-east-1, got one in us-west-2: name another one",
        ),
        (
            "arn:aws:sns:us-east-1:111122223333:Test-ClusterAlerts{hash}-Abc123",
            "backup topic must not be the cluster's own alert topic: name one that is made outside its stack",
        ),
    ],
)
def test_a_topic_that_cannot_be_the_backup_is_refused(arn: str, sentence: str) -> None:
    plain = new_stack()
    TrainingCluster(
        plain,
        "Cluster",
        availability_zone=ZONE,
        node_groups=[NodeGroup(name="workers", instance_types=["p5.48xlarge"], count=2)],
    )
    (alerts,) = resources(plain, "AWS::SNS::Topic")
    stack = new_stack()
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the whole text is compared
        _cluster(stack, _named(stack, arn.format(hash=alerts.removeprefix("ClusterAlerts"))))
    assert str(refused.value) == sentence


def test_the_alert_topic_itself_is_no_backup() -> None:
    stack = new_stack()
    topic = sns.Topic(stack, "Alerts")
    with pytest.raises(ValueError, match="must not be the cluster's own alert topic"):
        _cluster(stack, topic, alert_topic=topic)


def test_an_environment_that_its_arn_makes_too_large_is_refused() -> None:
    stack = new_stack()
    function = ClusterFunction(
        stack,
        "Function",
        package="cluster_power",
        called="the power function",
        description="it",
        cluster_name="pod",
        settings={"groups": "x" * 3890},
        alert_topic=sns.Topic(stack, "Alerts"),
        timeout=Duration.minutes(1),
    )
    with pytest.raises(ValueError, match="settings of cluster_power must fit into 4096 bytes of environment"):
        function.add_backup_topic(_named(stack, BACKUP))
