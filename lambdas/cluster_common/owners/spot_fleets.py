"""Spot Fleet requests as owners of nodes: the size of such a group is the request's target."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from cluster_common.errors import AWS_ERRORS, error_code
from cluster_common.owners.ec2_nodes import terminate
from cluster_common.owners.groups import Activity, OwnedGroup, OwnedNode
from cluster_common.owners.kinds import SPOT_FLEET
from cluster_common.owners.named_owners import Named, NamedOwners
from cluster_common.owners.node_owner import OwnerBusyError, Reading
from cluster_contract.owners import OwnerSettings

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client
    from mypy_boto3_ec2.type_defs import ActiveInstanceTypeDef, HistoryRecordTypeDef, SpotFleetRequestConfigTypeDef

# A request that is modified shows its old target until it is done, and takes no other; one that was just
# submitted is not validated yet.
# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_ModifySpotFleetRequest.html
_BUSY = frozenset({"modifying", "submitted"})
_GOING = frozenset({"cancelled_running", "cancelled_terminating"})
_GONE = frozenset({"cancelled", "failed"})

# EC2 keeps a request's events for so long.
# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSpotFleetRequestHistory.html
_HISTORY = timedelta(hours=48)
_PAGE = 1000

# What says only that EC2 pauses after several attempts, of which each was reported on its own.
_PAUSES = frozenset({"allLaunchSpecsTemporarilyBlacklisted", "launchSpecTemporarilyBlacklisted"})
_FAILURES = frozenset({"launchSpecUnusable", "fleetProgressHalted"}) | _PAUSES


class SpotFleets(NamedOwners):
    """The Spot Fleet requests that the settings name, if they carry the cluster's tag."""

    traits = SPOT_FLEET

    def __init__(self, client: "EC2Client", named: Named) -> None:
        """Know the requests.

        Args:
            client: The client of EC2.
            named: What the settings say of the requests.
        """
        super().__init__(named)
        self._client = client
        self._fleets = {name: owner.id for name, owner in named.owners.items()}

    def read(self, node_group: str | None = None) -> Reading:
        """Read the requests that are not gone, or that of one node group, and the nodes of each."""
        fleets = {name: fleet for name, fleet in self._fleets.items() if node_group in (None, name)}
        requests = self._describe(list(fleets.values()))
        groups: list[OwnedGroup] = []
        unread: dict[str, Exception] = {}
        for name, fleet in sorted(fleets.items()):
            raw = requests.get(fleet)
            if raw is None:
                continue
            try:
                groups.append(self._group(name, raw, self._read_nodes(fleet)))
            except AWS_ERRORS as error:
                unread[name] = error
        return Reading(groups=groups, unread=unread)

    def read_activities(self, group: OwnedGroup, since: datetime | None) -> tuple[Activity, ...]:
        """Read why nodes were not launched, and which were, since a time."""
        since = max(self._now - _HISTORY, since or self._now - _HISTORY)
        activities = [activity for raw in self._read_history(group.name, since) for activity in _activities(raw)]
        telling = [activity for activity in activities if not activity.message.startswith(tuple(_PAUSES))]
        if any(activity.failed for activity in telling):
            activities = telling
        return tuple(sorted(activities, key=lambda activity: activity.started, reverse=True))

    def set_size(self, group: OwnedGroup, size: int) -> None:
        """Set a request's target, and whether nodes beyond it stay, also where it shows that target."""
        self._set_size(group, size)

    def _set_size(self, group: OwnedGroup, size: int) -> None:
        keeps = size > 0 and group.should_keep_excess(size) is not False
        try:
            self._client.modify_spot_fleet_request(
                SpotFleetRequestId=group.name,
                TargetCapacity=size,
                ExcessCapacityTerminationPolicy="noTermination" if keeps else "default",
            )
        except AWS_ERRORS as error:
            if error_code(error) == "FleetNotInModifiableState":
                raise OwnerBusyError from error
            raise

    def replace(self, group: OwnedGroup, instance_id: str) -> None:  # noqa: ARG002 (EC2 knows it)
        """Terminate one node; a request that is maintained launches another.

        https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/work-with-spot-fleets.html
        """
        terminate(self._client, [instance_id])

    def tag(self, group: OwnedGroup, tags: Mapping[str, str]) -> None:
        """Write tags on a request."""
        self._client.create_tags(
            Resources=[group.name], Tags=[{"Key": key, "Value": value} for key, value in tags.items()]
        )

    def untag(self, group: OwnedGroup, keys: Iterable[str]) -> None:
        """Take tags away from a request."""
        self._client.delete_tags(Resources=[group.name], Tags=[{"Key": key} for key in keys])

    def _read_group(self, name: str, owner: OwnerSettings) -> OwnedGroup | None:
        raw = self._describe([owner.id]).get(owner.id)
        return self._group(name, raw, self._read_nodes(owner.id)) if raw else None

    def _describe(self, ids: list[str]) -> dict[str, "SpotFleetRequestConfigTypeDef"]:
        """Return the requests that exist and are the cluster's, by id."""
        pages = self._client.get_paginator("describe_spot_fleet_requests").paginate(SpotFleetRequestIds=ids)
        try:
            found = [raw for page in pages for raw in page["SpotFleetRequestConfigs"]]
        except AWS_ERRORS as error:
            # One id that does not exist fails the whole call.
            if error_code(error) != "InvalidSpotFleetRequestId.NotFound":
                raise
            if len(ids) == 1:
                return {}
            return {key: raw for one in ids for key, raw in self._describe([one]).items()}
        return {
            raw["SpotFleetRequestId"]: raw
            for raw in found
            if _tags(raw).get(self._tag) == self._cluster and raw["SpotFleetRequestState"] not in _GONE
        }

    def _read_nodes(self, fleet: str) -> list["ActiveInstanceTypeDef"]:
        pages = self._client.get_paginator("describe_spot_fleet_instances").paginate(SpotFleetRequestId=fleet)
        return [node for page in pages for node in page["ActiveInstances"]]

    def _read_history(self, fleet: str, since: datetime) -> Iterator["HistoryRecordTypeDef"]:
        answer = self._client.describe_spot_fleet_request_history(
            SpotFleetRequestId=fleet, StartTime=since, MaxResults=_PAGE
        )
        yield from answer.get("HistoryRecords", [])
        while answer.get("NextToken"):
            answer = self._client.describe_spot_fleet_request_history(
                SpotFleetRequestId=fleet, StartTime=since, MaxResults=_PAGE, NextToken=answer["NextToken"]
            )
            yield from answer.get("HistoryRecords", [])

    def _group(
        self, name: str, raw: "SpotFleetRequestConfigTypeDef", nodes: Collection["ActiveInstanceTypeDef"]
    ) -> OwnedGroup:
        config, state = raw["SpotFleetRequestConfig"], raw["SpotFleetRequestState"]
        policy = config.get("ExcessCapacityTerminationPolicy")
        unhealthy = tuple("unhealthy" for node in nodes if node.get("InstanceHealth") == "unhealthy")
        return OwnedGroup(
            name=raw["SpotFleetRequestId"],
            node_group=name,
            owner=SPOT_FLEET,
            desired=config["TargetCapacity"],
            minimum=0,
            # A request has no largest size: the cluster's file has.
            maximum=self._counts.get(name, config["TargetCapacity"]),
            in_service=len(nodes) - len(unhealthy),
            out_of_service=unhealthy,
            instance_types=tuple(sorted({node.get("InstanceType", "") for node in nodes} - {""})),
            keeps_excess=None if policy is None else policy == "noTermination",
            # With any change of the request CloudFormation sends what the template says: the target 0, and that no
            # node is terminated for it. Where nodes are terminated with the target, an operator has set it.
            reset_to=None if policy == "default" else 0,
            busy=state in _BUSY,
            deleting=state in _GOING,
            nodes={
                node.get("InstanceId", ""): OwnedNode(
                    state=node.get("InstanceHealth", ""), unhealthy=node.get("InstanceHealth") == "unhealthy"
                )
                for node in nodes
            },
            tags=_tags(raw),
        )


def _tags(raw: "SpotFleetRequestConfigTypeDef") -> dict[str, str]:
    return {tag["Key"]: tag.get("Value", "") for tag in raw.get("Tags", [])}


def _activities(raw: "HistoryRecordTypeDef") -> Iterator[Activity]:
    """Yield a launch, or an attempt at one; a request's history holds much else."""
    event = raw.get("EventInformation", {})
    kind, subtype = raw["EventType"], event.get("EventSubType", "")
    failed = kind == "error" or (kind == "information" and subtype in _FAILURES)
    if not failed and (kind, subtype) != ("instanceChange", "launched"):
        return
    yield Activity(
        launch=True,
        started=raw["Timestamp"],
        failed=failed,
        finished=True,
        message=" ".join(f"{subtype}: {event.get('EventDescription', '')}".split()),
    )
