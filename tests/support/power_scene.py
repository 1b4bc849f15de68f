"""A cluster in memory that the power function works on: groups, a clock, and what people were told."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from aws_lambda_powertools import Logger
from botocore.exceptions import ClientError

from cluster_common.clients import Clients
from cluster_common.power_records import GroupState, Record, State
from cluster_contract.aliases import Alias
from cluster_contract.owners import OwnerKind, OwnerSettings
from cluster_contract.power import PowerFunctionSettings, PowerGroupSettings
from cluster_contract.schedule import ScheduleSettings
from cluster_power.callers import Caller
from cluster_power.commands import parse_command
from cluster_power.power import Power
from fake_auto_scaling import STACK_ID_TAG, FakeAutoScaling, FakeGroup
from fake_dynamodb import TABLE, FakeDynamoDb
from fake_ec2 import FakeEc2
from fake_pcs import FakeComputeNodeGroup
from fake_reservations import FakeReservation
from fake_service import STACK
from fake_spot_fleets import FakeFleet
from policy_evaluator import Call

if TYPE_CHECKING:
    from mypy_boto3_autoscaling.client import AutoScalingClient
    from mypy_boto3_dynamodb.client import DynamoDBClient
    from mypy_boto3_ec2.client import EC2Client
    from mypy_boto3_sns.client import SNSClient

# The construct sets it; the function's metrics are nowhere without it.
os.environ.setdefault("POWERTOOLS_METRICS_NAMESPACE", "CdkTrainingCluster/Functions")

CLUSTER = "base-pod"
PART = f"power#{CLUSTER}"
TOPIC = "arn:aws:sns:us-east-1:111122223333:alerts"
START = datetime(2026, 11, 2, 8, 0, tzinfo=UTC)


_AUTO_SCALING = frozenset(
    {
        *("DescribeAutoScalingGroups", "DescribeScalingActivities", "SetDesiredCapacity", "CreateOrUpdateTags"),
        *("ResumeProcesses", "TerminateInstanceInAutoScalingGroup"),
    }
)


_PCS = frozenset({"GetComputeNodeGroup", "UpdateComputeNodeGroup", "ListTagsForResource", "TagResource"})


class FakeSns:
    """The client of SNS: it keeps what is published.

    Attributes:
        fails: With which code each topic refuses messages, but for those in `takes`.
        takes: The topics that take messages all the same.
    """

    def __init__(self) -> None:
        self.messages: list[dict[str, str]] = []
        self.calls: list[Call] = []
        self.fails: bool | str = False
        self.takes: set[str] = set()
        self.confirmed: str | None = "1"

    def get_topic_attributes(self, **parameters: str) -> dict[str, dict[str, str]]:
        """Answer GetTopicAttributes; None: the topic does not let itself be read."""
        self.calls.append(Call(action="sns:GetTopicAttributes", resource=parameters["TopicArn"]))
        if self.confirmed is None:
            raise ClientError({"Error": {"Code": "AuthorizationError", "Message": "no"}}, "GetTopicAttributes")
        return {"Attributes": {"SubscriptionsConfirmed": self.confirmed}}

    def publish(self, **message: str) -> dict[str, str]:
        """Answer Publish."""
        self.calls.append(Call(action="sns:Publish", resource=message["TopicArn"]))
        if self.fails and message["TopicArn"] not in self.takes:
            raise ClientError(
                {"Error": {"Code": "InternalError" if self.fails is True else self.fails, "Message": "no"}}, "Publish"
            )
        assert len(message["Subject"]) < 100
        assert message["Subject"].isascii()
        self.messages.append(message)
        return {"MessageId": "1"}


def caller_of(event: object) -> Caller:
    """Return who may order what an event asks for: the schedule, or an operator."""
    ticks = isinstance(event, dict) and event.get("action", "tick") == "tick"
    return Caller(alias=None if ticks else Alias.OPERATE, request_id="1111")


def plain(**counts: int) -> dict[str, PowerGroupSettings]:
    """Return the settings of groups of which only the counts are told."""
    return {name: PowerGroupSettings(count=count) for name, count in counts.items()}


@dataclass
class Scene:
    """A cluster in memory, and the function that owns its sizes.

    Attributes:
        counts: How many nodes the cluster's file gives each node group.
        details: What else it says of some of them.
        schedules: The schedules that these name by their places.
    """

    counts: dict[str, int] = field(default_factory=lambda: {"workers": 8})
    details: dict[str, dict[str, Any]] = field(default_factory=dict)
    schedules: tuple[ScheduleSettings, ...] = ()
    auto_scaling: FakeAutoScaling = field(default_factory=FakeAutoScaling)
    ec2: FakeEc2 = field(default_factory=FakeEc2)
    sns: FakeSns = field(default_factory=FakeSns)
    dynamodb: FakeDynamoDb = field(default_factory=FakeDynamoDb)
    stack: str = STACK
    now: datetime = START
    topic: str | None = TOPIC
    pauses: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def recorded(self, node_group: str = "workers") -> GroupState:
        """Return what the function has recorded of a node group."""
        return GroupState.from_values(self.dynamodb.values(PART, node_group))

    def record(self, owner: FakeGroup | FakeFleet | FakeComputeNodeGroup) -> Record:
        """Return what the function has recorded of one owner of a node group's nodes."""
        return self.recorded(owner.tags["cdk-training-cluster:node-group"]).record(owner.name)

    def change_record(self, owner: FakeGroup | FakeFleet | FakeComputeNodeGroup, **values: Any) -> None:
        """Change what is recorded of an owner, as another run does; None takes it away."""
        node_group = owner.tags["cdk-training-cluster:node-group"]
        item = self.dynamodb.values(PART, node_group)
        own = {**item["owners"].get(owner.name, {}), **values}
        owners = {**item["owners"], owner.name: {key: value for key, value in own.items() if value is not None}}
        self.dynamodb.change(PART, node_group, owners=owners, version=item["version"] + 1)

    def stopped(self) -> list[str]:
        """Return the node groups that are recorded as stopped."""
        names = [name for part, name in sorted(self.dynamodb.items) if part == PART]
        orders = {name: self.recorded(name).order for name in names}
        return [name for name, order in orders.items() if order and order.state is State.STOPPED]

    def add(self, node_group: str = "workers", **settings: Any) -> FakeGroup:
        """Deploy a node group: an empty group that takes as many nodes as its count."""
        settings = {"maximum": self.counts.get(node_group, 8), "stack": self.stack, **settings}
        return self.auto_scaling.add(
            settings.pop("name", f"{node_group}-asg"), cluster=CLUSTER, node_group=node_group, **settings
        )

    def move_to(self, stack: str) -> None:
        """Let CloudFormation move the cluster to another stack, with its groups."""
        self.stack = stack
        for group in self.auto_scaling.groups.values():
            group.tags[STACK_ID_TAG] = stack

    def add_fleet(self, node_group: str = "extras", **settings: Any) -> FakeFleet:
        """Deploy a node group that a Spot Fleet owns."""
        self.counts.setdefault(node_group, 4)
        fleet = settings.pop("id", f"sfr-{node_group}")
        self.details[node_group] = {"owner": OwnerSettings.spot_fleet(fleet)}
        settings.setdefault("created", self.now)
        return self.ec2.add_fleet(fleet, cluster=CLUSTER, node_group=node_group, **settings)

    def add_compute_node_group(
        self, node_group: str = "slurm", *, scheduler_sized: bool = True, **settings: Any
    ) -> FakeComputeNodeGroup:
        """Deploy a node group that AWS PCS owns."""
        count = self.counts.setdefault(node_group, 4)
        group = self.ec2.pcs.add(
            node_group,
            **{
                "cluster": CLUSTER,
                "node_group": node_group,
                "count": count,
                "scheduler_sized": scheduler_sized,
                **settings,
            },
        )
        kind = OwnerKind.PCS_COMPUTE_NODE_GROUP
        self.details[node_group] = {"owner": OwnerSettings(kind=kind, id=group.name, scheduler_sized=scheduler_sized)}
        return group

    def add_block(
        self,
        group: FakeGroup,
        *,
        starts: timedelta = timedelta(0),
        lasts: timedelta = timedelta(hours=24),
        ends_early: timedelta = timedelta(minutes=30),
        id: str | None = None,
        **settings: Any,
    ) -> FakeReservation:
        """Buy a Capacity Block for a node group, that starts some time from now."""
        node_group = group.tags["cdk-training-cluster:node-group"]
        block = id or f"cr-{node_group}"
        self.details[node_group] = {"block": block, "block_ends_early": ends_early}
        settings.setdefault("bought", self.counts[node_group])
        return self.ec2.add_reservation(
            block,
            **{
                "starts": self.now + starts,
                "ends": self.now + starts + lasts,
                "ends_early": ends_early,
                "state": "scheduled" if starts > timedelta(0) else "active",
                "group": group,
                "is_block": True,
                **settings,
            },
        )

    def deploy_pod(
        self, starts: timedelta = timedelta(minutes=5), **settings: Any
    ) -> tuple[FakeGroup, FakeReservation]:
        """Deploy the node group `pod`, and the Capacity Block of 24 hours that it runs in."""
        group = self.add("pod")
        return group, self.add_block(group, starts=starts, **settings)

    def add_reservation(self, group: FakeGroup, *, release: bool = True, **settings: Any) -> FakeReservation:
        """Deploy a reservation for a node group, released while the group is stopped unless told otherwise."""
        node_group = group.tags["cdk-training-cluster:node-group"]
        reservation = f"cr-{node_group}"
        self.details[node_group] = {"released" if release else "reservation": reservation}
        settings.setdefault("bought", self.counts[node_group])
        return self.ec2.add_reservation(reservation, **{"group": group, "tags": dict(group.tags), **settings})

    @property
    def settings(self) -> PowerFunctionSettings:
        """What the deploy tells the function."""
        groups = {
            name: PowerGroupSettings(count=count, **self.details.get(name, {})) for name, count in self.counts.items()
        }
        return PowerFunctionSettings(
            cluster=CLUSTER,
            groups=groups,
            launch_grace=timedelta(minutes=10),
            schedules=self.schedules,
            topic_arn=self.topic or "",
            state_table=TABLE,
            stack_id=self.stack,
            region="us-east-1",
            function="base-pod-power",
        )

    def order(self, action: str = "tick", **event: Any) -> dict[str, Any]:
        """Invoke the function and return the node groups of its summary, by name; `by` names who does it."""
        settings = self.settings
        clients = Clients(
            auto_scaling=lambda: cast("AutoScalingClient", self.auto_scaling),
            auto_scaling_once=lambda: cast("AutoScalingClient", self.auto_scaling),
            dynamodb=lambda: cast("DynamoDBClient", self.dynamodb),
            ec2=lambda: cast("EC2Client", self.ec2),
            pcs=lambda: self.ec2.pcs,
            sns=lambda: cast("SNSClient", self.sns),
            pause=self.pauses.append,
        )
        power = Power(settings, clients, Logger(service="test"), self.now)
        by = event.pop("by", None)
        order = parse_command({"action": action, **event}, settings, caller_of({"action": action}))
        summary: Any = power.apply(replace(order, by=by) if by else order)
        assert json.loads(json.dumps(summary)) == summary
        self.failures = summary.get("failures", [])
        return {group["node_group"]: group for group in summary["node_groups"]}

    def minute(self, number: int = 1) -> dict[str, Any]:
        """Let minutes pass: AWS does its work, then the function ticks. Return the last summary."""
        for _ in range(number):
            self.pass_time(timedelta(minutes=1))
            summary = self.order()
        return summary

    def tick_at(self, moment: datetime) -> dict[str, Any]:
        """Let time pass in which no command reaches the function, until it ticks; then let nodes come or go."""
        self.pass_time(moment - self.now)
        self.order()
        return self.minute(2)

    def pass_time(self, time: timedelta) -> None:
        """Let time pass in which AWS does its work and the function does not run."""
        self.now += time
        for reservation in self.ec2.reservations.values():
            reservation.settle(self.now)
        for group in self.auto_scaling.groups.values():
            group.settle(self.now)
        for fleet in self.ec2.fleets.values():
            fleet.settle(self.now)
        for group_of_pcs in self.ec2.pcs.groups.values():
            group_of_pcs.settle()

    def fail_next(self, operation: str, code: str, *, owner: str | None = None, after: int = 0) -> None:
        """Answer the next call of an operation, or the next one for an owner or its node group, with an error."""
        if operation in ("GetItem", "PutItem", "Query"):
            name = owner and owner.removesuffix("-asg").removeprefix("sfr-")
            self.dynamodb.fail_next(operation, code, group=name, after=after)
        elif operation in _PCS:
            self.ec2.pcs.fail_next(operation, code, group=owner, after=after)
        elif operation in _AUTO_SCALING:
            self.auto_scaling.fail_next(operation, code, group=owner, after=after)
        else:
            self.ec2.fail_next(operation, code, group=owner, after=after)

    def watch(self, on_call: Callable[[str], object]) -> None:
        """Call something with every operation of every service but SNS, in order, before it is answered."""
        for service in (self.auto_scaling, self.ec2, self.ec2.pcs, self.dynamodb):
            service.on_call = on_call

    def writes(self) -> list[str]:
        """Return a list in which the operations appear that change something from now on, in order."""
        found: list[str] = []
        self.watch(lambda one: None if one.startswith(("Describe", "Get", "Query")) else found.append(one))
        return found

    @property
    def calls(self) -> list[Call]:
        """Every call to AWS so far."""
        return [*self.auto_scaling.calls, *self.ec2.calls, *self.ec2.pcs.calls, *self.sns.calls, *self.dynamodb.calls]

    def subjects(self) -> list[str]:
        """The subjects of the messages so far."""
        return [message["Subject"] for message in self.sns.messages]
