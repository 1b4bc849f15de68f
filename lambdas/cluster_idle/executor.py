"""Apply what was decided: stop what is due, warn of what is next, and clear warnings that are void."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import product
from typing import TYPE_CHECKING

from cluster_common.errors import AWS_ERRORS
from cluster_common.failures import Failures
from cluster_common.owners.groups import TERMINATING
from cluster_common.power_function import PowerFunction
from cluster_contract.aliases import Alias
from cluster_contract.idle import IdleFunctionSettings
from cluster_idle.context import IdleContext
from cluster_idle.instances import Instance, read_again
from cluster_idle.messages import stopped_lines
from cluster_idle.notifications import IdleNotifications
from cluster_idle.owner_reader import OwnerReader
from cluster_idle.second_look import SecondLook
from cluster_idle.sent_warnings import IdleRecords, Refusal, SentWarning, UnreportedStop
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
        changed: Why what was due was not stopped after all, by the id of the instance.
        failed_notifications: How many messages the topic did not take, or had no confirmed subscription for.
    """

    stopped: frozenset[str] = frozenset()
    changed: Mapping[str, str] = field(default_factory=dict)
    failed_notifications: int = 0


class IdleExecutor:
    """Apply what was decided.

    What is due is read again right before it is stopped, and left alone if anything of it changed.
    """

    def __init__(
        self,
        settings: IdleFunctionSettings,
        owners: OwnerReader,
        records: IdleRecords,
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
        self._records = records
        self._ec2 = ec2
        self._power = PowerFunction(lambda_, settings.power_function, Alias.IDLE, pause)
        self._failures = failures
        self._context = context
        self._second_look = SecondLook(
            settings, owners, ec2, failures=failures, context=context, read_sessions=read_sessions
        )
        self._notifications = IdleNotifications(
            settings, owners, records, sns=sns, failures=failures, context=context, clock=clock
        )
        self._refusals: dict[str, dict[str, Refusal]] = {}
        self._unclear: set[str] = set()

    def apply(self, decisions: Decisions) -> Outcome:
        """Warn of what is idle, stop what is due, and record or clear what follows; return what was done."""
        notifications, second_look = self._notifications, self._second_look
        notifications.report_earlier_stops(decisions.findings)
        notifications.remind(decisions.reminders)
        notifications.warn(decisions.warn)
        dry_runs = [unit for unit in decisions.stop if unit.dry_run and not unit.reported]
        notifications.report_dry_runs(second_look.still_due(dry_runs))
        due = [unit for unit in decisions.stop if not unit.dry_run]
        self._begin(due)
        stopped = frozenset(self._stop(due))
        late = sum(finding.verdict is IdleVerdict.DEFERRED for finding in decisions.findings)
        done = [unit for unit in due if stopped.intersection(unit.ids)]
        is_reported = notifications.report_stops(done, stopped, late)
        self._record(decisions, due, stopped, is_reported=is_reported)
        self._owners.clear_notes(decisions.clear)
        return Outcome(
            stopped=stopped,
            changed=second_look.changed,
            failed_notifications=notifications.failed,
        )

    def _begin(self, due: Sequence[Unit]) -> None:
        """Record what is about to be stopped: a run that ends too early cannot report it, and the next one does.

        Where that cannot be recorded, it is stopped all the same; only that message would be missing.
        """
        now, before = self._context.now, self._records.warnings
        self._records.save(
            {
                unit.name: replace(
                    before[unit.name],
                    unreported=UnreportedStop(
                        at=now, ids=unit.ids, text="\n".join(stopped_lines(self._settings, unit))
                    ),
                )
                for unit in due
                if unit.name in before
            }
        )

    def _record(
        self, decisions: Decisions, due: Sequence[Unit], stopped: frozenset[str], *, is_reported: bool
    ) -> None:
        """Record the outcome of every warning: one whose nodes are stopped and reported is deleted."""
        now, warnings = self._context.now, self._records.warnings
        changes: dict[str, SentWarning | None] = {
            name: None for name in decisions.void if name in warnings and warnings[name].unreported is None
        }
        for unit in decisions.renew:
            if unit.name in warnings and not stopped.union(self._second_look.changed).intersection(unit.ids):
                changes[unit.name] = replace(warnings[unit.name], idle_until=now)
        for unit in due:
            if unit.name in warnings:
                left = set(unit.ids) - stopped
                before = changes.get(unit.name) or warnings[unit.name]
                is_open = unit.name in self._unclear or (len(left) < len(unit.ids) and not is_reported)
                refusals = {**before.refusals, **self._refusals.get(unit.name, {})}
                after = replace(before, refusals=refusals, unreported=before.unreported if is_open else None)
                changes[unit.name] = after if left or is_open else None
        self._records.save(changes)

    def _look_at_unowned(self, unit: Unit) -> list[Unit]:
        """Return what nothing owns of a group that is at zero now, if it is due still."""
        unowned = tuple(one for one in unit.instances if one.owner.is_instance)
        targets = tuple(one.itself for one in unowned)
        part = replace(unit, instances=unowned, targets=targets, others=())
        return self._second_look.still_due([part], with_owners=False) if unowned else []

    def _stop(self, units: Sequence[Unit]) -> list[str]:
        """Stop what is due, what takes little time first; return the ids of the instances that are stopped."""
        stopped: list[str] = []
        for batch in _batches([unit for unit in units if not _is_owned(unit)]):
            stopped += self._stop_instances(self._second_look.still_due(batch))
        for unit in (unit for unit in units if _is_owned(unit) and not _is_alone(unit)):
            if self._second_look.still_due([unit]):
                gone = self._stop_group(unit)
                # Where the group is refused, what nothing owns of it stays too.
                stopped += [*gone, *self._stop_instances(self._look_at_unowned(unit))] if gone else []
        alone = [unit for unit in units if _is_owned(unit) and _is_alone(unit)]
        for node_group in sorted({_first(unit).node_group for unit in alone}):
            of_group = [unit for unit in alone if _first(unit).node_group == node_group]
            for start in range(0, len(of_group), MAX_TERMINATED):
                still = self._second_look.still_due(of_group[start : start + MAX_TERMINATED])
                stopped += self._terminate(node_group, still) if still else []
        return stopped

    def _stop_instances(self, units: Sequence[Unit]) -> list[str]:
        """Stop what nothing owns, and last what AWS refused to stop before: it keeps no other waiting."""
        alone = [one for unit in units for one in unit.instances if one.owner.is_instance]
        if not alone:
            return []
        stopper = Stopper(self._ec2(), self._failures, self._read_running)
        now = self._context.now
        refused_before = {
            one for sent in self._records.warnings.values() for one in sent.refusals if sent.refusal(one, now)
        }
        stopped: list[str] = []
        for refused, hibernates in product((False, True), repeat=2):
            ids = [one.id for one in alone if (one.id in refused_before, one.hibernates) == (refused, hibernates)]
            stopped += stopper.stop(ids, hibernate=hibernates)
        for unit in units:
            refusals = {one: Refusal(at=now, code=code) for one, code in stopper.refused.items() if one in unit.ids}
            self._refusals[unit.name] = refusals
        return stopped

    def _read_running(self, ids: Sequence[str]) -> Collection[str]:
        try:
            return read_again(self._ec2(), self._settings, ids)
        except AWS_ERRORS as error:
            self._failures.add(", ".join(ids), "could not be read again, so the next run decides", error)
            return ids

    def _stop_group(self, unit: Unit) -> list[str]:
        """Stop a node group now or not at all, as it was judged: a job may begin, or an operator start it."""
        order = {
            "action": "stop",
            "node_groups": [unit.name],
            "all_or_nothing": True,
            "expected_size": self._second_look.sizes.get(unit.name, 0),
            "expected_instance_ids": sorted([*unit.ids, *unit.others]),
        }
        answer = self._power.send(order, _reason([unit]), lambda: bool(self._second_look.still_due([unit])))
        if answer.not_asked:
            return []
        left = [group for group in answer.groups if group.get("desired") != 0 or group.get("taken_back")]
        if left or not answer.groups:
            why = (
                answer.failure
                or "; ".join(str(group.get("reason", "")) for group in left)
                or "its answer names no such node group"
            )
            # What counts is the size: the function may have failed elsewhere, or have read what was no longer so.
            if not self._is_at_zero(unit.name):
                self._failures.add_sentence(unit.name, f"the power function did not stop it: {why}")
                # The power function says of each group whether its stop was taken back, once it knows that.
                is_unclear = answer.failure or any(group.get("taken_back") is None for group in left)
                self._unclear |= {unit.name} if is_unclear else set()
                self._refuse([unit])
                return []
            self._failures.add_sentence(
                unit.name, f"its desired capacity is 0. The power function also reported: {why}"
            )
        return [one.id for one in unit.instances if not one.owner.is_instance]

    def _is_at_zero(self, node_group: str) -> bool:
        owners = self._owners.read(node_group)
        return bool(owners) and not self._owners.unread and not any(state.desired for state in owners.values())

    def _terminate(self, node_group: str, units: Sequence[Unit]) -> list[str]:
        """Terminate single nodes of a group, and find out which were terminated where some were not."""
        ids = [one for unit in units for one in unit.ids]
        order = {"action": "terminate", "node_groups": [node_group], "instance_ids": ids}
        answer = self._power.send(
            order, _reason(units), lambda: len(self._second_look.still_due(units)) == len(units)
        )
        if answer.not_asked:
            self._second_look.note(
                [unit for unit in units if unit.ids[0] not in self._second_look.changed],
                "another node changed while the function waited: the next run decides",
            )
            return []
        gone = [one for one in ids if one in answer.terminated]
        if answer.failure:
            left = self._find_left(node_group, ids)
            gone = [one for one in ids if one not in left]
            self._failures.add_sentence(node_group, f"the power function failed: {answer.failure}")
        stay = [unit for unit in units if not set(unit.ids) & set(gone)]
        self._unclear |= {unit.name for unit in stay if answer.failure}
        self._refuse(stay)
        return gone

    def _find_left(self, node_group: str, ids: Sequence[str]) -> Collection[str]:
        """Return the nodes that may still run: one that left its group, or is in Standby, is not gone for that."""
        owners = self._owners.read(node_group).values()
        if not owners:
            return ids
        states = {one: node.state for state in owners for one, node in state.nodes.items()}
        running = {
            *self._read_running(ids),
            *(one for state in owners if not state.owner.is_on_ec2 for one in state.nodes),
        }
        return [one for one in ids if one in running and not states.get(one, "").startswith(TERMINATING)]

    def _refuse(self, units: Sequence[Unit]) -> None:
        """Remember that the power function did not stop nodes, so that they keep no others waiting."""
        for unit in units:
            self._refusals[unit.name] = {unit.name: Refusal(at=self._context.now, code="the power function")}


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


def _is_owned(unit: Unit) -> bool:
    return any(not instance.owner.is_instance for instance in unit.instances)


def _is_alone(unit: Unit) -> bool:
    """Whether the unit is one node of a group, and not the group."""
    return unit.targets[0].is_instance and unit.name == unit.instances[0].id


def _first(unit: Unit) -> Instance:
    return unit.instances[0]


def _reason(units: Sequence[Unit]) -> str:
    return f"idle since {min(unit.idle_since for unit in units):%Y-%m-%d %H:%M} UTC"
