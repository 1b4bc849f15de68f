"""The second check: right before a stop, what is due is read and judged again, since each stop takes time."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cluster_common.errors import AWS_ERRORS
from cluster_common.failures import Failures
from cluster_contract.idle import IdleFunctionSettings, SignalKind
from cluster_idle.context import IdleContext
from cluster_idle.decisions import decide
from cluster_idle.evidence import Evidence, EvidenceState
from cluster_idle.instances import Instance, read_again
from cluster_idle.owner_reader import OwnerReader
from cluster_idle.verdicts import Unit

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client


class SecondLook:
    """Judge again what is due, from what AWS says now.

    Attributes:
        changed: Why instances that were due are not stopped after all, by their ids.
        sizes: The size of each node group that was read the last time: the power function stops no other size.
    """

    def __init__(
        self,
        settings: IdleFunctionSettings,
        owners: OwnerReader,
        ec2: "Callable[[], EC2Client]",
        *,
        failures: Failures,
        context: IdleContext,
        read_sessions: Callable[[Sequence[Instance]], Collection[str] | None],
    ) -> None:
        self._settings = settings
        self._owners = owners
        self._ec2 = ec2
        self._failures = failures
        self._context = context
        self._read_sessions = read_sessions
        self.changed: dict[str, str] = {}
        self.sizes: dict[str, int] = {}

    def still_due(self, units: Sequence[Unit], *, with_owners: bool = True) -> list[Unit]:
        """Return the units that are due still; why others are not goes into `changed`.

        Args:
            units: What was due.
            with_owners: Whether their owners are read again; those of what nothing owns need not be.
        """
        if not units:
            return []
        node_groups = {unit.instances[0].node_group for unit in units if with_owners} & self._settings.groups.keys()
        try:
            together = [one for unit in units for one in (*unit.ids, *unit.others)]
            found = read_again(self._ec2(), self._settings, together)
            found |= {one.id: one for one in self._owners.read_instances() if one.id in together and one.running}
        except AWS_ERRORS as error:
            self._failures.add(
                ", ".join(unit.name for unit in units), "could not be read again, so the next run decides", error
            )
            self.note(units, "it could not be read again before the stop: the next run decides")
            return []
        only = next(iter(node_groups)) if len(node_groups) == 1 else None
        owners = self._owners.read(only) if node_groups else {}
        unread = self._owners.unread if node_groups else frozenset()
        evidence = self._with_sessions(list(found.values()))
        again = decide(list(found.values()), replace(self._context, evidence=evidence, owners=owners, unread=unread))
        due = {(unit.name, unit.ids) for unit in again.stop}
        still = [unit for unit in units if (unit.name, unit.ids) in due]
        changed = [unit for unit in units if unit not in still]
        self.note(changed, "it changed while the function looked: the next run decides")
        self.sizes = {
            name: sum(state.desired for state in owners.values() if state.node_group == name) for name in node_groups
        }
        return still

    def note(self, units: Sequence[Unit], why: str) -> None:
        """Keep why units are not stopped after all."""
        self.changed |= {one: why for unit in units for one in unit.ids}

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
