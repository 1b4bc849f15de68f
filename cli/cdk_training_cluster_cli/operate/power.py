"""The power function as operators reach it: a command, which is sent once, or a look, and its answer."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cdk_training_cluster_cli.core.aws_errors import plain_refusals
from cdk_training_cluster_cli.core.target import Target
from cluster_contract.description import FunctionDescription

# One invocation runs at a time, for 50 seconds at most. Lambda refuses another before it runs it, so that asking
# again does nothing twice. https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
_BUSY = "TooManyRequestsException"
_PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
_LOOKS = 3
_REFUSALS = {
    _BUSY: "the power function is busy with another invocation for a minute: run the command again",
    "ResourceNotFoundException": "the power function is gone: deploy the cluster again",
}
# What the function keeps of a reason: one line of so many characters.
_MAX_REASON = 256


class NotDoneError(Exception):
    """Say what the power function tried and could not do: the answer to a command is no."""


@dataclass(frozen=True, kw_only=True)
class PowerFunction:
    """The power function of a cluster.

    Attributes:
        target: The cluster.
        pause: Waits for some seconds.
    """

    target: Target
    pause: Callable[[float], object]

    def send(self, event: Mapping[str, object]) -> Mapping[str, Any]:
        """Send a command and return the answer; while the function is busy, try again for about a minute.

        Args:
            event: The command.

        Raises:
            NotDoneError: The function tried, and a part failed.
            ValueError: The function refuses the command, cannot be invoked, or its answer was lost.
        """
        function = self._function()
        with plain_refusals("the power function", _REFUSALS):
            answer, text = self._invoke(function.invoke, event)
            content = json.loads(text)
        if not answer.get("FunctionError"):
            return dict(content)
        said = str(content.get("errorMessage", content))
        if content.get("errorType") == "PartialFailureError":
            raise NotDoneError(said.rstrip("."))
        raise ValueError(f"the power function refuses: {said.rstrip('.')} (its log group is {function.log_group})")

    def status(self, node_groups: Sequence[str] = ()) -> Mapping[str, Any]:
        """Return how node groups are.

        Args:
            node_groups: Their names. Default: - all

        Raises:
            ValueError: As for `send`.
        """
        return self.send({"action": "status", **_named(node_groups)})

    def command(
        self, action: str, node_groups: Sequence[str], reason: str | None, **more: object
    ) -> Mapping[str, Any]:
        """Send a command that says who asks and why, and return the answer.

        Args:
            action: What to do.
            node_groups: The node groups' names. Empty: all.
            reason: Why. None: no reason is given.
            more: What else the command says.

        Raises:
            NotDoneError: As for `send`.
            ValueError: As for `send`; or the reason is too long, or the credentials are of another account than the
                cluster file's.
        """
        why = f"{caller(self.target)}: {reason or 'no reason given'}"
        if len(why) > _MAX_REASON:
            most = _MAX_REASON - len(why) + len(reason or "")
            raise ValueError(
                f"--reason must be at most {most} characters, since your name stands before it, got more"
            )
        return self.send({"action": action, "reason": why, **_named(node_groups), **more})

    def _function(self) -> FunctionDescription:
        return self.target.description.functions["power"]

    def _invoke(self, name: str, event: Mapping[str, object]) -> tuple[Any, bytes]:
        """Return Lambda's answer, and the function's."""
        from botocore import exceptions as lost  # noqa: PLC0415 - what asks AWS nothing does without it
        from botocore.config import Config  # noqa: PLC0415

        # A request whose answer is lost is not sent again, unless it only looks: a command might be applied twice.
        attempts = _LOOKS if event["action"] == "status" else 1
        config = Config(retries={"mode": "standard", "total_max_attempts": attempts}, read_timeout=90)
        client = self.target.session.client("lambda", region_name=self.target.region, config=config)
        pauses = iter(_PAUSES)
        while True:
            try:
                answer = client.invoke(FunctionName=name, Payload=json.dumps(event).encode())
                return answer, answer["Payload"].read()
            except lost.ClientError as error:
                pause = next(pauses, None) if error.response["Error"]["Code"] == _BUSY else None
                if pause is None:
                    raise
                self.pause(pause)
            except (lost.ReadTimeoutError, lost.ConnectionClosedError, lost.ResponseStreamingError) as error:
                raise ValueError(self._lost(str(event["action"]))) from error

    def _lost(self, action: str) -> str:
        done = "" if action == "status" else f": {action} may have been done"
        return f"the power function's answer was lost{done}; look with training-cluster status {self.target.name}"


def caller(target: Target) -> str:
    """Return who the credentials are: the role and its session, or the user.

    Args:
        target: The cluster, whose file may name the account.

    Raises:
        ValueError: AWS refuses, or the credentials are of another account than the cluster file's.

    Source: https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html
    """
    with plain_refusals("the identity of the credentials"):
        found = target.client("sts").get_caller_identity()
    if target.file is not None and target.file.account not in (None, found["Account"]):
        raise ValueError(
            f"the cluster file names the account {target.file.account} and the credentials are of "
            f"{found['Account']}: set AWS_PROFILE or --profile, or correct account"
        )
    return str(found["Arn"]).split(":", 5)[5].removeprefix("assumed-role/").removeprefix("user/")


def _named(node_groups: Sequence[str]) -> Mapping[str, object]:
    return {"node_groups": list(node_groups)} if node_groups else {}
