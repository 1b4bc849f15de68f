"""Do what was decided: record it, ask the owner, record that it has answered, and say so."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from aws_lambda_powertools import Logger

from cluster_common.errors import AWS_ERRORS
from cluster_common.failures import Failures
from cluster_common.messages import publish
from cluster_common.owners.groups import OwnedGroup
from cluster_common.owners.node_owner import NodeOwner, OwnerBusyError, Owners
from cluster_common.state_table import StateChangedError
from cluster_contract.events import EVENT_FIELD, Event
from cluster_contract.health_settings import HealthFunctionSettings
from cluster_health.messages import finding_message
from cluster_health.outcomes import Finding, GroupView, Outcome
from cluster_health.records import NodeRecord
from cluster_health.store import HealthStore

if TYPE_CHECKING:
    from mypy_boto3_sns.client import SNSClient

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
    later run asks again; each call may be sent twice without another effect.
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
        if not self._record(finding) or not self._act(view, finding):
            return False
        if finding.record is not None:
            self._logger.info(finding.reason, extra={EVENT_FIELD: Event.ACT, **keys_of(finding)})
        if finding.outcome.needs_message:
            self._tell(finding)
        return True

    def _record(self, finding: Finding) -> bool:
        if finding.record is None:
            return True
        try:
            node, repair = self._store.nodes.get(finding.instance_id), finding.record.repair
            if finding.outcome is Outcome.REPLACE and node and repair and node.has_bad_accelerator(repair):
                self._store.remember_serials(finding.instance_id, repair.reason)
            self._store.save_group(finding.node_group, finding.record)
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
        if verb is None or group is None:
            return True
        try:
            verb(self._owners.of(group), group, finding.instance_id)
        except OwnerBusyError:
            self._logger.info(f"{finding.node_group}: its {group.owner.noun} is busy; a later run asks again")
            return False
        except AWS_ERRORS as error:
            self._failures.add(
                finding.node_group, f"{finding.instance_id}: {finding.outcome} failed", error, **keys_of(finding)
            )
            return False
        self._record_answer(finding)
        return True

    def _record_answer(self, finding: Finding) -> None:
        record = finding.record
        if record is None or record.repair is None:
            return
        try:
            self._store.save_group(finding.node_group, replace(record, repair=replace(record.repair, answered=True)))
        except StateChangedError:
            return  # The next run asks again, which changes nothing.
        except AWS_ERRORS as error:
            what = f"the answer about {finding.instance_id} could not be recorded; the next run asks again"
            self._failures.add(finding.node_group, what, error)

    def _tell(self, finding: Finding) -> None:
        """Send the message about a node, once for each key."""
        node = self._store.nodes.get(finding.instance_id)
        if (node is not None and finding.key in node.told) or not self._settings.topic_arn:
            return
        if finding.record is None:
            self._logger.warning(finding.reason, extra={EVENT_FIELD: Event.NOTICE, **keys_of(finding)})

        def told(record: NodeRecord) -> NodeRecord:
            return record.with_told(finding.key)

        try:
            publish(self._sns(), self._settings.topic_arn, *finding_message(self._settings.cluster, finding))
            self._store.change_node(finding.instance_id, finding.node_group, told)
        except (*AWS_ERRORS, StateChangedError) as error:
            what = f"the message about {finding.instance_id} could not be sent, or that could not be recorded"
            self._failures.add(finding.node_group, what, error)


def keys_of(finding: Finding) -> dict[str, object]:
    """Return what a log record says of a finding, beside its sentence."""
    return {
        "node_group": finding.node_group,
        "instance_id": finding.instance_id,
        "outcome": finding.outcome.value,
        "undo": finding.undo,
        **({"waiting": 1} if finding.outcome.waits else {}),
    }
