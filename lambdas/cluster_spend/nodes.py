"""The cluster's instances, as far as they are billed."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from cluster_common.owners.groups import SPOT_FLEET
from cluster_contract.spend import HOURS_OF_A_MONTH, SpendFunctionSettings, SpendKind
from cluster_contract.tags import CLUSTER_TAG, NODE_GROUP_TAG
from cluster_spend.charges import Charge, Item
from cluster_spend.prices import block_price_name, on_demand_price_name, spot_price_name

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client
    from mypy_boto3_ec2.type_defs import InstanceTypeDef

PAGE_SIZE = 200
"""How many instances a page has: with 32 interfaces each, these take 50 MiB."""

VOLUME_PRICE = "ebs-gp3"

# `User initiated (2026-11-22 18:04:05 GMT)`; of interruptions of Spot Instances EC2 tells no time.
# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Instance.html
_WHEN = re.compile(r"\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?:GMT|UTC)\)")

# EC2 bills no instance that stops or is terminated: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-lifecycle.html
_RUNS = frozenset({"pending", "running"})
_GONE = frozenset({"shutting-down", "terminated"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """One instance, as EC2 lists it.

    Attributes:
        id: Its id.
        instance_type: Its type.
        zone: Its Availability Zone.
        node_group: The node group that it belongs to. Empty: to none.
        launched: When it was last started.
        runs: Whether it runs, or is about to.
        exists: Whether it is not terminated: its volumes are billed.
        ended: When it stopped or was terminated. None: it runs, or EC2 tells no time.
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
    exists: bool = True
    ended: datetime | None = None
    spot: bool = False
    reservation: str = ""
    block: bool = False
    tags: tuple[tuple[str, str], ...] = ()

    @property
    def has_unknown_end(self) -> bool:
        """Whether it has ended at a time that EC2 does not tell."""
        return not self.runs and self.ended is None

    def item(self) -> Item:
        """Return what is billed for it while it runs."""
        if self.block:
            return Item(self.node_group, SpendKind.CAPACITY_BLOCK, block_price_name(self.reservation))
        if self.spot:
            return Item(self.node_group, SpendKind.SPOT, spot_price_name(self.instance_type, self.zone))
        return Item(self.node_group, SpendKind.ON_DEMAND, on_demand_price_name(self.instance_type))


def read_nodes(client: "EC2Client", settings: SpendFunctionSettings) -> list[Node]:
    """Read every instance that carries the cluster's tag, also those that have ended and that EC2 still lists.

    Args:
        client: The client of EC2.
        settings: The function's settings.
    """
    groups = {group.fleet: name for name, group in settings.groups.items() if group.fleet}
    filters = [{"Name": f"tag:{CLUSTER_TAG}", "Values": [settings.cluster]}]
    request: dict[str, Any] = {"Filters": filters, "MaxResults": PAGE_SIZE}
    found: list[Node] = []
    while True:
        answer = client.describe_instances(**request)
        request["NextToken"] = answer.get("NextToken", "")
        for reservation in answer["Reservations"]:
            found += [_node(raw, groups) for raw in reservation.get("Instances", [])]
        del answer  # Two pages at a time would be twice the memory.
        if not request["NextToken"]:
            return found


def _node(raw: "InstanceTypeDef", groups: dict[str, str]) -> Node:
    tags = {tag.get("Key", ""): tag.get("Value", "") for tag in raw.get("Tags", [])}
    state, lifecycle = raw.get("State", {}).get("Name", ""), raw.get("InstanceLifecycle", "")
    runs = state in _RUNS
    when = None if runs else _WHEN.search(raw.get("StateTransitionReason", ""))
    block = raw.get("CapacityBlockId", "")
    return Node(
        id=raw.get("InstanceId", ""),
        instance_type=raw.get("InstanceType", ""),
        zone=raw.get("Placement", {}).get("AvailabilityZone", ""),
        node_group=groups.get(tags.get(SPOT_FLEET.instance_tag, ""), tags.get(NODE_GROUP_TAG, "")),
        launched=raw["LaunchTime"],
        runs=runs,
        exists=state not in _GONE,
        ended=None if when is None else datetime.strptime(when[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC),
        spot=lifecycle == "spot",
        reservation=raw.get("CapacityReservationId", "") or block,
        block=bool(block) or lifecycle == "capacity-block",
        tags=tuple(tags.items()),
    )


def node_charges(
    nodes: Sequence[Node],
    settings: SpendFunctionSettings,
    *,
    reserved: Collection[str],
    ended: Collection[str],
    through: datetime,
    now: datetime,
) -> Iterator[Charge]:
    """Yield what is billed for instances and their root volumes.

    Args:
        nodes: The instances.
        settings: The function's settings.
        reserved: The ids of reservations that are billed whole, with what runs in them.
        ended: The ids of instances that were counted when they had ended at a time that EC2 does not tell.
        through: Until when everything is counted.
        now: The time.
    """
    for node in nodes:
        # What has ended since the last run is billed until this one at most, and once.
        unseen = through if node.id in ended else now
        end = None if node.runs else node.ended or unseen
        if node.reservation not in reserved:
            yield Charge(item=node.item(), units=Decimal(1), start=node.launched, end=end)
        for price, units in settings.node.items():
            item = Item(node.node_group, SpendKind.GUARDRAILS, price)
            yield Charge(item=item, units=Decimal(str(units)), start=node.launched, end=end)
        group = settings.groups.get(node.node_group)
        if group is not None and group.volume_gib:
            yield Charge(
                item=Item(node.node_group, SpendKind.VOLUMES, VOLUME_PRICE),
                units=volume_units(group.volume_gib),
                start=node.launched,
                end=None if node.exists else end,
            )


def volume_units(gib: int) -> Decimal:
    """Return how many GB-months a volume takes in an hour."""
    return Decimal(gib) / HOURS_OF_A_MONTH
