"""One run: read what there is, decide, apply, report."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from billing_alarms.decisions import Action, Change, decide, silent
from billing_alarms.messages import Notification, left_behind, no_charges, no_metrics, over, unconfirmed
from billing_alarms.topic import (
    CONFIRMED,
    ForeignTopicError,
    Topic,
    addresses_to_ask,
    addresses_to_remove,
    asked_tag,
    read_topic,
    repair_topic,
    superfluous_tags,
)
from billing_alarms.watched_budget import WatchedBudget
from cluster_common.errors import AWS_ERRORS, InvalidEventError
from cluster_common.failures import Failures
from cluster_common.messages import publish, subject
from cluster_common.metrics import CLUSTER_DIMENSION, emit_counts
from cluster_common.times import time_text
from cluster_contract.billing import BillingMetric
from cluster_contract.events import EVENT_FIELD, Event

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch.client import CloudWatchClient
    from mypy_boto3_lambda.client import LambdaClient
    from mypy_boto3_sns.client import SNSClient

# How long an address has to confirm its subscription.
_GRACE = timedelta(days=1)

# Of one page, and of one deletion.
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DescribeAlarms.html and
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DeleteAlarms.html
_MAX_ALARMS = 100

_FAILURES = (*AWS_ERRORS, ForeignTopicError)


class Request(StrEnum):
    """What an event asks for."""

    TICK = "tick"
    """Compare, change, report."""

    STATUS = "status"
    """Compare and report; change nothing."""


def parse_request(event: Mapping[str, object]) -> Request:
    """Read an event; `{}` is a tick.

    Raises:
        InvalidEventError: The event asks for something the function does not do.
    """
    if set(event) <= {"action"} and event.get("action", "tick") in tuple(Request):
        return Request(str(event.get("action", "tick")))
    raise InvalidEventError(f"the event takes action, one of {', '.join(Request)}, got {dict(event)!r}")


@dataclass(frozen=True, kw_only=True)
class Clients:
    """What the function talks to.

    Attributes:
        cloudwatch: Makes the client of CloudWatch in the region of the alarms.
        sns: Makes the client of SNS there.
        home_sns: Makes the client of SNS in the function's region, where its alert topic is.
        functions: Makes the client of Lambda there.
    """

    cloudwatch: "Callable[[], CloudWatchClient]"
    sns: "Callable[[], SNSClient]"
    home_sns: "Callable[[], SNSClient]"
    functions: "Callable[[], LambdaClient]"


class Billing:
    """The alarms of one budget.

    A run makes the topic first, then its subscriptions, then the alarms, each with one call that does all or
    nothing; what a run did not finish the next one does. What could not be read is left as it is.
    """

    def __init__(self, settings: WatchedBudget, clients: Clients, logger: Logger, now: datetime) -> None:
        self._settings = settings
        self._clients = clients
        self._logger = logger
        self._now = now.replace(microsecond=0)
        self._failures = Failures(logger)

    def run(self, request: Request) -> dict[str, object]:
        """Do what was asked and return a summary for operators.

        Raises:
            PartialFailureError: Something failed, after everything was tried.
        """
        settings = self._settings
        topic: Topic | None = None
        changes: list[Change] = []
        confirmed, accounts, services = list[str](), list[str](), list[str]()
        counts: dict[str, int] = {}
        with self._attempt("the topic could not be read"):
            topic = read_topic(self._clients.sns(), settings)
            confirmed = topic.confirmed
            counts[BillingMetric.UNCONFIRMED] = len(set(settings.emails) - set(confirmed))
        with self._attempt("the alarms could not be read"):
            changes = decide(settings, self._present())
            accounts, services = silent(settings, changes, self._now)
            counts[BillingMetric.SILENT_ACCOUNTS] = len(accounts)
        waiting = sorted(set(settings.emails) - set(confirmed))
        reached = [change.name for change in changes if change.rings]
        if request is Request.TICK:
            if topic is not None:
                due = [
                    no_metrics(settings, accounts),
                    no_charges(settings, services),
                    unconfirmed(settings, [each for each in waiting if self._is_late(topic, each)]),
                    over(settings, reached if waiting or not topic.is_heard else []),
                ]
                self._apply(topic, changes, due)
            # Of what could not be read no point, rather than a wrong one.
            counts[BillingMetric.EVALUATIONS] = int(not self._failures)
            emit_counts(counts, **{CLUSTER_DIMENSION: settings.cluster})
        self._failures.raise_all()
        return {
            "action": request.value,
            "topic": settings.topic_arn,
            "alarms": [{"name": each.name, "action": each.action.value, "reason": each.reason} for each in changes],
            "reached": reached,
            "confirmed": confirmed,
            "waiting_for_confirmation": waiting,
            "no_billing_metrics_of": accounts,
            "no_charges_yet_or_a_wrong_name": services,
        }

    def remove(self) -> None:
        """Remove the alarms, then the topic that would hear of alarms that are left, and take no more events.

        Raises:
            PartialFailureError: Something was left, after everything was tried.
        """
        with self._attempt("the alarms could not be removed"):
            self._remove_alarms()
        if not self._failures:
            with self._attempt("the topic could not be removed"):
                self._remove_topic()
        # The queue keeps no order, and keeps a throttled tick for minutes: one after this would make all anew.
        # https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
        with self._attempt("the function's concurrency could not be set to 0"):
            self._clients.functions().put_function_concurrency(
                FunctionName=self._settings.function, ReservedConcurrentExecutions=0
            )
        self._failures.raise_all()

    def tell_left_behind(self, left: Sequence[str]) -> None:
        """Log what was not removed, and publish it to the alert topic and, while it is there, to the budget's own.

        Raises:
            PartialFailureError: A message could not be sent, after both were tried.
        """
        settings = self._settings
        title, text = left_behind(settings, left)
        self._logger.error(text)
        for sns, topic in (
            (self._clients.home_sns, settings.alert_topic_arn),
            (self._clients.sns, settings.topic_arn),
        ):
            with self._attempt(f"{topic} could not be notified"):
                publish(sns(), topic, subject(title), text)
        self._failures.raise_all()

    # Reading

    @contextmanager
    def _attempt(self, trouble: str) -> Iterator[None]:
        """Keep a failure for the end, so that the rest is tried."""
        try:
            yield
        except _FAILURES as error:
            self._failures.add(self._settings.cluster, trouble, error)

    def _present(self) -> list[Any]:
        paginator = self._clients.cloudwatch().get_paginator("describe_alarms")
        pages = paginator.paginate(AlarmNamePrefix=self._settings.prefix, PaginationConfig={"PageSize": _MAX_ALARMS})
        return [alarm for page in pages for alarm in page["MetricAlarms"]]

    def _is_late(self, topic: Topic, address: str) -> bool:
        return self._is_past(topic.time(asked_tag(address), self._now), _GRACE)

    def _is_past(self, moment: datetime | None, time: timedelta) -> bool:
        return moment is not None and self._now - moment >= time

    # Applying

    def _apply(self, topic: Topic, changes: list[Change], due: list[Notification]) -> None:
        sns, settings = self._clients.sns(), self._settings
        try:
            done = repair_topic(sns, settings, topic)
        except AWS_ERRORS as error:
            self._failures.add(settings.cluster, "the topic could not be made, so no alarm was changed", error)
            return
        if done:
            self._logger.info(f"{settings.topic_arn}: {done}")
        tags = {asked_tag(address): time_text(self._now) for address in self._subscribe(topic)}
        for change in changes:
            self._change(change)
        joined = {asked_tag(each): CONFIRMED for each in topic.confirmed if each in settings.emails}
        if joined.items() - topic.tags.items():
            with self._attempt("the alarms could not be made to notify again"):
                for change in changes:
                    if change.rings and change.action is Action.KEEP:
                        self._notify_again(change)
                tags |= joined
        for notification in due:
            told = topic.time(notification.tag, self._now)
            if notification.about and (told is None or self._is_past(told, notification.every)):
                with self._attempt("the alert topic could not be notified"):
                    self._publish(notification.subject, notification.text)
                    tags[notification.tag] = time_text(self._now)
        if tags:
            with self._attempt("the topic could not be tagged"):
                sns.tag_resource(
                    ResourceArn=settings.topic_arn,
                    Tags=[{"Key": key, "Value": value} for key, value in tags.items()],
                )
        if superfluous := superfluous_tags(settings, topic):
            with self._attempt("tags could not be taken off the topic"):
                sns.untag_resource(ResourceArn=settings.topic_arn, TagKeys=superfluous)

    def _subscribe(self, topic: Topic) -> list[str]:
        """Subscribe and unsubscribe addresses; return those that were asked to confirm."""
        sns, asked = self._clients.sns(), []
        for address in addresses_to_ask(self._settings, topic, self._now):
            with self._attempt(f"{address} could not be subscribed"):
                sns.subscribe(TopicArn=self._settings.topic_arn, Protocol="email", Endpoint=address)
                asked.append(address)
        for address, arn in addresses_to_remove(self._settings, topic):
            with self._attempt(f"{address} could not be unsubscribed"):
                sns.unsubscribe(SubscriptionArn=arn)
        return asked

    def _change(self, change: Change) -> None:
        if change.action is Action.KEEP:
            return
        with self._attempt(f"{change.name}: could not {change.action}"):
            if change.request is None:
                self._clients.cloudwatch().delete_alarms(AlarmNames=[change.name])
            else:
                self._clients.cloudwatch().put_metric_alarm(**change.request)
                if change.rings:
                    self._notify_again(change)
            what = f"{change.name}: {change.action}, because {change.reason}"
            self._logger.info(what, extra={EVENT_FIELD: Event.ACT})

    def _notify_again(self, change: Change) -> None:
        """Let CloudWatch evaluate an alarm anew: it notifies when a state changes, and an update keeps the state.

        https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_SetAlarmState.html
        """
        self._clients.cloudwatch().set_alarm_state(
            AlarmName=change.name,
            StateValue="INSUFFICIENT_DATA",
            StateReason="So that it notifies again: the alarm was changed, or an address was confirmed.",
        )

    def _publish(self, title: str, text: str) -> None:
        publish(self._clients.home_sns(), self._settings.alert_topic_arn, subject(title), text)

    # Removing

    def _remove_alarms(self) -> None:
        names = [alarm["AlarmName"] for alarm in self._present()]
        for at in range(0, len(names), _MAX_ALARMS):
            self._clients.cloudwatch().delete_alarms(AlarmNames=names[at : at + _MAX_ALARMS])

    def _remove_topic(self) -> None:
        if read_topic(self._clients.sns(), self._settings).exists:
            self._clients.sns().delete_topic(TopicArn=self._settings.topic_arn)
