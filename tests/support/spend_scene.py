"""A cluster in memory whose dollars are counted: instances, reservations, Spot prices, a clock and a table."""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from aws_lambda_powertools import Logger

from cluster_contract.spend import SpendFunctionSettings, SpendGroupSettings
from cluster_spend.spend import Action, SpendClients, SpendRun
from fake_dynamodb import TABLE, FakeDynamoDb
from fake_instances import CLUSTER_TAG, FakeInstances, FakeNode
from fake_reservations import FakeReservations
from fake_service import ACCOUNT, REGION, FakePaginator
from policy_evaluator import Call

# The construct sets it; the function's metrics are nowhere without it.
os.environ.setdefault("POWERTOOLS_METRICS_NAMESPACE", "CdkTrainingCluster/Functions")

CLUSTER = "base-pod"
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
    now: datetime = START

    @property
    def settings(self) -> SpendFunctionSettings:
        """What the deploy tells the function."""
        told = {"cluster": CLUSTER, "monthly_usd": 1e6, "groups": self.groups, "region": REGION, "state_table": TABLE}
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
        return self.run("tick")

    def run(self, action: str = "status") -> dict[str, Any]:
        """Run the function and return its summary."""
        clients = cast("Any", SpendClients)(ec2=lambda: self.ec2, dynamodb=lambda: self.dynamodb)
        run = SpendRun(self.settings, clients, Logger(service="test"), account=ACCOUNT, now=self.now)
        summary = run.run(Action(action))
        assert json.loads(json.dumps(summary)) == summary
        return summary

    def month(self, name: str = "2026-11") -> Mapping[str, Any]:
        """Return the item of a month."""
        return self.dynamodb.values(PART, name)

    def spent(self, name: str = "2026-11") -> float:
        """Return what was spent in a month, in USD."""
        return float(sum(self.month(name)["spent"].values()) / 1e6)

    @property
    def calls(self) -> list[Call]:
        """Every call to AWS so far."""
        return [*self.ec2.calls, *self.dynamodb.calls]
