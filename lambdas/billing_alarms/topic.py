"""The topic that billing alarms notify, in their region: its policy, its subscriptions, and what its tags hold."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from billing_alarms.watched_budget import WatchedBudget
from cluster_common.errors import error_code
from cluster_common.times import parse_time

if TYPE_CHECKING:
    from mypy_boto3_sns.client import SNSClient

OWNER_TAG = "cdk-training-cluster:billing-alarms"
CONFIRMED = "confirmed"
"""What the tag of an address holds, once it was heard that it is confirmed; before, when it was asked."""
_ASKED_TAG = "cdk-training-cluster:billing-asked-"

_PENDING = "PendingConfirmation"
_ABSENT = ("NotFound", "ResourceNotFound", "ResourceNotFoundException")

# SNS deletes a subscription that is not confirmed within 48 hours; each new request is one more message.
# https://docs.aws.amazon.com/sns/latest/dg/sns-delete-subscription-topic.html
ASK_AGAIN_AFTER = timedelta(days=7)


class ForeignTopicError(Exception):
    """Say that a topic of that name exists and is not the budget's."""


@dataclass(frozen=True, kw_only=True)
class Topic:
    """The topic as it is.

    Attributes:
        exists: Whether there is one.
        tags: Its tags.
        policy: Its policy.
        subscriptions: The ARN of each e-mail subscription, or that it is pending, by address.
        is_heard: Whether any subscription is confirmed.
    """

    exists: bool
    tags: Mapping[str, str] = field(default_factory=dict)
    policy: object = None
    subscriptions: Mapping[str, str] = field(default_factory=dict)
    is_heard: bool = False

    @property
    def confirmed(self) -> list[str]:
        """The addresses that get its messages."""
        return sorted(each for each, arn in self.subscriptions.items() if arn.startswith("arn:"))

    def time(self, tag: str, now: datetime) -> datetime | None:
        """Return a time that a tag remembers; None: it remembers none, or what was not written here."""
        try:
            found = parse_time(self.tags[tag])
        except (KeyError, ValueError):
            return None
        return found if found <= now else None


def read_topic(sns: "SNSClient", settings: WatchedBudget) -> Topic:
    """Read the topic.

    Raises:
        ForeignTopicError: There is one, and it is not this budget's.
        ClientError: It could not be read.
    """
    arn = settings.topic_arn
    try:
        tags = {tag["Key"]: tag["Value"] for tag in sns.list_tags_for_resource(ResourceArn=arn)["Tags"]}
        if tags.get(OWNER_TAG) != settings.owner:
            raise ForeignTopicError(
                f"the topic {arn} has no tag {OWNER_TAG} = {settings.owner}, so it is not this budget's: rename or "
                "move the stack; or, if the topic is this budget's, give it this tag"
            )
        attributes = sns.get_topic_attributes(TopicArn=arn)["Attributes"]
        pages = sns.get_paginator("list_subscriptions_by_topic").paginate(TopicArn=arn)
        # One that another account took back may be listed for 72 hours.
        # https://repost.aws/knowledge-center/sns-cross-account-subscription
        subscriptions = [
            each
            for page in pages
            for each in page["Subscriptions"]
            if each["SubscriptionArn"] == _PENDING or each["SubscriptionArn"].startswith("arn:")
        ]
    except ClientError as error:
        if error_code(error) in _ABSENT:
            return Topic(exists=False)
        raise
    return Topic(
        exists=True,
        tags=tags,
        policy=json.loads(attributes.get("Policy", "null")),
        subscriptions={
            each["Endpoint"]: each["SubscriptionArn"] for each in subscriptions if each["Protocol"] == "email"
        },
        is_heard=any(each["SubscriptionArn"] != _PENDING for each in subscriptions),
    )


def repair_topic(sns: "SNSClient", settings: WatchedBudget, topic: Topic) -> str:
    """Make the topic, or give it its policy back; return what was done, empty if nothing."""
    arn, policy = settings.topic_arn, topic_policy(settings)
    if not topic.exists:
        sns.create_topic(
            Name=arn.rpartition(":")[2],
            Attributes={"Policy": json.dumps(policy)},
            Tags=[{"Key": OWNER_TAG, "Value": settings.owner}],
        )
        return "created"
    if _plain(topic.policy) != _plain(policy):
        sns.set_topic_attributes(TopicArn=arn, AttributeName="Policy", AttributeValue=json.dumps(policy))
        return "policy repaired"
    return ""


def topic_policy(settings: WatchedBudget) -> dict[str, Any]:
    """Return the policy that lets alarms of this account publish, over TLS.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Notify_Users_Alarm_Changes.html
    """
    arn = settings.topic_arn
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "AlarmsOfThisAccount",
                "Effect": "Allow",
                "Principal": {"Service": "cloudwatch.amazonaws.com"},
                "Action": "sns:Publish",
                "Resource": arn,
                "Condition": {"StringEquals": {"aws:SourceAccount": settings.account}},
            },
            {
                "Sid": "OnlyTls",
                "Effect": "Deny",
                "Principal": "*",
                "Action": "sns:Publish",
                "Resource": arn,
                "Condition": {"Bool": {"aws:SecureTransport": "false"}},
            },
        ],
    }


def addresses_to_ask(settings: WatchedBudget, topic: Topic, now: datetime) -> Iterator[str]:
    """Name the addresses that are not subscribed, and were not asked to confirm in the last week."""
    for address in settings.emails:
        asked = topic.time(asked_tag(address), now)
        if address not in topic.subscriptions and (asked is None or now - asked >= ASK_AGAIN_AFTER):
            yield address


def addresses_to_remove(settings: WatchedBudget, topic: Topic) -> Iterator[tuple[str, str]]:
    """Name the addresses that were asked from here and are in the settings no more, with their subscriptions."""
    for address, arn in sorted(topic.subscriptions.items()):
        if address not in settings.emails and arn.startswith("arn:") and asked_tag(address) in topic.tags:
            yield address, arn


def superfluous_tags(settings: WatchedBudget, topic: Topic) -> list[str]:
    """Name the tags of addresses that left the settings and the topic: a topic has at most 50 tags."""
    used = {asked_tag(address) for address in (*settings.emails, *topic.subscriptions)}
    return [key for key in topic.tags if key.startswith(_ASKED_TAG) and key not in used]


def asked_tag(address: str) -> str:
    """Return the key of the tag that says when an address was asked to confirm, or that it is confirmed."""
    return _ASKED_TAG + hashlib.sha256(address.encode()).hexdigest()[:12]


def _plain(value: Any) -> Any:  # noqa: ANN401 - any part of a policy
    """Return a policy as SNS may give it back: of one thing and a list of it, one."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list) and len(value) == 1:
        return _plain(value[0])
    return [_plain(each) for each in value] if isinstance(value, list) else value
