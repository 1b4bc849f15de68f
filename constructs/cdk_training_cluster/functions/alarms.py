"""The two kinds of alarms that stand behind every function of a cluster: a trouble that lasts, and silence."""

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct


def lasting_alarm(
    scope: Construct,
    id: str,
    metric: cloudwatch.IMetric,
    *,
    description: str,
    periods: int,
    alert_topic: sns.ITopic,
    threshold: float = 1,
    datapoints: int | None = None,
) -> cloudwatch.Alarm:
    """Make an alarm on what a function counts, which goes off where there is any of it for some periods on end.

    Silence says nothing of what is counted: then the alarm has no state, and `silence_alarm` goes off. It does not
    tell of the end: a new alarm goes from no state to OK with its first points, and would tell people of the end of
    a problem that never was.

    Args:
        scope: What the alarm belongs to.
        id: The alarm's id.
        metric: What is counted.
        description: What it means, and what to do.
        periods: How many periods on end.
        alert_topic: What it notifies.
        threshold: The least of it that counts.
        datapoints: In how many of these periods. Default: - in all of them.

    Source: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation.html
    """
    alarm = cloudwatch.Alarm(
        scope,
        id,
        metric=metric,
        alarm_description=description,
        threshold=threshold,
        comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
        evaluation_periods=periods,
        datapoints_to_alarm=datapoints or periods,
        treat_missing_data=cloudwatch.TreatMissingData.MISSING,
    )
    alarm.add_alarm_action(actions.SnsAction(alert_topic))
    return alarm


def silence_alarm(
    scope: Construct,
    metric: cloudwatch.IMetric,
    *,
    description: str,
    periods: int,
    alert_topic: sns.ITopic,
) -> cloudwatch.Alarm:
    """Make the alarm on a function that has not once succeeded for some periods on end, reports nothing included.

    It may ring once right after the first deployment, until the function has reported, and says when it is over.

    Args:
        scope: What the alarm belongs to; it has one.
        metric: The sum of the runs that succeeded.
        description: What it means, and what to do.
        periods: How many periods on end.
        alert_topic: What it notifies.
    """
    alarm = cloudwatch.Alarm(
        scope,
        "Silence",
        metric=metric,
        alarm_description=description,
        threshold=1,
        comparison_operator=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
        evaluation_periods=periods,
        datapoints_to_alarm=periods,
        treat_missing_data=cloudwatch.TreatMissingData.BREACHING,
    )
    alarm.add_ok_action(actions.SnsAction(alert_topic))
    alarm.add_alarm_action(actions.SnsAction(alert_topic))
    return alarm
