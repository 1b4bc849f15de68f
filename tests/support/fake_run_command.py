"""Systems Manager and EC2 in memory, as far as the hydration function talks to them: nodes that restore files."""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import ReadTimeoutError

from cluster_contract.hydration import HydrationRequest
from cluster_contract.tags import CLUSTER_TAG
from fake_service import ACCOUNT, REGION, FakePaginator, FakeService, refusal

CLUSTER, DOCUMENT, GROUP = "pod", "pod-Document", "sg-0123456789abcdef0"
_MIB = 1024**2


@dataclass
class Files:
    """The files of one data set, by number; each has 1 MiB unless a test says otherwise.

    Attributes:
        count: How many there are.
        released: Those without contents.
        broken: Those that cannot be restored.
        speed: How many a command restores.
        seconds: How long a command takes.
        copying: Whether Lustre says that it copies a file.
        gives_up: How many broken files a command gives up at most. None: all.
        mends: Whether broken files are whole at the last look.
        mebibytes: How large each is.
        named: What the paths of broken files begin with. Empty: their numbers alone.
        space: For how many files the file system has space, which nodes share. None: for all.
    """

    count: int
    released: set[int] = field(default_factory=set)
    broken: set[int] = field(default_factory=set)
    speed: int = 30
    seconds: int = 50
    copying: bool = False
    gives_up: int | None = None
    mends: bool = False
    mebibytes: int = 1
    named: str = ""
    space: int | None = None

    def of(self, shard: int, shards: int) -> set[int]:
        """Return the numbers of a shard."""
        return set(range(shard, self.count, shards))


@dataclass
class _Sent:
    id: str
    instance: str
    request: dict[str, Any]
    sent: datetime
    ends: datetime
    fate: str = ""
    """What it ends as beside Success: a status, or an exit code."""
    answer: dict[str, Any] | None = None


class FakeNodes(FakeService):
    """The clients of EC2 and of Systems Manager, with the nodes behind them.

    Attributes:
        now: The time.
        files: The files of each data set, by its directory on the nodes.
        nodes: The running instances with the cluster's tag: whether their agents answer.
        foreign: Those of them that are in another security group than the cluster's.
        sent: All commands.
        fates: What the next commands come to: a status, an exit code, `hang`, or `lost`: taken, but nothing says so.
        parameter: The SSM parameter.
    """

    def __init__(self, now: datetime) -> None:
        super().__init__("ssm")
        self.ec2 = FakeService("ec2")
        self.now = now
        self.files: dict[str, Files] = {}
        self.nodes: dict[str, bool] = {}
        self.foreign: set[str] = set()
        self.sent: list[_Sent] = []
        self.fates: list[str] = []
        self.parameter = "{}"

    def add_nodes(self, count: int) -> None:
        """Launch nodes."""
        start = len(self.nodes)
        self.nodes |= {f"i-{number:017x}": True for number in range(start, start + count)}

    def add_foreign(self, count: int) -> None:
        """Launch instances of another owner with the cluster's tag."""
        before = set(self.nodes)
        self.add_nodes(count)
        self.foreign |= set(self.nodes) - before

    def get_paginator(self, operation: str) -> FakePaginator:
        """Return the paginator of an operation."""
        pages = {"describe_instances": self._instances, "describe_instance_information": self._information}
        return FakePaginator(pages[operation])

    def send_command(self, **parameters: Any) -> dict[str, Any]:
        """Take a command, of which no other may work at the same shard."""
        (instance,) = parameters["InstanceIds"]
        # CloudFormation may leave the default where it was.
        assert parameters["DocumentVersion"] == "$LATEST"
        document = f"arn:aws:ssm:{REGION}:{ACCOUNT}:document/{parameters['DocumentName']}"
        node = f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/{instance}"
        self.record("SendCommand", parameters, names=[instance], arn=document)
        self.record("SendCommand", parameters, names=[instance], arn=node, tags={CLUSTER_TAG: CLUSTER})
        if instance not in self.nodes:
            raise refusal("SendCommand", "InvalidInstanceId", "Instances not in a valid state for account")
        request = json.loads(base64.b64decode(parameters["Parameters"]["Request"][0]))
        assert set(request) == set(HydrationRequest.__dataclass_fields__)
        same = ("action", "run", "directory", "shard", "shards")
        for one in self.live:
            assert [one.request[key] for key in same] != [request[key] for key in same], "two live commands"
            other = one.request["directory"] != request["directory"]
            assert other or one.request["run"] == request["run"], "two live runs"
        fate = self.fates.pop(0) if self.fates else ""
        seconds = 419 if fate == "hang" else self.files[request["directory"]].seconds
        ends = self.now + timedelta(seconds=seconds)
        number = f"{len(self.sent):036x}"
        self.sent.append(_Sent(number, instance, request, self.now, ends, "TimedOut" if fate == "hang" else fate))
        if fate == "lost":
            raise ReadTimeoutError(endpoint_url="https://ssm")
        return {"Command": {"CommandId": number}}

    @property
    def live(self) -> list[_Sent]:
        """The commands that nodes work at."""
        return [one for one in self.sent if self.now < one.ends and one.instance in self.nodes]

    def get_command_invocation(self, **parameters: Any) -> dict[str, Any]:
        """Say what came of a command."""
        self.record("GetCommandInvocation", parameters, context={"aws:RequestedRegion": REGION})
        one = self.sent[int(parameters["CommandId"], 16)]
        if self.now == one.sent:
            raise refusal("GetCommandInvocation", "InvocationDoesNotExist", "")
        if self.now < one.ends:
            return {"Status": "InProgress", "StatusDetails": "InProgress", "ResponseCode": -1}
        if one.instance not in self.nodes:
            return {"Status": "Delayed", "StatusDetails": "Delayed", "ResponseCode": -1}
        if one.fate in ("Cancelled", "TimedOut"):
            return {"Status": one.fate, "StatusDetails": one.fate, "ResponseCode": -1, "StandardErrorContent": ""}
        if one.fate.isdecimal():
            error = "/fsx is not mounted"
            return {"Status": "Failed", "ResponseCode": int(one.fate), "StandardErrorContent": error}
        if one.answer is None:
            one.answer = self._work(one.request)
        output = "garbage" if one.fate else f"working\n{json.dumps(one.answer)}\n"
        return {"Status": "Success", "ResponseCode": 0, "StandardOutputContent": output}

    def put_parameter(self, **parameters: Any) -> dict[str, Any]:
        """Take the parameter."""
        arn = f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter{parameters['Name']}"
        self.record("PutParameter", parameters, arn=arn)
        assert len(parameters["Value"]) <= 4096
        # https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_PutParameter.html: no {{}} in a value
        if "{{" in parameters["Value"]:
            raise refusal("PutParameter", "ValidationException", "Parameter value must not nest another parameter")
        self.parameter = parameters["Value"]
        return {}

    def _work(self, request: dict[str, Any]) -> dict[str, Any]:
        files = self.files[request["directory"]]
        own = files.of(request["shard"], request["shards"])
        if request["action"] in ("begin", "fail"):
            own = set()
        elif request["action"] == "restore":
            space = files.speed if files.space is None else files.space // request["shards"]
            restored = sorted(own & files.released - files.broken)[: min(files.speed, space)]
            files.released -= set(restored)
            files.space = None if files.space is None else files.space - len(restored)
        elif request["action"] == "finish":
            own = files.of(0, 1)
            files.released -= files.broken if files.mends else set()
        missing, size = own & files.released, files.mebibytes * _MIB
        failed = set(sorted(missing & files.broken)[: files.gives_up])
        is_full = files.space is not None and files.space < request["shards"]
        return {
            **{key: request[key] for key in ("run", "shard", "shards")},
            **{"files": len(own), "bytes": len(own) * size, "counted": True},
            **{"restored_files": len(own - missing), "restored_bytes": len(own - missing) * size},
            "failed_files": len(failed),
            "failures": [
                {"path": f"{request['directory']}/{files.named}{one}", "error": "Permission denied"}
                for one in sorted(failed)[:5]
            ],
            "copying": files.copying,
            **({"shortage": "the next file has 1.0 MiB, and"} if missing and is_full else {}),
            "finished": not missing - failed if request["action"] == "restore" else not missing,
        }

    def _instances(self, **parameters: Any) -> Iterator[dict[str, Any]]:
        self.ec2.record("DescribeInstances", parameters, context={"aws:RequestedRegion": REGION})
        wanted = {one["Name"]: one["Values"] for one in parameters["Filters"]}
        for name in list(self.nodes):
            group = "sg-0fedcba9876543210" if name in self.foreign else GROUP
            facts = {f"tag:{CLUSTER_TAG}": CLUSTER, "instance-state-name": "running", "instance.group-id": group}
            if all(facts[key] in values for key, values in wanted.items()):
                yield {"Reservations": [{"Instances": [{"InstanceId": name}]}]}

    def _information(self, **parameters: Any) -> Iterator[dict[str, Any]]:
        self.record("DescribeInstanceInformation", parameters, context={"aws:RequestedRegion": REGION})
        asked = {one["Key"]: one["Values"] for one in parameters["Filters"]}
        assert asked["PingStatus"] == ["Online"]
        for name in asked["InstanceIds"]:
            yield {"InstanceInformationList": [{"InstanceId": name}] if self.nodes.get(name) else []}
