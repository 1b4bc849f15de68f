"""What owns the cluster's nodes, read and written: groups, Spot Fleet requests and instances."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from cluster_common.errors import AWS_ERRORS
from cluster_common.failures import Failures
from cluster_common.tags import NODE_GROUP_TAG
from cluster_idle.instances import PAGE_SIZE, Owner, OwnerKind
from cluster_idle.marks import NOTICE_TAGS, Marks
from cluster_idle.settings import Settings
from cluster_idle.situation import OwnerState
from cluster_idle.stopping import concerns_all

if TYPE_CHECKING:
    from mypy_boto3_autoscaling.client import AutoScalingClient
    from mypy_boto3_autoscaling.type_defs import AutoScalingGroupTypeDef
    from mypy_boto3_ec2.client import EC2Client
    from mypy_boto3_ec2.type_defs import TagTypeDef

# What the power function writes on a group; a test compares it with that.
POWER_STATE_TAG = "cdk-training-cluster:power-state"
STOPPED = "stopped"

# Nodes in these states run no more, or never will for the group.
# https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-lifecycle.html
_GONE = ("Terminat", "Detach", "Warmed")

_NOT_WRITTEN = "its tags could not be written"
_GROUP_RESOURCE = "auto-scaling-group"

# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateTags.html
_MOST_TAGGED = 1000


class Owners:
    """The owners of the cluster's nodes."""

    def __init__(
        self,
        settings: Settings,
        auto_scaling: "Callable[[], AutoScalingClient]",
        ec2: "Callable[[], EC2Client]",
        failures: Failures,
    ) -> None:
        self._settings = settings
        self._auto_scaling = auto_scaling
        self._ec2 = ec2
        self._failures = failures

    def read(self) -> dict[Owner, OwnerState]:
        """Read the groups and Spot Fleet requests of the cluster; those that cannot be read are left out."""
        found: dict[Owner, OwnerState] = {}
        settings = self._settings
        if settings.has_auto_scaling_groups:
            found |= self._try("the Auto Scaling groups", self._read_groups)
        if settings.fleets:
            found |= self._try("the Spot Fleet requests", self._read_fleets)
        return found

    def write(self, tags: Iterable[tuple[Owner, Mapping[str, str]]]) -> None:
        """Write tags on owners, of instances with equal tags as many at a time as EC2 takes."""
        alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
        for owner, own in tags:
            if owner.kind is OwnerKind.AUTO_SCALING_GROUP:
                self._guard(owner, lambda owner=owner, own=own: self._write_group(owner, own))  # type: ignore[misc]  # bound now
            else:
                alike.setdefault(tuple(own.items()), []).append(owner.id)
        for items, ids in alike.items():
            for some in _batches(ids):
                written = [{"Key": key, "Value": value} for key, value in items]
                self._tag(some, lambda ids, written=written: self._ec2().create_tags(Resources=ids, Tags=written))  # type: ignore[misc]  # bound now

    def clear(self, owners: Sequence[Owner]) -> None:
        """Take the function's own tags away from owners."""
        for owner in owners:
            if owner.kind is OwnerKind.AUTO_SCALING_GROUP:
                self._guard(owner, lambda owner=owner: self._clear_group(owner))  # type: ignore[misc]  # bound now
        others = [owner.id for owner in owners if owner.kind is not OwnerKind.AUTO_SCALING_GROUP]
        keys: list[TagTypeDef] = [{"Key": key} for key in NOTICE_TAGS]
        for some in _batches(others):
            self._tag(some, lambda ids: self._ec2().delete_tags(Resources=ids, Tags=keys))

    def _try(self, what: str, read: Callable[[], dict[Owner, OwnerState]]) -> dict[Owner, OwnerState]:
        try:
            return read()
        except AWS_ERRORS as error:
            self._failures.add(what, "could not be read", error)
            return {}

    def _guard(self, owner: Owner, write: Callable[[], object]) -> None:
        try:
            write()
        except AWS_ERRORS as error:
            self._failures.add(owner.words, _NOT_WRITTEN, error)

    def _tag(self, ids: list[str], write: Callable[[list[str]], object]) -> None:
        """Write tags of many; if EC2 refuses that of one, which it need not name, find it by halves."""
        try:
            write(ids)
        except AWS_ERRORS as error:
            if len(ids) == 1 or concerns_all(error):
                self._failures.add(", ".join(ids), _NOT_WRITTEN, error)
                return
            middle = len(ids) // 2
            for half in (ids[:middle], ids[middle:]):
                self._tag(half, write)

    def _read_groups(self) -> dict[Owner, OwnerState]:
        pages = (
            self._auto_scaling()
            .get_paginator("describe_auto_scaling_groups")
            .paginate(
                Filters=[{"Name": f"tag:{self._settings.tag}", "Values": [self._settings.cluster]}],
                PaginationConfig={"PageSize": 100},
            )
        )
        found: dict[Owner, OwnerState] = {}
        for page in pages:
            for raw in page["AutoScalingGroups"]:
                tags = {tag["Key"]: tag.get("Value", "") for tag in raw.get("Tags", [])}
                own = self._settings.groups.get(tags.get(NODE_GROUP_TAG, ""))
                if own is not None and own.fleet is None:
                    owner = Owner(kind=OwnerKind.AUTO_SCALING_GROUP, id=raw["AutoScalingGroupName"])
                    found[owner] = _state(tags, _members(raw), _protected(raw))
        return found

    def _read_fleets(self) -> dict[Owner, OwnerState]:
        pages = (
            self._ec2()
            .get_paginator("describe_spot_fleet_requests")
            .paginate(SpotFleetRequestIds=list(self._settings.fleets))
        )
        return {
            Owner(kind=OwnerKind.SPOT_FLEET, id=raw["SpotFleetRequestId"]): _state(
                {tag.get("Key", ""): tag.get("Value", "") for tag in raw.get("Tags", [])}
            )
            for page in pages
            for raw in page["SpotFleetRequestConfigs"]
        }

    def _write_group(self, owner: Owner, tags: Mapping[str, str]) -> None:
        self._auto_scaling().create_or_update_tags(
            Tags=[
                {
                    "ResourceId": owner.id,
                    "ResourceType": _GROUP_RESOURCE,
                    "Key": key,
                    "Value": value,
                    "PropagateAtLaunch": False,
                }
                for key, value in tags.items()
            ]
        )

    def _clear_group(self, owner: Owner) -> None:
        self._auto_scaling().delete_tags(
            Tags=[{"ResourceId": owner.id, "ResourceType": _GROUP_RESOURCE, "Key": key} for key in NOTICE_TAGS]
        )


def read_spot_requests(client: "EC2Client", ids: Collection[str]) -> dict[str, str]:
    """Say of Spot Instance requests why their instances cannot be stopped; empty where they can.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/stop-start-spot.html
    """
    found: dict[str, str] = {}
    ordered = sorted(ids)
    for start in range(0, len(ordered), PAGE_SIZE):
        pages = client.get_paginator("describe_spot_instance_requests").paginate(
            Filters=[{"Name": "spot-instance-request-id", "Values": ordered[start : start + PAGE_SIZE]}]
        )
        for page in pages:
            for raw in page["SpotInstanceRequests"]:
                request = raw.get("SpotInstanceRequestId", "")
                why = ""
                if raw.get("Type") != "persistent":
                    why = f"its Spot Instance request {request} is one-time: EC2 cannot stop it, terminate it"
                elif raw.get("LaunchGroup"):
                    why = f"its Spot Instance request {request} has a launch group: EC2 cannot stop it, terminate it"
                found[request] = why
    return found


def _state(
    tags: Mapping[str, str], members: frozenset[str] | None = None, protected: frozenset[str] = frozenset()
) -> OwnerState:
    return OwnerState(
        marks=Marks.from_tags(tags),
        node_group=tags.get(NODE_GROUP_TAG, ""),
        stopped=tags.get(POWER_STATE_TAG) == STOPPED,
        members=members,
        protected=protected,
    )


def _members(raw: "AutoScalingGroupTypeDef") -> frozenset[str]:
    return frozenset(
        one["InstanceId"] for one in raw.get("Instances", []) if not one["LifecycleState"].startswith(_GONE)
    )


def _protected(raw: "AutoScalingGroupTypeDef") -> frozenset[str]:
    return frozenset(one["InstanceId"] for one in raw.get("Instances", []) if one.get("ProtectedFromScaleIn"))


def _batches(ids: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(ids), _MOST_TAGGED):
        yield list(ids[start : start + _MOST_TAGGED])
