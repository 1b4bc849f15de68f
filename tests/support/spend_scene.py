"""A cluster in memory whose dollars are counted: instances, reservations, Spot prices, a clock and a table."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any, cast

from aws_lambda_powertools import Logger

from cluster_common.actions import Action
from cluster_common.clients import Clients
from cluster_contract.aliases import Alias
from cluster_contract.spend import SpendFunctionSettings, SpendGroupSettings
from cluster_power.callers import Caller
from cluster_power.commands import parse_command
from cluster_spend.spend import SpendRun
from fake_auto_scaling import FakeGroup
from fake_dynamodb import TABLE, FakeDynamoDb
from fake_instances import CLUSTER_TAG, FakeInstances, FakeNode
from fake_reservations import FakeReservations
from fake_service import ACCOUNT, REGION, STACK, FakePaginator, FakeService
from policy_evaluator import Call
from power_scene import FakeSns, Scene

# The construct sets it; the function's metrics are nowhere without it.
os.environ.setdefault("POWERTOOLS_METRICS_NAMESPACE", "CdkTrainingCluster/Functions")

CLUSTER = "base-pod"
POWER = "power-function"
TOPIC = "arn:aws:sns:us-east-1:111122223333:alerts"
PART = f"spend#{CLUSTER}"
START = datetime(2026, 11, 10, 8, 0, tzinfo=UTC)
P5, G5 = 55.04, 1.006
"""USD an hour of a p5.48xlarge and a g5.xlarge in us-east-1, as the committed list has them."""


class FakeSpendEc2(FakeInstances, FakeReservations):
    """The client of EC2, as far as the spend function talks to it.

    Attributes:
        spot_prices: USD an hour by type and zone.
    """

    page_size = 200

    def __init__(self) -> None:
        super().__init__()
        self.spot_prices: dict[tuple[str, str], str] = {}

    def get_paginator(self, operation: str) -> FakePaginator:
        """Return the paginator of a Describe operation."""
        pages = {
            "describe_capacity_reservations": self.describe_reservations,
            "describe_spot_price_history": self._describe_spot_prices,
        }
        return FakePaginator(pages[operation]) if operation in pages else super().get_paginator(operation)

    def _describe_spot_prices(self, **parameters: Any) -> Iterator[dict[str, Any]]:
        self.record("DescribeSpotPriceHistory", parameters)
        (zones,) = parameters["Filters"]
        moment = parameters["StartTime"]
        assert parameters["EndTime"] == moment
        for (name, zone), usd in self.spot_prices.items():
            if name in parameters["InstanceTypes"] and zone in zones["Values"]:
                entry = {"InstanceType": name, "AvailabilityZone": zone, "ProductDescription": "Linux/UNIX"}
                yield {"SpotPriceHistory": [{**entry, "SpotPrice": usd, "Timestamp": moment - timedelta(hours=3)}]}


class FakePriceList(FakeService):
    """The client of the Price List.

    Attributes:
        usd: The prices of instance types of EC2, of usage types of other services, and of file systems by their
            throughput, such as `Lustre 250`, in us-east-1; of one there may be several.
        elsewhere: Those of another region, which an answer holds too.
    """

    def __init__(self) -> None:
        super().__init__("pricing")
        self.usd: dict[str, tuple[str, ...]] = {}
        self.elsewhere: dict[str, tuple[str, ...]] = {}

    def get_products(self, **parameters: Any) -> dict[str, Any]:
        """Answer GetProducts."""
        wanted = {each["Field"]: each["Value"] for each in parameters["Filters"]}
        usage = wanted.get("usagetype", "")
        name = usage or wanted.get("instanceType") or f"{wanted['fileSystemType']} {wanted['throughputCapacity']}"
        self.record("GetProducts", parameters, names=[name])
        assert wanted["regionCode"] == REGION
        named = {"usagetype": f"USE1-{usage}"} if usage else {}
        found = [
            *(_product(usd, **named) for usd in self.usd.get(name, ())),
            *(_product(usd, **named, regionCode="us-west-2") for usd in self.elsewhere.get(name, ())),
        ]
        if usage:
            # What contains the text may be something else: SageMaker sells reserved nodes too.
            return {"PriceList": [*found, _product("99", usagetype=f"USE1-Reserved{usage}")]}
        if "instanceType" in wanted:
            assert (parameters["ServiceCode"], wanted["operatingSystem"], wanted["tenancy"]) == (
                "AmazonEC2",
                "Linux",
                "Shared",
            )
        return {"PriceList": found}


def _product(usd: str, **more: str) -> str:
    dimensions = {"rate": {"beginRange": "0", "pricePerUnit": {"USD": usd}}}
    attributes = {"regionCode": REGION, "locationType": "AWS Region", "marketoption": "OnDemand", **more}
    terms = {"OnDemand": {"offer": {"priceDimensions": dimensions}}}
    told = {"product": {"attributes": attributes}, "terms": terms, "publicationDate": "2026-11-09T00:00:00Z"}
    return json.dumps(told)


class FakeLambda(FakeService):
    """The client of Lambda, behind which the real power function works on groups in memory.

    Attributes:
        power: The power function and its groups.
        orders: What it was ordered.
    """

    def __init__(self) -> None:
        super().__init__("lambda")
        self.power = Scene(counts={})
        self.orders: list[dict[str, Any]] = []

    def invoke(self, **parameters: Any) -> dict[str, Any]:
        """Answer Invoke."""
        arn = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{POWER}:{parameters['Qualifier']}"
        self.record("Invoke", parameters, names=[POWER], arn=arn)
        # IAM calls the permission otherwise than the operation.
        self.calls[-1] = Call(action="lambda:InvokeFunction", resource=arn)
        event = json.loads(parameters["Payload"])
        caller = Caller(alias=Alias(parameters["Qualifier"]), request_id="1")
        command = parse_command(event, self.power.settings, caller)
        self.orders.append({key: value for key, value in event.items() if key != "reason"})
        told = {"node_groups": list(self.power.order(**{**event, "by": command.by}).values())}
        told["failures"] = self.power.failures
        return {"StatusCode": 200, "Payload": BytesIO(json.dumps(told).encode())}


@dataclass
class SpendScene:
    """A cluster in memory, and the function that counts its dollars.

    Attributes:
        groups: Its node groups.
        details: What else the settings say.
    """

    groups: dict[str, SpendGroupSettings] = field(default_factory=lambda: {"workers": SpendGroupSettings()})
    details: dict[str, Any] = field(default_factory=dict)
    ec2: FakeSpendEc2 = field(default_factory=FakeSpendEc2)
    dynamodb: FakeDynamoDb = field(default_factory=FakeDynamoDb)
    lambda_: FakeLambda = field(default_factory=FakeLambda)
    sns: FakeSns = field(default_factory=FakeSns)
    pricing: FakePriceList = field(default_factory=FakePriceList)
    owner_reads: list[Call] = field(default_factory=list)
    now: datetime = START

    @property
    def settings(self) -> SpendFunctionSettings:
        """What the deploy tells the function."""
        told = {"cluster": CLUSTER, "monthly_usd": 1e6, "groups": self.groups, "region": REGION, "state_table": TABLE}
        told |= {"topic_arn": TOPIC, "power_function": POWER, "stack_id": STACK}
        return SpendFunctionSettings(**{**told, **self.details})

    def add(
        self, count: int = 1, *, node_group: str = "workers", age: timedelta = timedelta(0), **raw: Any
    ) -> list[FakeNode]:
        """Launch nodes of a group, some time ago."""
        made = []
        for _ in range(count):
            tags = {CLUSTER_TAG: CLUSTER, "cdk-training-cluster:node-group": node_group}
            node = FakeNode(id=f"i-{len(self.ec2.nodes):017x}", launched=self.now - age, tags=tags)
            node.instance_type = raw.pop("instance_type", node.instance_type)
            node.raw = {"Placement": {"AvailabilityZone": "us-east-1b"}, **raw}
            self.ec2.nodes[node.id] = node
            made.append(node)
        return made

    @property
    def power(self) -> Scene:
        """The power function and its groups."""
        return self.lambda_.power

    def deploy(self, count: int = 1, *, node_group: str = "workers", **settings: Any) -> FakeGroup:
        """Deploy a node group with the nodes that the power function gave it."""
        self.power.counts[node_group] = count
        self.power.now = self.now
        group = self.power.add(node_group)
        self.power.minute(3)
        self.add(count, node_group=node_group, **settings)
        return group

    def add_spot(self, usd: str | None = "12.5", **settings: Any) -> list[FakeNode]:
        """Launch a Spot Instance, at a price of its zone."""
        if usd is not None:
            self.ec2.spot_prices["p5.48xlarge", "us-east-1b"] = usd
        return self.add(InstanceLifecycle="spot", **settings)

    def end(self, node: FakeNode, state: str = "terminated", *, told: bool = True) -> None:
        """Let a node end now; EC2 tells the time, or does not."""
        node.state = state
        node.raw["StateTransitionReason"] = (
            f"User initiated ({self.now:%Y-%m-%d %H:%M:%S} GMT)" if told else "Server.SpotInstanceTermination"
        )

    def tick(self, minutes: float = 5) -> dict[str, Any]:
        """Let time pass, run the function and return its summary."""
        self.now += timedelta(minutes=minutes)
        self.power.now = self.now
        for group in self.power.auto_scaling.groups.values():
            group.settle(self.now)
            self._end_nodes(group.tags["cdk-training-cluster:node-group"], group.desired)
        return self.run("tick")

    def _end_nodes(self, node_group: str, desired: int) -> None:
        """Let nodes go that their group has no more."""
        of_group = [
            one for one in self.ec2.nodes.values() if one.tags["cdk-training-cluster:node-group"] == node_group
        ]
        for node in [one for one in of_group if one.state == "running"][desired:]:
            self.end(node)

    def run(self, action: str = "status") -> dict[str, Any]:
        """Run the function and return its summary."""
        clients = cast("Any", Clients)(
            ec2=lambda: self.ec2,
            dynamodb=lambda: self.dynamodb,
            pricing=lambda: self.pricing,
            auto_scaling=self._auto_scaling,
            lambda_=lambda: self.lambda_,
            sns=lambda: self.sns,
            pause=lambda _: None,
        )
        run = SpendRun(self.settings, clients, Logger(service="test"), account=ACCOUNT, now=self.now)
        summary = run.run(Action(action))
        assert json.loads(json.dumps(summary)) == summary
        return summary

    def _auto_scaling(self) -> Any:
        """Return the client of EC2 Auto Scaling that the function reads with; the power function has the same."""
        self.owner_reads.append(Call(action="autoscaling:DescribeAutoScalingGroups", resource="*"))
        return self.power.auto_scaling

    def month(self, name: str = "2026-11") -> Mapping[str, Any]:
        """Return the item of a month."""
        return self.dynamodb.values(PART, name)

    def spent(self, name: str = "2026-11") -> float:
        """Return what was spent in a month, in USD."""
        return float(sum(self.month(name)["spent"].values()) / 1e6)

    @property
    def calls(self) -> list[Call]:
        """Every call to AWS so far."""
        return [
            *self.ec2.calls,
            *self.dynamodb.calls,
            *self.pricing.calls,
            *self.lambda_.calls,
            *self.sns.calls,
            *self.owner_reads,
        ]

    def watch(self, on_call: Callable[[str], object]) -> None:
        """Call something with every operation of the function's clients, before it is answered."""
        for service in (self.ec2, self.dynamodb, self.lambda_):
            service.on_call = on_call

    @property
    def ordered(self) -> list[dict[str, Any]]:
        """What the power function was ordered, beside status."""
        return [one for one in self.lambda_.orders if one["action"] != "status"]

    @property
    def subjects(self) -> list[str]:
        """The subjects of the messages so far."""
        return [message["Subject"] for message in self.sns.messages]
