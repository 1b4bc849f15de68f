"""Everything that decisions rest on, beside the groups themselves."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime

from cluster_power.groups import Group, OwnerKind
from cluster_power.memory import Memory, State
from cluster_power.reservations import ENDED, NO_RESERVATIONS, Absence, Reservation, Reservations
from cluster_power.settings import Settings
from cluster_power.successions import with_successor
from cluster_power.windows import Phase, Window, find_window


def earlier_block(group: Group, settings: Settings) -> str | None:
    """Return the Capacity Block that a group's nodes run in, where the cluster's file names another by now.

    None: they run in the one that it names, or nobody runs, or only what somebody else launched since it ended.
    Whether any still runs there only the blocks themselves tell.
    """
    own, memory = settings.groups.get(group.node_group), group.memory
    if own is None or own.block is None or memory.block in (None, own.block) or not group.alive:
        return None
    return None if memory.size == 0 and group.desired else memory.block


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What was asked for and what was seen, at one moment.

    Attributes:
        settings: The function's settings.
        now: The time.
        reservations: What is known of Capacity Blocks and reservations.
        unread: The node groups that could not be read.
        stopped: The node groups that were stopped, whatever owned their nodes then.
    """

    settings: Settings
    now: datetime
    reservations: Reservations = NO_RESERVATIONS
    unread: Collection[str] = ()
    stopped: Collection[str] = ()

    def is_configured(self, group: Group) -> bool:
        """Say whether the cluster's file gives a group its nodes, and with this kind of owner."""
        own = self.settings.groups.get(group.node_group)
        return own is not None and (group.owner is OwnerKind.SPOT_FLEET) == (own.spot_fleet is not None)

    def window(self, node_group: str, group: Group | None = None) -> Window | None:
        """Return what a node group's Capacity Block allows. None: it has none.

        Nodes that run in an earlier block than the cluster's file names run on in that until it ends.
        """
        own = self.settings.groups.get(node_group)
        if own is None or own.block is None:
            return None
        block = self.reservations.find(own.block)
        zones = group.zones if group else ()
        window = find_window(node_group, own, block, zones=zones, settings=self.settings, now=self.now)
        earlier = earlier_block(group, self.settings) if group else None
        if earlier is None:
            return window
        last = self.reservations.find(earlier)
        if window.phase in (Phase.OPEN, Phase.CLOSING) and _is_left(last, block):
            return window
        own = replace(own, block=earlier)
        # The group launches where the next block is, which may be another zone.
        return with_successor(
            find_window(node_group, own, last, zones=(), settings=self.settings, now=self.now), node_group, window
        )

    def wanted(self, node_group: str, memory: Memory, window: Window | None) -> int | None:
        """Return the size that a node group should have. None: nobody knows.

        That is zero while it is stopped and while its Capacity Block is not open, and else the file's count. A
        block that has fewer instances gets what it has, and one in another zone leaves the size alone; but none of
        the nodes that run go, whatever it says.
        """
        count = self.settings.groups[node_group].count
        if memory.state is State.STOPPED:
            return 0
        if window is None:
            return count
        if window.phase is Phase.UNSEEN or window.is_elsewhere:
            return None
        if window.phase in (Phase.OPEN, Phase.CLOSING):
            return min(count, max(window.instances, memory.size or 0))
        if window.phase is Phase.BEFORE and window.starts is not None and self.now >= window.starts:
            return min(count, memory.size or 0)
        return 0


def _is_left(last: Reservation | Absence, following: Reservation | Absence) -> bool:
    """Say whether no node can be in a block any more while the following one is open.

    Nodes that were launched since the deploy are in the following one: it is what the launch template names.
    """
    if isinstance(last, Absence):
        return last is Absence.NOT_FOUND
    if last.state in ENDED:
        return True
    return last.used == 0 and isinstance(following, Reservation) and bool(following.used)
