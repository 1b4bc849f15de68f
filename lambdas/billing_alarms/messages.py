"""The messages about billing alarms that cannot do their work, and how often each is sent."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from billing_alarms.watched_budget import WatchedBudget
from cluster_contract.billing import BILLING_REGION


@dataclass(frozen=True, kw_only=True)
class Notification:
    """A message that is repeated while its reason lasts.

    Attributes:
        tag: The tag on the topic that remembers when it was last sent.
        every: How often it is sent.
        about: What it is about; nothing: it is not sent.
        subject: Its subject.
        text: What it says.
    """

    tag: str
    every: timedelta
    about: Sequence[str]
    subject: str
    text: str


def no_metrics(settings: WatchedBudget, silent: Sequence[str]) -> Notification:
    """Say that AWS reports no charges, so that alarms are silent."""
    return Notification(
        tag="cdk-training-cluster:billing-told-silent",
        every=timedelta(days=1),
        about=silent,
        subject=f"{settings.cluster}: billing alarms have no metrics",
        text=(
            f"CloudWatch in {BILLING_REGION} has no billing metrics (AWS/Billing EstimatedCharges in USD) of "
            f"{', '.join(silent)}, so the billing alarms of {settings.cluster}, which count the charges of whole "
            "accounts, cannot go into ALARM.\n\n"
            "Switch them on: Billing and Cost Management, Billing preferences, Alert preferences, Receive CloudWatch "
            "billing alerts; in an organization the management account has to do it too. Metrics of linked accounts "
            "exist in the management account only. An account of the AWS Partner Network, or one "
            "bought through a reseller, never gets them: leave the budget out there, and ask the partner or the "
            "reseller for its charges."
        ),
    )


def no_charges(settings: WatchedBudget, services: Sequence[str]) -> Notification:
    """Say which services have had no charges for a week."""
    return Notification(
        tag="cdk-training-cluster:billing-told-services",
        every=timedelta(days=7),
        about=services,
        subject=f"{settings.cluster}: services without charges",
        text=(
            f"CloudWatch in {BILLING_REGION} has had no billing metrics for a week of {', '.join(services)}. Either "
            f"there are no charges yet, or the budget of {settings.cluster} has a wrong name: CloudWatch lists the "
            "names under Billing, By Service. Leave out what is not used."
        ),
    )


def over(settings: WatchedBudget, alarms: Sequence[str]) -> Notification:
    """Say which thresholds are reached while not every subscriber gets the alarms."""
    return Notification(
        tag="cdk-training-cluster:billing-told-over",
        every=timedelta(days=1),
        about=alarms,
        subject=f"{settings.cluster}: the account's charges have reached the budget's thresholds",
        text=(
            f"These billing alarms of {settings.cluster} in {BILLING_REGION} are in alarm: {', '.join(alarms)}. They "
            f"count everything that {settings.charged} is charged for, not {settings.cluster} alone.\n\n"
            f"Not every address gets them: an address of the budget is not confirmed, or the topic "
            f"{settings.topic_arn} has no confirmed subscription. Cost Explorer shows which services and resources "
            "cost most."
        ),
    )


def unconfirmed(settings: WatchedBudget, addresses: Sequence[str]) -> Notification:
    """Say which addresses get no alarms, because their subscription is not confirmed."""
    return Notification(
        tag="cdk-training-cluster:billing-told-unconfirmed",
        every=timedelta(days=7),
        about=addresses,
        subject=f"{settings.cluster}: billing alarms wait for confirmation",
        text=(
            f"These addresses get no billing alarms of {settings.cluster} until their owner opens the link in the "
            f"message 'AWS Notification - Subscription Confirmation': {', '.join(addresses)}.\n\n"
            f"The topic is {settings.topic_arn}. SNS drops a request that is not confirmed within 48 hours; a new "
            "one is sent once a week while the address is in the settings."
        ),
    )


def left_behind(settings: WatchedBudget, left: Sequence[str]) -> tuple[str, str]:
    """Return subject and text that say what was not removed with the stack."""
    at = f"--region {BILLING_REGION}"
    return (
        f"{settings.cluster}: billing alarms were left behind",
        f"The stack of {settings.cluster} is being deleted. In {BILLING_REGION} there may be alarms whose names "
        f"start with {settings.prefix}, for 0.10 USD a month each, and the topic {settings.topic_arn}. These two "
        f"commands remove them:\n\n"
        f"aws cloudwatch delete-alarms {at} --alarm-names $(aws cloudwatch describe-alarms {at} --alarm-name-prefix "
        f"{settings.prefix} --query 'MetricAlarms[].AlarmName' --output text)\n\n"
        f"aws sns delete-topic {at} --topic-arn {settings.topic_arn}\n\n" + "\n".join(left),
    )
