"""SNS topics, SQS queues and EventBridge rules."""

import json
from typing import Any

from local_aws.cloudformation.failures import HandlerError
from local_aws.cloudformation.resources.base import (
    Attributes,
    Call,
    Handler,
    Properties,
    as_tags,
    changed,
    if_there,
    picked,
    tag_changes,
    tags_of,
)


def _text(value: Any) -> str:
    """Return a value as SNS's and SQS's attributes carry it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, dict | list) else str(value)


class Topic(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-sns-topic.html."""

    type = "AWS::SNS::Topic"
    _attributes = ("DisplayName", "KmsMasterKeyId", "SignatureVersion", "TracingConfig")
    carries_out = frozenset({*_attributes, "Subscription", "Tags", "TopicName"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        sns = call.client("sns")
        name = properties.get("TopicName") or call.physical_name(256)
        attributes = {key: _text(value) for key, value in picked(properties, *self._attributes).items()}
        topic = sns.create_topic(Name=name, Attributes=attributes, Tags=as_tags(tags_of(properties)))
        arn = call.made(topic["TopicArn"])
        for subscription in properties.get("Subscription") or []:
            sns.subscribe(TopicArn=arn, ReturnSubscriptionArn=True, **subscription)
        return {"TopicArn": arn, "TopicName": name}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        names = self.only_changed(properties, before, *self._attributes, "Tags")
        sns = call.client("sns")
        for name in names & set(self._attributes):
            sns.set_topic_attributes(
                TopicArn=call.physical_id,
                AttributeName=name,
                AttributeValue=_text(properties.get(name, "")),
            )
        put, removed = tag_changes(properties, before)
        if put:
            sns.tag_resource(ResourceArn=call.physical_id, Tags=as_tags(put))
        if removed:
            sns.untag_resource(ResourceArn=call.physical_id, TagKeys=removed)
        return {}

    def delete(self, call: Call) -> None:
        call.client("sns").delete_topic(TopicArn=call.physical_id)


class TopicPolicy(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-sns-topicpolicy.html."""

    type = "AWS::SNS::TopicPolicy"
    carries_out = frozenset({"PolicyDocument", "Topics"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        self._put(call, properties)
        return {"Id": call.made(call.physical_name())}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        self.only_changed(properties, before, "PolicyDocument")
        self._put(call, properties)
        return {}

    def delete(self, call: Call) -> None:
        """Give the topics the policy back that SNS gives a new one: the owner's account alone."""
        for topic in call.properties["Topics"]:
            owner = {
                "Effect": "Allow",
                "Principal": {"AWS": "*"},
                "Action": ["SNS:Publish", "SNS:Subscribe"],
                "Resource": topic,
                "Condition": {"StringEquals": {"AWS:SourceOwner": call.account}},
            }
            document = json.dumps({"Version": "2008-10-17", "Statement": [owner]})
            call.client("sns").set_topic_attributes(TopicArn=topic, AttributeName="Policy", AttributeValue=document)

    @staticmethod
    def _put(call: Call, properties: Properties) -> None:
        document = json.dumps(properties["PolicyDocument"])
        for topic in properties["Topics"]:
            call.client("sns").set_topic_attributes(TopicArn=topic, AttributeName="Policy", AttributeValue=document)


class Subscription(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-sns-subscription.html."""

    type = "AWS::SNS::Subscription"
    _attributes = ("DeliveryPolicy", "FilterPolicy", "FilterPolicyScope", "RawMessageDelivery", "RedrivePolicy")
    carries_out = frozenset({*_attributes, "Endpoint", "Protocol", "TopicArn"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        attributes = {key: _text(value) for key, value in picked(properties, *self._attributes).items()}
        answer = call.client("sns").subscribe(
            ReturnSubscriptionArn=True,
            Attributes=attributes,
            **picked(properties, "Endpoint", "Protocol", "TopicArn"),
        )
        return {"Arn": call.made(answer["SubscriptionArn"])}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        for name in self.only_changed(properties, before, *self._attributes):
            call.client("sns").set_subscription_attributes(
                SubscriptionArn=call.physical_id,
                AttributeName=name,
                AttributeValue=_text(properties.get(name, "")),
            )
        return {}

    def delete(self, call: Call) -> None:
        call.client("sns").unsubscribe(SubscriptionArn=call.physical_id)


class Queue(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-sqs-queue.html."""

    type = "AWS::SQS::Queue"
    _attributes = (
        "DelaySeconds",
        "KmsDataKeyReusePeriodSeconds",
        "KmsMasterKeyId",
        "MaximumMessageSize",
        "MessageRetentionPeriod",
        "ReceiveMessageWaitTimeSeconds",
        "RedrivePolicy",
        "SqsManagedSseEnabled",
        "VisibilityTimeout",
    )
    carries_out = frozenset({*_attributes, "QueueName", "Tags"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        name = properties.get("QueueName") or call.physical_name(80)
        sqs = call.client("sqs")
        attributes = {key: _text(value) for key, value in picked(properties, *self._attributes).items()}
        answer = sqs.create_queue(QueueName=name, Attributes=attributes, tags=tags_of(properties))
        url = call.made(answer["QueueUrl"])
        arn = f"arn:{call.partition}:sqs:{call.region}:{call.account}:{name}"
        return {"Arn": arn, "QueueName": name, "QueueUrl": url}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        names = self.only_changed(properties, before, *self._attributes, "Tags")
        sqs = call.client("sqs")
        attributes = {name: _text(properties.get(name, "")) for name in names - {"Tags"}}
        if attributes:
            sqs.set_queue_attributes(QueueUrl=call.physical_id, Attributes=attributes)
        put, removed = tag_changes(properties, before)
        if put:
            sqs.tag_queue(QueueUrl=call.physical_id, Tags=put)
        if removed:
            sqs.untag_queue(QueueUrl=call.physical_id, TagKeys=removed)
        return {}

    def delete(self, call: Call) -> None:
        call.client("sqs").delete_queue(QueueUrl=call.physical_id)


class QueuePolicy(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-sqs-queuepolicy.html."""

    type = "AWS::SQS::QueuePolicy"
    carries_out = frozenset({"PolicyDocument", "Queues"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        self._put(call, properties, json.dumps(properties["PolicyDocument"]))
        return {"Id": call.made(call.physical_name())}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        self.only_changed(properties, before, "PolicyDocument")
        self._put(call, properties, json.dumps(properties["PolicyDocument"]))
        return {}

    def delete(self, call: Call) -> None:
        self._put(call, call.properties, "")

    @staticmethod
    def _put(call: Call, properties: Properties, document: str) -> None:
        for queue in properties["Queues"]:
            call.client("sqs").set_queue_attributes(QueueUrl=queue, Attributes={"Policy": document})


class Rule(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-events-rule.html."""

    type = "AWS::Events::Rule"
    carries_out = frozenset(
        {
            "Description",
            "EventBusName",
            "EventPattern",
            "Name",
            "RoleArn",
            "ScheduleExpression",
            "State",
            "Tags",
            "Targets",
        }
    )

    def create(self, call: Call, properties: Properties) -> Attributes:
        name = properties.get("Name") or call.physical_name(64)
        arn = self._put(call, name, properties)
        call.made(name)
        self._tag(call, arn, properties, {})
        self._target(call, properties, {})
        return {"Arn": arn, "RuleName": name}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        if "EventBusName" in changed(properties, before):
            raise self.cannot_change(["EventBusName"])
        arn = self._put(call, call.physical_id, properties)
        self._tag(call, arn, properties, before)
        self._target(call, properties, before)
        return {}

    def delete(self, call: Call) -> None:
        self._target(call, {}, call.properties)
        call.client("events").delete_rule(Name=call.physical_id, **picked(call.properties, "EventBusName"))

    @staticmethod
    def _put(call: Call, name: str, properties: Properties) -> str:
        pattern = properties.get("EventPattern")
        pattern = json.dumps(pattern) if isinstance(pattern, dict) else pattern
        answer = call.client("events").put_rule(
            Name=name,
            **picked(properties, "Description", "EventBusName", "RoleArn", "ScheduleExpression", "State"),
            **({"EventPattern": pattern} if pattern is not None else {}),
        )
        return str(answer["RuleArn"])

    @staticmethod
    def _tag(call: Call, arn: str, properties: Properties, before: Properties) -> None:
        put, removed = tag_changes(properties, before)
        if put:
            call.client("events").tag_resource(ResourceARN=arn, Tags=as_tags(put))
        if removed:
            call.client("events").untag_resource(ResourceARN=arn, TagKeys=removed)

    @staticmethod
    def _target(call: Call, properties: Properties, before: Properties) -> None:
        events, bus = call.client("events"), picked({**before, **properties}, "EventBusName")
        targets = properties.get("Targets") or []
        gone = {target["Id"] for target in before.get("Targets") or []} - {target["Id"] for target in targets}
        if gone:
            if_there(events.remove_targets, Rule=call.physical_id, Ids=sorted(gone), **bus)
        if targets:
            answer = events.put_targets(Rule=call.physical_id, Targets=targets, **bus)
            if answer["FailedEntryCount"]:
                raise HandlerError(answer["FailedEntries"][0]["ErrorMessage"])


HANDLERS: tuple[Handler, ...] = (Topic(), TopicPolicy(), Subscription(), Queue(), QueuePolicy(), Rule())
