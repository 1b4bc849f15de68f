"""Lambda's Invoke: the function's own zip in a process of its own, where moto needs Docker.

https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
"""

import base64
import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import unquote

from rehearsal.functions import DeployedFunction
from rehearsal.local_aws.refusal import Refusal

logger = logging.getLogger("local_aws")

_TAIL = 4096
_Answer = tuple[int, dict[str, str], bytes]


@dataclass
class Invocations:
    """Where functions run, and how much later than now they believe it to be."""

    workspace: Path = Path()
    environment: Mapping[str, str] = field(default_factory=dict)
    later: timedelta = timedelta()
    _unpacked: dict[str, DeployedFunction] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def function(self, made: Any, region: str) -> DeployedFunction:
        """Return a function, ready to be called; it is unpacked again only when something of it changed."""
        configuration = made.get_configuration()
        said = json.dumps(configuration, sort_keys=True, default=str).encode()
        key = hashlib.sha256(said + made.code_bytes).hexdigest()
        with self._lock:
            if key not in self._unpacked:
                environment = {**self.environment, "AWS_REGION": region, "AWS_DEFAULT_REGION": region}
                self._unpacked[key] = DeployedFunction(
                    configuration, made.code_bytes, self.workspace / key[:16], environment
                )
            return self._unpacked[key]


INVOCATIONS = Invocations()


def invoke(response: Any) -> _Answer:
    """Carry out Invoke. One of type Event has ended when the request is answered, so that a test sees its effects."""
    function = response.backend.get_function(unquote(response.path.rstrip("/").rsplit("/", 2)[-2]))
    kind = response.headers.get("X-Amz-Invocation-Type") or "RequestResponse"
    event = _event(response.body)
    if kind == "DryRun":
        return 204, {"status": "204"}, b""
    outcome = INVOCATIONS.function(function, response.region).run(event, later=INVOCATIONS.later)
    for line in outcome.output.splitlines():
        logger.info("%s: %s", function.function_name, line)
    if kind == "Event":
        return 202, {"status": "202"}, b""
    headers = {"Content-Type": "application/json", "X-Amz-Executed-Version": "$LATEST"}
    if response.headers.get("X-Amz-Log-Type") == "Tail":
        headers["X-Amz-Log-Result"] = base64.b64encode(outcome.output.encode()[-_TAIL:]).decode()
    if outcome.error is not None:
        headers["X-Amz-Function-Error"] = "Unhandled"
        return 200, headers, json.dumps(outcome.error).encode()
    return 200, headers, json.dumps(outcome.result).encode()


def _event(body: str | bytes | None) -> Any:
    try:
        return json.loads(body or "{}")
    except ValueError as error:
        raise Refusal("InvalidRequestContentException", f"Could not parse request body into json: {error}") from error


def set_clock(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Let functions that are invoked believe that it is so many seconds later."""
    INVOCATIONS.later = timedelta(seconds=float(request["seconds"]))
    return {}
