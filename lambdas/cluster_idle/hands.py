"""The hands of the function: they stop what is due, warn of what is next, and take back what is void."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cluster_common.errors import AWS_ERRORS
from cluster_common.failures import Failures
from cluster_idle.decisions import decide
from cluster_idle.instances import Instance, OwnerKind, read_again
from cluster_idle.marks import TOLD_TAG, notice_tags
from cluster_idle.messages import note, stopped_message, warning_message
from cluster_idle.owners import Owners
from cluster_idle.settings import Settings
from cluster_idle.situation import Situation
from cluster_idle.stopping import Stopper
from cluster_idle.verdicts import Decisions, Unit, Verdict

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client
    from mypy_boto3_lambda.client import LambdaClient
    from mypy_boto3_sns.client import SNSClient

FUNCTION = "cluster_idle"
"""Who orders a stop, as the power function writes it down."""

# The power function takes so many in one order.
_TERMINATE = "terminate"
MOST_TERMINATED = 100


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What was done.

    Attributes:
        stopped: The ids of the instances that are stopped.
        warned: The ids of those that people were warned of.
        changed: Why what was due was not stopped after all, by the id of the instance.
    """

    stopped: frozenset[str] = frozenset()
    warned: frozenset[str] = frozenset()
    changed: Mapping[str, str] = field(default_factory=dict)


class Hands:
    """Carry out what was decided.

    What is due is read again right before it is stopped: it is left alone if anything of it changed. A message is
    sent before it is remembered in tags, so that nothing is stopped of which nobody was told.
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
        self._lambda = lambda_
        self._sns = sns
        self._failures = failures
        self._situation = situation

    def carry_out(self, decisions: Decisions) -> Outcome:
        """Stop what is due, warn of what is idle, and clear what is void; return what was done."""
        still, changed = self._look_again(decisions.stop)
        for unit in still:
            if unit.dry_run:
                self._tell_dry_run(unit)
        late = sum(finding.verdict is Verdict.DEFERRED for finding in decisions.findings)
        stopped = self._stop([unit for unit in still if not unit.dry_run], late)
        warned = self._warn(decisions.warn)
        self._owners.clear(decisions.clear)
        return Outcome(stopped=frozenset(stopped), warned=frozenset(warned), changed=changed)

    def _look_again(self, units: Sequence[Unit]) -> tuple[list[Unit], dict[str, str]]:
        """Return the units that are due still, and why the others are not."""
        if not units:
            return [], {}
        ids = [one for unit in units for one in unit.ids]
        try:
            found = read_again(self._ec2(), self._settings, ids)
        except AWS_ERRORS as error:
            self._failures.add(", ".join(unit.name for unit in units), "could not be read again", error)
            return [], dict.fromkeys(ids, "it could not be read again before the stop")
        owners = self._owners.read() if any(_is_owned(unit) for unit in units) else {}
        again = decide(list(found.values()), replace(self._situation, owners=owners))
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
        stopped = self._stop_instances(units)
        for unit in units:
            if _is_owned(unit) and not _is_alone(unit):
                owned = [one.id for one in unit.instances if one.owner.kind is not OwnerKind.INSTANCE]
                stopped += self._order({"action": "stop", "node_groups": [unit.name]}, unit, owned)
        for node_group, alone in _by_node_group(
            unit for unit in units if _is_owned(unit) and _is_alone(unit)
        ).items():
            ids = [one for unit in alone for one in unit.ids]
            for start in range(0, len(ids), MOST_TERMINATED):
                some = ids[start : start + MOST_TERMINATED]
                order = {"action": _TERMINATE, "node_groups": [node_group], "instance_ids": some}
                stopped += self._order(order, alone[0], some)
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
        return stopped + stopper.stop([one.id for one in alone if one.hibernates], hibernate=True)

    def _order(self, order: Mapping[str, object], unit: Unit, ids: Sequence[str]) -> list[str]:
        """Order something of the power function, which owns the sizes of groups; return what is stopped by it."""
        reason = f"idle since {unit.idle_since:%Y-%m-%d %H:%M} UTC"
        payload = json.dumps({**order, "by": FUNCTION, "reason": reason})
        try:
            answer = self._lambda().invoke(
                FunctionName=self._settings.power_function or "",
                InvocationType="RequestResponse",
                Payload=payload.encode(),
            )
            told = answer["Payload"].read().decode(errors="replace")
        except AWS_ERRORS as error:
            self._failures.add(unit.name, "the power function could not be asked to stop it", error)
            return []
        if answer.get("FunctionError"):
            self._failures.add_sentence(unit.name, f"the power function could not stop it ({_error_message(told)})")
            return []
        return _terminated(told, ids) if order["action"] == _TERMINATE else list(ids)

    def _warn(self, units: Sequence[Unit]) -> list[str]:
        """Tell people, then remember that they were told: only then does the clock run."""
        if not units or not self._publish(warning_message(self._settings, units, self._situation.now)):
            return []
        now = self._situation.now
        self._owners.write(
            (target, notice_tags(now, unit.stop_at, note(unit))) for unit in units for target in unit.targets
        )
        return [one for unit in units for one in unit.ids]

    def _tell_dry_run(self, unit: Unit) -> None:
        if unit.told_of_dry_run:
            return
        if self._publish(stopped_message(self._settings, [unit], frozenset())):
            self._owners.write((target, {TOLD_TAG: "true"}) for target in unit.targets)

    def _publish(self, message: tuple[str, str]) -> bool:
        """Tell people; without a topic there is nobody to tell but who reads the tags."""
        if not self._settings.topic_arn:
            return True
        subject, text = message
        try:
            self._sns().publish(TopicArn=self._settings.topic_arn, Subject=subject, Message=text)
        except AWS_ERRORS as error:
            self._failures.add(self._settings.cluster, "people could not be told", error)
            return False
        return True


def _is_owned(unit: Unit) -> bool:
    return any(instance.owner.kind is not OwnerKind.INSTANCE for instance in unit.instances)


def _is_alone(unit: Unit) -> bool:
    """Whether the unit is one node of a group, and not the group."""
    return unit.targets[0].kind is OwnerKind.INSTANCE and unit.name == unit.instances[0].id


def _by_node_group(units: Iterable[Unit]) -> dict[str, list[Unit]]:
    found: dict[str, list[Unit]] = {}
    for unit in units:
        found.setdefault(_first(unit).node_group, []).append(unit)
    return found


def _first(unit: Unit) -> Instance:
    return unit.instances[0]


def _terminated(payload: str, ids: Sequence[str]) -> list[str]:
    """Return which nodes go: those that the power function says, since it leaves alone what was ordered otherwise."""
    told = json.loads(payload)
    said = {one for group in told.get("node_groups", []) for one in group.get("terminated", [])}
    return [one for one in ids if one in said]


def _error_message(payload: str) -> str:
    try:
        told = json.loads(payload)
    except ValueError:
        return payload
    return str(told.get("errorMessage", payload)) if isinstance(told, dict) else payload
