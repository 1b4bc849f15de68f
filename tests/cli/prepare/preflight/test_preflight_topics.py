"""What preflight finds of a backup topic."""

import json
from pathlib import Path
from typing import Any

import pytest

from cdk_training_cluster_cli.prepare.preflight.checks import Aws, Outcome
from cdk_training_cluster_cli.prepare.preflight.needs import needs_of
from cdk_training_cluster_cli.prepare.preflight.topics import Topic, judge_topic, topic_checks
from cdk_training_cluster_file import read_cluster_file
from cluster_files import RIGHT
from local_aws import LocalAws

_OWN, _OTHER = "111122223333", "444455556666"
_KEY = "arn:aws:kms:us-east-1:111122223333:key/1"
# What docs/security.md shows.
_PUBLISHERS = {
    "Effect": "Allow",
    "Principal": {"AWS": "*"},
    "Action": ["kms:GenerateDataKey*", "kms:Decrypt"],
    "Resource": "*",
    "Condition": {"StringEquals": {"kms:CallerAccount": _OWN, "kms:ViaService": "sns.us-east-1.amazonaws.com"}},
}
# https://docs.aws.amazon.com/sns/latest/dg/sns-access-policy-use-cases.html
_DEFAULT = {
    "Effect": "Allow",
    "Principal": {"AWS": "*"},
    "Action": ["SNS:Publish"],
    "Condition": {"StringEquals": {"AWS:SourceOwner": _OTHER}},
}
_CLUSTER = {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{_OWN}:root"}, "Action": "sns:Publish"}


def _arn(account: str) -> str:
    return f"arn:aws:sns:us-east-1:{account}:on-call"


def _topic(confirmed: str = "1", statements: Any = (_DEFAULT,), **more: Any) -> Topic:
    attributes = {"SubscriptionsConfirmed": confirmed, "Policy": json.dumps({"Statement": list(statements)})}
    return Topic(publisher=_OWN, attributes=attributes, **more)


def _key(state: str = "Enabled", manager: str = "CUSTOMER", account: str = _OWN) -> dict[str, str]:
    return {"Arn": _KEY.replace(_OWN, account), "KeyState": state, "KeyManager": manager}


def _policy(*statements: Any) -> str:
    return json.dumps({"Statement": list(statements)})


@pytest.mark.parametrize(
    ("account", "topic", "outcome", "said"),
    [
        (_OWN, _topic(), Outcome.PASS, "is there; its confirmed subscriptions: 1"),
        (_OWN, _topic(confirmed="0"), Outcome.FAIL, "has no confirmed subscription"),
        (_OTHER, _topic(), Outcome.UNKNOWN, f"does not name the account {_OWN}"),
        (_OTHER, _topic(statements=(_DEFAULT, _CLUSTER)), Outcome.PASS, "confirmed"),
        (_OTHER, _topic(statements=({**_CLUSTER, "Effect": "Deny"},)), Outcome.UNKNOWN, "does not name the account"),
        (_OTHER, _topic(statements=({**_CLUSTER, "Condition": {}},)), Outcome.UNKNOWN, "does not name the account"),
        (_OTHER, _topic(statements=({**_CLUSTER, "Action": "sns:Subscribe"},)), Outcome.UNKNOWN, "does not name"),
        (_OTHER, _topic(statements=({**_CLUSTER, "Principal": "*"},)), Outcome.UNKNOWN, "does not name the account"),
        (
            _OWN,
            _topic(key=_key("Disabled"), key_policy=_policy(_PUBLISHERS)),
            Outcome.FAIL,
            f"the key {_KEY} of the topic is Disabled",
        ),
        (_OWN, _topic(key=_key(manager="AWS"), key_policy=_policy()), Outcome.PASS, "confirmed"),
        (
            _OTHER,
            _topic(statements=(_CLUSTER,), key=_key(manager="AWS", account=_OTHER), key_policy=_policy()),
            Outcome.FAIL,
            "which a cluster file cannot give",
        ),
        (
            _OTHER,
            _topic(statements=(_CLUSTER,), key=_key(account=_OTHER), key_policy=_policy(_PUBLISHERS)),
            Outcome.FAIL,
            "which a cluster file cannot give",
        ),
    ],
)
def test_a_topic_is_judged_by_subscriptions_policy_and_key(
    account: str, topic: Topic, outcome: Outcome, said: str
) -> None:
    verdict = judge_topic(_arn(account), topic)
    assert (verdict.outcome, said in verdict.said) == (outcome, True), verdict.said
    assert (verdict.mend == "") == (outcome is Outcome.PASS)


@pytest.mark.parametrize(
    ("statements", "admits"),
    [
        ((_PUBLISHERS,), True),
        (({**_PUBLISHERS, "Principal": "*", "Action": "kms:*"},), True),
        (tuple({**_PUBLISHERS, "Action": action} for action in _PUBLISHERS["Action"]), True),
        (({"Effect": "Deny", "Principal": "*", "Action": "kms:ScheduleKeyDeletion"}, _PUBLISHERS), True),
        ((), False),
        (({**_PUBLISHERS, "Action": "kms:Decrypt"},), False),
        (({**_PUBLISHERS, "Principal": {"Service": "sns.amazonaws.com"}},), False),
        (({**_PUBLISHERS, "Principal": {"Service": "cloudwatch.amazonaws.com"}},), False),
        (({**_PUBLISHERS, "Effect": "Deny"},), False),
        (({"Effect": "Deny", "Principal": "*", "Action": "kms:Decrypt"}, _PUBLISHERS), False),
        (({**_PUBLISHERS, "Condition": {"StringEquals": {"kms:CallerAccount": _OTHER}}},), False),
        (({**_PUBLISHERS, "Condition": {"StringEquals": {"kms:ViaService": "sns.eu-west-1.amazonaws.com"}}},), False),
        (({**_PUBLISHERS, "Condition": {"StringNotEquals": {"kms:CallerAccount": _OWN}}},), False),
        # It lets IAM decide, and the roles of a cluster have no permission for the key.
        (({"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{_OWN}:root"}, "Action": "kms:*"},), False),
    ],
)
def test_the_policy_of_the_topics_key_admits_the_roles_that_publish(statements: Any, *, admits: bool) -> None:
    verdict = judge_topic(_arn(_OWN), _topic(key=_key(), key_policy=_policy(*statements)))
    assert verdict.outcome is (Outcome.PASS if admits else Outcome.UNKNOWN)
    assert (
        admits or f"the policy of the key {_KEY} does not let the cluster's roles use it through SNS" in verdict.said
    )


def test_a_topic_that_is_not_there_fails() -> None:
    verdict = judge_topic(_arn(_OWN), None)
    assert (verdict.outcome, verdict.said) == (Outcome.FAIL, f"there is no topic {_arn(_OWN)}")


def test_a_topic_of_the_account_is_found_until_it_is_deleted(aws: LocalAws, user: Aws, tmp_path: Path) -> None:
    sns, kms = aws.client("sns"), aws.client("kms")
    policy = _policy(_PUBLISHERS)
    key = kms.create_key(Policy=policy)["KeyMetadata"]["Arn"]
    arn = sns.create_topic(Name="on-call", Attributes={"KmsMasterKeyId": key})["TopicArn"]
    (tmp_path / "cluster.yaml").write_text(f"{RIGHT}alerts: {{backup_topic_arn: '{arn}'}}\n")
    needs = needs_of("cluster.yaml", read_cluster_file("cluster.yaml", relative_to=tmp_path))
    (check,) = topic_checks(needs)
    topic = check.ask(user)
    assert (topic.publisher, topic.key["Arn"], topic.key_policy) == (aws.account, key, policy)
    assert check.line(user).said == f"{arn} has no confirmed subscription"

    sns.delete_topic(TopicArn=arn)
    assert check.line(user).said == f"there is no topic {arn}"
