"""The topic that a cluster's alarms and functions notify."""

from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import Construct

from cdk_training_cluster.conditions import HERE
from cdk_training_cluster.encryption import KeyUser, allow


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
