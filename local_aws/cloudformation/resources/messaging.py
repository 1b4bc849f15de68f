"""SNS topics, SQS queues and EventBridge rules."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from local_aws.cloudformation.resources.action import Action
from local_aws.cloudformation.resources.base import Attributes, Call, Handler, Properties, if_there
from local_aws.cloudformation.resources.regular import Regular

_QUEUE = (
    "DelaySeconds KmsDataKeyReusePeriodSeconds KmsMasterKeyId MaximumMessageSize MessageRetentionPeriod "
    "ReceiveMessageWaitTimeSeconds SqsManagedSseEnabled VisibilityTimeout"
)
_RULE = "Description EventPattern ScheduleExpression State"


@dataclass(eq=False)
class _Policies(Handler):
    """A policy that is written on several topics or queues.

    Attributes:
        type: The type.
        places: The property that names them.
        put: Writes a policy on one of them.
        deleted: Returns what it has after the deletion.
    """

    type: str
    places: str
    put: Callable[[Call, str, str], object]
    deleted: Callable[[Call, str], str]

    def __post_init__(self) -> None:
        self.supported = frozenset({"PolicyDocument", self.places})

    def create(self, call: Call, properties: Properties) -> Attributes:
        self.update(call, properties, properties)
        return {"Id": call.made(call.physical_name())}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        self.only_changed(properties, before, "PolicyDocument")
        for place in properties[self.places]:
            self.put(call, place, json.dumps(properties["PolicyDocument"]))
        return {}

    def delete(self, call: Call) -> None:
        for place in call.properties[self.places]:
            self.put(call, place, self.deleted(call, place))


def _put_on_topic(call: Call, topic: str, policy: str) -> None:
    call.client("sns").set_topic_attributes(TopicArn=topic, AttributeName="Policy", AttributeValue=policy)


def _put_on_queue(call: Call, queue: str, policy: str) -> None:
    call.client("sqs").set_queue_attributes(QueueUrl=queue, Attributes={"Policy": policy})


def _policy_of_a_new_topic(call: Call, topic: str) -> str:
    """Return the policy that SNS gives a new topic: the owner's account alone."""
    owner = {
        "Effect": "Allow",
        "Principal": {"AWS": "*"},
        "Action": ["SNS:Publish", "SNS:Subscribe"],
        "Resource": topic,
        "Condition": {"StringEquals": {"AWS:SourceOwner": call.account}},
    }
    return json.dumps({"Version": "2008-10-17", "Statement": [owner]})


class _Rule(Regular):
    """A rule, whose targets go with it, and before it."""

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        self._remove(call, _targets(before) - _targets(properties))
        return super().update(call, properties, before)

    def delete(self, call: Call) -> None:
        self._remove(call, _targets(call.properties))
        super().delete(call)

    @staticmethod
    def _remove(call: Call, targets: set[str]) -> None:
        if targets:
            if_there(call.client("events").remove_targets, Rule=call.physical_id, Ids=sorted(targets))


def _targets(properties: Properties) -> set[str]:
    targets: list[dict[str, Any]] = properties.get("Targets") or []
    return {target["Id"] for target in targets}


HANDLERS: tuple[Handler, ...] = (
    Regular(
        type="AWS::SNS::Topic",
        service="sns",
        create_with=Action("create_topic", "DisplayName KmsMasterKeyId", into="Attributes"),
        delete_with=Action("delete_topic", id="TopicArn"),
        named="TopicName:Name",
        name_limit=256,
        id="TopicArn",
        attributes={"TopicName": "{name}"},
    ),
    _Policies("AWS::SNS::TopicPolicy", "Topics", _put_on_topic, _policy_of_a_new_topic),
    Regular(
        type="AWS::SNS::Subscription",
        service="sns",
        create_with=Action("subscribe", "TopicArn Protocol Endpoint", also={"ReturnSubscriptionArn": True}),
        delete_with=Action("unsubscribe", id="SubscriptionArn"),
        id="SubscriptionArn",
        attributes={"Arn": "{id}"},
        can_tag=False,
    ),
    Regular(
        type="AWS::SQS::Queue",
        service="sqs",
        create_with=Action("create_queue", _QUEUE, into="Attributes"),
        updates=(Action("set_queue_attributes", _QUEUE, id="QueueUrl", into="Attributes"),),
        delete_with=Action("delete_queue", id="QueueUrl"),
        named="QueueName:QueueName",
        name_limit=80,
        id="QueueUrl",
        attributes={"Arn": "arn:{partition}:sqs:{region}:{account}:{name}", "QueueName": "{name}"},
    ),
    _Policies("AWS::SQS::QueuePolicy", "Queues", _put_on_queue, lambda *_: ""),
    _Rule(
        type="AWS::Events::Rule",
        service="events",
        create_with=Action("put_rule", _RULE),
        updates=(Action("put_rule", _RULE, id="Name", whole=True),),
        settings=(Action("put_targets", "Targets", id="Rule", whole=True),),
        delete_with=Action("delete_rule", id="Name"),
        named="Name:Name",
        name_limit=64,
        attributes={"Arn": "RuleArn"},
        tag_by="Arn",
    ),
)
