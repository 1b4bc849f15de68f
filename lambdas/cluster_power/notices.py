"""What is to be told of the Capacity Blocks that some of a group's nodes run in, and that do not drive its size."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from cluster_power.groups import Group
from cluster_power.reservations import ACTIVE, Reservation
from cluster_power.settings import GroupSettings
from cluster_power.situation import Situation


@dataclass(frozen=True, kw_only=True)
class BlocksEnd:
    """The end of Capacity Blocks that end together.

    Attributes:
        blocks: Their ids.
        goes_at: From when EC2 terminates the nodes in them.
        ends: When they end.
    """

    blocks: tuple[str, ...]
    goes_at: datetime
    ends: datetime


NOTICE = timedelta(days=1)
"""How long before the end of a reservation people are told of it."""


def find_listed_end(group: Group, own: GroupSettings, situation: Situation) -> tuple[str, datetime] | None:
    """Return the next end of a listed reservation that people were not told of, with its id. None: none is near."""
    told, now = group.memory.listed_end, situation.now
    found = [situation.reservations.find(one) for one in own.listed]
    ends = [
        (one.ends, one.id)
        for one in found
        if isinstance(one, Reservation) and one.state == ACTIVE and one.ends and (not told or one.ends > told)
    ]
    near = min(((end, one) for end, one in ends if end - NOTICE <= now < end), default=None)
    return (near[1], near[0]) if near and group.alive else None


def find_blocks_end(group: Group, own: GroupSettings, situation: Situation) -> BlocksEnd | None:
    """Return the next end that people have not been told of. None: there is none within the notice."""
    found = [situation.reservations.find(block) for block in own.blocks]
    told, now = group.memory.closing, situation.now
    ends = {
        block.id: block.ends
        for block in found
        if isinstance(block, Reservation) and block.state == ACTIVE and block.used != 0 and block.ends is not None
    }
    early, notice = own.block_ends_early, situation.settings.closing_notice
    # What was told is the latest: ends are told in their order, and one that is put off becomes a later one.
    soon = [
        end for end in ends.values() if end - early - notice <= now < end - early and (not told or end - early > told)
    ]
    if not soon or not group.alive:
        return None
    first = min(soon)
    blocks = tuple(sorted(block for block, end in ends.items() if end == first))
    return BlocksEnd(blocks=blocks, goes_at=first - early, ends=first)
