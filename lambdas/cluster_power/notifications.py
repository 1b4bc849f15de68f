"""What the alert topic's subscribers receive: each alert once, and its end once."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from cluster_common.alerts import compare_alerts
from cluster_common.errors import AWS_ERRORS
from cluster_common.failures import Failures
from cluster_common.messages import publish
from cluster_common.state_table import StateChangedError
from cluster_power.alerts import describe_end, find_alerts, known_topics
from cluster_power.context import Context
from cluster_power.state_store import StateStore
from cluster_power.verdicts import Decision

if TYPE_CHECKING:
    from mypy_boto3_sns.client import SNSClient


class Notifications:
    """Send alerts to the topic, and record which were sent.

    A message is sent before it is recorded: better to send it twice than never. Where runs overlap, the later one
    reads first whether the other has sent it.
    """

    def __init__(
        self,
        store: StateStore,
        topic_arn: str | None,
        sns: "Callable[[], SNSClient]",
        failures: Failures,
    ) -> None:
        self._store = store
        self._topic_arn = topic_arn
        self._sns = sns
        self._failures = failures

    def notify(self, decision: Decision, context: Context) -> None:
        """Send what is new about a node group, and what is over."""
        group, alerts, known = decision.group, find_alerts(decision, context), known_topics(decision, context)
        if group is None:
            return
        changes = compare_alerts(alerts, group.record.told, known=known, now=context.now)
        if changes.told == group.record.told:
            return
        try:
            fresh = self._store.describe(group)
            if fresh is None:
                return
            if fresh.record.ordered != group.record.ordered:
                return  # What was decided is over: the next run says what follows from the other command.
            changes = compare_alerts(alerts, fresh.record.told, known=known, now=context.now)
            for alert in changes.new:
                self._publish(alert.subject, alert.text)
            for key in changes.over:
                self._publish(*describe_end(decision, group, key, context))
            if changes.told != fresh.record.told:
                self._store.save(fresh, told=changes.told)
        except StateChangedError:
            return  # Another run has changed the record: the next one compares again.
        except AWS_ERRORS as error:
            self._failures.add(group.node_group or group.name, "could not send or record an alert", error)

    def _publish(self, subject: str, text: str) -> None:
        if self._topic_arn:
            publish(self._sns(), self._topic_arn, subject, text)
