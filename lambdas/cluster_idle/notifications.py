"""Messages to the topic's subscribers, and what is recorded of each, so that it is sent once."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from cluster_common.errors import AWS_ERRORS
from cluster_common.failures import Failures
from cluster_common.messages import publish, publish_to_backup
from cluster_contract.idle import IdleFunctionSettings
from cluster_idle.context import IdleContext
from cluster_idle.messages import earlier_message, note, reminder_message, stopped_message, warning_message
from cluster_idle.owner_reader import OwnerReader
from cluster_idle.reminders import REMIND_EVERY, Reminder
from cluster_idle.sent_warnings import IdleRecords, SentWarning
from cluster_idle.verdicts import IdleFinding, Unit

if TYPE_CHECKING:
    from mypy_boto3_sns.client import SNSClient


class IdleNotifications:
    """Send messages.

    The promised time runs from when the topic, or else the backup topic, took the warning: also where no subscription
    to it is confirmed, since idle nodes would go on costing money otherwise; that counts as a failed notification.

    Attributes:
        failed: How many messages the alert topic did not take, or had no confirmed subscription for; those that the
            backup topic took are counted, too.
    """

    def __init__(
        self,
        settings: IdleFunctionSettings,
        owners: OwnerReader,
        records: IdleRecords,
        *,
        sns: "Callable[[], SNSClient]",
        failures: Failures,
        context: IdleContext,
        clock: Callable[[], datetime],
    ) -> None:
        self._settings = settings
        self._owners = owners
        self._records = records
        self._sns = sns
        self._failures = failures
        self._context = context
        self._clock = clock
        self.failed = 0

    def warn(self, units: Sequence[Unit]) -> None:
        """Record the warning, send it, and record that it was sent: from then on the promised time runs.

        Where it cannot be recorded it is not sent: it would be sent in each run.
        """
        now = self._clock()
        units = [replace(unit, stop_at=self._stop_at(unit, now)) for unit in units]
        records = {unit.name: self._record(unit) for unit in units}
        if not units or not self._records.save(records):
            return
        if not self._publish(warning_message(self._settings, units, now)):
            return
        sent = self._clock()
        stops = {unit.name: self._stop_at(unit, sent) for unit in units}
        self._records.save(
            {name: replace(one, idle_until=sent, stop_at=stops[name]) for name, one in records.items()}
        )
        self._annotate(units)

    def _stop_at(self, unit: Unit, now: datetime) -> datetime:
        """Return when a unit is stopped whose warning is sent now: never before the promised time is over."""
        return max(unit.stop_at, now + self._settings.policy_of(unit.instances[0].node_group).warning)

    def _record(self, unit: Unit) -> SentWarning:
        before = self._records.warnings.get(unit.name)
        refusals = before.refusals if before else {}
        return SentWarning(
            idle_since=unit.idle_since,
            stop_at=unit.stop_at,
            nodes=len(unit.ids) + len(unit.others),
            owners=tuple(sorted({one.owner.key for one in unit.instances})),
            dry_run=unit.dry_run,
            refusals={name: one for name, one in refusals.items() if one.is_recent(self._context.now)},
            unreported=before.unreported if before else None,
        )

    def report_stops(self, units: Sequence[Unit], stopped: frozenset[str], late: int) -> bool:
        """Send what was stopped, and say whether the topic took it; if not, the next run sends it."""
        return not units or self._publish(stopped_message(self._settings, units, stopped, late))

    def report_earlier_stops(self, findings: Sequence[IdleFinding]) -> None:
        """Send what an earlier run stopped and could not report: it ended too early, or the topic took no message.

        What was not stopped after all is judged anew; of what was started again since, the message says so.
        """
        texts: list[str] = []
        judged_anew: dict[str, SentWarning | None] = {}
        reported: dict[str, SentWarning | None] = {}
        found = {finding.instance.id: finding.instance for finding in findings}
        for name, sent in sorted(self._records.warnings.items()):
            stop = sent.unreported
            if stop is None or name in self._context.unread:
                continue
            left = [one for one in stop.ids if one in found and found[one].launched <= stop.at]
            rest = replace(sent, unreported=None) if left else None
            if len(left) == len(stop.ids) and not self._is_at_zero(name):
                judged_anew[name] = rest
                continue
            again = any(one.unit == name and one.instance.launched > stop.at for one in findings)
            more = ["  It has been started again since."] * again
            more += [f"  Of these, {len(left)} still run, such as {left[0]}."] if left else []
            texts.append("\n".join([stop.text, *more]))
            reported[name] = rest
        self._records.save(judged_anew)
        if texts and self._publish(earlier_message(self._settings, texts)):
            self._records.save(reported)

    def _is_at_zero(self, node_group: str) -> bool:
        owners = [state for state in self._context.owners.values() if state.node_group == node_group]
        return bool(owners) and not any(state.desired for state in owners)

    def remind(self, reminders: Sequence[Reminder]) -> None:
        """Send once a day which tags keep nodes without a clear end, where that can be recorded."""
        due = [one for one in reminders if one.is_due]
        unclear = {one.owner.key for one in reminders}
        # What a run cannot read is not gone, and is not named again on the same day.
        sent_before = self._context.now - REMIND_EVERY
        gone = [key for key, at in self._records.reminders.items() if key not in unclear and at <= sent_before]
        before = {one.owner.key: self._records.reminders.get(one.owner.key) for one in due}
        if not self._records.save_reminders(dict.fromkeys(gone) | dict.fromkeys(before, self._context.now)):
            return
        if due and not self._publish(reminder_message(self._settings, due, self._context.now)):
            self._records.save_reminders(before)

    def report_dry_runs(self, units: Sequence[Unit]) -> None:
        """Send once what would be stopped, where that can be recorded; without a dry run a new warning is due."""
        sent = {unit.name: self._records.warnings[unit.name] for unit in units}
        reported = {name: replace(one, dry_run=True, reported=True) for name, one in sent.items()}
        if not units or not self._records.save(reported):
            return
        if self._publish(stopped_message(self._settings, units, frozenset())):
            self._annotate(units)
        else:
            self._records.save(sent)

    def _annotate(self, units: Sequence[Unit]) -> None:
        self._owners.annotate({target: note(self._settings, unit) for unit in units for target in unit.targets})

    def _publish(self, message: tuple[str, str]) -> bool:
        """Publish a message, and say whether a topic took it; without a topic the notes are all there is."""
        if not self._settings.topic_arn:
            return True
        subject, text = message
        try:
            taken = publish(self._sns(), self._settings.topic_arn, subject, text)
        except AWS_ERRORS as error:
            what = (
                f"the notification could not be published to {self._settings.topic_arn}, and the next run repeats it"
            )
            self._failures.add(self._settings.cluster, what, error)
            self.failed += 1
            return False
        unread = taken and self._has_no_subscriber
        if unread:
            reason = f"{self._settings.topic_arn} has no confirmed subscription"
            publish_to_backup(self._sns(), subject, text, reason)
        self.failed += unread or not taken
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
