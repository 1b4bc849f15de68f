"""The cluster's instances, as far as they are billed."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from cluster_common.owners.groups import OwnedGroup, node_group_of
from cluster_contract.prices import VOLUME_PRICE, on_demand_price_name
from cluster_contract.spend import HOURS_OF_A_MONTH, SpendFunctionSettings, SpendKind
from cluster_contract.tags import CLUSTER_TAG
from cluster_spend.charges import Charge, Item
from cluster_spend.prices import block_price_name, spot_price_name

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client
    from mypy_boto3_ec2.type_defs import FilterTypeDef, InstanceTypeDef

PAGE_SIZE = 200
"""How many instances a page has: with 32 interfaces each, these take 50 MiB. Also how many values a filter takes."""

# `User initiated (2026-11-22 18:04:05 GMT)`; of interruptions of Spot Instances EC2 returns no time.
# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Instance.html
_WHEN = re.compile(r"\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?:GMT|UTC)\)")

# EC2 bills no instance that is pending, stops or is terminated: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-lifecycle.html
_RUNS = frozenset({"pending", "running"})
_GONE = frozenset({"shutting-down", "terminated"})
_ENDING = "Terminating"


@dataclass(frozen=True, kw_only=True, slots=True)
class BilledNode:
    """One instance, as EC2 lists it.

    Attributes:
        id: Its id.
        instance_type: Its type.
        zone: Its Availability Zone.
        node_group: The node group that it belongs to. Empty: to none.
        launched: When it was last started.
        runs: Whether it runs, or is about to.
        pending: Whether it is about to run, and not billed yet.
        exists: Whether it is not terminated: its volumes are billed.
        ended: When it stopped or was terminated. None: it runs, or EC2 returns no time.
        spot: Whether it is a Spot Instance.
        reservation: The id of the capacity reservation or Capacity Block that it runs in. Empty: in none.
        block: Whether that is a Capacity Block.
        tags: Its tags.
    """

    id: str
    instance_type: str
    zone: str
    node_group: str
    launched: datetime
    runs: bool = True
    pending: bool = False
    exists: bool = True
    ended: datetime | None = None
    spot: bool = False
    reservation: str = ""
    block: bool = False
    tags: tuple[tuple[str, str], ...] = ()

    @property
    def has_unknown_end(self) -> bool:
        """Whether it has ended at a time that EC2 does not return."""
        return not self.runs and self.ended is None

    def item(self) -> Item:
        """Return what is billed for it while it runs."""
        if self.block:
            return Item(self.node_group, SpendKind.CAPACITY_BLOCK, block_price_name(self.reservation))
        if self.spot:
            return Item(self.node_group, SpendKind.SPOT, spot_price_name(self.instance_type, self.zone))
        return Item(self.node_group, SpendKind.ON_DEMAND, on_demand_price_name(self.instance_type))


def read_nodes(client: "EC2Client", settings: SpendFunctionSettings, ran: Mapping[str, str]) -> list[BilledNode]:
    """Read every instance of the cluster, also those that have ended and that EC2 still lists.

    They are found by the cluster's tag. EC2 takes the tags of a terminated instance away before it lists it no more:
    what ran in the last run is then found by its id.
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/terminating-instances.html

    Args:
        client: The client of EC2.
        settings: The function's settings.
        ran: The node groups of the instances that ran in the last run, by their ids.
    """
    tagged: list[FilterTypeDef] = [{"Name": f"tag:{CLUSTER_TAG}", "Values": [settings.cluster]}]
    # EC2's list may change while it is read: an instance may be on two pages.
    found = {node.id: node for node in _read(client, tagged, settings)}
    missing = sorted(ran.keys() - found.keys())
    for start in range(0, len(missing), PAGE_SIZE):
        ended: list[FilterTypeDef] = [
            {"Name": "instance-id", "Values": missing[start : start + PAGE_SIZE]},
            {"Name": "instance-state-name", "Values": sorted(_GONE)},
        ]
        for node in _read(client, ended, settings):
            found[node.id] = replace(node, node_group=ran[node.id])
    return list(found.values())


def nodes_of(groups: Iterable[OwnedGroup]) -> Iterator[BilledNode]:
    """Yield the nodes of groups that EC2 does not describe: what is billed for them has no price in EC2's lists.

    Args:
        groups: The groups, with their nodes.
    """
    for group in groups:
        for name, node in group.nodes.items():
            if node.launched is not None and node.state != _ENDING:
                yield BilledNode(
                    id=name,
                    instance_type=node.instance_type,
                    zone="",
                    node_group=group.node_group,
                    launched=node.launched,
                    pending=node.state == "Pending",
                )


def _read(
    client: "EC2Client", filters: "list[FilterTypeDef]", settings: SpendFunctionSettings
) -> Iterator[BilledNode]:
    request: dict[str, Any] = {"Filters": filters, "MaxResults": PAGE_SIZE}
    while True:
        answer = client.describe_instances(**request)
        request["NextToken"] = answer.get("NextToken", "")
        for reservation in answer["Reservations"]:
            yield from [_node(raw, settings) for raw in reservation.get("Instances", [])]
        del answer  # Two pages at a time would be twice the memory.
        if not request["NextToken"]:
            return


def _node(raw: "InstanceTypeDef", settings: SpendFunctionSettings) -> BilledNode:
    tags = {tag.get("Key", ""): tag.get("Value", "") for tag in raw.get("Tags", [])}
    state, lifecycle = raw.get("State", {}).get("Name", ""), raw.get("InstanceLifecycle", "")
    runs = state in _RUNS
    when = None if runs else _WHEN.search(raw.get("StateTransitionReason", ""))
    block = raw.get("CapacityBlockId", "")
    return BilledNode(
        id=raw.get("InstanceId", ""),
        instance_type=raw.get("InstanceType", ""),
        zone=raw.get("Placement", {}).get("AvailabilityZone", ""),
        node_group=node_group_of(tags, settings.groups),
        launched=raw["LaunchTime"],
        runs=runs,
        pending=state == "pending",
        exists=state not in _GONE,
        ended=None if when is None else datetime.strptime(when[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC),
        spot=lifecycle == "spot",
        reservation=raw.get("CapacityReservationId", "") or block,
        block=bool(block) or lifecycle == "capacity-block",
        tags=tuple(tags.items()),
    )


def node_charges(
    nodes: Sequence[BilledNode],
    settings: SpendFunctionSettings,
    *,
    reserved: Mapping[str, Sequence[Charge]],
    ran: Collection[str],
    ended: Collection[str],
    through: datetime,
    now: datetime,
) -> Iterator[Charge]:
    """Yield what is billed for instances and their root volumes.

    Args:
        nodes: The instances.
        settings: The function's settings.
        reserved: What is billed for reservations, by id: while it is, what runs in them is not billed beside it.
        ran: The ids of instances that ran in the last run. One that was started since has stopped at a time that EC2
            no longer returns, and is billed on.
        ended: The ids of instances that were counted when they had ended at a time that EC2 does not return.
        through: Until when everything is counted.
        now: The time.
    """
    for node in nodes:
        # What has ended since the last run is billed until this one at most, and once.
        unseen = through if node.id in ended else now
        end = None if node.runs else node.ended or unseen
        if node.pending:
            end = node.launched
        start = min(node.launched, through) if node.id in ran else node.launched
        for first, last in _outside(start, end, reserved.get(node.reservation)):
            # EC2 terminates what runs in a Capacity Block before the block ends.
            if not node.block or node.reservation not in reserved:
                yield Charge(item=node.item(), units=Decimal(1), start=first, end=last)
        group = settings.groups.get(node.node_group)
        by_kind = {SpendKind.GUARDRAILS: settings.node, SpendKind.ORCHESTRATOR: group.orchestrator if group else {}}
        for kind, of_a_node in by_kind.items():
            for price, units in of_a_node.items():
                item = Item(node.node_group, kind, price)
                yield Charge(item=item, units=Decimal(str(units)), start=start, end=end)
        if group is not None and group.volume_gib:
            yield Charge(
                item=Item(node.node_group, SpendKind.VOLUMES, VOLUME_PRICE),
                units=volume_units(group.volume_gib),
                start=start,
                end=None if node.exists else end,
            )


def _outside(
    start: datetime, end: datetime | None, reservation: Sequence[Charge] | None
) -> Iterator[tuple[datetime, datetime | None]]:
    """Yield the times before and after what is billed for a reservation."""
    if reservation is None:
        yield start, end
        return
    begins, ends = reservation[0].start, reservation[-1].end
    yield start, begins if end is None else min(end, begins)
    if ends is not None:
        yield max(start, ends), end


def volume_units(gib: int) -> Decimal:
    """Return how many GB-months a volume takes in an hour."""
    return Decimal(gib) / HOURS_OF_A_MONTH
