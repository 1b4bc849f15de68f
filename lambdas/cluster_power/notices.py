"""The ends of listed reservations that are to be told."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from zlib import crc32

from cluster_common.times import time_text
from cluster_power.context import Context
from cluster_power.groups import Group
from cluster_power.reservations import ACTIVE, Reservation
from cluster_power.settings import GroupSettings


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


def find_listed_end(group: Group, own: GroupSettings, context: Context) -> ListedEnd | None:
    """Return the next end of listed reservations that people were not told of. None: none is near.

    An end that was moved, later or earlier, is another.
    """
    told, now = group.record.listed_ends, context.now
    found = [context.reservations.find(one) for one in own.listed]
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
