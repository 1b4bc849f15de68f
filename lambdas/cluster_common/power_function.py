"""Commands to the power function, which sets the sizes of node groups: each is sent once, and its answer is read."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from cluster_common.errors import AWS_ERRORS, error_code, error_text
from cluster_contract.aliases import Alias

if TYPE_CHECKING:
    from mypy_boto3_lambda.client import LambdaClient
    from mypy_boto3_lambda.type_defs import InvocationResponseTypeDef

# Only one invocation of the power function runs at a time. Lambda refuses another before it runs it, so that asking
# again does nothing twice; the pauses, in seconds, are longer than one may run.
# https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
_THROTTLED = "TooManyRequestsException"
_PAUSES = (2.0, 4.0, 8.0, 16.0, 32.0)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the power function says.

    Attributes:
        groups: Its answer for each group that owns nodes of the node group.
        failures: What it could not read, a sentence each: its answer for a group may be incomplete.
        failure: Why it failed, or its answer is not known. Empty: it answered.
        not_asked: Whether the command was not sent, because it was due no longer.
    """

    groups: Sequence[Mapping[str, Any]] = ()
    failures: Sequence[str] = ()
    failure: str = ""
    not_asked: bool = False

    @property
    def terminated(self) -> frozenset[str]:
        """The ids of the nodes that go."""
        return frozenset(one for group in self.groups for one in group.get("terminated") or ())


class PowerFunction:
    """Send commands to the power function."""

    def __init__(
        self, client: "Callable[[], LambdaClient]", name: str, alias: Alias, pause: Callable[[float], None]
    ) -> None:
        """Send nothing yet.

        Args:
            client: Makes the client of Lambda, which sends a request once.
            name: The power function's name.
            alias: The alias that the caller may invoke.
            pause: Waits for some seconds.
        """
        self._client = client
        self._name = name
        self._alias = alias
        self._pause = pause

    def send(self, command: Mapping[str, object], reason: str, is_due: Callable[[], bool]) -> Answer:
        """Send a command, once, and return the power function's answer.

        Args:
            command: The event.
            reason: Why, which the power function records.
            is_due: Says, after each pause, whether the command is due still.
        """
        payload = json.dumps({**command, "reason": reason}).encode()
        try:
            answer = self._invoke(payload, is_due)
            if answer is None:
                return Answer(not_asked=True)
            text = answer["Payload"].read().decode(errors="replace")
        except AWS_ERRORS as error:
            return Answer(failure=f"{self._name} could not be invoked ({error_text(error)})")
        content = _content(text)
        if answer.get("FunctionError") or content is None:
            return Answer(failure=str((content or {}).get("errorMessage", text)))
        groups = content.get("node_groups")
        if not isinstance(groups, list) or not all(isinstance(group, dict) for group in groups):
            return Answer(failure=f"{self._name} answered {text[:200]}")
        return Answer(groups=groups, failures=[str(one) for one in content.get("failures", ())])

    def _invoke(self, payload: bytes, is_due: Callable[[], bool]) -> "InvocationResponseTypeDef | None":
        """Invoke it; while another invocation runs, wait, and invoke it again if the command is due still."""
        for pause in _PAUSES:
            try:
                return self._invoke_once(payload)
            except ClientError as error:
                if error_code(error) != _THROTTLED:
                    raise
                self._pause(pause)
            if not is_due():
                return None
        return self._invoke_once(payload)

    def _invoke_once(self, payload: bytes) -> "InvocationResponseTypeDef":
        return self._client().invoke(
            FunctionName=self._name, Qualifier=self._alias, InvocationType="RequestResponse", Payload=payload
        )


def _content(payload: str) -> Mapping[str, Any] | None:
    try:
        content = json.loads(payload)
    except ValueError:
        return None
    return content if isinstance(content, dict) else None
