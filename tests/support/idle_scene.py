"""A cluster in memory for the idle function: nodes, a clock, a power function, and the messages that were sent."""

import json
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any, cast

import pytest
from aws_lambda_powertools import Logger

from cluster_common.actions import Action
from cluster_common.clients import Clients
from cluster_contract.idle import IdleFunctionSettings, Policy
from cluster_contract.owners import OwnerSettings
from cluster_idle.idle import Idle
from fake_auto_scaling import FakeAutoScaling
from fake_cloudwatch import FakeCloudWatch
from fake_dynamodb import TABLE, FakeDynamoDb
from fake_instances import CLUSTER_TAG, FakeInstances, FakeNode
from fake_service import ACCOUNT, REGION, STACK, FakePaginator, FakeService
from idle_function_settings import Group, idle_settings
from policy_evaluator import Call
from power_scene import FakeSns

os.environ.setdefault("POWERTOOLS_METRICS_NAMESPACE", "CdkTrainingCluster/Functions")

CLUSTER = "base-pod"
TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:alerts"
POWER = "base-pod-power"
# Some minutes into a period, as ticks come.
START = datetime(2026, 11, 2, 8, 2, tzinfo=UTC)
PERIOD = timedelta(minutes=5)
NODE_GROUP_TAG = "cdk-training-cluster:node-group"
PART = "idle#base-pod"


class FakeLambda(FakeService):
    """The client of Lambda, behind which a power function does what it is ordered.

    Attributes:
        orders: What it was ordered.
        refusal: With what it fails. None: it does not.
        blocked: Why it stops nothing, and does not fail. None: it stops what its caller names.
        shows_late: Whether it has stopped it all the same, and cannot see that yet.
        keeps: The ids of nodes that it cannot terminate: it fails, and the others go.
    """

    def __init__(self, scene: "IdleScene") -> None:
        super().__init__("lambda")
        self._scene = scene
        self.orders: list[dict[str, Any]] = []
        self.refusal: str | None = None
        self.blocked: str | None = None
        self.shows_late = False
        self.keeps: set[str] = set()

    def invoke(self, **parameters: Any) -> dict[str, Any]:
        """Answer Invoke: take the nodes of what is stopped away."""
        arn = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{POWER}:{parameters['Qualifier']}"
        self.record("Invoke", parameters, names=[POWER], arn=arn)
        # IAM calls the permission otherwise than the operation.
        self.calls[-1] = Call(action="lambda:InvokeFunction", resource=arn)
        assert parameters["FunctionName"] == POWER
        order = json.loads(parameters["Payload"])
        self.orders.append(order)
        if self.refusal is not None:
            return _failure(self.refusal)
        if self.blocked is not None:
            told = {"desired": 4, "reason": self.blocked}
            return _answer({"node_groups": [told if self.shows_late else {**told, "taken_back": True}]})
        if order["action"] == "terminate":
            order = {**order, "instance_ids": [one for one in order["instance_ids"] if one not in self.keeps]}
        self._scene.obey(order)
        if self.keeps:
            return _failure("a node is left alone, because its state is Standby")
        return _answer({"node_groups": [{"desired": 0, "terminated": order.get("instance_ids", [])}]})


def _answer(told: dict[str, Any]) -> dict[str, Any]:
    return {"StatusCode": 200, "Payload": BytesIO(json.dumps(told).encode())}


def _failure(message: str) -> dict[str, Any]:
    told = _answer({"errorMessage": message, "errorType": "PartialFailureError"})
    return {**told, "FunctionError": "Unhandled"}


class FakeSessions(FakeService):
    """The client of Systems Manager, as far as sessions and the progress of data sets go.

    Attributes:
        targets: The nodes with a session.
        progress: What the SSM parameter says of the data sets. None: the cluster preloads none.
    """

    def __init__(self) -> None:
        super().__init__("ssm")
        self.targets: list[str] = []
        self.progress: str | None = None

    def get_parameter(self, **parameters: Any) -> dict[str, Any]:
        """Answer GetParameter."""
        name = f"/training-cluster/{CLUSTER}/hydration"
        assert parameters["Name"] == name
        self.record("GetParameter", parameters, arn=f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter{name}")
        return {"Parameter": {"Value": self.progress}}

    def get_paginator(self, operation: str) -> FakePaginator:
        """Return the paginator of DescribeSessions."""
        assert operation == "describe_sessions"
        return FakePaginator(self._describe)

    def _describe(self, **parameters: Any) -> Any:
        self.record("DescribeSessions", parameters)
        yield {"Sessions": [{"Target": target} for target in self.targets]}


@dataclass
class IdleScene:
    """A cluster in memory, and the function that looks for idle nodes.

    Attributes:
        policy: The cluster's policy.
        groups: What the cluster's file says of its node groups.
    """

    policy: Policy = field(default_factory=Policy)
    groups: dict[str, Group] = field(default_factory=dict)
    now: datetime = START
    topic: str | None = TOPIC
    prices: dict[str, float] = field(default_factory=dict)
    max_stops: int = 100

    def __post_init__(self) -> None:
        """Make the services."""
        self.ec2 = FakeInstances()
        self.cloudwatch = FakeCloudWatch(self.ec2)
        self.auto_scaling = FakeAutoScaling()
        self.dynamodb = FakeDynamoDb()
        self.lambda_ = FakeLambda(self)
        self.sns = FakeSns()
        self.ssm = FakeSessions()
        self.pauses: list[float] = []
        self._ids = 0

    def add(self, load: float | None = 0.0, *, age: timedelta = timedelta(days=1), **settings: Any) -> FakeNode:
        """Launch an instance that nothing owns, which has had a load since it came up.

        Args:
            load: Percent of utilization. None: it reports nothing.
            age: How long ago it was launched.
            **settings: More of the node; `tags` come on top of the cluster's.
        """
        self._ids += 1
        tags = {CLUSTER_TAG: CLUSTER, **settings.pop("tags", {})}
        node = FakeNode(
            id=settings.pop("id", f"i-{self._ids:017x}"), launched=self.now - age, tags=tags, load=load, **settings
        )
        self.ec2.nodes[node.id] = node
        since = max(node.launched, self.now - timedelta(hours=3))
        moment = _floor(since) + PERIOD
        while moment <= self.now and load is not None:
            node.points[moment] = load
            moment += PERIOD
        return node

    def add_group(
        self, name: str = "workers", count: int = 4, load: float | None = 0.0, **settings: Any
    ) -> list[FakeNode]:
        """Deploy a node group that an Auto Scaling group owns, and launch its nodes."""
        policy = settings.pop("policy", self.policy)
        self.groups[name] = Group(policy=policy, release=settings.pop("release", False))
        group = f"{name}-asg"
        self.auto_scaling.add(group, cluster=CLUSTER, node_group=name, desired=count)
        self.auto_scaling.members[group] = []
        return [self.join(name, load, **settings) for _ in range(count)]

    def join(self, name: str, load: float | None = 0.0, **settings: Any) -> FakeNode:
        """Launch one more node of a node group that an Auto Scaling group owns."""
        group = f"{name}-asg"
        tags = {NODE_GROUP_TAG: name, "aws:autoscaling:groupName": group, **settings.pop("tags", {})}
        node = self.add(load, tags=tags, **settings)
        self.auto_scaling.members[group].append(node.id)
        return node

    def add_fleet(
        self, name: str = "extras", count: int = 2, load: float | None = 0.0, **settings: Any
    ) -> list[FakeNode]:
        """Deploy a node group that a Spot Fleet owns, and launch its nodes."""
        request = f"sfr-{name}"
        self.groups[name] = Group(policy=settings.pop("policy", self.policy), owner=OwnerSettings.spot_fleet(request))
        self.ec2.add_fleet(request, cluster=CLUSTER, node_group=name, target=count)
        tags = {NODE_GROUP_TAG: name, "aws:ec2spot:fleet-request-id": request}
        spot = {"InstanceLifecycle": "spot", "SpotInstanceRequestId": "sir-fleet"}
        return [self.add(load, tags=dict(tags), raw=dict(spot), **settings) for _ in range(count)]

    @property
    def settings(self) -> IdleFunctionSettings:
        """The settings that the deployment gives the function."""
        return idle_settings(
            cluster=CLUSTER,
            policy=self.policy,
            groups=self.groups,
            region=REGION,
            prices=self.prices,
            max_stops=self.max_stops,
            gpus={"p9.48xlarge": 8},
            topic_arn=self.topic or "",
            state_table=TABLE,
            stack_id=STACK,
            power_function=POWER if self.groups else "",
            preloads=self.ssm.progress is not None,
        )

    def run(self, action: Action = Action.TICK) -> dict[str, dict[str, Any]]:
        """Invoke the function, and return what it says of each node."""
        clients = cast("Any", Clients)(
            ec2=lambda: self.ec2,
            cloudwatch=lambda: self.cloudwatch,
            auto_scaling=lambda: self.auto_scaling,
            dynamodb=lambda: self.dynamodb,
            lambda_=lambda: self.lambda_,
            sns=lambda: self.sns,
            ssm=lambda: self.ssm,
            pause=self.pauses.append,
        )
        function = Idle(self.settings, clients, Logger(service="test"), clock=lambda: self.now)
        summary: Any = function.run(action)
        assert json.loads(json.dumps(summary)) == summary
        self.summary = summary
        return {node["instance_id"]: node for node in summary["nodes"]}

    def tick(self, minutes: int = 5) -> dict[str, dict[str, Any]]:
        """Let some minutes pass, then invoke the function."""
        self.pass_time(timedelta(minutes=minutes))
        return self.run()

    def ticks(self, minutes: int) -> dict[str, dict[str, Any]]:
        """Let time pass with a tick every five minutes; return what the last one says."""
        for _ in range(minutes // 5):
            found = self.tick()
        return found

    def pass_time(self, time: timedelta) -> None:
        """Let time pass in which nodes work, or do not, and report."""
        end = self.now + time
        moment = _floor(self.now) + PERIOD
        while moment <= end:
            for node in self.ec2.nodes.values():
                if node.state == "running" and node.load is not None:
                    node.points[moment] = node.load
            moment += PERIOD
        self.now = end
        for node in self.ec2.nodes.values():
            node.state = {"stopping": "stopped", "shutting-down": "terminated"}.get(node.state, node.state)

    def obey(self, order: dict[str, Any]) -> None:
        """Do what the power function does with an order."""
        (name,) = order["node_groups"]
        chosen = order.get("instance_ids")
        for node in self.ec2.nodes.values():
            is_owned = any(tag.startswith("aws:") for tag in node.tags)
            if node.tags.get(NODE_GROUP_TAG) == name and is_owned and (chosen is None or node.id in chosen):
                node.state = "shutting-down"
                for ids in self.auto_scaling.members.values():
                    if node.id in ids:
                        ids.remove(node.id)
        if order["action"] == "stop":
            for group in self.auto_scaling.groups.values():
                if group.tags[NODE_GROUP_TAG] == name:
                    group.desired = 0
            for fleet in self.ec2.fleets.values():
                if fleet.tags[NODE_GROUP_TAG] == name:
                    fleet.target = 0

    @property
    def warnings(self) -> dict[str, dict[str, Any]]:
        """The warnings in the state table, by the names of what is stopped together."""
        return {
            name: self.dynamodb.values(part, name)
            for part, name in sorted(self.dynamodb.items)
            if part == PART and "stop_at" in self.dynamodb.items[part, name]
        }

    @property
    def calls(self) -> list[Call]:
        """Every call to AWS so far."""
        services = (
            self.ec2,
            self.cloudwatch,
            self.auto_scaling,
            self.dynamodb,
            self.lambda_,
            self.sns,
            self.ssm,
        )
        return [call for service in services for call in service.calls]

    @property
    def stopped(self) -> set[str]:
        """The ids of the instances that run no more."""
        return {node.id for node in self.ec2.nodes.values() if node.state not in ("running", "pending")}

    def subjects(self) -> list[str]:
        """The subjects of the messages so far."""
        return [message["Subject"] for message in self.sns.messages]

    def texts(self) -> list[str]:
        """The texts of the messages so far."""
        return [message["Message"] for message in self.sns.messages]


def verdicts(found: dict[str, dict[str, Any]]) -> list[str]:
    """Return the verdicts in the order of the nodes."""
    return [node["verdict"] for _, node in sorted(found.items())]


def last_metrics(capsys: pytest.CaptureFixture[str]) -> dict[str, float]:
    """Return the metrics that were written, each as it was written last."""
    found: dict[str, float] = {}
    for line in capsys.readouterr().out.splitlines():
        record = json.loads(line)
        for directive in record.get("_aws", {}).get("CloudWatchMetrics", []):
            found |= {metric["Name"]: record[metric["Name"]][0] for metric in directive["Metrics"]}
    return found


def _floor(moment: datetime) -> datetime:
    return datetime.fromtimestamp(moment.timestamp() // 300 * 300, tz=UTC)
