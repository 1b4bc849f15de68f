"""`training-cluster exec`: runs a command on nodes through Run Command, and shows their output node by node."""

import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from cdk_training_cluster_cli.core.aws_errors import plain_refusals
from cdk_training_cluster_cli.core.output import check_format, json_text
from cdk_training_cluster_cli.core.target import Target
from cdk_training_cluster_cli.core.times import parse_span
from cdk_training_cluster_cli.operate.managed import OFFLINE, offline
from cdk_training_cluster_cli.operate.nodes import ListedNode, check_groups, find_nodes, named_node
from cdk_training_cluster_file.problems import printable

_FORMATS = ("table", "json")
_DOCUMENT = "AWS-RunShellScript"
_LONGEST = timedelta(days=2)
# https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_SendCommand.html: so many ids in one request,
# and the time in which a node has to take the command, in seconds.
_MAX_IDS, _DELIVERY_SECONDS = 50, 60
# https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetCommandInvocation.html
_MAX_OUTPUT, _MAX_ERROR = 24_000, 8_000
# What the agent ends an output with that it cuts at so many bytes:
# https://github.com/aws/amazon-ssm-agent/blob/mainline/agent/framework/processor/executer/iohandler/pluginutil
_CUT_MARK = "--output truncated--"
_RUNNING = frozenset({"Pending", "InProgress", "Delayed", "Cancelling"})
_SUCCESS, _NO = "Success", 1
_EVERY_SECONDS = 2.0
# A command shows up in the answers of AWS some moments after it is sent; and AWS may be asked too often.
_NOT_YET = ("InvocationDoesNotExist", "InvalidCommandId", "Throttling", "ThrottlingException")
_NOT_SENT, _UNKNOWN = "NotSent", "Unknown"
_ENDS = {
    _UNKNOWN: "it is not known what became of the command",
    _NOT_SENT: OFFLINE,
    "Undeliverable": "its SSM agent did not take the command; Run Command needs agent 3.3.40.0 or newer, or the "
    "ec2messages permissions of an older one",
    "DeliveryTimedOut": f"its SSM agent did not take the command within {_DELIVERY_SECONDS} seconds",
    "ExecutionTimedOut": "the command did not end in the time that --timeout gives",
    "Cancelled": "the command was cancelled",
    "Terminated": "the command was not started, since too many other nodes failed",
}


@dataclass(kw_only=True)
class Result:
    """What became of the command on one node.

    Attributes:
        node: The node.
        status: What Run Command calls it. `NotSent`: the node cannot be reached. Empty: it runs.
        code: The exit status of the command. None: there is none.
        output: What it wrote to standard output.
        error: What it wrote to standard error.
    """

    node: ListedNode
    status: str = ""
    code: int | None = None
    output: str = ""
    error: str = ""

    @property
    def problem(self) -> str | None:
        """Why the command has no exit status. None: it has one."""
        if self.code is not None and self.status in (_SUCCESS, "Failed"):
            return None
        return _ENDS.get(self.status, f"the command ended as {self.status}")

    @property
    def cut(self) -> bool:
        """Whether Run Command has kept only the beginning of what the command wrote."""
        return _is_cut(self.output, _MAX_OUTPUT) or _is_cut(self.error, _MAX_ERROR)

    def values(self) -> dict[str, object]:
        """Return what a program reads."""
        told = {"status": self.status, "exit_status": self.code, "problem": self.problem, "cut": self.cut}
        return {
            "node": self.node.name,
            "instance_id": self.node.id,
            **told,
            "output": self.output,
            "error": self.error,
        }


@dataclass(frozen=True, kw_only=True)
class Execution:
    """A command for nodes.

    Attributes:
        target: The cluster.
        words: The command: one text for the nodes' shell, or a program and its arguments.
        timeout: How long it may run.
        output: How to show it: `table` or `json`.
        pause: Waits for some seconds.
    """

    target: Target
    words: Sequence[str]
    timeout: str
    output: str
    pause: Callable[[float], object]
    _sent: dict[str, str] = field(default_factory=dict)
    """The commands' ids by those of the nodes."""

    def __post_init__(self) -> None:
        """Check what is given before AWS is asked.

        Raises:
            ValueError: A setting is not allowed.
        """
        check_format(self.output, formats=_FORMATS)
        parse_span("--timeout", self.timeout, most=_LONGEST)

    def run(self, node_groups: Sequence[str], names: Sequence[str]) -> int:
        """Run it on nodes, show what they write, and return the exit status.

        Args:
            node_groups: The node groups' names. Without names of nodes either, all nodes.
            names: The nodes, as users name them.

        Raises:
            ValueError: Nothing is named so, or AWS refuses.
        """
        nodes = self._chosen(node_groups, names)
        away = offline(self.target, [node.id for node in nodes])
        results = [Result(node=node, status=_NOT_SENT if node.id in away else "") for node in nodes]
        ssm = self.target.client("ssm")
        try:
            self._send([one.node.id for one in results if not one.status])
            self._wait(ssm, results)
        except KeyboardInterrupt:
            self._cancel(ssm)
            raise
        except ValueError as error:
            if not self._sent:
                raise
            for one in results:
                one.status = one.status or _UNKNOWN
            self._show(results)
            raise ValueError(f"{error}; {self._cancel(ssm)}") from error
        self._show(results)
        return 0 if all(one.status == _SUCCESS for one in results) else _NO

    def _chosen(self, node_groups: Sequence[str], names: Sequence[str]) -> list[ListedNode]:
        nodes, cluster = find_nodes(self.target), self.target.name
        check_groups(node_groups, nodes, cluster)
        named = {named_node(name, nodes, cluster) for name in names}
        chosen = [
            node for node in nodes if node in named or node.node_group in node_groups or not (named or node_groups)
        ]
        if not chosen:
            raise ValueError(f"no node of the cluster {cluster!r} is pending or running: start it first")
        return chosen

    def _cancel(self, ssm: Any) -> str:  # noqa: ANN401 - a client
        """Cancel the command as far as AWS allows, and say what became of that."""
        commands, told = tuple(dict.fromkeys(self._sent.values())), "the command is being cancelled"
        for command in commands:
            try:
                ssm.cancel_command(CommandId=command)
            except Exception:  # The command shows the first error, or the user wants to leave.
                told = "the command could not be cancelled and may go on"
        return f"{told}: see aws ssm list-command-invocations --command-id {' and '.join(commands)}"

    def _send(self, ids: Sequence[str]) -> None:
        """Send the command."""
        from botocore.config import Config  # noqa: PLC0415 - what asks AWS nothing does without it

        line = self.words[0] if len(self.words) == 1 else shlex.join(self.words)
        seconds = int(parse_span("--timeout", self.timeout, most=_LONGEST).total_seconds())
        # A request whose answer is lost is not sent again: the command might run twice.
        once = Config(retries={"mode": "standard", "total_max_attempts": 1})
        sending = self.target.session.client("ssm", region_name=self.target.region, config=once)
        for start in range(0, len(ids), _MAX_IDS):
            some = list(ids[start : start + _MAX_IDS])
            with plain_refusals("Run Command"):
                command = sending.send_command(
                    DocumentName=_DOCUMENT,
                    InstanceIds=some,
                    Parameters={"commands": [line], "executionTimeout": [str(seconds)]},
                    TimeoutSeconds=_DELIVERY_SECONDS,
                    Comment="training-cluster exec",
                )["Command"]["CommandId"]
            self._sent.update(dict.fromkeys(some, command))

    def _wait(self, ssm: Any, results: Sequence[Result]) -> None:  # noqa: ANN401 - a client
        while True:
            running = {one.node.id: one for one in results if not one.status}
            for command in dict.fromkeys(self._sent[node] for node in running):
                with _unless_later():
                    for node in _ended_nodes(ssm, command):
                        if node in running:
                            _read(ssm, command, running[node])
            if all(one.status for one in results):
                return
            self.pause(_EVERY_SECONDS)

    def _show(self, results: Sequence[Result]) -> None:
        if self.output == "json":
            sys.stdout.write(f"{json_text({'nodes': [one.values() for one in results]})}\n")
            return
        for one in results:
            if len(results) > 1:
                sys.stdout.write(f"== {one.node.name} ({one.node.id})\n")
            sys.stdout.write(_ended(one.output))
            sys.stdout.flush()
            sys.stderr.write(_ended(one.error))
            sys.stderr.writelines(f"{line}\n" for line in _remarks(one))
            sys.stderr.flush()


def _ended_nodes(ssm: Any, command: str) -> Iterator[str]:  # noqa: ANN401 - a client
    """Yield the ids of the nodes on which a command has ended.

    Source: https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_ListCommandInvocations.html
    """
    for page in ssm.get_paginator("list_command_invocations").paginate(CommandId=command):
        yield from (one["InstanceId"] for one in page["CommandInvocations"] if one["Status"] not in _RUNNING)


def _read(ssm: Any, command: str, one: Result) -> None:  # noqa: ANN401 - a client
    found = ssm.get_command_invocation(CommandId=command, InstanceId=one.node.id)
    if found["Status"] not in _RUNNING:
        one.status, code = found["StatusDetails"], int(found["ResponseCode"])
        one.code = code if code >= 0 else None
        one.output, one.error = found["StandardOutputContent"], found["StandardErrorContent"]


@contextmanager
def _unless_later() -> Iterator[None]:
    """Let pass what the next look may find."""
    from botocore.exceptions import ClientError  # noqa: PLC0415 - what asks AWS nothing does without it

    with plain_refusals("Run Command"):
        try:
            yield
        except ClientError as error:
            if error.response["Error"]["Code"] not in _NOT_YET:
                raise


def _remarks(one: Result) -> Iterator[str]:
    if one.cut:
        yield (
            f"warning: {one.node.name}: Run Command keeps the first {_MAX_OUTPUT:,} bytes of standard output "
            f"and {_MAX_ERROR:,} of standard error: write more to a file on the file system"
        )
    if one.problem:
        yield f"error: {one.node.name} ({one.node.id}): {one.problem}"
    elif one.code:
        yield f"error: {one.node.name} ({one.node.id}): the command ended with exit status {one.code}"


def _is_cut(text: str, most: int) -> bool:
    return text.rstrip().endswith(_CUT_MARK) or len(text.encode()) >= most


def _ended(text: str) -> str:
    return printable(text) if not text or text.endswith("\n") else f"{printable(text)}\n"
