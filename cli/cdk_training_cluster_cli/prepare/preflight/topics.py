"""The backup topic that the cluster file names."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from cdk_training_cluster_cli.prepare.preflight.checks import Aws, Check, Verdict, failed, found, passed, unknown
from cdk_training_cluster_cli.prepare.preflight.needs import Needs

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
    names_account = partial(_names_account, topic.publisher)
    if account != topic.publisher and not _allows(topic.attributes["Policy"], "sns:publish", names_account):
        # A statement with conditions may allow the same: only a message could prove it.
        return unknown(f"the policy of {arn} does not name the account {topic.publisher}", _STATEMENTS)
    of_key = None if topic.key is None else _judge_key(region, topic.publisher, topic.key, topic.key_policy)
    if of_key is not None:
        return of_key
    return passed(f"{arn} is there; its confirmed subscriptions: {topic.attributes.get('SubscriptionsConfirmed')}")


def _judge_key(region: str, publisher: str, key: Mapping[str, Any], policy: str) -> Verdict | None:
    arn, state = key["Arn"], key["KeyState"]
    if state != "Enabled":
        return failed(f"the key {arn} of the topic is {state}", f"aws kms enable-key --key-id {arn}")
    if arn.split(":")[4] != publisher:
        return failed(
            f"the key {arn} of the topic is of another account: the cluster's roles need a permission for it, which "
            "a cluster file cannot give",
            "use a topic without a key, or sns.Topic.from_topic_attributes(…, key_arn=…) in code",
        )
    admits = partial(_admits_roles, publisher, f"sns.{region}.amazonaws.com")
    # https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html
    actions = () if key.get("KeyManager") == "AWS" else ("kms:generatedatakey", "kms:decrypt")
    if all(_allows(policy, action, admits) for action in actions):
        return None
    return unknown(f"the policy of the key {arn} does not let the cluster's roles use it through SNS", _STATEMENTS)


def topic_checks(needs: Needs) -> Iterator[Check]:
    """Yield the check of the backup topic, if there is one.

    Args:
        needs: What the cluster needs.
    """
    arn = needs.cluster.alerts.backup_topic_arn
    if arn is not None:
        yield Check(name="backup topic", ask=partial(_topic, arn), judge=partial(judge_topic, arn))


def _allows(policy: str, action: str, admits: Callable[[Mapping[str, Any]], bool]) -> bool:
    """Tell whether a statement that admits the publishers allows an action, and none denies it to all."""
    statements = [
        each
        for each in _listed(json.loads(policy)["Statement"])
        if any(fnmatchcase(action, pattern.lower()) for pattern in _listed(each.get("Action")))
    ]
    return any(each["Effect"] == "Allow" and admits(each) for each in statements) and not any(
        each["Effect"] == "Deny" and "Condition" not in each for each in statements
    )


def _names_account(account: str, statement: Mapping[str, Any]) -> bool:
    return "Condition" not in statement and any(account in each.split(":") for each in _principals(statement))


def _admits_roles(account: str, service: str, statement: Mapping[str, Any]) -> bool:
    """Tell whether a statement of a key admits all roles of an account that come through a service."""
    met = {"kms:CallerAccount": account, "kms:ViaService": service}
    conditions = statement.get("Condition", {})
    return (
        "*" in _principals(statement)
        and set(conditions) <= {"StringEquals"}
        and all(met.get(name) in _listed(values) for name, values in conditions.get("StringEquals", {}).items())
    )


def _principals(statement: Mapping[str, Any]) -> list[Any]:
    principal = statement.get("Principal")
    return _listed(principal.get("AWS") if isinstance(principal, dict) else principal)


def _listed(value: Any) -> list[Any]:  # noqa: ANN401 - JSON
    return value if isinstance(value, list) else [] if value is None else [value]


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
