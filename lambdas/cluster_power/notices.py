"""What is to be told of the Capacity Blocks that some of a group's nodes run in, and that do not drive its size."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from zlib import crc32

from cluster_common.times import time_text
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


@dataclass(frozen=True, kw_only=True)
class ListedEnd:
    """The end of listed reservations that end together.

    Attributes:
        reservations: Their ids.
        ends: When they end.
        told: What is to be remembered once people were told: a checksum of each id and end that is still to come.
    """

    reservations: tuple[str, ...]
    ends: datetime
    told: tuple[str, ...]


NOTICE = timedelta(days=1)
"""How long before the end of a reservation people are told of it."""


def find_listed_end(group: Group, own: GroupSettings, situation: Situation) -> ListedEnd | None:
    """Return the next end of listed reservations that people were not told of. None: none is near.

    An end that was moved, later or earlier, is another.
    """
    told, now = group.memory.listed_ends, situation.now
    found = [situation.reservations.find(one) for one in own.listed]
    near = {
        # A tag holds 28 of these.
        f"{crc32(f'{one.id} {time_text(one.ends)}'.encode()):08x}": one
        for one in found
        if isinstance(one, Reservation) and one.state == ACTIVE and one.ends and one.ends - NOTICE <= now < one.ends
    }
    new = [(one.ends, one.id) for word, one in near.items() if one.ends and word not in told]
    if not new or not group.alive:
        return None
    first = min(new)[0]
    words = tuple(word for word, one in near.items() if word in told or one.ends == first)
    return ListedEnd(reservations=tuple(sorted(name for end, name in new if end == first)), ends=first, told=words)


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
