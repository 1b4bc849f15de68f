"""A cluster in memory as operators act on it: the power function's own code behind Lambda's answers."""

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast

from botocore.exceptions import ClientError

from cdk_training_cluster_stacks.target import Target
from cluster_common.errors import InvalidEventError, PartialFailureError
from cluster_contract.description import ClusterDescription, FunctionDescription
from cluster_contract.tags import NODE_GROUP_TAG
from power_scene import CLUSTER, START, Scene

_DESCRIPTION = ClusterDescription(
    functions={"power": FunctionDescription(invoke="power:operate", log_group="power-logs")},
    alert_topic="topic",
    state_table="state",
    resume_document="resume",
)


def refused(code: str, operation: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, operation)


@dataclass
class Operated:
    """The clients of a session; each answers from the scene.

    Attributes:
        scene: The cluster.
        throttled: How many invocations Lambda refuses first.
        tags: What was tagged, in order.
        denied: The operations that IAM does not allow.
        sent: The commands that were sent.
        arn: Who the credentials are.
    """

    scene: Scene = field(default_factory=Scene)
    throttled: int = 0
    tags: list[tuple[str, Any]] = field(default_factory=list)
    denied: frozenset[str] = frozenset()
    sent: list[dict[str, Any]] = field(default_factory=list)
    arn: str = "arn:aws:sts::111122223333:assumed-role/Operators/alice"

    @property
    def target(self) -> Target:
        return Target(name=CLUSTER, region="us-east-1", file=None, session=cast(Any, self))

    def client(self, *_: object, **__: object) -> Any:
        return self

    def pause(self, seconds: float) -> None:
        """Let time pass, with a run of the schedule each minute."""
        self.scene.pauses.append(seconds)
        before = self.scene.now
        self.scene.pass_time(timedelta(seconds=seconds))
        if (before - START) // timedelta(minutes=1) != (self.scene.now - START) // timedelta(minutes=1):
            self.scene.order()

    def get_parameter(self, **_: str) -> Any:
        return {"Parameter": {"Value": json.dumps(_DESCRIPTION.values())}}

    def get_caller_identity(self) -> Any:
        return {"Arn": self.arn, "Account": self.arn.split(":")[4]}

    def invoke(self, *, FunctionName: str, Payload: bytes) -> Any:  # noqa: N803 - boto3's
        assert FunctionName == "power:operate"
        if self.throttled:
            self.throttled -= 1
            raise refused("TooManyRequestsException", "Invoke")
        event = json.loads(Payload)
        self.sent.append(event)
        try:
            groups = self.scene.order(**event)
        except (InvalidEventError, PartialFailureError) as error:
            said = {"errorMessage": str(error), "errorType": type(error).__name__}
            return {"FunctionError": "Unhandled", "Payload": io.BytesIO(json.dumps(said).encode())}
        summary = {"cluster": CLUSTER, "action": event["action"], "node_groups": list(groups.values())}
        return {"Payload": io.BytesIO(json.dumps(summary).encode())}

    def get_paginator(self, name: str) -> Any:
        assert name == "describe_instances"
        return self

    def paginate(self, **_: object) -> Iterator[Any]:
        for group in self.scene.auto_scaling.groups.values():
            living = [one for one, state in group.nodes if not state.startswith("Terminat")]
            for number, one in enumerate(living):
                tags = [{"Key": NODE_GROUP_TAG, "Value": group.tags[NODE_GROUP_TAG]}]
                launched = START + timedelta(seconds=number)
                raw = {"InstanceId": one, "LaunchTime": launched, "State": {"Name": "running"}, "Tags": tags}
                yield {"Reservations": [{"Instances": [raw]}]}
