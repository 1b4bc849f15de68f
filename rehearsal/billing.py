"""The billing alarms in a rehearsal: made in their region, changed by hand, repaired, and gone with the stack."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError
from rich.console import Console

from cdk_training_cluster import Budget
from local_aws import LocalAws
from local_aws.functions import DeployedFunction
from rehearsal.report import table_of

REGION = "us-east-1"
_NAMESPACE = "AWS/Billing"
_FOREIGN = "alarm-of-another-team"


@dataclass(frozen=True)
class BillingStory:
    """What became of a budget's alarms.

    Attributes:
        made: The alarms after the first run, by name.
        changed: The alarm that was changed by hand, and the one that was deleted.
        repaired: The alarms after the next run, by name.
        said: What the next run said.
        topic: The topic's ARN.
    """

    made: dict[str, dict[str, Any]]
    changed: tuple[str, str]
    repaired: dict[str, dict[str, Any]]
    said: dict[str, Any]
    topic: str

    def differences(self, budget: Budget) -> Iterator[str]:
        """Say what is not as the budget has it."""
        own = self.made.keys() - {_FOREIGN}
        if len(own) != budget.alarm_count:
            yield f"billing alarms: the budget has {budget.alarm_count}, {REGION} has {len(own)}"
        if self.repaired != self.made:
            yield f"billing alarms: what was changed by hand is not repaired: {', '.join(self.changed)}"
        if self.made.get(_FOREIGN) is None:
            yield "billing alarms: the alarm of another team is gone"


def tell_billing_story(aws: LocalAws, function: DeployedFunction) -> BillingStory:
    """Run the deployed function, change one alarm by hand and delete another, and run it again.

    Args:
        aws: The local AWS.
        function: The function that keeps the alarms.

    Raises:
        FunctionFailedError: The function failed.
    """
    cloudwatch = aws.client("cloudwatch", REGION)
    cloudwatch.put_metric_alarm(
        AlarmName=_FOREIGN,
        Namespace="AWS/EC2",
        MetricName="CPUUtilization",
        Statistic="Maximum",
        Period=300,
        EvaluationPeriods=1,
        Threshold=90,
        ComparisonOperator="GreaterThanThreshold",
    )
    topic = function({"action": "tick"})["topic"]
    made = _alarms(aws)
    changed, deleted, *_ = sorted(name for name in made if name != _FOREIGN)
    by_hand = {key: made[changed][key] for key in _KEPT if key in made[changed]}
    cloudwatch.put_metric_alarm(**{**by_hand, "Threshold": 1e9, "AlarmActions": []})
    cloudwatch.delete_alarms(AlarmNames=[deleted])
    said = function({"action": "tick"})
    return BillingStory(made=made, changed=(changed, deleted), repaired=_alarms(aws), said=said, topic=topic)


def show_billing(console: Console, story: BillingStory) -> None:
    """Show the alarms, and what the function did to those that were changed by hand.

    Args:
        console: Where to show it.
        story: What became of them.
    """
    done = {each["name"]: each for each in story.said["alarms"]}
    table = table_of(f"Billing alarms in {REGION}, two of them changed by hand", "alarm", "USD", "then", "why")
    for name, alarm in sorted(story.repaired.items()):
        told = done.get(name, {"action": "not touched", "reason": "it is another team's"})
        table.add_row(name, f"{alarm['Threshold']:,.0f}", told["action"], told["reason"])
    console.print(table)


def left_behind(aws: LocalAws, story: BillingStory) -> Iterator[str]:
    """Say what the deletion of the stack left, or took that was another team's.

    Args:
        aws: The local AWS.
        story: What there was.
    """
    left = _alarms(aws)
    for name in sorted(left.keys() & (story.made.keys() - {_FOREIGN})):
        yield f"billing alarms: {name} is left in {REGION}"
    if left.get(_FOREIGN) != story.made[_FOREIGN]:
        yield "billing alarms: the alarm of another team was changed or deleted"
    try:
        aws.client("sns", REGION).get_topic_attributes(TopicArn=story.topic)
    except ClientError:
        return
    yield f"billing alarms: the topic {story.topic} is left"


_KEPT = (
    *("AlarmName", "AlarmDescription", "Namespace", "MetricName", "Dimensions", "Statistic", "Period"),
    *("EvaluationPeriods", "ComparisonOperator", "TreatMissingData"),
)
_PASSING = {"AlarmConfigurationUpdatedTimestamp", "StateUpdatedTimestamp", "StateTransitionedTimestamp"}


def _alarms(aws: LocalAws) -> dict[str, dict[str, Any]]:
    """Return the alarms on bills and the foreign one; in that region a cluster may have others of its own."""
    pages = aws.client("cloudwatch", REGION).get_paginator("describe_alarms").paginate()
    return {
        alarm["AlarmName"]: {key: value for key, value in alarm.items() if key not in _PASSING}
        for page in pages
        for alarm in page["MetricAlarms"]
        if alarm.get("Namespace") == _NAMESPACE or alarm["AlarmName"] == _FOREIGN
    }
