"""The hands of the function: they stop what is due, warn of what is next, and take back what is void."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cluster_common.errors import AWS_ERRORS
from cluster_common.failures import Failures
from cluster_idle.decisions import decide
from cluster_idle.instances import Instance, OwnerKind, read_again
from cluster_idle.marks import dry_run_tags, notice_tags, refusal_tags, warned_tags
from cluster_idle.messages import note, stopped_message, warning_message
from cluster_idle.owners import Owners
from cluster_idle.power_function import PowerFunction
from cluster_idle.settings import Settings
from cluster_idle.situation import Situation
from cluster_idle.stopping import Stopper
from cluster_idle.verdicts import Decisions, Unit, Verdict

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client
    from mypy_boto3_lambda.client import LambdaClient
    from mypy_boto3_sns.client import SNSClient

# The power function takes so many in one order.
MOST_TERMINATED = 100


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What was done.

    Attributes:
        stopped: The ids of the instances that are stopped.
        warned: The ids of those that people were warned of.
        changed: Why what was due was not stopped after all, by the id of the instance.
        failed_notifications: How many messages the topic did not take.
    """

    stopped: frozenset[str] = frozenset()
    warned: frozenset[str] = frozenset()
    changed: Mapping[str, str] = field(default_factory=dict)
    failed_notifications: int = 0


class Hands:
    """Carry out what was decided.

    What is due is read again right before it is stopped: it is left alone if anything of it changed. The clock runs
    when people were told, so that nothing is stopped of which nobody was.
    """

    def __init__(
        self,
        settings: Settings,
        owners: Owners,
        *,
        ec2: "Callable[[], EC2Client]",
        lambda_: "Callable[[], LambdaClient]",
        sns: "Callable[[], SNSClient]",
        failures: Failures,
        situation: Situation,
    ) -> None:
        self._settings = settings
        self._owners = owners
        self._ec2 = ec2
        self._power = PowerFunction(lambda_, settings.power_function, failures)
        self._sns = sns
        self._failures = failures
        self._situation = situation
        self._failed_notifications = 0

    def carry_out(self, decisions: Decisions) -> Outcome:
        """Warn of what is idle, stop what is due, and write down or clear what follows; return what was done."""
        warned = self._warn(decisions.warn)
        still, changed = self._look_again(decisions.stop)
        self._tell_dry_runs([unit for unit in still if unit.dry_run and not unit.told_of_dry_run])
        late = sum(finding.verdict is Verdict.DEFERRED for finding in decisions.findings)
        stopped = self._stop([unit for unit in still if not unit.dry_run], late)
        seen_at, other = warned_tags(self._situation.now), {*stopped, *changed}
        renew = (unit for unit in decisions.renew if not other.intersection(unit.ids))
        self._owners.write((target, seen_at) for unit in renew for target in unit.targets)
        self._owners.clear(decisions.clear)
        return Outcome(
            stopped=frozenset(stopped),
            warned=frozenset(warned),
            changed=changed,
            failed_notifications=self._failed_notifications,
        )

    def _look_again(self, units: Sequence[Unit]) -> tuple[list[Unit], dict[str, str]]:
        """Return the units that are due still, and why the others are not."""
        if not units:
            return [], {}
        ids = [one for unit in units for one in unit.ids]
        try:
            together = [one for unit in units for one in (*unit.ids, *unit.others)]
            found = read_again(self._ec2(), self._settings, together)
        except AWS_ERRORS as error:
            self._failures.add(", ".join(unit.name for unit in units), "could not be read again", error)
            return [], dict.fromkeys(ids, "it could not be read again before the stop")
        of_groups = any(unit.instances[0].node_group in self._settings.groups for unit in units)
        owners = self._owners.read() if of_groups else {}
        situation = replace(self._situation, owners=owners, unread=self._owners.unread if of_groups else frozenset())
        again = decide(list(found.values()), situation)
        due = {(unit.name, unit.ids) for unit in again.stop}
        still = [unit for unit in units if (unit.name, unit.ids) in due]
        names = {unit.name for unit in still}
        return still, {
            one: "it changed while the function looked: the next run decides"
            for unit in units
            if unit.name not in names
            for one in unit.ids
        }

    def _stop(self, units: Sequence[Unit], late: int) -> list[str]:
        stopped: list[str] = []
        whole: list[Unit] = []  # Of these nothing is refused: what nothing owns of them goes with the others.
        for unit in units:
            if not _is_owned(unit):
                whole.append(unit)
            elif not _is_alone(unit):
                gone = self._stop_group(unit)
                stopped += gone
                whole += [unit] if gone else []
        stopped += self._stop_instances(whole)
        alone = [unit for unit in units if _is_owned(unit) and _is_alone(unit)]
        for node_group in sorted({_first(unit).node_group for unit in alone}):
            of_group = [unit for unit in alone if _first(unit).node_group == node_group]
            for start in range(0, len(of_group), MOST_TERMINATED):
                stopped += self._terminate(node_group, of_group[start : start + MOST_TERMINATED])
        done = [unit for unit in units if set(unit.ids) & set(stopped)]
        if done:
            self._publish(stopped_message(self._settings, done, frozenset(stopped), late))
        return stopped

    def _stop_instances(self, units: Sequence[Unit]) -> list[str]:
        alone = [one for unit in units for one in unit.instances if one.owner.kind is OwnerKind.INSTANCE]
        if not alone:
            return []
        stopper = Stopper(self._ec2(), self._failures)
        stopped = stopper.stop([one.id for one in alone if not one.hibernates])
        stopped += stopper.stop([one.id for one in alone if one.hibernates], hibernate=True)
        self._owners.write(
            (one.owner, refusal_tags(self._situation.now, stopper.refused[one.id]))
            for one in alone
            if one.id in stopper.refused
        )
        return stopped

    def _stop_group(self, unit: Unit) -> list[str]:
        """Stop a node group now or not at all: an order that waits might meet a job that has begun since."""
        ids = [one.id for one in unit.instances if one.owner.kind is not OwnerKind.INSTANCE]
        order = {"action": "stop", "node_groups": [unit.name], "now_or_never": True}
        answer = self._power.order(order, unit.name, _reason([unit]))
        left = [group for group in answer.groups if group.get("desired") != 0 or group.get("taken_back")]
        if answer.failed or not answer.groups or left:
            if not answer.failed:
                why = "; ".join(str(group.get("reason", "")) for group in left) or "it knows no such group"
                self._failures.add_sentence(unit.name, f"the power function did not stop it: {why}")
            gone = self._gone(unit.name, ids) if answer.failed else []
            self._refuse([] if len(gone) == len(ids) else [unit])
            return gone
        return ids

    def _terminate(self, node_group: str, units: Sequence[Unit]) -> list[str]:
        """Let single nodes of a group go, and find out which did where some did not."""
        ids = [one for unit in units for one in unit.ids]
        order = {"action": "terminate", "node_groups": [node_group], "instance_ids": ids}
        answer = self._power.order(order, node_group, _reason(units))
        gone = self._gone(node_group, ids) if answer.failed else [one for one in ids if one in answer.terminated]
        self._refuse([unit for unit in units if not set(unit.ids) & set(gone)])
        return gone

    def _gone(self, node_group: str, ids: Sequence[str]) -> list[str]:
        """Return which nodes run no longer, though the power function failed or did not answer."""
        try:
            left = read_again(self._ec2(), self._settings, ids)
        except AWS_ERRORS as error:
            self._failures.add(node_group, "it could not be read which nodes went", error)
            return []
        return [one for one in ids if one not in left]

    def _refuse(self, units: Sequence[Unit]) -> None:
        """Remember that the power function did not stop nodes, so that they keep no others waiting."""
        refused = refusal_tags(self._situation.now, "the power function")
        self._owners.write((target, refused) for unit in units for target in unit.targets)

    def _warn(self, units: Sequence[Unit]) -> list[str]:
        """Write a note, tell people, and only then let the clock run.

        Where no note can be written the clock could never run: people would be told in each run, and in vain.
        """
        now = self._situation.now
        failed = self._owners.write(
            (target, notice_tags(unit.idle_since, unit.stop_at, note(self._settings, unit)))
            for unit in units
            for target in unit.targets
        )
        noted = [unit for unit in units if not failed & {target.id for target in unit.targets}]
        if not noted or not self._publish(warning_message(self._settings, noted, now)):
            return []
        self._owners.write((target, warned_tags(now)) for unit in noted for target in unit.targets)
        return [one for unit in noted for one in unit.ids]

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
            self._failures.add(self._settings.cluster, "people could not be told", error)
            self._failed_notifications += 1
            return False
        return True


def _is_owned(unit: Unit) -> bool:
    return any(instance.owner.kind is not OwnerKind.INSTANCE for instance in unit.instances)


def _is_alone(unit: Unit) -> bool:
    """Whether the unit is one node of a group, and not the group."""
    return unit.targets[0].kind is OwnerKind.INSTANCE and unit.name == unit.instances[0].id


def _first(unit: Unit) -> Instance:
    return unit.instances[0]


def _reason(units: Sequence[Unit]) -> str:
    return f"idle since {min(unit.idle_since for unit in units):%Y-%m-%d %H:%M} UTC"
