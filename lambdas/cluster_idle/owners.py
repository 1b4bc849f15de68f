"""What owns the cluster's nodes, read and written: groups, Spot Fleet requests and instances."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from cluster_common.errors import AWS_ERRORS, error_code
from cluster_common.failures import Failures
from cluster_contract.idle import IdleFunctionSettings
from cluster_contract.tags import NODE_GROUP_TAG
from cluster_idle.context import PROTECTED, STANDBY, OwnerState
from cluster_idle.idle_tags import NOTICE_TAGS, IdleTags
from cluster_idle.instances import PAGE_SIZE, Owner, OwnerKind
from cluster_idle.stopping import DENIED, MAX_DENIED, concerns_all

if TYPE_CHECKING:
    from mypy_boto3_autoscaling.client import AutoScalingClient
    from mypy_boto3_autoscaling.type_defs import AutoScalingGroupTypeDef, FilterTypeDef
    from mypy_boto3_ec2.client import EC2Client
    from mypy_boto3_ec2.type_defs import TagTypeDef

# What the power function writes on a group; a test compares it with that.
POWER_STATE_TAG = "cdk-training-cluster:power-state"
STOPPED = "stopped"

# Nodes in these states run no more, or never will for the group.
# https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-lifecycle.html
# One in Standby is what people take out to work on it, or to stop it by hand: it is seen if it runs.
_GONE = ("Terminat", "Detach", "Warmed", "Standby")

_NOT_WRITTEN = "its tags could not be written"
_GROUP_RESOURCE = "auto-scaling-group"

# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateTags.html
_MAX_TAGGED = 1000


class Owners:
    """The owners of the cluster's nodes."""

    def __init__(
        self,
        settings: IdleFunctionSettings,
        auto_scaling: "Callable[[], AutoScalingClient]",
        ec2: "Callable[[], EC2Client]",
        failures: Failures,
    ) -> None:
        self._settings = settings
        self._auto_scaling = auto_scaling
        self._ec2 = ec2
        self._failures = failures
        self._denied = 0
        self.unread: frozenset[OwnerKind] = frozenset()
        """What kinds of owners could not be read the last time."""

    def read(self, node_group: str | None = None) -> dict[Owner, OwnerState]:
        """Read the groups and Spot Fleet requests of the cluster; those that cannot be read are left out.

        Args:
            node_group: The one node group whose owners are read. Default: - those of all of them.
        """
        found: dict[Owner, OwnerState] = {}
        settings, self.unread = self._settings, frozenset()
        own = settings.groups.get(node_group) if node_group else None
        fleets = settings.fleets if own is None else tuple(filter(None, [own.fleet]))
        if settings.has_auto_scaling_groups if own is None else own.fleet is None:
            found |= self._try(
                "the Auto Scaling groups", OwnerKind.AUTO_SCALING_GROUP, lambda: self._read_groups(node_group)
            )
        if fleets:
            found |= self._try(
                "the Spot Fleet requests", OwnerKind.SPOT_FLEET, lambda: self._read_fleets(list(fleets))
            )
        return found

    def write(self, tags: Iterable[tuple[Owner, Mapping[str, str]]]) -> frozenset[str]:
        """Write tags on owners, of instances with equal tags as many at a time as EC2 takes.

        Returns:
            The ids of the owners that could not be written on.
        """
        failed: set[str] = set()
        alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
        for owner, own in tags:
            if owner.kind is OwnerKind.AUTO_SCALING_GROUP:
                failed |= self._guard(owner, lambda owner=owner, own=own: self._write_group(owner, own))  # type: ignore[misc]  # bound now
            else:
                alike.setdefault(tuple(own.items()), []).append(owner.id)
        for items, ids in alike.items():
            for some in _batches(ids):
                written = [{"Key": key, "Value": value} for key, value in items]
                failed |= self._tag(
                    some,
                    lambda ids, written=written: self._ec2().create_tags(Resources=ids, Tags=written),  # type: ignore[misc]  # bound now
                )
        return frozenset(failed)

    def clear(self, owners: Sequence[Owner], keys: Sequence[str] = NOTICE_TAGS) -> None:
        """Take tags away from owners.

        Args:
            owners: The owners.
            keys: The tags. Default: - those of a warning.
        """
        for owner in owners:
            if owner.kind is OwnerKind.AUTO_SCALING_GROUP:
                self._guard(owner, lambda owner=owner: self._clear_group(owner, keys))  # type: ignore[misc]  # bound now
        others = [owner.id for owner in owners if owner.kind is not OwnerKind.AUTO_SCALING_GROUP]
        tags: list[TagTypeDef] = [{"Key": key} for key in keys]
        for some in _batches(others):
            self._tag(some, lambda ids: self._ec2().delete_tags(Resources=ids, Tags=tags))

    def _try(
        self, what: str, kind: OwnerKind, read: Callable[[], dict[Owner, OwnerState]]
    ) -> dict[Owner, OwnerState]:
        try:
            return read()
        except AWS_ERRORS as error:
            self._failures.add(what, "could not be read", error)
            self.unread |= {kind}
            return {}

    def _guard(self, owner: Owner, write: Callable[[], object]) -> set[str]:
        try:
            write()
        except AWS_ERRORS as error:
            self._failures.add(owner.description, _NOT_WRITTEN, error)
            return {owner.id}
        return set()

    def _tag(self, ids: list[str], write: Callable[[list[str]], object]) -> set[str]:
        """Write tags of many; if EC2 refuses that of one, which it need not name, find it by halves."""
        try:
            write(ids)
        except AWS_ERRORS as error:
            self._denied += error_code(error) in DENIED
            hopeless = concerns_all(error) or (error_code(error) in DENIED and self._denied > MAX_DENIED)
            if len(ids) == 1 or hopeless:
                self._failures.add(", ".join(ids), _NOT_WRITTEN, error)
                return set(ids)
            middle = len(ids) // 2
            return {one for half in (ids[:middle], ids[middle:]) for one in self._tag(half, write)}
        return set()

    def _read_groups(self, node_group: str | None) -> dict[Owner, OwnerState]:
        filters: list[FilterTypeDef] = [{"Name": f"tag:{self._settings.tag}", "Values": [self._settings.cluster]}]
        if node_group:
            filters.append({"Name": f"tag:{NODE_GROUP_TAG}", "Values": [node_group]})
        pages = (
            self._auto_scaling()
            .get_paginator("describe_auto_scaling_groups")
            .paginate(
                Filters=filters,
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
                    found[owner] = replace(
                        _state(tags, raw["DesiredCapacity"]),
                        frozen=_is_frozen(raw),
                        members=_members(raw),
                        held=_held(raw),
                    )
        return found

    def _read_fleets(self, ids: list[str]) -> dict[Owner, OwnerState]:
        """Read the requests; EC2 refuses all for one that is gone, which has no nodes to look at."""
        while ids:
            try:
                return self._read_these_fleets(ids)
            except ClientError as error:
                gone = [one for one in ids if one in str(error)]
                if error_code(error) != "InvalidSpotFleetRequestId.NotFound" or not gone:
                    raise
                ids = [one for one in ids if one not in gone]
        return {}

    def _read_these_fleets(self, ids: Sequence[str]) -> dict[Owner, OwnerState]:
        paginator = self._ec2().get_paginator("describe_spot_fleet_requests")
        pages = paginator.paginate(SpotFleetRequestIds=ids)
        return {
            Owner(kind=OwnerKind.SPOT_FLEET, id=raw["SpotFleetRequestId"]): replace(
                _state(
                    {tag.get("Key", ""): tag.get("Value", "") for tag in raw.get("Tags", [])},
                    raw["SpotFleetRequestConfig"].get("TargetCapacity", 0),
                ),
                members=self._read_fleet_members(raw["SpotFleetRequestId"]),
            )
            for page in pages
            for raw in page["SpotFleetRequestConfigs"]
        }

    def _read_fleet_members(self, fleet: str) -> frozenset[str]:
        paginator = self._ec2().get_paginator("describe_spot_fleet_instances")
        pages = paginator.paginate(SpotFleetRequestId=fleet)
        return frozenset(one.get("InstanceId", "") for page in pages for one in page.get("ActiveInstances", []))

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

    def _clear_group(self, owner: Owner, keys: Sequence[str]) -> None:
        self._auto_scaling().delete_tags(
            Tags=[{"ResourceId": owner.id, "ResourceType": _GROUP_RESOURCE, "Key": key} for key in keys]
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


def _state(tags: Mapping[str, str], size: int) -> OwnerState:
    return OwnerState(
        idle_tags=IdleTags.from_tags(tags),
        node_group=tags.get(NODE_GROUP_TAG, ""),
        size=size,
        # Somebody may have given it nodes since: these are judged as any others are.
        stopped=tags.get(POWER_STATE_TAG) == STOPPED and not size,
    )


def _members(raw: "AutoScalingGroupTypeDef") -> frozenset[str]:
    return frozenset(
        one["InstanceId"] for one in raw.get("Instances", []) if not one["LifecycleState"].startswith(_GONE)
    )


def _held(raw: "AutoScalingGroupTypeDef") -> dict[str, str]:
    """Return why it does not terminate some of its nodes."""
    found: dict[str, str] = {}
    for one in raw.get("Instances", []):
        if one.get("ProtectedFromScaleIn"):
            found[one["InstanceId"]] = PROTECTED
        elif one["LifecycleState"].endswith("Standby"):
            found[one["InstanceId"]] = STANDBY
        elif one["LifecycleState"] != "InService":
            found[one["InstanceId"]] = f"its state is {one['LifecycleState']}"
    return found


def _is_frozen(raw: "AutoScalingGroupTypeDef") -> bool:
    # https://docs.aws.amazon.com/autoscaling/ec2/userguide/as-suspend-resume-processes.html
    return any(process.get("ProcessName") == "Terminate" for process in raw.get("SuspendedProcesses", []))


def _batches(ids: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(ids), _MAX_TAGGED):
        yield list(ids[start : start + _MAX_TAGGED])
