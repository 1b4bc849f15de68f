"""The cluster's node groups, as a budget that acts has to know them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from cluster_common.keep_tags import KeepTags
from cluster_common.messages import printable
from cluster_common.owners.groups import OwnedGroup
from cluster_common.times import parse_time
from cluster_contract.spend import SpendFunctionSettings, SpendKind
from cluster_contract.state import PowerState
from cluster_spend.nodes import Node
from cluster_spend.reports import Spend


@dataclass(frozen=True, kw_only=True)
class NodeGroup:
    """One node group.

    Attributes:
        name: Its name.
        owners: What owns its nodes.
        nodes: How many nodes run.
        usd_per_hour: What these cost an hour that are not billed all the same, as far as prices are known.
        state: Whether it is meant to run, as the power function says. None: the function has no order for it.
        by: Who ordered that.
        since: Since when. None: unknown.
        kept: Which tag keeps it: the end of a sentence. Empty: none.
        reserved: What its nodes run in that is billed all the same. Empty: a stop saves money.
    """

    name: str
    owners: tuple[OwnedGroup, ...] = ()
    nodes: int = 0
    usd_per_hour: Decimal = Decimal()
    state: str | None = None
    by: str = ""
    since: datetime | None = None
    kept: str = ""
    reserved: str = ""

    @property
    def is_stopped(self) -> bool:
        """Whether it is stopped."""
        return self.state == PowerState.STOPPED

    def was_started_after(self, moment: datetime | None) -> bool:
        """Say whether a start was ordered at or after a time."""
        started = self.state == PowerState.RUNNING and self.since is not None
        return started and moment is not None and self.since is not None and self.since >= moment


def node_groups(
    settings: SpendFunctionSettings,
    spend: Spend,
    nodes: Sequence[Node],
    *,
    reserved: Collection[str],
    owners: Sequence[OwnedGroup],
    told: Sequence[Mapping[str, Any]],
) -> dict[str, NodeGroup]:
    """Return the node groups, by name.

    Args:
        settings: The function's settings.
        spend: What the cluster costs.
        nodes: Its instances.
        reserved: The ids of reservations that are billed whole.
        owners: What owns the nodes.
        told: What the power function says of each.
    """
    found = {}
    for name, own in settings.groups.items():
        running = [node for node in nodes if node.node_group == name and node.runs]
        owned = tuple(owner for owner in owners if owner.node_group == name)
        said: Mapping[str, Any] = next((one for one in told if one.get("node_group") == name), {})
        inside = sorted({node.reservation for node in running if node.reservation in reserved} or own.reservations)
        saves = own.release or not inside or any(node.reservation not in reserved for node in running)
        found[name] = NodeGroup(
            name=name,
            owners=owned,
            nodes=len(running),
            usd_per_hour=sum(_rates(spend, name), Decimal()),
            state=said.get("state"),
            by=said.get("by", ""),
            since=parse_time(said["since"]) if said.get("since") else None,
            kept=_kept(running, owned, spend.now),
            reserved="" if saves else " and ".join(inside),
        )
    return found


def _rates(spend: Spend, name: str) -> Iterator[Decimal]:
    kinds = (SpendKind.ON_DEMAND, SpendKind.SPOT)
    return (usd for item, usd in spend.rates.items() if item.node_group == name and item.kind in kinds)


def _kept(nodes: Sequence[Node], owners: Sequence[OwnedGroup], now: datetime) -> str:
    tagged = [*((owner.name, owner.tags) for owner in owners), *((node.id, dict(node.tags)) for node in nodes)]
    for name, tags in tagged:
        kept = KeepTags.from_tags(tags).kept(now)
        if kept is not None:
            return f"{printable(name)} {printable(kept, 300)}"
    return ""
