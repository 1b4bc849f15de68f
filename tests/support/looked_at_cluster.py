"""A cluster with a budget on the local AWS, and the commands that people look at it with."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import boto3

from cdk_training_cluster import Budget
from cdk_training_cluster_stacks.looking.deployed import Deployed as Described
from cdk_training_cluster_stacks.target import Target
from cluster_plans import ClusterPlan
from deployed_cluster import Deployed, prepare
from local_aws import LocalAws

TYPE = "g5.xlarge"


class LookedAt(Deployed):
    """A cluster of two node groups with a budget."""

    def __init__(self, aws: LocalAws, directory: Path, name: str) -> None:
        super().__init__(aws, directory, name)
        self.name = name
        prepare(aws, [TYPE])
        groups = tuple(
            {"name": group, "instance_types": [TYPE], "count": count, "call": "on_demand"}
            for group, count in (("workers", 2), ("eval", 1))
        )
        self.deploy(ClusterPlan(groups=groups, existing_network=True, budget=Budget(monthly_usd=1000)))

    def asked(self, now: datetime) -> Described:
        """Return the cluster as commands ask about it."""
        target = Target(name=self.name, region=self.aws.region, file=None, session=boto3.Session())
        return Described(target=target, description=target.description, now=now)

    def invoke(self, kind: str, now: datetime, **event: Any) -> Any:
        """Invoke one of its functions as an operator does."""
        return self.asked(now).ask(kind, event)

    def tick(self, kind: str) -> None:
        """Invoke one of its functions as its schedule does."""
        function = self.asked(datetime.now().astimezone()).description.functions[kind].invoke
        name = function.removesuffix(":operate")
        self.aws.client("lambda").invoke(FunctionName=name, Payload=json.dumps({}).encode())
