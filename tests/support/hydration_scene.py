"""The hydration function with its table, a file system, nodes and time that passes by minutes."""

import os
from datetime import UTC, datetime, timedelta
from typing import Any

from aws_lambda_powertools import Logger
from botocore.exceptions import ClientError

from cluster_common.actions import Action
from cluster_common.clients import Clients
from cluster_common.errors import PartialFailureError
from cluster_contract.hydration import (
    DatasetProgress,
    HydratedDataset,
    HydrationFunctionSettings,
    HydrationStep,
    parse_progress,
)
from cluster_hydration.hydration import HydrationRun
from cost_scene import TOPIC, FakeTopic
from fake_dynamodb import TABLE, FakeDynamoDb
from fake_lustre import FILE_SYSTEM, FakeLustre
from fake_run_command import CLUSTER, DOCUMENT, GROUP, FakeNodes, Files
from fake_service import REGION
from policy_evaluator import Call

# The construct sets it; the function's metrics are nowhere without it.
os.environ.setdefault("POWERTOOLS_METRICS_NAMESPACE", "CdkTrainingCluster/Functions")

START = datetime(2026, 11, 22, 20, tzinfo=UTC)
DATA = "/fsx/data"


class HydrationScene:
    """The function and all that it talks to: one data set of 100 files, linked and imported, and two nodes."""

    def __init__(self, files: int = 100, nodes: int = 2, *datasets: HydratedDataset, link: bool = True) -> None:
        self.now, self.file_system = START, FILE_SYSTEM
        self.datasets = list(datasets) or [HydratedDataset(path="/data", preload=True)]
        self.dynamodb, self.topic = FakeDynamoDb(), FakeTopic()
        self.lustre, self.nodes = FakeLustre(START), FakeNodes(START)
        self.errors: list[str] = []
        for one in self.datasets:
            self.nodes.files[f"/fsx{one.path}"] = Files(count=files, released=set(range(files)))
            if link:
                self.lustre.add_link(one.path)
        self.nodes.add_nodes(nodes)

    def run(self, action: Action = Action.TICK) -> dict[str, Any]:
        """Run the function now."""
        settings = HydrationFunctionSettings(
            cluster=CLUSTER,
            file_system=self.file_system,
            mount_point="/fsx",
            security_group=GROUP,
            document=DOCUMENT,
            datasets=tuple(self.datasets),
            topic_arn=TOPIC,
            state_table=TABLE,
            region=REGION,
            function="hydrate",
        )
        fakes: Any = {
            "dynamodb": self.dynamodb,
            "ec2": self.nodes,
            "fsx": self.lustre,
            "ssm": self.nodes,
            "ssm_once": self.nodes,
            "sns": self.topic,
        }
        aws = Clients(**{name: lambda fake=fake: fake for name, fake in fakes.items()})
        return HydrationRun(settings, aws, Logger(service="test"), now=self.now).run(action)

    def tick(self, minutes: int = 1) -> None:
        """Let time pass by minutes, and run the function after each; what fails in a run is kept."""
        for _ in range(minutes):
            self.now += timedelta(minutes=1)
            self.lustre.now = self.nodes.now = self.now
            self.lustre.settle()
            try:
                self.run()
            except (PartialFailureError, ClientError) as error:
                self.errors.append(str(error))

    def until(self, step: HydrationStep, path: str = "/data", within: int = 60) -> DatasetProgress:
        """Run until a data set is at a step, and return how far it is."""
        for _ in range(within):
            self.tick()
            if path in self.steps and self.steps[path] is step:
                return self.progress(path)
        raise AssertionError((self.steps, self.errors[-3:]))

    @property
    def steps(self) -> dict[str, HydrationStep]:
        """How far each data set is, as it is remembered."""
        key = (f"hydration#{CLUSTER}", "datasets")
        states = self.dynamodb.values(*key)["datasets"] if key in self.dynamodb.items else {}
        return {path: HydrationStep(state["step"]) for path, state in states.items()}

    def progress(self, path: str = "/data") -> DatasetProgress:
        """Return what the parameter says of a data set."""
        found = parse_progress(self.nodes.parameter)
        assert found is not None
        return found.datasets[f"/fsx{path}"]

    @property
    def written(self) -> datetime:
        """When the parameter was last written."""
        found = parse_progress(self.nodes.parameter)
        assert found is not None
        return found.time

    @property
    def messages(self) -> list[tuple[str, str]]:
        """What was sent: subjects and texts."""
        return [(request["Subject"], request["Message"]) for _, request in self.topic.requests]

    @property
    def calls(self) -> list[Call]:
        """Every call to AWS so far."""
        services = (self.dynamodb, self.topic, self.lustre, self.nodes, self.nodes.ec2)
        return [call for service in services for call in service.calls]
