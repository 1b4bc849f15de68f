"""Messages to the topic's subscribers, and what is recorded of each, so that it is sent once."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from cluster_common.errors import AWS_ERRORS
from cluster_common.failures import Failures
from cluster_contract.idle import IdleFunctionSettings
from cluster_idle.context import IdleContext
from cluster_idle.idle_tags import (
    REMINDED_TAG,
    STOPPING_TAG,
    IdleTags,
    dry_run_tags,
    notice_tags,
    reminded_tags,
    sent_tags,
)
from cluster_idle.instances import Instance, read_stopped
from cluster_idle.messages import earlier_message, note, reminder_message, stopped_message, warning_message
from cluster_idle.owners import Owners
from cluster_idle.reminders import Reminder
from cluster_idle.verdicts import Decisions, Unit

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client
    from mypy_boto3_sns.client import SNSClient


class IdleNotifications:
    """Send messages.

    The clock runs from when the topic took the warning: also where no subscription to it is confirmed, since idle
    nodes would go on costing money otherwise; that counts as a failed notification.

    Attributes:
        failed: How many messages the topic did not take, or had no confirmed subscription for.
    """

    def __init__(
        self,
        settings: IdleFunctionSettings,
        owners: Owners,
        *,
        ec2: "Callable[[], EC2Client]",
        sns: "Callable[[], SNSClient]",
        failures: Failures,
        context: IdleContext,
        clock: Callable[[], datetime],
    ) -> None:
        self._settings = settings
        self._owners = owners
        self._ec2 = ec2
        self._sns = sns
        self._failures = failures
        self._context = context
        self._clock = clock
        self.failed = 0

    def warn(self, units: Sequence[Unit]) -> list[str]:
        """Record a note, send the warning, and only then let the clock run.

        Where no note can be recorded the clock could never run, and the warning would be sent in each run.
        """
        now = self._clock()
        units = [replace(unit, stop_at=self._stop_at(unit, now)) for unit in units]
        failed = self._owners.write(
            (
                target,
                notice_tags(
                    unit.idle_since, len(unit.ids) + len(unit.others), unit.stop_at, note(self._settings, unit)
                ),
            )
            for unit in units
            for target in unit.targets
        )
        noted = [unit for unit in units if not failed & {target.id for target in unit.targets}]
        if not noted or not self._publish(warning_message(self._settings, noted, now)):
            return []
        sent = self._clock()
        self._owners.write(
            (target, sent_tags(sent, self._stop_at(unit, sent))) for unit in noted for target in unit.targets
        )
        return [one for unit in noted for one in unit.ids]

    def _stop_at(self, unit: Unit, now: datetime) -> datetime:
        """Return when a unit is stopped whose warning is sent now: never before the promised time is over."""
        return max(unit.stop_at, now + self._settings.policy_of(unit.instances[0].node_group).warning)

    def tell_stopped(self, units: Sequence[Unit], stopped: frozenset[str], late: int) -> None:
        """Send what was stopped; a message that the topic does not take is sent by the next run."""
        if units and self._publish(stopped_message(self._settings, units, stopped, late)):
            self._owners.clear(sorted({target for unit in units for target in unit.targets}), [STOPPING_TAG])

    def tell_earlier_run(self, decisions: Decisions) -> None:
        """Send what an earlier run stopped and could not send: it died, or the topic took no message.

        What never stopped is judged anew; what was started again since is told too.
        """
        found = [one.instance for one in decisions.findings]
        marked = [one for one in found if one.idle_tags.stopping_at]
        owners = {owner: state for owner, state in self._context.owners.items() if state.idle_tags.stopping_at}
        again = [one for one in marked if _is_new(one, one.idle_tags)]
        groups = {
            owner: state
            for owner, state in owners.items()
            if all(_is_new(one, state.idle_tags) for one in found if one.owner == owner) or not state.desired
        }
        running = [*(one.itself for one in marked if one not in again), *(one for one in owners if one not in groups)]
        self._owners.clear(sorted(running), [STOPPING_TAG])
        try:
            instances = read_stopped(self._ec2(), self._settings)
        except AWS_ERRORS as error:
            self._failures.add(self._settings.cluster, "what an earlier run stopped could not be read", error)
            instances = []
        instances += again
        back = {*(one.itself for one in again), *(owner for owner, state in groups.items() if state.desired)}
        if (groups or instances) and self._publish(earlier_message(self._settings, groups, instances, back)):
            self._owners.clear(sorted([*groups, *(one.itself for one in instances)]), [STOPPING_TAG])

    def remind(self, reminders: Sequence[Reminder]) -> None:
        """Send once a day what keeps nodes without a clear end, where that can be recorded."""
        tags = reminded_tags(self._context.now)
        failed = self._owners.write((owner, tags) for owner in sorted({one.owner for one in reminders}))
        noted = [one for one in reminders if one.owner.id not in failed]
        if noted and not self._publish(reminder_message(self._settings, noted, self._context.now)):
            self._owners.clear(sorted({one.owner for one in noted}), [REMINDED_TAG])

    def tell_dry_runs(self, units: Sequence[Unit]) -> None:
        """Send once what would be stopped; what cannot be recorded is not sent, since each run would send it."""
        failed = self._owners.write(
            (target, dry_run_tags(note(self._settings, unit))) for unit in units for target in unit.targets
        )
        noted = [unit for unit in units if not failed & {target.id for target in unit.targets}]
        if noted:
            self._publish(stopped_message(self._settings, noted, frozenset()))

    def _publish(self, message: tuple[str, str]) -> bool:
        """Publish a message, and say whether the topic took it; without a topic the tags are all there is."""
        if not self._settings.topic_arn:
            return True
        subject, text = message
        try:
            self._sns().publish(TopicArn=self._settings.topic_arn, Subject=subject, Message=text)
        except AWS_ERRORS as error:
            self._failures.add(self._settings.cluster, "the notification could not be published", error)
            self.failed += 1
            return False
        self.failed += self._has_no_subscriber
        return True

    @cached_property
    def _has_no_subscriber(self) -> bool:
        """Whether the topic has no confirmed subscription: SNS takes its messages all the same.

        A topic of another account need not let itself be read; then nothing is counted.

        Source: https://docs.aws.amazon.com/sns/latest/api/API_GetTopicAttributes.html
        """
        try:
            found = self._sns().get_topic_attributes(TopicArn=self._settings.topic_arn)["Attributes"]
        except AWS_ERRORS:
            return False
        return found.get("SubscriptionsConfirmed") == "0"


def _is_new(instance: Instance, idle_tags: IdleTags) -> bool:
    """Say whether an instance was launched, or started again, since a run began to stop what was there."""
    return idle_tags.stopping_at is not None and instance.launched > idle_tags.stopping_at
