"""A cluster in memory as operators act on it: the power function's own code behind Lambda's answers."""

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

from botocore.exceptions import ClientError, ReadTimeoutError

from cdk_training_cluster_cli.core.target import Target
from cluster_common.errors import InvalidEventError, PartialFailureError
from cluster_contract.description import ClusterDescription, FunctionDescription
from cluster_contract.tags import CLUSTER_TAG, NODE_GROUP_TAG
from power_scene import CLUSTER, START, Scene

_DESCRIPTION = ClusterDescription(
    functions={"power": FunctionDescription(invoke="power:operate", log_group="power-logs")},
    alert_topic="topic",
    state_table="state",
    resume_document="resume",
    security_group="sg-0123456789abcdef0",
)


def refused(code: str, operation: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, operation)


_TAGGING = frozenset(
    {
        *("create_tags", "delete_tags", "create_or_update_tags"),
        *("tag_resource", "untag_resource", "add_tags"),
    }
)


@dataclass
class Operated:
    """The clients of a session; each answers from the scene.

    Attributes:
        scene: The cluster.
        throttled: How many invocations Lambda refuses first.
        lost: The actions whose next answer is lost on its way.
        seconds: How long an invocation takes.
        tags: What was tagged, in order.
        denied: The operations that IAM does not allow.
        sent: The commands that were sent.
        offline: The instances whose SSM agent is not connected.
        commands: The commands that were sent to nodes.
        cancelled: The ids of those that were cancelled.
        answers: What becomes of a command on an instance: at each look a status, or at the end the exit status and
            both outputs.
        refusals: The codes with which the next looks at commands are refused. Empty: a look is answered.
        arn: Who the credentials are.
        description: The value of the SSM parameter that describes the cluster.
        foreign: The ids of another owner's instances that have the tags of the workers, in another security group.
    """

    scene: Scene = field(default_factory=Scene)
    throttled: int = 0
    lost: set[str] = field(default_factory=set)
    seconds: int = 0
    tags: list[tuple[str, Any]] = field(default_factory=list)
    denied: frozenset[str] = frozenset()
    sent: list[dict[str, Any]] = field(default_factory=list)
    offline: set[str] = field(default_factory=set)
    commands: list[dict[str, Any]] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    answers: dict[str, list[Any]] = field(default_factory=dict)
    refusals: list[str] = field(default_factory=list)
    arn: str = "arn:aws:sts::111122223333:assumed-role/Operators/alice"
    description: ClusterDescription = _DESCRIPTION
    foreign: list[str] = field(default_factory=list)

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
        if "get_parameter" in self.denied:
            raise refused("AccessDeniedException", "GetParameter")
        return {"Parameter": {"Value": json.dumps(self.description.values())}}

    def get_caller_identity(self) -> Any:
        return {"Arn": self.arn, "Account": self.arn.split(":")[4]}

    def invoke(self, *, FunctionName: str, Payload: bytes) -> Any:  # noqa: N803 - boto3's
        assert FunctionName == "power:operate"
        if self.throttled:
            self.throttled -= 1
            raise refused("TooManyRequestsException", "Invoke")
        event = json.loads(Payload)
        self.sent.append(event)
        self.scene.pass_time(timedelta(seconds=self.seconds))
        try:
            groups = self.scene.order(**event)
        except (InvalidEventError, PartialFailureError) as error:
            said = {"errorMessage": str(error), "errorType": type(error).__name__}
            return {"FunctionError": "Unhandled", "Payload": io.BytesIO(json.dumps(said).encode())}
        if event["action"] in self.lost:
            self.lost.remove(event["action"])
            raise ReadTimeoutError(endpoint_url="https://lambda")
        summary = {"cluster": CLUSTER, "action": event["action"], "node_groups": list(groups.values())}
        return {"Payload": io.BytesIO(json.dumps(summary).encode())}

    def get_paginator(self, name: str) -> Any:
        return SimpleNamespace(paginate=getattr(self, f"_{name}"))

    def _describe_instance_information(self, *, Filters: Any) -> Iterator[Any]:  # noqa: N803 - boto3's
        asked, _ = (one["Values"] for one in Filters)
        yield {"InstanceInformationList": [{"InstanceId": one} for one in asked if one not in self.offline]}

    def send_command(self, **command: Any) -> Any:
        self.commands.append(command)
        return {"Command": {"CommandId": str(len(self.commands))}}

    def cancel_command(self, *, CommandId: str) -> None:  # noqa: N803
        self.cancelled.append(CommandId)

    def get_command_invocation(self, *, CommandId: str, InstanceId: str) -> Any:  # noqa: N803
        assert InstanceId in self.commands[int(CommandId) - 1]["InstanceIds"]
        answer = self.answers[InstanceId][0]
        if isinstance(answer, str):
            output = {"StandardOutputContent": "", "StandardErrorContent": ""}
            return {"Status": answer, "StatusDetails": answer, "ResponseCode": -1, **output}
        code, output, error = answer
        status = "Failed" if code else "Success"
        told = {"Status": status, "StatusDetails": status, "ResponseCode": code}
        return {**told, "StandardOutputContent": output, "StandardErrorContent": error}

    def _list_command_invocations(self, *, CommandId: str) -> Iterator[Any]:  # noqa: N803
        code = self.refusals.pop(0) if self.refusals else ""
        if code:
            raise refused(code, "ListCommandInvocations")
        for one in self.commands[int(CommandId) - 1]["InstanceIds"]:
            answers = self.answers[one]
            status = answers[0] if isinstance(answers[0], str) else "Success"
            if status != "InvocationDoesNotExist":
                yield {"CommandInvocations": [{"InstanceId": one, "Status": status}]}
            if status in ("InvocationDoesNotExist", "InProgress") and len(answers) > 1:
                answers.pop(0)

    def __getattr__(self, name: str) -> Any:
        if name not in _TAGGING:
            raise AttributeError(name)

        def tag(**given: Any) -> None:
            if name in self.denied:
                raise refused("AccessDenied", name.title().replace("_", ""))
            self.tags.append((name, given))

        return tag

    def _describe_instances(self, *, Filters: Any) -> Iterator[Any]:  # noqa: N803
        wanted = {one["Name"]: one["Values"] for one in Filters}
        for raw, security_group in self._instances():
            facts = {
                f"tag:{CLUSTER_TAG}": CLUSTER,
                "instance.group-id": security_group,
                "instance-state-name": raw["State"]["Name"],
            }
            if all(facts[name] in values for name, values in wanted.items()):
                yield {"Reservations": [{"Instances": [raw]}]}

    def _instances(self) -> Iterator[tuple[Any, str]]:
        """Yield each instance with the tags of the cluster, and its security group."""
        for one in self.foreign:
            yield _instance(one, "workers", START - timedelta(days=1)), "sg-0fedcba9876543210"
        for group in self.scene.auto_scaling.groups.values():
            living = [one for one, state in group.nodes if not state.startswith("Terminat")]
            for number, one in enumerate(living):
                launched = START + timedelta(seconds=number)
                yield _instance(one, group.tags[NODE_GROUP_TAG], launched), _DESCRIPTION.security_group


def _instance(id: str, group: str, launched: datetime) -> Any:
    tags = [{"Key": NODE_GROUP_TAG, "Value": group}]
    return {"InstanceId": id, "LaunchTime": launched, "State": {"Name": "running"}, "Tags": tags}
