"""The cluster's node groups, as a budget that acts has to know them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from cluster_common.keep_tags import KeepTags
from cluster_common.owners.groups import OwnedGroup
from cluster_common.power_function import Answer
from cluster_common.times import parse_time
from cluster_contract.spend import SpendFunctionSettings, SpendKind
from cluster_contract.state import PowerState, Sender
from cluster_contract.texts import printable
from cluster_spend.nodes import BilledNode
from cluster_spend.reports import Spend


@dataclass(frozen=True, kw_only=True)
class NodeGroup:
    """One node group.

    Attributes:
        name: Its name.
        owners: What owns its nodes.
        nodes: How many nodes run.
        usd_per_hour: What these cost an hour that are not billed all the same, as far as prices are known.
        state: Its desired state, as the power function says. None: the power function has no record of one.
        by: Who sent the command for that state.
        ordered_at: When. None: unknown.
        is_unknown: Whether the power function could not read its desired state.
        kept: Which tag keeps it: the end of a sentence. Empty: none.
        reserved: What its nodes run in that is billed all the same. Empty: a stop saves money.
        has_schedule: Whether it has a schedule, which starts again what the schedule itself or the idle function has
            stopped.
    """

    name: str
    owners: tuple[OwnedGroup, ...] = ()
    nodes: int = 0
    usd_per_hour: Decimal = Decimal()
    state: str | None = None
    by: str = ""
    ordered_at: datetime | None = None
    is_unknown: bool = False
    kept: str = ""
    reserved: str = ""
    has_schedule: bool = False

    @property
    def is_stopped(self) -> bool:
        """Whether it is stopped until a start command."""
        return self.state == PowerState.STOPPED and not self.waits

    @property
    def waits(self) -> bool:
        """Whether it is stopped until the next window of its schedule starts it."""
        ends = (Sender.SCHEDULE, Sender.IDLE)
        return self.state == PowerState.STOPPED and self.has_schedule and self.by in ends

    @property
    def is_due(self) -> bool:
        """Whether the budget acts on it, unless an operator's command holds."""
        absent = not self.owners and not self.nodes
        return not (self.is_unknown or self.is_stopped or self.reserved or absent)

    def is_held(self, since: datetime | None) -> bool:
        """Say whether an operator has ordered its state since the budget began to act on an amount."""
        ordered = since is not None and self.ordered_at is not None and self.ordered_at >= since
        return ordered and self.by not in tuple(Sender)


def node_groups(
    settings: SpendFunctionSettings,
    spend: Spend,
    nodes: Sequence[BilledNode],
    *,
    reserved: Collection[str],
    owners: Sequence[OwnedGroup],
    answer: Answer,
) -> dict[str, NodeGroup]:
    """Return the node groups, by name.

    Args:
        settings: The function's settings.
        spend: What the cluster costs.
        nodes: Its instances.
        reserved: The ids of reservations that are billed whole.
        owners: What owns the nodes.
        answer: The power function's answer, with the desired state of each.
    """
    found = {}
    for name, own in settings.groups.items():
        running = [node for node in nodes if node.node_group == name and node.runs]
        owned = tuple(owner for owner in owners if owner.node_group == name)
        said: Mapping[str, Any] = next((one for one in answer.groups if one.get("node_group") == name), {})
        inside = sorted({node.reservation for node in running if node.reservation in reserved} or own.reservations)
        saves = own.release or not inside or any(node.reservation not in reserved for node in running)
        found[name] = NodeGroup(
            name=name,
            owners=owned,
            nodes=len(running),
            usd_per_hour=sum(_rates(spend, name), Decimal()),
            state=said.get("state"),
            by=said.get("by", ""),
            ordered_at=parse_time(said["ordered_at"]) if said.get("ordered_at") else None,
            is_unknown=bool(answer.failures and owned and not said.get("state")),
            kept=_kept(running, owned, spend.now),
            has_schedule="schedule" in said,
            reserved="" if saves else " and ".join(inside),
        )
    return found


def _rates(spend: Spend, name: str) -> Iterator[Decimal]:
    kinds = (SpendKind.ON_DEMAND, SpendKind.SPOT)
    return (usd for item, usd in spend.rates.items() if item.node_group == name and item.kind in kinds)


def _kept(nodes: Sequence[BilledNode], owners: Sequence[OwnedGroup], now: datetime) -> str:
    tagged = [*((owner.name, owner.tags) for owner in owners), *((node.id, dict(node.tags)) for node in nodes)]
    for name, tags in tagged:
        kept = KeepTags.from_tags(tags).kept(now)
        if kept is not None:
            return f"{printable(name)} {printable(kept, 300)}"
    return ""
