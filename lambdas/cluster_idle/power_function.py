"""The power function, which owns the sizes of node groups: it is asked, and what it answers is believed."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from cluster_common.errors import AWS_ERRORS, error_code
from cluster_common.failures import Failures

if TYPE_CHECKING:
    from mypy_boto3_lambda.client import LambdaClient
    from mypy_boto3_lambda.type_defs import InvocationResponseTypeDef

# How many seconds to wait for the power function, which runs once at a time and looks at all groups each minute.
# https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html
_PAUSES = (2, 4, 8, 16)

FUNCTION = "cluster_idle"
"""Who orders a stop, as the power function writes it down."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the power function says.

    Attributes:
        groups: What it says of each group that owns nodes of the node group.
        failed: Whether it failed, or did not answer.
    """

    groups: Sequence[Mapping[str, Any]] = ()
    failed: bool = False

    @property
    def terminated(self) -> frozenset[str]:
        """The ids of the nodes that go."""
        return frozenset(one for group in self.groups for one in group.get("terminated") or ())


class PowerFunction:
    """Give orders to the power function."""

    def __init__(
        self,
        client: "Callable[[], LambdaClient]",
        name: str | None,
        failures: Failures,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._name = name or ""
        self._failures = failures
        self._pause = pause

    def order(self, order: Mapping[str, object], node_group: str, reason: str) -> Answer:
        """Order something for a node group, and return what came of it.

        Args:
            order: The event.
            node_group: The node group.
            reason: Why, for people who ask later.
        """
        payload = json.dumps({**order, "by": FUNCTION, "reason": reason})
        try:
            answer = self._invoke(payload)
            told = answer["Payload"].read().decode(errors="replace")
        except AWS_ERRORS as error:
            self._failures.add(node_group, "the power function could not be asked to stop it", error)
            return Answer(failed=True)
        content = _content(told)
        if answer.get("FunctionError") or content is None:
            why = str((content or {}).get("errorMessage", told))
            self._failures.add_sentence(node_group, f"the power function could not stop it ({why})")
            return Answer(failed=True)
        groups = content.get("node_groups")
        if not isinstance(groups, list) or not all(isinstance(group, dict) for group in groups):
            self._failures.add_sentence(node_group, f"the power function answered {told[:200]}")
            return Answer(failed=True)
        return Answer(groups=groups)

    def _invoke(self, payload: str) -> "InvocationResponseTypeDef":
        """Invoke the function once, and again only where it was not: one that runs already takes no other call."""
        for seconds in _PAUSES:
            try:
                return self._invoke_once(payload)
            except ClientError as error:
                if error_code(error) != "TooManyRequestsException":
                    raise
                self._pause(seconds)
        return self._invoke_once(payload)

    def _invoke_once(self, payload: str) -> "InvocationResponseTypeDef":
        return self._client().invoke(
            FunctionName=self._name, InvocationType="RequestResponse", Payload=payload.encode()
        )


def _content(payload: str) -> Mapping[str, Any] | None:
    try:
        content = json.loads(payload)
    except ValueError:
        return None
    return content if isinstance(content, dict) else None
