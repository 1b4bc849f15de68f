"""Spot Fleet requests in memory: they launch, terminate, are modified and remember what happened."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from fake_service import ACCOUNT, REGION, FakeService, refusal

NO_SPOT_CAPACITY = "p4de.24xlarge, ami-1, Linux/UNIX: There is no Spot capacity available that matches your request."
PAUSED = (
    "Several attempts to launch instances have failed. Either the request could not be satisfied or the "
    "configuration is not valid. We will retry the request again later."
)
_PAGE = 2


@dataclass
class FakeFleet:
    """One Spot Fleet request of type maintain.

    Attributes:
        policy: Whether nodes beyond the target stay. Empty: the request does not say.
        capacity: How many nodes EC2 has for it; for more it reports `failure`.
        unhealthy: How many of its nodes EC2 calls unhealthy.
    """

    id: str
    tags: dict[str, str]
    target: int = 0
    policy: str = "noTermination"
    state: str = "active"
    created: datetime = datetime(2026, 11, 2, 8, tzinfo=UTC)
    alive: int = 0
    unhealthy: int = 0
    capacity: int = 1000
    failure: str = NO_SPOT_CAPACITY
    modification: tuple[int, str] | None = None
    history: list[dict[str, Any]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What the function knows it by."""
        return self.id

    @property
    def desired(self) -> int:
        """The target that it has, or is about to have."""
        return self.modification[0] if self.modification else self.target

    @desired.setter
    def desired(self, target: int) -> None:
        """Do what an operator does in the console."""
        self.target, self.modification = target, None

    @property
    def arn(self) -> str:
        """The ARN."""
        return f"arn:aws:ec2:{REGION}:{ACCOUNT}:spot-fleet-request/{self.id}"

    def deploy(self) -> None:
        """Do what CloudFormation does with any change of the request: send what the template says."""
        self.target, self.policy, self.modification = 0, "noTermination", None

    def settle(self, now: datetime) -> None:
        """Do what EC2 does in a minute: take over a modification, terminate, launch, and fail to launch."""
        if self.state in ("modifying", "submitted"):
            self.state = "active"
        if self.modification is not None:
            (self.target, self.policy), self.modification = self.modification, None
        if self.state != "active":
            return
        if self.alive > self.target and self.policy == "default":
            self._record(now, "instanceChange", "terminated", "i-0")
            self.alive = self.target
        launched = min(self.target, self.capacity) - self.alive
        if launched > 0:
            self._record(now, "instanceChange", "launched", "i-1")
            self.alive += launched
        if self.alive < self.target:
            self._record(now, "error", "spotFleetRequestConfigurationInvalid", self.failure)
            self._record(now, "error", "allLaunchSpecsTemporarilyBlacklisted", PAUSED)

    def _record(self, now: datetime, kind: str, subtype: str, description: str) -> None:
        event = {"EventSubType": subtype, "EventDescription": description}
        self.history.append({"EventType": kind, "Timestamp": now, "EventInformation": event})

    def describe(self) -> dict[str, Any]:
        """Return the request as DescribeSpotFleetRequests does."""
        return {
            "SpotFleetRequestId": self.id,
            "SpotFleetRequestState": self.state,
            "CreateTime": self.created,
            "SpotFleetRequestConfig": {
                "Type": "maintain",
                "TargetCapacity": self.target,
                "IamFleetRole": f"arn:aws:iam::{ACCOUNT}:role/fleet",
                **({"ExcessCapacityTerminationPolicy": self.policy} if self.policy else {}),
            },
            "Tags": [{"Key": key, "Value": value} for key, value in sorted(self.tags.items())],
        }


class FakeSpotFleets(FakeService):
    """The part of EC2's client that deals with Spot Fleets."""

    def __init__(self, service: str = "ec2") -> None:
        super().__init__(service)
        self.fleets: dict[str, FakeFleet] = {}

    def add_fleet(self, id: str, *, cluster: str, node_group: str, **settings: Any) -> FakeFleet:
        """Make a request that carries a cluster's tags."""
        tags = {"cdk-training-cluster:cluster": cluster, "cdk-training-cluster:node-group": node_group}
        self.fleets[id] = FakeFleet(id=id, tags=tags | settings.pop("tags", {}), **settings)
        return self.fleets[id]

    def describe_fleets(self, **parameters: Any) -> Iterator[dict[str, Any]]:
        """Answer DescribeSpotFleetRequests, page by page."""
        ids = parameters.get("SpotFleetRequestIds", list(self.fleets))
        self.record("DescribeSpotFleetRequests", parameters, names=ids)
        for unknown in [one for one in ids if one not in self.fleets]:
            raise refusal(
                "DescribeSpotFleetRequests", "InvalidSpotFleetRequestId.NotFound", f"{unknown} does not exist"
            )
        found = [self.fleets[one].describe() for one in ids]
        for start in range(0, max(1, len(found)), _PAGE):
            yield {"SpotFleetRequestConfigs": found[start : start + _PAGE]}

    def describe_nodes(self, **parameters: Any) -> Iterator[dict[str, Any]]:
        """Answer DescribeSpotFleetInstances, page by page."""
        fleet = self._fleet("DescribeSpotFleetInstances", parameters)
        nodes = [
            {
                "InstanceId": f"i-{number}",
                "InstanceType": "p4de.24xlarge",
                "InstanceHealth": "unhealthy" if number < fleet.unhealthy else "healthy",
            }
            for number in range(fleet.alive)
        ]
        for start in range(0, max(1, len(nodes)), _PAGE):
            yield {"ActiveInstances": nodes[start : start + _PAGE]}

    def describe_spot_fleet_request_history(self, **parameters: Any) -> dict[str, Any]:
        """Answer DescribeSpotFleetRequestHistory, one page at a time."""
        fleet = self._fleet("DescribeSpotFleetRequestHistory", parameters)
        records = [record for record in fleet.history if record["Timestamp"] >= parameters["StartTime"]]
        start = int(parameters.get("NextToken", 0))
        more = {"NextToken": str(start + _PAGE)} if start + _PAGE < len(records) else {}
        return {"HistoryRecords": records[start : start + _PAGE], **more}

    def modify_spot_fleet_request(self, **parameters: Any) -> dict[str, Any]:
        """Answer ModifySpotFleetRequest; until EC2 is done, the request shows its old target."""
        fleet = self._fleet("ModifySpotFleetRequest", parameters, writes=True)
        if fleet.state != "active":
            raise refusal("ModifySpotFleetRequest", "FleetNotInModifiableState", "not a modifiable fleet request")
        fleet.state = "modifying"
        fleet.modification = (parameters["TargetCapacity"], parameters["ExcessCapacityTerminationPolicy"])
        return {"Return": True}

    def create_tags(self, **parameters: Any) -> dict[str, Any]:
        """Answer CreateTags."""
        [fleet_id] = parameters["Resources"]
        fleet, tags = self.fleets[fleet_id], parameters["Tags"]
        keys = [tag["Key"] for tag in tags]
        self.record("CreateTags", parameters, names=[fleet.id], arn=fleet.arn, tags=fleet.tags, tag_keys=keys)
        for tag in tags:
            assert len(tag["Value"]) <= 256
            fleet.tags[tag["Key"]] = tag["Value"]
        return {}

    def _fleet(self, operation: str, parameters: dict[str, Any], *, writes: bool = False) -> FakeFleet:
        fleet_id = parameters["SpotFleetRequestId"]
        fleet = self.fleets.get(fleet_id)
        seen = {"arn": fleet.arn, "tags": fleet.tags} if fleet and writes else {}
        self.record(operation, parameters, names=[fleet_id], **seen)  # type: ignore[arg-type]  # two kinds of values
        if fleet is None:
            raise refusal(operation, "InvalidSpotFleetRequestId.NotFound", f"{fleet_id} does not exist")
        return fleet
