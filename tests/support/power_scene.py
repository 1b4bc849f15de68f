"""A cluster in memory that the power function works on: groups, a clock, and what people were told."""

import json
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from aws_lambda_powertools import Logger
from botocore.exceptions import ClientError

from cluster_power.orders import parse_order
from cluster_power.power import Clients, Power
from cluster_power.settings import Settings
from fake_auto_scaling import FakeAutoScaling, FakeGroup
from policy_evaluator import Call

if TYPE_CHECKING:
    from mypy_boto3_autoscaling.client import AutoScalingClient
    from mypy_boto3_sns.client import SNSClient

# The construct sets it; the function's metrics are nowhere without it.
os.environ.setdefault("POWERTOOLS_METRICS_NAMESPACE", "CdkTrainingCluster")

CLUSTER = "base-pod"
TOPIC = "arn:aws:sns:us-east-1:111122223333:alerts"
START = datetime(2026, 11, 2, 8, 0, tzinfo=UTC)


class FakeSns:
    """The client of SNS: it keeps what is published."""

    def __init__(self) -> None:
        self.messages: list[dict[str, str]] = []
        self.calls: list[Call] = []
        self.fails = False

    def publish(self, **message: str) -> dict[str, str]:
        """Answer Publish."""
        self.calls.append(Call(action="sns:Publish", resource=message["TopicArn"]))
        if self.fails:
            raise ClientError({"Error": {"Code": "InternalError", "Message": "no"}}, "Publish")
        assert len(message["Subject"]) < 100
        assert message["Subject"].isascii()
        self.messages.append(message)
        return {"MessageId": "1"}


@dataclass
class Scene:
    """A cluster in memory, and the function that owns its sizes."""

    counts: dict[str, int] = field(default_factory=lambda: {"workers": 8})
    auto_scaling: FakeAutoScaling = field(default_factory=FakeAutoScaling)
    sns: FakeSns = field(default_factory=FakeSns)
    now: datetime = START
    topic: str | None = TOPIC

    def add(self, node_group: str = "workers", **settings: Any) -> FakeGroup:
        """Deploy a node group: an empty group that takes as many nodes as its count."""
        settings.setdefault("maximum", self.counts.get(node_group, 8))
        return self.auto_scaling.add(
            settings.pop("name", f"{node_group}-asg"), cluster=CLUSTER, node_group=node_group, **settings
        )

    @property
    def settings(self) -> Settings:
        """What the deploy tells the function."""
        return Settings(
            cluster=CLUSTER,
            counts=dict(self.counts),
            launch_grace=timedelta(minutes=10),
            topic_arn=self.topic,
        )

    def order(self, action: str = "tick", **event: Any) -> dict[str, Any]:
        """Invoke the function and return the node groups of its summary, by name."""
        settings = self.settings
        clients = Clients(
            auto_scaling=cast("AutoScalingClient", self.auto_scaling),
            sns=lambda: cast("SNSClient", self.sns),
        )
        power = Power(settings, clients, Logger(service="test"), self.now)
        summary: Any = power.carry_out(parse_order({"action": action, **event}, settings))
        assert json.loads(json.dumps(summary)) == summary
        return {group["node_group"]: group for group in summary["node_groups"]}

    def minute(self, number: int = 1) -> dict[str, Any]:
        """Let minutes pass: Auto Scaling does its work, then the function ticks. Return the last summary."""
        for _ in range(number):
            self.now += timedelta(minutes=1)
            for group in self.auto_scaling.groups.values():
                group.settle(self.now)
            summary = self.order()
        return summary

    def subjects(self) -> list[str]:
        """The subjects of the messages so far."""
        return [message["Subject"] for message in self.sns.messages]
