"""What calls a function again and again."""

import json

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from cdk_training_cluster.core.conditions import HERE
from cdk_training_cluster.functions.cluster_function import ClusterFunction

TICK = {"action": "tick"}
"""The event of a tick."""


def make_tick(
    scope: Construct, function: ClusterFunction, *, cluster_name: str, every: Duration
) -> scheduler.CfnSchedule:
    """Make the schedule that calls a function; a tick that is missed or fails is not repeated: the next one comes.

    What EventBridge Scheduler cannot deliver goes to the function's queue of failed events.

    Resources: `AWS::Scheduler::Schedule`, and the `AWS::IAM::Role` that it takes, with one policy.

    Args:
        scope: What the schedule belongs to; it has one.
        function: The function.
        cluster_name: The cluster it works for.
        every: The time between two ticks, in whole minutes.

    Sources: https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html#rate-based and
    https://docs.aws.amazon.com/scheduler/latest/UserGuide/configuring-schedule-dlq.html
    """
    # L1, because the L2 target grants every version and alias of the function too, and by default
    # retries a tick for a day.
    description = f"The tick of {function.package} of the training cluster {cluster_name}"
    role = iam.Role(
        scope,
        "ScheduleRole",
        description=description,
        # https://docs.aws.amazon.com/scheduler/latest/UserGuide/cross-service-confused-deputy-prevention.html
        assumed_by=iam.ServicePrincipal(
            "scheduler.amazonaws.com",
            conditions={
                "StringEquals": {
                    "aws:SourceAccount": HERE.account_id,
                    "aws:SourceArn": HERE.arn("scheduler", "schedule-group/default"),
                }
            },
        ),
    )
    grant = function.grant_invoke(role).combine(function.grant_send_failed_events(role))
    minutes = every.to_minutes()
    schedule = scheduler.CfnSchedule(
        scope,
        "Schedule",
        description=description,
        schedule_expression=f"rate({minutes:g} minute{'' if minutes == 1 else 's'})",
        flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
        target=scheduler.CfnSchedule.TargetProperty(
            arn=function.function.function_arn,
            role_arn=role.role_arn,
            input=json.dumps(TICK, separators=(",", ":")),
            retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                maximum_retry_attempts=0, maximum_event_age_in_seconds=60
            ),
            dead_letter_config=scheduler.CfnSchedule.DeadLetterConfigProperty(arn=function.failed_events.queue_arn),
        ),
    )
    # Scheduler checks at once that it may assume the role and call the function.
    grant.apply_before(schedule)
    return schedule
