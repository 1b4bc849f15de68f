"""The cluster's nodes: which ones take commands, what commands they get, and what they answer."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from cluster_common.errors import error_code
from cluster_contract.hydration import HydrationAnswer, HydrationFunctionSettings, HydrationRequest, parse_answer
from cluster_contract.tags import CLUSTER_TAG
from cluster_hydration.records import DELIVERY_SECONDS, Command

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client
    from mypy_boto3_ssm.client import SSMClient

# A filter of DescribeInstanceInformation takes so many values.
_MAX_ASKED = 100
_LIVE = frozenset({"Pending", "InProgress", "Delayed", "Cancelling"})
# The agent runs five commands at once by default, and others need it too.
_MAX_COMMANDS = 2

NOT_MOUNTED, BAD_REQUEST, NO_PROGRAM = 3, 2, 127
"""Exit codes: of `cluster-node`, and of a shell that finds no such program."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A command that does not run any more.

    Attributes:
        answer: What the node said. None: nothing that can be used.
        error: Why not.
        code: The exit code of the node's program. None: there is none.
        blames_node: Whether another node may do better.
    """

    answer: HydrationAnswer | None = None
    error: str = ""
    code: int | None = None
    blames_node: bool = False


class Nodes:
    """The nodes of one cluster, read when they are first asked for.

    The tag alone does not identify a node: a principal that may tag instances can add it to any instance. A node also
    has the security group of the cluster's network, which only a launch or a change of its groups can give.

    Sources: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html,
    https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_SendCommand.html and
    https://docs.aws.amazon.com/systems-manager/latest/userguide/monitor-commands.html
    """

    def __init__(
        self, ec2: "EC2Client", ssm: "SSMClient", sending: "SSMClient", settings: HydrationFunctionSettings
    ) -> None:
        """Read nothing yet.

        Args:
            ec2: The client of EC2.
            ssm: The client of Systems Manager.
            sending: One that sends a request once: a command that is sent twice runs twice.
            settings: The function's settings.
        """
        self._ec2, self._ssm, self._sending = ec2, ssm, sending
        self._settings = settings
        self._commands: Counter[str] = Counter()

    @cached_property
    def running(self) -> tuple[str, ...]:
        """The ids of the cluster's running instances, in order."""
        pages = self._ec2.get_paginator("describe_instances").paginate(
            Filters=[
                {"Name": f"tag:{CLUSTER_TAG}", "Values": [self._settings.cluster]},
                {"Name": "instance.group-id", "Values": [self._settings.security_group]},
                {"Name": "instance-state-name", "Values": ["running"]},
            ]
        )
        return tuple(
            sorted(
                instance["InstanceId"]
                for page in pages
                for reservation in page["Reservations"]
                for instance in reservation["Instances"]
            )
        )

    @cached_property
    def online(self) -> tuple[str, ...]:
        """Those whose SSM agent answers, in order; of a large cluster, those among the first hundred."""
        asked = list(islice(self.running, _MAX_ASKED))
        if not asked:
            return ()
        pages = self._ssm.get_paginator("describe_instance_information").paginate(
            Filters=[{"Key": "InstanceIds", "Values": asked}, {"Key": "PingStatus", "Values": ["Online"]}]
        )
        return tuple(sorted(one["InstanceId"] for page in pages for one in page["InstanceInformationList"]))

    def occupy(self, instance: str) -> None:
        """Count a command that a node has, or gets.

        Args:
            instance: The node.
        """
        self._commands[instance] += 1

    def vacate(self, instance: str) -> None:
        """Count a command that has ended no longer.

        Args:
            instance: The node.
        """
        self._commands[instance] -= 1

    def is_free(self, instance: str) -> bool:
        """Say whether a node can take one more command.

        Args:
            instance: The node.
        """
        return self._commands[instance] < _MAX_COMMANDS

    def send(self, command: Command, request: HydrationRequest) -> str:
        """Send a command, and return its id.

        Args:
            command: To which node.
            request: What the node should do.
        """
        sent = self._sending.send_command(
            InstanceIds=[command.instance],
            DocumentName=self._settings.document,
            # The default may still be what was deployed before:
            # https://github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues/2539
            DocumentVersion="$LATEST",
            Parameters={"Request": [request.to_parameter()]},
            TimeoutSeconds=DELIVERY_SECONDS,
            Comment=f"{request.action} {request.run} {request.shard}/{request.shards}"[:100],
        )
        return sent["Command"]["CommandId"]

    def outcome(self, command: Command) -> Ended | None:
        """Return what came of a command. None: it may be running.

        Args:
            command: The command, with its id.
        """
        try:
            found = self._ssm.get_command_invocation(CommandId=command.id or "", InstanceId=command.instance)
        except ClientError as error:
            # Right after it was sent Systems Manager does not know it yet.
            if error_code(error) == "InvocationDoesNotExist":
                return None
            raise
        if found["Status"] in _LIVE:
            return None
        if found["Status"] == "Success":
            try:
                return Ended(answer=parse_answer(found["StandardOutputContent"]))
            except ValueError as error:
                return Ended(error=f"{command.instance} gave an answer that cannot be read: {error}")
        code = found.get("ResponseCode", -1)
        said = found.get("StandardErrorContent", "").strip() or found.get("StatusDetails", found["Status"])
        if code == NO_PROGRAM:
            said = "cluster-node is not installed, since an older deployment launched the node: terminate the node"
        return Ended(
            error=f"{command.instance}: {said}",
            code=code if code > 0 else None,
            blames_node=found["Status"] != "Cancelled" and code != BAD_REQUEST,
        )
