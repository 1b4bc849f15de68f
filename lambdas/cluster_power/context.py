"""Everything that decisions rest on, beside the groups themselves."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from cluster_common.power_records import Notice, Order, Record, State
from cluster_common.reservations import NO_RESERVATIONS, Reservations
from cluster_contract.power import PowerFunctionSettings
from cluster_power.groups import Group
from cluster_power.schedules import Judgment, judge
from cluster_power.windows import Phase, Window, find_window


@dataclass(frozen=True, kw_only=True)
class Context:
    """What was asked for and what was seen, at one moment.

    Attributes:
        settings: The function's settings.
        now: The time.
        reservations: What is known of Capacity Blocks and reservations.
        unread: The node groups that could not be read.
        orders: What node groups are meant to be, of all of which that is known.
        notices: The last notices of stops by schedules, by node group.
        unconfirmed: The stops for which the size 0 was set and did not show yet, by node group.
    """

    settings: PowerFunctionSettings
    now: datetime
    reservations: Reservations = NO_RESERVATIONS
    unread: Collection[str] = ()
    orders: Mapping[str, Order] = field(default_factory=dict)
    notices: Mapping[str, Notice] = field(default_factory=dict)
    unconfirmed: Mapping[str, Order] = field(default_factory=dict)

    def is_configured(self, group: Group) -> bool:
        """Say whether the cluster's file gives a group its nodes, and with this kind of owner."""
        return group.is_configured and group.node_group in self.settings.groups

    def window(self, node_group: str, group: Group | None = None) -> Window | None:
        """Return what a node group's Capacity Block allows. None: it has none."""
        own = self.settings.groups.get(node_group)
        if own is None or own.block is None:
            return None
        block = self.reservations.find(own.block)
        return find_window(node_group, own, block, group=group, settings=self.settings, now=self.now)

    def judge_schedule(self, node_group: str, owners: Iterable[Group]) -> Judgment | None:
        """Return what a node group's schedule makes of it. None: it has no schedule.

        Args:
            node_group: The node group.
            owners: What owns its nodes.
        """
        schedule, order = self.settings.schedule(node_group), self.orders.get(node_group)
        if schedule is None:
            return None
        runs = any(group.alive for group in owners)
        return judge(schedule, order, self.notices.get(node_group), now=self.now, runs=runs)

    def wanted(self, node_group: str, record: Record, window: Window | None) -> int | None:
        """Return the size that a node group should have. None: it keeps the size that it has.

        That is zero while it is stopped and while its Capacity Block is not open, and else the file's count, or
        what it is limited to if that is less. A group whose block has fewer instances gets those, but none of the
        nodes that run go for that. A block in which the nodes cannot run, since it has not started or has ended,
        leaves the size alone.
        """
        if record.state is State.STOPPED:
            return 0
        count = self.settings.groups[node_group].count
        count = count if record.limit is None else min(count, record.limit)
        if window is None:
            return count
        if window.phase is Phase.UNSEEN or window.is_elsewhere:
            return None
        if window.phase in (Phase.OPEN, Phase.CLOSING):
            return min(count, max(window.instances, record.size or 0))
        if window.phase is Phase.BEFORE and window.starts is not None and self.now >= window.starts:
            return min(count, record.size or 0)
        return 0
