"""Apply what was decided: stop what is due, warn of what is next, and clear warnings that are void."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

from cluster_common.errors import AWS_ERRORS
from cluster_common.failures import Failures
from cluster_contract.idle import IdleFunctionSettings, SignalKind
from cluster_idle.context import IdleContext, OwnerState
from cluster_idle.decisions import decide
from cluster_idle.evidence import Evidence, EvidenceState
from cluster_idle.idle_tags import (
    REMINDED_TAG,
    STOPPING_TAG,
    IdleTags,
    dry_run_tags,
    notice_tags,
    refusal_tags,
    reminded_tags,
    sent_tags,
    stopping_tags,
    warned_tags,
)
from cluster_idle.instances import Instance, Owner, read_again, read_stopped
from cluster_idle.messages import earlier_message, note, reminder_message, stopped_message, warning_message
from cluster_idle.owners import Owners
from cluster_idle.power_function import PowerFunction
from cluster_idle.reminders import Reminder
from cluster_idle.stopping import MAX_AT_ONCE, Stopper
from cluster_idle.verdicts import Decisions, IdleVerdict, Unit

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client
    from mypy_boto3_lambda.client import LambdaClient
    from mypy_boto3_sns.client import SNSClient

# The power function takes so many in one order.
MAX_TERMINATED = 100


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What was done.

    Attributes:
        stopped: The ids of the instances that are stopped.
        warned: The ids of those that people were warned of.
        changed: Why what was due was not stopped after all, by the id of the instance.
        failed_notifications: How many messages the topic did not take, or passed on to nobody.
    """

    stopped: frozenset[str] = frozenset()
    warned: frozenset[str] = frozenset()
    changed: Mapping[str, str] = field(default_factory=dict)
    failed_notifications: int = 0


class IdleExecutor:
    """Apply what was decided.

    What is due is read again right before it is stopped: it is left alone if anything of it changed. The clock runs
    from when the topic took the warning: also where nobody has confirmed a subscription to it, since idle nodes would
    go on costing money otherwise; that counts as a failed notification.
    """

    def __init__(
        self,
        settings: IdleFunctionSettings,
        owners: Owners,
        *,
        ec2: "Callable[[], EC2Client]",
        lambda_: "Callable[[], LambdaClient]",
        sns: "Callable[[], SNSClient]",
        failures: Failures,
        context: IdleContext,
        read_sessions: Callable[[Sequence[Instance]], Collection[str] | None],
        clock: Callable[[], datetime],
        pause: Callable[[float], None],
    ) -> None:
        self._settings = settings
        self._owners = owners
        self._ec2 = ec2
        self._power = PowerFunction(lambda_, settings.power_function, pause)
        self._sns = sns
        self._failures = failures
        self._context = context
        self._read_sessions = read_sessions
        self._clock = clock
        self._changed: dict[str, str] = {}
        self._sizes: dict[str, int] = {}
        self._failed_notifications = 0

    def apply(self, decisions: Decisions) -> Outcome:
        """Warn of what is idle, stop what is due, and write down or clear what follows; return what was done."""
        self._tell_of_last_run(decisions)
        self._remind([reminder for reminder in decisions.reminders if reminder.is_due])
        warned = self._warn(decisions.warn)
        self._tell_dry_runs(
            self._look_again([one for one in decisions.stop if one.dry_run and not one.told_of_dry_run])
        )
        late = sum(finding.verdict is IdleVerdict.DEFERRED for finding in decisions.findings)
        stopped = self._stop([unit for unit in decisions.stop if not unit.dry_run], late)
        seen_at, other = warned_tags(self._context.now), {*stopped, *self._changed}
        renew = (unit for unit in decisions.renew if not other.intersection(unit.ids))
        self._owners.write((target, seen_at) for unit in renew for target in unit.targets)
        self._owners.clear(decisions.clear)
        return Outcome(
            stopped=frozenset(stopped),
            warned=frozenset(warned),
            changed=self._changed,
            failed_notifications=self._failed_notifications,
        )

    def _look_at_unowned(self, unit: Unit) -> list[Unit]:
        """Return what nothing owns of a group that is at zero now, if it is due still."""
        unowned = tuple(one for one in unit.instances if one.owner.is_instance)
        targets = tuple(one.itself for one in unowned)
        part = replace(unit, instances=unowned, targets=targets, others=())
        return self._look_again([part], with_owners=False) if unowned else []

    def _look_again(self, units: Sequence[Unit], *, with_owners: bool = True) -> list[Unit]:
        """Return the units that are due still: right before they are stopped, since each stop takes its time."""
        if not units:
            return []
        node_groups = {_first(unit).node_group for unit in units} & set(self._settings.groups if with_owners else ())
        try:
            together = [one for unit in units for one in (*unit.ids, *unit.others)]
            found = read_again(self._ec2(), self._settings, together)
        except AWS_ERRORS as error:
            self._failures.add(", ".join(unit.name for unit in units), "could not be read again", error)
            self._note_changes(units, "it could not be read again before the stop")
            return []
        only = next(iter(node_groups)) if len(node_groups) == 1 else None
        owners = self._owners.read(only) if node_groups else {}
        unread = self._owners.unread if node_groups else frozenset()
        evidence = self._with_sessions(list(found.values()))
        again = decide(list(found.values()), replace(self._context, evidence=evidence, owners=owners, unread=unread))
        due = {(unit.name, unit.ids) for unit in again.stop}
        still = [unit for unit in units if (unit.name, unit.ids) in due]
        self._note_changes(
            [unit for unit in units if unit not in still],
            "it changed while the function looked: the next run decides",
        )
        # What the power function is told of a group is what was judged.
        self._sizes = {name: _size(owners, name) for name in node_groups}
        return still

    def _with_sessions(self, instances: Sequence[Instance]) -> Mapping[str, Evidence]:
        """Return what is known of instances, with the sessions that are open now where a policy asks."""
        evidence = dict(self._context.evidence)
        asking = [one for one in instances if self._asks_for_sessions(one)]
        sessions = self._read_sessions(asking) if asking else None
        for one in asking:
            if sessions is None:
                evidence[one.id] = Evidence(state=EvidenceState.UNKNOWN, reason="its sessions could not be read")
            elif one.id in sessions:
                evidence[one.id] = Evidence(
                    state=EvidenceState.BUSY, reason="a Session Manager session is open on it"
                )
        return evidence

    def _asks_for_sessions(self, instance: Instance) -> bool:
        return any(signal.kind is SignalKind.SESSION for signal in self._context.policy(instance).signals)

    def _note_changes(self, units: Sequence[Unit], why: str) -> None:
        self._changed |= {one: why for unit in units for one in unit.ids}

    def _stop(self, units: Sequence[Unit], late: int) -> list[str]:
        """Stop what is due, what takes little time first, and tell people."""
        stopped: list[str] = []
        for batch in _batches([unit for unit in units if not _is_owned(unit)]):
            stopped += self._stop_instances(self._look_again(batch))
        for unit in (unit for unit in units if _is_owned(unit) and not _is_alone(unit)):
            if self._look_again([unit]):
                gone = self._stop_group(unit)
                # Where the group is refused, what nothing owns of it stays too.
                stopped += [*gone, *self._stop_instances(self._look_at_unowned(unit))] if gone else []
        alone = [unit for unit in units if _is_owned(unit) and _is_alone(unit)]
        for node_group in sorted({_first(unit).node_group for unit in alone}):
            of_group = [unit for unit in alone if _first(unit).node_group == node_group]
            for start in range(0, len(of_group), MAX_TERMINATED):
                still = self._look_again(of_group[start : start + MAX_TERMINATED])
                stopped += self._terminate(node_group, still) if still else []
        done = [unit for unit in units if set(unit.ids) & set(stopped)]
        if done and self._publish(stopped_message(self._settings, done, frozenset(stopped), late)):
            self._owners.clear(sorted({target for unit in done for target in unit.targets}), [STOPPING_TAG])
        return stopped

    def _begin(self, units: Sequence[Unit]) -> None:
        """Write down what is about to be stopped: a run that dies cannot tell, and the next one does."""
        tags = stopping_tags(self._context.now)
        self._owners.write((target, tags) for unit in units for target in unit.targets)

    def _stop_instances(self, units: Sequence[Unit]) -> list[str]:
        """Stop what nothing owns, and last what AWS refused to stop before: it keeps no other waiting."""
        alone = [one for unit in units for one in unit.instances if one.owner.is_instance]
        if not alone:
            return []
        self._begin([unit for unit in units if not _is_owned(unit)])
        stopper = Stopper(self._ec2(), self._failures, self._read_running)
        now = self._context.now
        stopped: list[str] = []
        for refused, hibernates in product((False, True), repeat=2):
            ids = [
                one.id for one in alone if (one.idle_tags.is_refused(now), one.hibernates) == (refused, hibernates)
            ]
            stopped += stopper.stop(ids, hibernate=hibernates)
        self._owners.write(
            (one.owner, refusal_tags(now, stopper.refused[one.id])) for one in alone if one.id in stopper.refused
        )
        return stopped

    def _read_running(self, ids: Sequence[str]) -> Collection[str]:
        try:
            return read_again(self._ec2(), self._settings, ids)
        except AWS_ERRORS as error:
            self._failures.add(", ".join(ids), "could not be read again", error)
            return ids

    def _stop_group(self, unit: Unit) -> list[str]:
        """Stop a node group now or not at all, as it was judged: a job may begin, or somebody start it, meanwhile."""
        order = {
            "action": "stop",
            "node_groups": [unit.name],
            "all_or_nothing": True,
            "expected_size": self._sizes.get(unit.name, 0),
            "expected_instance_ids": sorted([*unit.ids, *unit.others]),
        }
        self._begin([unit])
        answer = self._power.order(order, _reason([unit]), lambda: bool(self._look_again([unit])))
        if answer.not_asked:
            self._owners.clear(unit.targets, [STOPPING_TAG])
            return []
        left = [group for group in answer.groups if group.get("desired") != 0 or group.get("taken_back")]
        if left or not answer.groups:
            why = (
                answer.failure
                or "; ".join(str(group.get("reason", "")) for group in left)
                or "it knows no such group"
            )
            # What counts is the size: the function may have failed elsewhere, or have read what was no longer so.
            if not self._is_at_zero(unit.name):
                self._failures.add_sentence(unit.name, f"the power function did not stop it: {why}")
                self._refuse([unit])
                if not answer.failure:
                    self._owners.clear(unit.targets, [STOPPING_TAG])
                return []
            self._failures.add_sentence(unit.name, f"the group is at zero. The power function also reported: {why}")
        return [one.id for one in unit.instances if not one.owner.is_instance]

    def _is_at_zero(self, node_group: str) -> bool:
        owners = self._owners.read(node_group)
        return bool(owners) and not self._owners.unread and not _size(owners, node_group)

    def _terminate(self, node_group: str, units: Sequence[Unit]) -> list[str]:
        """Let single nodes of a group go, and find out which did where some did not."""
        ids = [one for unit in units for one in unit.ids]
        order = {"action": "terminate", "node_groups": [node_group], "instance_ids": ids}
        self._begin(units)
        answer = self._power.order(order, _reason(units), lambda: len(self._look_again(units)) == len(units))
        if answer.not_asked:
            self._note_changes(
                [unit for unit in units if unit.ids[0] not in self._changed],
                "another node changed while the function waited: the next run decides",
            )
            self._owners.clear([target for unit in units for target in unit.targets], [STOPPING_TAG])
            return []
        gone = [one for one in ids if one in answer.terminated]
        if answer.failure:
            owners = self._owners.read(node_group)
            left = {one for state in owners.values() for one in state.live_ids} if owners else set(ids)
            gone = [one for one in ids if one not in left]
            self._failures.add_sentence(node_group, f"the power function failed: {answer.failure}")
        stay = [unit for unit in units if not set(unit.ids) & set(gone)]
        self._refuse(stay)
        if not answer.failure:
            self._owners.clear([target for unit in stay for target in unit.targets], [STOPPING_TAG])
        return gone

    def _tell_of_last_run(self, decisions: Decisions) -> None:
        """Tell what an earlier run stopped and could not tell: it died, or the topic took no message."""
        seen = [one.instance for one in decisions.findings]
        running = [one for one in seen if one.idle_tags.stopping_at]
        owners = {owner: state for owner, state in self._context.owners.items() if state.idle_tags.stopping_at}
        try:
            instances = read_stopped(self._ec2(), self._settings)
        except AWS_ERRORS as error:
            self._failures.add(self._settings.cluster, "what an earlier run stopped could not be read", error)
            instances = []
        # What somebody started since was stopped, too: all of it was launched later.
        again = {one.itself for one in running if _are_later([one], one.idle_tags)}
        again |= {
            owner
            for owner, state in owners.items()
            if state.desired and _are_later(_of(owner, seen), state.idle_tags)
        }
        instances += [one for one in running if one.itself in again]
        groups = {owner: state for owner, state in owners.items() if not state.desired or owner in again}
        # Of a group that has no nodes yet, the next ones show it.
        left = [owner for owner in owners if owner not in groups and _of(owner, seen)]
        self._owners.clear(sorted([one.itself for one in running if one.itself not in again] + left), [STOPPING_TAG])
        message = earlier_message(self._settings, groups, instances, again)
        if not (groups or instances) or not self._publish(message):
            return
        self._owners.clear(sorted([*groups, *(one.itself for one in instances)]), [STOPPING_TAG])

    def _refuse(self, units: Sequence[Unit]) -> None:
        """Remember that the power function did not stop nodes, so that they keep no others waiting."""
        refused = refusal_tags(self._context.now, "the power function")
        self._owners.write((target, refused) for unit in units for target in unit.targets)

    def _warn(self, units: Sequence[Unit]) -> list[str]:
        """Write a note, tell people, and only then let the clock run.

        Where no note can be written the clock could never run: people would be told in each run, and in vain.
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
        """Return when a unit is stopped of which people are warned now: they have the time that they are promised."""
        return max(unit.stop_at, now + self._settings.policy_of(_first(unit).node_group).warning)

    def _remind(self, reminders: Sequence[Reminder]) -> None:
        """Tell people once a day what keeps nodes without a clear end, where that can be written down."""
        tags = reminded_tags(self._context.now)
        failed = self._owners.write((owner, tags) for owner in sorted({one.owner for one in reminders}))
        noted = [one for one in reminders if one.owner.id not in failed]
        if noted and not self._publish(reminder_message(self._settings, noted, self._context.now)):
            self._owners.clear(sorted({one.owner for one in noted}), [REMINDED_TAG])

    def _tell_dry_runs(self, units: Sequence[Unit]) -> None:
        """Say once what would be stopped; where that cannot be remembered, nobody is told in each run."""
        failed = self._owners.write(
            (target, dry_run_tags(note(self._settings, unit))) for unit in units for target in unit.targets
        )
        noted = [unit for unit in units if not failed & {target.id for target in unit.targets}]
        if noted:
            self._publish(stopped_message(self._settings, noted, frozenset()))

    def _publish(self, message: tuple[str, str]) -> bool:
        """Tell people; without a topic there is nobody to tell but who reads the tags."""
        if not self._settings.topic_arn:
            return True
        subject, text = message
        try:
            self._sns().publish(TopicArn=self._settings.topic_arn, Subject=subject, Message=text)
        except AWS_ERRORS as error:
            self._failures.add(self._settings.cluster, "the notification could not be published", error)
            self._failed_notifications += 1
            return False
        self._failed_notifications += self._has_no_subscriber
        return True

    @cached_property
    def _has_no_subscriber(self) -> bool:
        """Whether nobody has confirmed a subscription to the topic: SNS takes its messages all the same.

        A topic of another account need not let itself be read; then nothing is counted.

        Source: https://docs.aws.amazon.com/sns/latest/api/API_GetTopicAttributes.html
        """
        try:
            found = self._sns().get_topic_attributes(TopicArn=self._settings.topic_arn)["Attributes"]
        except AWS_ERRORS:
            return False
        return found.get("SubscriptionsConfirmed") == "0"


def _batches(units: Sequence[Unit]) -> Iterator[list[Unit]]:
    """Split units into as many as EC2 is asked to stop at once."""
    batch: list[Unit] = []
    for unit in units:
        if batch and sum(len(one.ids) for one in (*batch, unit)) > MAX_AT_ONCE:
            yield batch
            batch = []
        batch.append(unit)
    if batch:
        yield batch


def _size(owners: Mapping[Owner, OwnerState], node_group: str) -> int:
    """Return the desired size of a node group, of all its owners together."""
    return sum(state.desired for state in owners.values() if state.node_group == node_group)


def _of(owner: Owner, instances: Sequence[Instance]) -> list[Instance]:
    return [one for one in instances if one.owner == owner]


def _are_later(instances: Sequence[Instance], idle_tags: IdleTags) -> bool:
    """Say whether there are instances, all of them launched after a run began to stop what carries the tags."""
    since = idle_tags.stopping_at
    return since is not None and bool(instances) and all(one.launched > since for one in instances)


def _is_owned(unit: Unit) -> bool:
    return any(not instance.owner.is_instance for instance in unit.instances)


def _is_alone(unit: Unit) -> bool:
    """Whether the unit is one node of a group, and not the group."""
    return unit.targets[0].is_instance and unit.name == unit.instances[0].id


def _first(unit: Unit) -> Instance:
    return unit.instances[0]


def _reason(units: Sequence[Unit]) -> str:
    return f"idle since {min(unit.idle_since for unit in units):%Y-%m-%d %H:%M} UTC"
