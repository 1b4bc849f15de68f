"""Do what was decided: record it, ask the owner, record that it has answered, and say so."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from aws_lambda_powertools import Logger
from botocore.exceptions import ClientError

from cluster_common.errors import AWS_ERRORS, error_text
from cluster_common.failures import Failures
from cluster_common.messages import publish
from cluster_common.owners.groups import OwnedGroup
from cluster_common.owners.node_owner import NodeOwner, OwnerBusyError, Owners
from cluster_common.state_table import StateChangedError
from cluster_contract.events import EVENT_FIELD, Event
from cluster_contract.health_settings import HealthFunctionSettings
from cluster_health.messages import finding_message
from cluster_health.node_records import MAX_MESSAGES, NodeRecord
from cluster_health.outcomes import Finding, GroupView, Outcome
from cluster_health.records import GroupRecord, Message, Repair
from cluster_health.store import HealthStore

if TYPE_CHECKING:
    from mypy_boto3_sns.client import SNSClient

_MAX_ERROR = 300

_LAST = (
    f"This is the last message about this node for now: there are {MAX_MESSAGES} in 24 hours at most. "
    "`training-cluster events` shows what follows."
)

_VERBS: Mapping[Outcome, Callable[[NodeOwner, OwnedGroup, str], None]] = {
    Outcome.CORDON: lambda owner, group, one: owner.cordon(group, one),
    Outcome.REBOOT: lambda owner, group, one: owner.reboot(group, one),
    Outcome.REPLACE: lambda owner, group, one: owner.replace(group, one),
    Outcome.RELEASE: lambda owner, group, one: owner.replace(group, one),
    Outcome.RETURN: lambda owner, group, one: owner.uncordon(group, one),
}


class HealthExecutor:
    """Do what was decided about node groups.

    What is about to be done is recorded first, on the condition that no other run has recorded anything since: of two
    runs one acts. A run that ends between the record and the call leaves a step that no owner has answered, and a
    later run asks again: each call may be sent twice without another effect, and a reboot is not asked for again once
    the node has booted. What operators have to know of it is recorded together with it, and stays recorded until it
    was sent.
    """

    def __init__(
        self,
        settings: HealthFunctionSettings,
        owners: Owners,
        store: HealthStore,
        *,
        sns: "Callable[[], SNSClient]",
        failures: Failures,
        logger: Logger,
    ) -> None:
        self._settings = settings
        self._owners = owners
        self._store = store
        self._sns = sns
        self._failures = failures
        self._logger = logger

    def apply(self, view: GroupView, findings: Sequence[Finding]) -> list[Finding]:
        """Do what was decided about one node group, and return what this run did of it."""
        return [finding for finding in findings if self._apply(view, finding)]

    def _apply(self, view: GroupView, finding: Finding) -> bool:
        """Do one thing, and say whether it was this run that did it."""
        if not self._record(view, finding) or not self._act(view, finding):
            return False
        if finding.record is not None:
            self._logger.info(finding.reason, extra={EVENT_FIELD: Event.ACT, **keys_of(finding)})
            self.send_unsent(finding.node_group)
        elif (message := self._message(finding)) is not None:
            self._logger.warning(finding.reason, extra={EVENT_FIELD: Event.NOTICE, **keys_of(finding)})
            self._send(message, finding.node_group)
        return True

    def _record(self, view: GroupView, finding: Finding) -> bool:
        if finding.record is None:
            return True
        try:
            node, repair = self._store.nodes.get(finding.instance_id), finding.record.repair
            if finding.outcome is Outcome.REPLACE and node and repair:
                others = {
                    serial
                    for one, other in self._store.nodes.items()
                    if one != finding.instance_id and view.group is not None and one in view.group.nodes
                    for serial in other.serials
                }
                bad = node.bad_serials(repair) - others
                self._store.remember_serials(bad, finding.instance_id, repair.reason)
            is_done = finding.outcome not in _VERBS
            record = self._with_message(finding, finding.record) if is_done else finding.record
            self._store.save_group(finding.node_group, record)
        except StateChangedError:
            self._logger.info(f"{finding.node_group}: another run acts at the same moment; the next run looks again")
        except AWS_ERRORS as error:
            what = f"the repair of {finding.instance_id} could not be recorded, and nothing was done"
            self._failures.add(finding.node_group, what, error)
        else:
            return True
        return False

    def _act(self, view: GroupView, finding: Finding) -> bool:
        verb, group = _VERBS.get(finding.outcome), view.group
        repair = finding.record.repair if finding.record is not None else None
        if verb is None or group is None or repair is None:
            return True
        try:
            verb(self._owners.of(group), group, finding.instance_id)
        except OwnerBusyError:
            self._logger.info(f"{finding.node_group}: its {group.owner.noun} is busy; a later run asks again")
            # An owner that is busy refuses nothing: the time of the step begins anew.
            busy_since = repair.busy_since or repair.asked
            self._record_answer(finding, replace(repair, since=repair.asked, busy_since=busy_since))
            return False
        except AWS_ERRORS as error:
            self._failures.add(
                finding.node_group, f"{finding.instance_id}: {finding.outcome} failed", error, **keys_of(finding)
            )
            operation = f"{error.operation_name}: " if isinstance(error, ClientError) else ""
            said = f"{operation}{error_text(error)}"[:_MAX_ERROR].rstrip(".")
            self._record_answer(finding, replace(repair, error=said, busy_since=None))
            return False
        self._record_answer(finding, replace(repair, answered=True, error="", busy_since=None))
        return True

    def _record_answer(self, finding: Finding, repair: Repair) -> None:
        """Record a repair as it is after the owner has answered, and the message about what it has done."""
        if finding.record is None or repair == finding.record.repair:
            return
        record = replace(finding.record, repair=repair)
        try:
            self._store.save_group(
                finding.node_group, self._with_message(finding, record) if repair.answered else record
            )
        except StateChangedError:
            return  # The next run asks again, which changes nothing.
        except AWS_ERRORS as error:
            what = f"the answer about {finding.instance_id} could not be recorded; the next run asks again"
            self._failures.add(finding.node_group, what, error)

    def send_unsent(self, node_group: str) -> None:
        """Send the messages of a node group that are recorded and have not been sent, oldest first.

        Args:
            node_group: The node group, whose record can be read.
        """
        record = self._store.group(node_group) if self._settings.topic_arn else GroupRecord()
        for message in record.unsent:
            if not self._send(message, node_group):
                return
            record = replace(record, unsent=record.unsent[1:])
            try:
                self._store.save_group(node_group, record)
            except (*AWS_ERRORS, StateChangedError) as error:
                what = f"it could not be recorded that a message about {message.instance_id} was sent"
                self._failures.add(node_group, what, error)
                return

    def _with_message(self, finding: Finding, record: GroupRecord) -> GroupRecord:
        message = self._message(finding)
        return record if message is None else record.with_unsent(message)

    def _message(self, finding: Finding) -> Message | None:
        """Return the message about a node. None: operators need none, or it was sent."""
        if not finding.outcome.needs_message or not self._settings.topic_arn:
            return None
        title, text = finding_message(self._settings.cluster, finding)
        message = Message(instance_id=finding.instance_id, key=finding.key, subject=title, text=text)
        return None if self._is_sent(message) else message

    def _is_sent(self, message: Message) -> bool:
        node = self._store.nodes.get(message.instance_id)
        return node is not None and message.key in node.told

    def _send(self, message: Message, node_group: str) -> bool:
        """Send a message about a node, once for each key, and say whether it is sent."""
        if self._is_sent(message):
            return True

        node, now = self._store.nodes.get(message.instance_id), self._store.now
        left = node.messages_left(now) if node is not None else MAX_MESSAGES

        def told(record: NodeRecord) -> NodeRecord:
            return record.with_told(message.key, now if left > 0 else None)

        try:
            if left > 0:
                text = message.text if left > 1 else f"{message.text}\n\n{_LAST}"
                publish(self._sns(), self._settings.topic_arn, message.subject, text)
            self._store.change_node(message.instance_id, node_group, told)
        except (*AWS_ERRORS, StateChangedError) as error:
            what = f"the message about {message.instance_id} could not be sent, or that could not be recorded"
            self._failures.add(node_group, what, error)
            return False
        return True


def keys_of(finding: Finding) -> dict[str, object]:
    """Return what a log record says of a finding, beside its sentence."""
    return {
        "node_group": finding.node_group,
        "instance_id": finding.instance_id,
        "outcome": finding.outcome.value,
        "undo": finding.undo,
        **({"waiting": 1} if finding.outcome.waits else {}),
    }
