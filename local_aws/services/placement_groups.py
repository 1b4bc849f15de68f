"""EC2 placement groups: CreatePlacementGroup, DescribePlacementGroups, DeletePlacementGroup.

https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/placement-groups.html
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any

from moto.core.responses import ActionResult, EmptyResult
from moto.utilities.utils import get_partition

from local_aws.refusal import Refusal
from local_aws.services.answers import passes
from local_aws.services.reserved_capacity import reservations_of


@dataclass
class PlacementGroup:
    """One placement group of an account and region."""

    name: str
    strategy: str
    account: str
    region: str
    partition_count: int | None = None
    spread_level: str | None = None
    tags: dict[str, str] = field(default_factory=dict)
    id: str = field(default_factory=lambda: f"pg-{token_hex(8)}0")

    def described(self) -> dict[str, Any]:
        """Return the group as DescribePlacementGroups shows it."""
        partition = get_partition(self.region)
        return {
            "GroupName": self.name,
            "GroupId": self.id,
            "GroupArn": f"arn:{partition}:ec2:{self.region}:{self.account}:placement-group/{self.name}",
            "State": "available",
            "Strategy": self.strategy,
            "PartitionCount": self.partition_count,
            "SpreadLevel": self.spread_level,
            "Tags": [{"Key": key, "Value": value} for key, value in self.tags.items()],
        }


# Ids of instances that have been terminated, and that no call has described since: they are shutting down.
_shutting_down: set[str] = set()

# By account and region, then by name.
_groups: dict[tuple[str, str], dict[str, PlacementGroup]] = defaultdict(dict)


def groups_of(ec2: Any) -> dict[str, PlacementGroup]:
    """Return the placement groups beside moto's EC2 backend, by name."""
    return _groups[ec2.account_id, ec2.region_name]


_FILTERS = {"group-name": "GroupName", "state": "State", "strategy": "Strategy"}


def create_placement_group(response: Any) -> ActionResult:
    """Answer CreatePlacementGroup."""
    name = response._get_param("GroupName")
    strategy = response._get_param("Strategy") or "cluster"
    partition_count = response._get_int_param("PartitionCount")
    spread_level = response._get_param("SpreadLevel")
    groups = groups_of(response.ec2_backend)
    if not name:
        raise Refusal("MissingParameter", "The request must contain the parameter groupName")
    if name in groups:
        raise Refusal("InvalidPlacementGroup.Duplicate", f"The Placement Group '{name}' already exists.")
    if partition_count is not None and strategy != "partition":
        raise Refusal(
            "InvalidParameterCombination",
            f"Partition count may not be specified for placement groups with the '{strategy}' strategy.",
        )
    if spread_level is not None and strategy != "spread":
        raise Refusal(
            "InvalidParameterCombination",
            f"Spread level may not be specified for placement groups with the '{strategy}' strategy.",
        )
    group = PlacementGroup(
        name,
        strategy,
        response.current_account,
        response.region,
        partition_count,
        spread_level or ("rack" if strategy == "spread" else None),
        response._parse_tag_specification("placement-group").get("placement-group", {}),
    )
    groups[name] = group
    return ActionResult({"PlacementGroup": group.described()})


def describe_placement_groups(response: Any) -> ActionResult:
    """Answer DescribePlacementGroups."""
    groups = groups_of(response.ec2_backend)
    names = response._get_param("GroupNames", [])
    ids = response._get_param("GroupIds", [])
    for name in names:
        if name not in groups:
            raise Refusal("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
    filters = response._filters_from_querystring()
    shown = [
        group.described()
        for group in groups.values()
        if (not names or group.name in names) and (not ids or group.id in ids)
    ]
    return ActionResult({"PlacementGroups": [each for each in shown if passes(each, filters, _FILTERS)]})


def delete_placement_group(response: Any) -> ActionResult:
    """Answer DeletePlacementGroup, which EC2 refuses while an instance or an active reservation is in the group.

    An instance is in it until it is terminated, and shuts down before: here until a caller that waits for it
    describes it.
    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DeletePlacementGroup.html
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/cr-cpg.html
    """
    name = response._get_param("GroupName")
    ec2 = response.ec2_backend
    if name not in groups_of(ec2):
        raise Refusal("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
    inside = [each for each in ec2.all_instances() if each.placement.group_name == name]
    taken = any(each.state != "terminated" or each.id in _shutting_down for each in inside)
    reserved = any(r.placement_group == name and r.state == "active" for r in reservations_of(ec2).values())
    if taken or reserved:
        raise Refusal("InvalidPlacementGroup.InUse", f"The placement group {name} is in use and may not be deleted.")
    del groups_of(ec2)[name]
    return EmptyResult()


def shut_down(_: Any, instance_ids: Iterable[str]) -> None:
    """Let terminated instances shut down, which takes a while."""
    _shutting_down.update(instance_ids)


def have_terminated(instances: Iterable[Any]) -> None:
    """Let instances that have been shutting down be terminated, as a caller that waits for them sees it."""
    _shutting_down.difference_update(each.id for each in instances if each.state == "terminated")
