"""Requests of CloudFormation's for reservations, and EC2 and CloudFormation in memory beside the function."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from aws_lambda_powertools import Logger

from cluster_common.clients import Clients
from cluster_reservations.api import ReservationApi
from cluster_reservations.keeper import Keeper
from cluster_reservations.refusals import RefusedError
from cluster_reservations.requests import Request
from fake_service import ACCOUNT, REGION, FakePaginator, FakeService, refusal
from policy_evaluator import Call

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
STACK = f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/pod-cluster/1a2b3c4d-0000-4000-8000-000000000000"
GENERATED = "pod-cluster-ClusterNodeGroupsworkersReservation-1AB2CD3EF4GH"
RESOURCE = "ClusterNodeGroupsworkersReservation1A2B3C4D"
CLUSTER, GROUP = "pod", "workers"
PLACE = f"arn:aws:ec2:{REGION}:{ACCOUNT}:placement-group/pod-cluster-workersPlace-0AB2CD3EF4GH"
OWN_TAGS = [
    {"Key": "cdk-training-cluster:cluster", "Value": CLUSTER},
    {"Key": "cdk-training-cluster:node-group", "Value": GROUP},
]
END = "2026-12-24T18:00:00Z"
TIMEOUT = 900
_ARN = f"arn:aws:ec2:{REGION}:{ACCOUNT}:capacity-reservation"
LOGGER = Logger(service="reservations", level="CRITICAL")


def properties(**changes: str | None) -> dict[str, Any]:
    """Return the properties of a reservation as CloudFormation sends them; None takes one away."""
    settings: dict[str, Any] = {
        "ServiceToken": "arn:aws:lambda:us-east-1:111122223333:function:reservations",
        "ServiceTimeout": "3600",
        "InstanceType": "p5.48xlarge",
        "InstanceCount": "8",
        "InstancePlatform": "Linux/UNIX",
        "AvailabilityZone": "us-east-1b",
        "InstanceMatchCriteria": "targeted",
        "Tenancy": "default",
        "EndDateType": "unlimited",
        "PlacementGroupArn": PLACE,
        "OnIdle": "keep",
        "TagSpecifications": [{"ResourceType": "capacity-reservation", "Tags": OWN_TAGS}],
        **changes,
    }
    return {name: value for name, value in settings.items() if value is not None}


def tagged(*, team: str | None = None, project: str | None = None, **changes: str | None) -> dict[str, Any]:
    """Return the properties of a reservation with tags of the user's."""
    tags = [{"Key": key, "Value": value} for key, value in (("team", team), ("project", project)) if value]
    specification = [{"ResourceType": "capacity-reservation", "Tags": [*OWN_TAGS, *tags]}]
    return {**properties(**changes), "TagSpecifications": specification}


@dataclass
class Made:
    """A reservation of EC2's."""

    id: str
    request: dict[str, Any]
    count: int
    tags: dict[str, str]
    ends: datetime | None = None
    state: str = "active"
    used: int = 0
    hidden: int = 0
    polls: int = 0

    @property
    def arn(self) -> str:
        """The ARN."""
        return f"{_ARN}/{self.id}"

    def describe(self) -> dict[str, Any]:
        """Return it as EC2 describes it."""
        raw = {
            "CapacityReservationId": self.id,
            "State": self.state,
            "TotalInstanceCount": self.count,
            "AvailableInstanceCount": self.count - self.used,
            "ReservationType": "default",
            **{name: self.request[name] for name in ("PlacementGroupArn",) if name in self.request},
            "Tags": [{"Key": key, "Value": value} for key, value in self.tags.items()],
        }
        return raw if self.ends is None else {**raw, "EndDate": self.ends}


class FakeReservationApi(FakeService):
    """The part of EC2's client that the function calls.

    Attributes:
        state: The state that new reservations have.
        settles: What a pending one becomes after three looks.
        hides: For how many requests that list or name a new one EC2 does not find it.
    """

    def __init__(self) -> None:
        super().__init__("ec2")
        self.made: dict[str, Made] = {}
        self.state, self.settles, self.hides = "active", "active", 0
        self._tokens: dict[str, str] = {}

    @property
    def billed(self) -> list[str]:
        """The reservations that cost money."""
        return [one.id for one in self.made.values() if one.state in {"active", "pending"}]

    def get_paginator(self, name: str) -> FakePaginator:
        """Return the one paginator."""
        assert name == "describe_capacity_reservations"
        return FakePaginator(self._described)

    def create_capacity_reservation(self, **parameters: Any) -> dict[str, Any]:
        """Answer CreateCapacityReservation."""
        tags = {tag["Key"]: tag["Value"] for tag in parameters["TagSpecifications"][0]["Tags"]}
        asked: dict[str, str | list[str]] = {f"aws:RequestTag/{key}": value for key, value in tags.items()}
        arn = f"{_ARN}/*"
        self.record("CreateCapacityReservation", parameters, arn=arn, context=asked)
        # EC2 may look at the placement group as well.
        self.calls.append(Call(action="ec2:CreateCapacityReservation", resource=parameters["PlacementGroupArn"]))
        self.calls.append(
            Call(
                action="ec2:CreateTags",
                resource=arn,
                context={**asked, "ec2:CreateAction": "CreateCapacityReservation", "aws:TagKeys": list(tags)},
            )
        )
        token = parameters["ClientToken"]
        if token not in self._tokens:
            named = f"cr-{len(self.made) + 1:017x}"
            self._tokens[token] = named
            self.made[named] = Made(
                named,
                parameters,
                parameters["InstanceCount"],
                tags,
                parameters.get("EndDate"),
                self.state,
                hidden=self.hides,
            )
        one = self.made[self._tokens[token]]
        if one.request != parameters:
            raise refusal("CreateCapacityReservation", "IdempotentParameterMismatch", "another request")
        return {"CapacityReservation": one.describe()}

    def modify_capacity_reservation(self, **parameters: Any) -> dict[str, Any]:
        """Answer ModifyCapacityReservation."""
        one = self._written("ModifyCapacityReservation", parameters)
        if one.state != "active":
            raise refusal("ModifyCapacityReservation", "IncorrectState", f"it is {one.state}")
        count = parameters.get("InstanceCount", one.count)
        if count < one.used:
            raise refusal("ModifyCapacityReservation", "InvalidParameterValue", f"{one.used} instances run in it")
        one.count = count
        if "EndDateType" in parameters:
            one.ends = parameters.get("EndDate")
        return {"Return": True}

    def cancel_capacity_reservation(self, **parameters: Any) -> dict[str, Any]:
        """Answer CancelCapacityReservation."""
        one = self._written("CancelCapacityReservation", parameters)
        if one.state != "active":
            raise refusal("CancelCapacityReservation", "IncorrectState", f"it is {one.state}")
        one.state = "cancelled"
        return {"Return": True}

    def create_tags(self, **parameters: Any) -> None:
        """Answer CreateTags."""
        tags = {tag["Key"]: tag["Value"] for tag in parameters["Tags"]}
        for named in parameters["Resources"]:
            one = self.made[named]
            self.record("CreateTags", parameters, names=[named], arn=one.arn, tags=one.tags, tag_keys=list(tags))
            self._found(one.id, "CreateTags")
            one.tags |= tags

    def delete_tags(self, **parameters: Any) -> None:
        """Answer DeleteTags."""
        keys = [tag["Key"] for tag in parameters["Tags"]]
        for named in parameters["Resources"]:
            one = self.made[named]
            self.record("DeleteTags", parameters, names=[named], arn=one.arn, tags=one.tags, tag_keys=keys)
            self._found(one.id, "DeleteTags")
            one.tags = {key: value for key, value in one.tags.items() if key not in keys}

    def _written(self, operation: str, parameters: dict[str, Any]) -> Made:
        named = parameters["CapacityReservationId"]
        one = self.made.get(named)
        tags = {"cdk-training-cluster:stack": "pod-cluster"} if one is None else one.tags
        self.record(operation, parameters, names=[named], arn=f"{_ARN}/{named}", tags=tags)
        return self._found(named, operation)

    def _found(self, named: str, operation: str) -> Made:
        one = self.made.get(named)
        if one is None or one.hidden > 0:
            if one is not None:
                one.hidden -= 1
            raise refusal(operation, "InvalidCapacityReservationId.NotFound", named)
        return one

    def _described(self, **parameters: Any) -> Iterator[dict[str, Any]]:
        ids = parameters.get("CapacityReservationIds", [])
        self.record("DescribeCapacityReservations", parameters, names=ids)
        for named in ids:
            self._found(named, "DescribeCapacityReservations")
        states = [state for one in parameters.get("Filters", []) for state in one["Values"]]
        for one in [self.made[named] for named in ids] or list(self.made.values()):
            one.polls += 1
            if one.state == "pending" and one.polls > 3:
                one.state = self.settles
            if not ids and one.hidden > 0:
                one.hidden -= 1
            elif ids or one.state in states:
                yield {"CapacityReservations": [one.describe()]}


class FakeStack(FakeService):
    """CloudFormation's client, as far as it describes the one resource.

    Attributes:
        status: The resource's status. Empty: it has left the template.
        physical_id: What CloudFormation calls it. Empty: it has no name for it yet.
        stack_status: The stack's status, where it is another one than the resource's.
    """

    def __init__(self) -> None:
        super().__init__("cloudformation")
        self.status, self.physical_id, self.stack_status = "CREATE_IN_PROGRESS", "", ""

    def describe_stacks(self, **parameters: Any) -> dict[str, Any]:
        """Answer DescribeStacks."""
        self.record("DescribeStacks", parameters, arn=STACK)
        return {"Stacks": [{"StackId": STACK, "StackStatus": self.stack_status or self.status}]}

    def describe_stack_resource(self, **parameters: Any) -> dict[str, Any]:
        """Answer DescribeStackResource."""
        self.record("DescribeStackResource", parameters, arn=STACK)
        if not self.status:
            raise refusal("DescribeStackResource", "ValidationError", f"Resource {RESOURCE} does not exist for stack")
        detail = {"LogicalResourceId": RESOURCE, "ResourceStatus": self.status}
        return {
            "StackResourceDetail": detail | ({"PhysicalResourceId": self.physical_id} if self.physical_id else {})
        }


@dataclass
class ReservationScene:
    """One custom resource, and what CloudFormation asks for it in turn."""

    ec2: FakeReservationApi = field(default_factory=FakeReservationApi)
    stack: FakeStack = field(default_factory=FakeStack)
    now: datetime = NOW
    waited: float = 0
    refused: str = ""
    _asked: int = 0

    def event(self, kind: str, physical_id: str = "", **more: Any) -> dict[str, Any]:
        """Return a new request of CloudFormation's."""
        self._asked += 1
        named = {} if kind == "Create" else {"PhysicalResourceId": physical_id}
        return {
            "RequestType": kind,
            "RequestId": f"request-{self._asked}",
            "ResponseURL": "http://127.0.0.1:9/answer",
            "StackId": STACK,
            "LogicalResourceId": RESOURCE,
            "ResourceProperties": properties(),
            **named,
            **more,
        }

    def create(self, wanted: Mapping[str, Any] | None = None) -> str:
        """Create the resource, and have CloudFormation take the answer."""
        self.stack.status, self.stack.physical_id = "CREATE_IN_PROGRESS", ""
        named = self.carry_out(self.event("Create", ResourceProperties=wanted or properties()))
        self.stack.status, self.stack.physical_id = "CREATE_COMPLETE", named
        return named

    def update(self, wanted: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> str:
        """Update the resource, and have CloudFormation take the answer."""
        self.stack.status = "UPDATE_IN_PROGRESS"
        event = self.event(
            "Update",
            self.stack.physical_id,
            ResourceProperties=wanted,
            OldResourceProperties=before or properties(),
        )
        self.stack.physical_id = self.carry_out(event)
        self.stack.status = "UPDATE_COMPLETE"
        return self.stack.physical_id

    def roll_back(self, wanted: Mapping[str, Any], before: Mapping[str, Any]) -> str:
        """Update the resource to what it was, because a deployment failed."""
        self.stack.stack_status = "UPDATE_ROLLBACK_IN_PROGRESS"
        named = self.update(wanted, before)
        self.stack.stack_status = ""
        return named

    def delete(self, physical_id: str | None = None) -> str:
        """Delete what the resource is, or was before an update."""
        if physical_id is None:
            self.stack.status = "DELETE_IN_PROGRESS"
        return self.carry_out(self.event("Delete", self.stack.physical_id if physical_id is None else physical_id))

    def carry_out(self, event: Mapping[str, Any]) -> str:
        """Carry one request out, and return the answer's name of the resource.

        One that is refused has its name in `refused`.
        """
        clients = Clients(ec2=lambda: self.ec2, cloudformation=lambda: self.stack, pause=self._pause)  # type: ignore[arg-type, return-value]
        request, ends = Request.of(event), self.waited + TIMEOUT
        api = ReservationApi(request, clients, LOGGER, remaining=lambda: ends - self.waited)
        keeper = Keeper(request, api, LOGGER, clock=lambda: self.now)
        try:
            return keeper.carry_out()
        except RefusedError:
            self.refused = keeper.named
            raise

    def _pause(self, seconds: float) -> None:
        self.waited += seconds


def lost(scene: ReservationScene, kind: str, physical_id: str = "", **more: Any) -> str:
    """Carry a request out whose answer is lost, and return what was made."""
    scene.stack.status = f"{kind.upper()}_IN_PROGRESS"
    return scene.carry_out(scene.event(kind, physical_id, **more))
