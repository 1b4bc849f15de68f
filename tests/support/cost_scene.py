"""The function that sends a cluster's weekly report, with fakes of Cost Explorer and SNS."""

import os
from datetime import UTC, date, datetime, timedelta
from typing import Any

from aws_lambda_powertools import Logger

from cluster_common.clients import Clients
from cluster_contract.costs import CostFunctionSettings
from cluster_costs.costs import CostRun
from fake_dynamodb import TABLE, FakeDynamoDb
from fake_service import ACCOUNT, REGION, FakeService
from policy_evaluator import Call
from recorded_costs import group, result

# The construct sets it; the function's metric is nowhere without it.
os.environ.setdefault("POWERTOOLS_METRICS_NAMESPACE", "CdkTrainingCluster/Functions")

CLUSTER = "pod"
TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:alerts"
TUESDAY = datetime(2026, 11, 24, 5, tzinfo=UTC)
_EC2 = "Amazon Elastic Compute Cloud - Compute"


class FakeExplorer(FakeService):
    """Cost Explorer: the same nodes each day, twice as many on one, and a file system; from a day on."""

    def __init__(self) -> None:
        super().__init__("ce")
        self.first = date.min
        self.is_endless = False

    def get_cost_and_usage(self, **request: Any) -> dict[str, Any]:
        """Answer one page."""
        self.record("GetCostAndUsage", request, context={"aws:RequestedRegion": "us-east-1"})
        start, end = (date.fromisoformat(request["TimePeriod"][each]) for each in ("Start", "End"))
        days = [start + timedelta(days=each) for each in range((end - start).days)]
        more = {"NextPageToken": "more"} if self.is_endless else {}
        return {"ResultsByTime": [result(day, *self._groups(day)) for day in days], **more}

    def _groups(self, day: date) -> list[dict[str, Any]]:
        if day < self.first:
            return []
        nodes = 2000 if day == date(2026, 11, 19) else 1000
        unused = [group(_EC2, "UnusedBox:p5.48xlarge", "55.04")] if day == date(2026, 11, 20) else []
        return [group(_EC2, "BoxUsage:p5.48xlarge", nodes), group("Amazon FSx", "Storage", "33.1"), *unused]


class FakeTopic(FakeService):
    """SNS: it keeps what is published."""

    def __init__(self) -> None:
        super().__init__("sns")

    def publish(self, **request: Any) -> dict[str, Any]:
        """Take a message."""
        self.record("Publish", request, arn=request["TopicArn"])
        return {"MessageId": "m"}


class CostScene:
    """The function with its table, its topic and Cost Explorer."""

    def __init__(self, cluster: str = CLUSTER) -> None:
        self._cluster = cluster
        self.explorer, self.topic, self.dynamodb = FakeExplorer(), FakeTopic(), FakeDynamoDb()

    def run(self, now: datetime) -> dict[str, object]:
        """Run the function."""
        settings = CostFunctionSettings(cluster=self._cluster, topic_arn=TOPIC, state_table=TABLE, region=REGION)
        made: Any = Clients
        aws = made(cost_explorer=lambda: self.explorer, dynamodb=lambda: self.dynamodb, sns=lambda: self.topic)
        return CostRun(settings, aws, Logger(service="test"), now=now).run()

    @property
    def reports(self) -> list[tuple[str, str]]:
        """What was sent: subjects and messages."""
        return [(request["Subject"], request["Message"]) for _, request in self.topic.requests]

    @property
    def calls(self) -> list[Call]:
        """Every call to AWS so far."""
        return [*self.explorer.calls, *self.topic.calls, *self.dynamodb.calls]
