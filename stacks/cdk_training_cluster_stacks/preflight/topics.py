"""The backup topic that the cluster file names."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from cdk_training_cluster_stacks.preflight.checks import Aws, Check, Verdict, failed, found, passed, unknown
from cdk_training_cluster_stacks.preflight.needs import Needs

_STATEMENTS = "add the statement that docs/security.md shows under The alert topic"


@dataclass(frozen=True, kw_only=True)
class Topic:
    """A topic, as SNS and KMS describe it.

    Attributes:
        publisher: The account of the cluster.
        attributes: What SNS says of it.
        key: What KMS says of its key. None: it has none.
        key_policy: The policy of the key.
    """

    publisher: str
    attributes: Mapping[str, str]
    key: Mapping[str, Any] | None = None
    key_policy: str = ""


def judge_topic(arn: str, topic: Topic | None) -> Verdict:
    """Say whether a topic takes the cluster's messages, and brings them to somebody.

    Args:
        arn: Its ARN.
        topic: The topic. None: there is none.
    """
    if topic is None:
        return failed(f"there is no topic {arn}", "correct alerts.backup_topic_arn, or check AWS_PROFILE")
    if topic.attributes.get("SubscriptionsConfirmed") == "0":
        mend = f"aws sns subscribe --topic-arn {arn} --protocol email --notification-endpoint ADDRESS"
        return failed(f"{arn} has no confirmed subscription", mend)
    region, account = arn.split(":")[3:5]
    if account != topic.publisher and not _allows(topic.attributes["Policy"], topic.publisher):
        # A statement with conditions may allow the same: only a message could prove it.
        return unknown(f"the policy of {arn} does not name the account {topic.publisher}", _STATEMENTS)
    if topic.key is not None:
        key, state = topic.key["Arn"], topic.key["KeyState"]
        if state != "Enabled":
            return failed(f"the key {key} of the topic is {state}", f"aws kms enable-key --key-id {key}")
        of_aws = topic.key.get("KeyManager") == "AWS" and account == topic.publisher
        if not of_aws and f"sns.{region}.amazonaws.com" not in topic.key_policy:
            return unknown(f"the policy of the key {key} does not name SNS's publishers", _STATEMENTS)
    return passed(f"{arn} is there; its confirmed subscriptions: {topic.attributes.get('SubscriptionsConfirmed')}")


def topic_checks(needs: Needs) -> Iterator[Check]:
    """Yield the check of the backup topic, if there is one.

    Args:
        needs: What the cluster needs.
    """
    arn = needs.cluster.alerts.backup_topic_arn
    if arn is not None:
        yield Check(name="backup topic", ask=partial(_topic, arn), judge=partial(judge_topic, arn))


def _allows(policy: str, account: str) -> bool:
    """Tell whether a policy lets an account publish, without a condition."""
    for statement in json.loads(policy)["Statement"]:
        principal, actions = statement.get("Principal"), statement.get("Action")
        named = principal.get("AWS") if isinstance(principal, dict) else None
        if (
            statement["Effect"] == "Allow"
            and "Condition" not in statement
            and any(account in each.split(":") for each in ([named] if isinstance(named, str) else named or ()))
            and {"sns:publish", "sns:*"}
            & {each.lower() for each in ([actions] if isinstance(actions, str) else actions)}
        ):
            return True
    return False


def _topic(arn: str, aws: Aws) -> Topic | None:
    # https://docs.aws.amazon.com/sns/latest/api/API_GetTopicAttributes.html
    said = found(partial(aws.client("sns").get_topic_attributes, TopicArn=arn), "NotFound")
    if said is None:
        return None
    attributes, kms = said["Attributes"], aws.client("kms")
    if not attributes.get("KmsMasterKeyId"):
        return Topic(publisher=aws.account, attributes=attributes)
    key = kms.describe_key(KeyId=attributes["KmsMasterKeyId"])["KeyMetadata"]
    policy = kms.get_key_policy(KeyId=key["Arn"], PolicyName="default")["Policy"]
    return Topic(publisher=aws.account, attributes=attributes, key=key, key_policy=policy)
