"""Nodes and a state table in memory, as small as many histories need."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime

from cluster_common.state_table import StateChangedError
from cluster_contract.faults import FaultAction
from cluster_health.node_records import NodeRecord
from cluster_health.records import BadSerial, GroupRecord
from fake_service import refusal


@dataclass
class Truth:
    """What is true of a node, whatever anyone has reported of it.

    Attributes:
        state: Its lifecycle state.
        broken: What ends its fault. None: it has none that a reboot or another node ends.
        mends: Whether a reboot mends it.
        fit: Whether it has what neither a reboot nor another node would give it, such as a file system that answers.
        silent: Whether it says nothing, and EC2 calls it impaired.
        dead: Whether EC2 has terminated it: in Standby Auto Scaling does not see that.
        boot: During which boot it is.
        back_at: When it is up again. None: it is up.
        ends_at: When its job has ended. None: it was not asked to.
        kept: Whether an operator keeps it.
        ours: Whether the health function has put it into Standby.
        serial: The serial of its accelerator.
        was_broken: Whether it was broken at any time.
    """

    state: str = "Pending"
    broken: FaultAction | None = None
    mends: bool = True
    fit: bool = True
    silent: bool = False
    dead: bool = False
    boot: int = 0
    back_at: int | None = None
    ends_at: int | None = None
    kept: bool = False
    ours: bool = False
    serial: str = ""
    was_broken: bool = False


class MemoryStore:
    """What `HealthStore` keeps, in memory, with the same refusals."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self.groups: list[GroupRecord] = [GroupRecord()]
        self.nodes: dict[str, NodeRecord] = {}
        self.bad_serials: dict[str, BadSerial] = {}
        self.seen = 0
        self.changes = 0
        self.fails = False
        self._now = now

    def save_group(self, _name: str, record: GroupRecord) -> None:
        """Record repairs, unless another run has recorded some since `seen`."""
        if self.fails:
            raise refusal("PutItem", "ProvisionedThroughputExceededException", "slow down")
        if self.seen != len(self.groups):
            raise StateChangedError
        self.groups.append(record)
        self.seen += 1

    def change_node(self, instance_id: str, node_group: str, change: Callable[[NodeRecord], NodeRecord]) -> None:
        """Change what is known of a node."""
        before = self.nodes.get(instance_id, NodeRecord(node_group=node_group))
        self.nodes[instance_id] = after = change(before)
        self.changes += after != before

    def remember_serials(self, serials: Collection[str], instance_id: str, reason: str) -> None:
        """Remember the accelerators that a node is replaced for."""
        for serial in serials:
            self.bad_serials[serial] = BadSerial(instance_id=instance_id, at=self._now(), reason=reason)
