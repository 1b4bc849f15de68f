"""Systems Manager Run Command: a document's own shell lines, run on this machine as a node would; moto runs nothing.

What a user sends with AWS-RunShellScript runs only where a test asks for it: it would act on this machine.

A command has ended when its invocation is asked for, unless a test ordered otherwise or its instance is gone: from
that one no answer comes any more.
https://docs.aws.amazon.com/systems-manager/latest/userguide/monitor-commands.html
"""

import logging
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from moto.core.responses import ActionResult
from moto.core.utils import utcnow

from local_aws.refusal import Refusal
from local_aws.services.answers import page
from local_aws.services.automation_parameters import filled, parameters_of
from local_aws.services.command_documents import SHELL
from local_aws.services.managed_nodes import NODES, STATUSES, UNENDED, online_instance

logger = logging.getLogger("local_aws")

# https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetCommandInvocation.html
_LONGEST_OUTPUT, _LONGEST_ERROR, _LONGEST_PLUGIN_OUTPUT = 24_000, 8_000, 2_500
_USUAL_EXECUTION_SECONDS, _USUAL_DELIVERY_SECONDS = 3_600, 3_600
_CUT_MARK = b"--output truncated--"
_UNKNOWN = -1
_PAGE = 50


@dataclass
class _Command:
    """One command, in the words of SendCommand."""

    document: Any
    parameters: Mapping[str, Any]
    given: Mapping[str, Sequence[str]]
    comment: str
    timeout_seconds: int
    id: str = field(default_factory=lambda: str(uuid4()))
    requested: datetime = field(default_factory=utcnow)
    invocations: list["_Invocation"] = field(default_factory=list)

    def described(self) -> dict[str, Any]:
        """Return it as SendCommand answers."""
        return {
            "CommandId": self.id,
            "DocumentName": self.document.name,
            "DocumentVersion": self.document.document_version,
            "Comment": self.comment,
            "ExpiresAfter": self.requested + timedelta(seconds=self.timeout_seconds + _USUAL_EXECUTION_SECONDS),
            "Parameters": self.given,
            "InstanceIds": [one.instance.id for one in self.invocations],
            "RequestedDateTime": self.requested,
            "Status": "Pending",
            "StatusDetails": "Pending",
            "TargetCount": len(self.invocations),
            "CompletedCount": 0,
            "ErrorCount": 0,
        }


@dataclass
class _Invocation:
    """A command on one instance."""

    command: _Command
    instance: Any
    details: str = "InProgress"
    code: int = _UNKNOWN
    output: str = ""
    error: str = ""
    ended: datetime | None = None
    _process: subprocess.Popen[str] | None = None
    _seconds: float = 0

    def begin(self) -> None:
        """Start the document's lines, unless a test ordered what becomes of them."""
        fate = NODES.fates.get(self.instance.id)
        if fate is not None:
            self.details, self.ended = fate, None if fate in UNENDED else utcnow()
            return
        (step,) = self.command.document.content_json["mainSteps"]
        inputs = filled(step["inputs"], self.command.parameters)
        variables = NODES.environment(self.instance)
        self._seconds = float(inputs.get("timeoutSeconds", _USUAL_EXECUTION_SECONDS))
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", "\n".join(inputs["runCommand"])],
            env=variables,
            cwd=inputs.get("workingDirectory") or variables["ROOT"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def look(self) -> "_Invocation":
        """Wait for its end; from an instance that runs no longer there is none."""
        if self._process is not None:
            process, self._process = self._process, None
            if self.instance.state != "running":
                _kill(process)
                return self
            try:
                self.output, self.error = process.communicate(timeout=self._seconds)
                self.code = process.returncode
                self.details = "Failed" if self.code else "Success"
            except subprocess.TimeoutExpired:
                _kill(process)
                self.details = "ExecutionTimedOut"
            self.ended = utcnow()
            said = (self.error or self.output).strip()
            logger.info("%s on %s: %s: %s", self.command.document.name, self.instance.id, self.details, said)
        return self

    @property
    def status(self) -> str:
        """The status that goes with the details."""
        return STATUSES.get(self.details, self.details)

    def described(self) -> dict[str, Any]:
        """Return what both answers say of it."""
        return {
            "CommandId": self.command.id,
            "InstanceId": self.instance.id,
            "Comment": self.command.comment,
            "DocumentName": self.command.document.name,
            "DocumentVersion": self.command.document.document_version,
            "Status": self.status,
            "StatusDetails": self.details,
        }

    def with_output(self) -> dict[str, Any]:
        """Return it as GetCommandInvocation shows it."""
        started = self.command.requested
        took = (self.ended - started).total_seconds() if self.ended else 0
        return {
            **self.described(),
            "PluginName": SHELL,
            "ResponseCode": self.code,
            "ExecutionStartDateTime": f"{started.isoformat(timespec='milliseconds')}Z",
            "ExecutionElapsedTime": f"PT{took:.3f}S",
            "ExecutionEndDateTime": f"{self.ended.isoformat(timespec='milliseconds')}Z" if self.ended else "",
            "StandardOutputContent": _cut(self.output, _LONGEST_OUTPUT),
            "StandardErrorContent": _cut(self.error, _LONGEST_ERROR),
        }

    def with_plugins(self, *, details: bool) -> dict[str, Any]:
        """Return it as ListCommandInvocations shows it."""
        plugin = {
            "Name": SHELL,
            "Status": self.status,
            "StatusDetails": self.details,
            "ResponseCode": self.code,
            "Output": _cut(self.output, _LONGEST_PLUGIN_OUTPUT),
        }
        said = {**self.described(), "RequestedDateTime": self.command.requested}
        return {**said, "CommandPlugins": [plugin] if details else []}


_commands: dict[str, _Command] = {}


def _cut(text: str, most: int) -> str:
    """Keep the first bytes and say so, as the agent does."""
    raw = text.encode()
    return text if len(raw) < most else (raw[: most - len(_CUT_MARK)] + _CUT_MARK).decode(errors="replace")


def _kill(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def send_command(response: Any) -> ActionResult:
    """Answer SendCommand.

    https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_SendCommand.html
    """
    ids = response._get_param("InstanceIds") or []
    if response._get_param("Targets") or not ids:
        raise NotImplementedError("commands to anything but InstanceIds")
    document = _document(response)
    if len(document.content_json["mainSteps"]) != 1:
        raise NotImplementedError("commands of more than one step")
    twice = [one for one, count in Counter(ids).items() if count > 1]
    if twice:
        raise Refusal("DuplicateInstanceId", f"You cannot specify {twice[0]} in more than one place.")
    given = response._get_param("Parameters") or {}
    parameters = parameters_of(document.content_json, given, "InvalidParameters")
    instances = [online_instance(response, one) for one in ids]
    command = _Command(
        document,
        parameters,
        given,
        response._get_param("Comment") or "",
        int(response._get_param("TimeoutSeconds") or _USUAL_DELIVERY_SECONDS),
    )
    command.invocations = [_Invocation(command, instance) for instance in instances]
    _commands[command.id] = command
    for invocation in command.invocations:
        invocation.begin()
    return ActionResult({"Command": command.described()})


@dataclass(frozen=True)
class _Owned:
    """A document of AWS's own, with the parts that a command uses."""

    name: str
    content_json: Mapping[str, Any]
    document_version: str = "1"


_TIMES = "([1-9][0-9]{0,4})|(1[0-6][0-9]{4})|(17[0-1][0-9]{3})|(172[0-7][0-9]{2})|(172800)"
# https://docs.aws.amazon.com/systems-manager/latest/userguide/documents-command-ssm-plugin-reference.html
_SHELL_SCRIPT = _Owned(
    "AWS-RunShellScript",
    {
        "parameters": {
            "commands": {"type": "StringList"},
            "workingDirectory": {"type": "String", "default": ""},
            "executionTimeout": {"type": "String", "default": "3600", "allowedPattern": f"^({_TIMES})$"},
        },
        "mainSteps": [
            {
                "action": SHELL,
                "name": "runShellScript",
                "inputs": {
                    "runCommand": "{{ commands }}",
                    "workingDirectory": "{{ workingDirectory }}",
                    "timeoutSeconds": "{{ executionTimeout }}",
                },
            }
        ],
    },
)


def _document(response: Any) -> Any:
    name, version = response._get_param("DocumentName"), response._get_param("DocumentVersion")
    if name == _SHELL_SCRIPT.name:
        if not NODES.runs_any_shell:
            raise NotImplementedError(f"{name}: its lines would run on this machine, and not on a node")
        return _SHELL_SCRIPT
    documents = response.ssm_backend._documents.get(name.rpartition("/")[2])
    if documents is None:
        raise Refusal("InvalidDocument", f"Document with name {name} does not exist.")
    if documents.get_default_version().document_type != "Command":
        raise Refusal("InvalidDocument", f"Document {name} is no document of the type Command.")
    document = documents.find(None if version in {None, "$DEFAULT"} else version, None, strict=False)
    if document is None:
        raise Refusal("InvalidDocumentVersion", f"Document {name} has no version {version}.")
    return document


def get_command_invocation(response: Any) -> ActionResult:
    """Answer GetCommandInvocation."""
    command = _commands.get(response._get_param("CommandId"))
    wanted = response._get_param("InstanceId")
    found = [one for one in command.invocations if one.instance.id == wanted] if command else []
    if not found or response._get_param("PluginName") not in {None, SHELL}:
        raise Refusal("InvocationDoesNotExist", "The command ID and managed node ID you specified do not match.")
    return ActionResult(found[0].look().with_output())


def list_command_invocations(response: Any) -> ActionResult:
    """Answer ListCommandInvocations."""
    command_id, instance_id = response._get_param("CommandId"), response._get_param("InstanceId")
    if response._get_param("Filters"):
        raise NotImplementedError("the filters of ListCommandInvocations")
    if command_id is not None and command_id not in _commands:
        raise Refusal("InvalidCommandId", f"There is no command {command_id}.")
    found = [one for one in _all() if command_id in {None, one.command.id} and instance_id in {None, one.instance.id}]
    size = int(response._get_param("MaxResults") or _PAGE)
    some, token = page(found, response._get_param("NextToken"), size)
    shown = [one.look().with_plugins(details=bool(response._get_param("Details"))) for one in some]
    return ActionResult({"CommandInvocations": shown, **({"NextToken": token} if token else {})})


def _all() -> Iterator[_Invocation]:
    for command in _commands.values():
        yield from command.invocations
