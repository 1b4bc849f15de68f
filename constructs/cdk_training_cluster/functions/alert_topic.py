"""The topics that a cluster's alarms and functions notify."""

from collections.abc import Iterator
from datetime import timedelta

from aws_cdk import CfnElement, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from cdk_training_cluster.core.acknowledgements import warn
from cdk_training_cluster.core.conditions import HERE
from cdk_training_cluster.core.encryption import KeyUser, allow
from cdk_training_cluster.core.times import to_duration
from cdk_training_cluster.validation.checks import is_unknown

_MAX_ALARM_AGE = timedelta(hours=1)


def make_alert_topic(scope: Construct, encryption_key: kms.IKey | None, *, budgets: bool) -> sns.Topic:
    """Make a topic to which services of the account may publish.

    Its own policy takes away the default one, under which alarms of the account may publish.

    Sources: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Notify_Users_Alarm_Changes.html and
    https://docs.aws.amazon.com/cost-management/latest/userguide/budgets-sns-policy.html

    Args:
        scope: The parent construct.
        encryption_key: The key that encrypts messages. None: they are not encrypted with a customer's key.
        budgets: Whether AWS Budgets publishes, beside CloudWatch.
    """
    publishers = {"AlarmsOfThisAccount": (KeyUser.ALARMS, "cloudwatch.amazonaws.com")}
    if budgets:
        publishers["BudgetsOfThisAccount"] = (KeyUser.BUDGETS, "budgets.amazonaws.com")
    allow(scope, encryption_key, *(user for user, _ in publishers.values()))
    topic = sns.Topic(scope, "Alerts", enforce_ssl=True, master_key=encryption_key)
    for sid, (_, service) in publishers.items():
        topic.add_to_resource_policy(
            iam.PolicyStatement(
                sid=sid,
                actions=["sns:Publish"],
                principals=[iam.ServicePrincipal(service)],
                resources=[topic.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": HERE.account_id}},
            )
        )
    return topic


def forward_alarms(
    scope: Construct, cluster_name: str, *, alert_topic: sns.ITopic, backup: sns.ITopic, queue: sqs.Queue
) -> None:
    """Notify a backup topic, past the alert topic, of each alarm of a cluster that goes into ALARM.

    EventBridge assumes a role, which a topic of the account needs no policy for, and one of another account requires.

    Sources: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-and-eventbridge.html and
    https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-service-cross-account.html

    Args:
        scope: The parent construct.
        cluster_name: The cluster's name, with which the description of each of its alarms begins.
        alert_topic: The topic that the alarms notify themselves.
        backup: The backup topic.
        queue: The queue for events that cannot be delivered for an hour.

    Raises:
        ValueError: The backup topic cannot be used; every reason, a line each.
    """
    problems = list(_backup_problems(Stack.of(scope), alert_topic, backup))
    if problems:
        raise ValueError("\n".join(problems))
    if not isinstance(backup, sns.Topic):
        warn(
            scope,
            "backupTopicPolicy",
            "the policy of the backup topic is managed outside this app: a topic of another account must allow this "
            "account sns:Publish, and a KMS key that encrypts the topic must allow the publishers its use. Otherwise "
            "the topic gets nothing. See docs/security.md for the statements.",
        )
    message = {
        "alarm": "$.detail.alarmName",
        "time": "$.time",
        "description": "$.detail.configuration.description",
        "reason": "$.detail.state.reason",
    }
    events.Rule(
        scope,
        "BackupAlerts",
        description=f"Alarms of the training cluster {cluster_name} for its backup topic",
        event_pattern=events.EventPattern(
            source=["aws.cloudwatch"],
            detail_type=["CloudWatch Alarm State Change"],
            detail={
                "state": {"value": ["ALARM"]},
                "configuration": {"description": events.Match.prefix(f"{cluster_name}: ")},
            },
        ),
        targets=[
            targets.SnsTopic(
                backup,
                # An object, since AWS documents no way to escape the quotation marks of descriptions within a text.
                message=events.RuleTargetInput.from_object(
                    {name: events.EventField.from_path(path) for name, path in message.items()}
                ),
                authorize_using_role=True,
                max_event_age=to_duration(_MAX_ALARM_AGE),
                dead_letter_queue=queue,
            )
        ],
    )


def _backup_problems(stack: Stack, alert_topic: sns.ITopic, backup: sns.ITopic) -> Iterator[str]:
    region = backup.env.region
    if backup.fifo:
        yield f"backup topic must be a standard topic, got the FIFO topic {backup.topic_name}: name another one"
    if not is_unknown(region) and not is_unknown(stack.region) and region != stack.region:
        yield f"backup topic must be in the cluster's region {stack.region}, got one in {region}: name another one"
    own = alert_topic.node.default_child
    # CloudFormation names a topic by its stack and logical id.
    name = f"{stack.stack_name}-{stack.get_logical_id(own)}-" if isinstance(own, CfnElement) else ""
    if backup.topic_arn == alert_topic.topic_arn or (name and backup.topic_name.startswith(name)):
        yield "backup topic must not be the cluster's own alert topic: name one that is made outside its stack"
