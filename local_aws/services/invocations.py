"""Lambda's Invoke: the function's own zip in a process of its own, where moto needs Docker.

https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
"""

import base64
import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import wraps
from pathlib import Path
from threading import Condition, Lock
from typing import Any

from moto.core.utils import unix_time_millis
from moto.logs.exceptions import ResourceAlreadyExistsException

from local_aws.functions import DeployedFunction, Outcome
from local_aws.refusal import Refusal
from local_aws.services import event_invocations, keys

logger = logging.getLogger("local_aws")

_TAIL, _STREAM = 4096, "local"
# Longer than any function here may run.
_LONGEST_WAIT_SECONDS = 120
_Answer = tuple[int, dict[str, str], bytes]


@dataclass
class Invocations:
    """Where functions run, and how much later than now they believe it to be."""

    workspace: Path = Path()
    environment: Mapping[str, str] = field(default_factory=dict)
    later: timedelta = timedelta()
    _unpacked: dict[str, DeployedFunction] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)
    _running: dict[str, int] = field(default_factory=dict)
    _ended: Condition = field(default_factory=Condition)

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

    def run(self, made: Any, region: str, event: Any, *, alias: str = "", waits: bool) -> Outcome:
        """Call a function once, within its reserved concurrency.

        Args:
            made: The function.
            region: The region it is in.
            event: The event.
            alias: The alias that it is called through. Default: - none.
            waits: Whether the event waits until the function is free; else it is refused.
        """
        keys.check_environment(made)
        with self._place(made, waits=waits):
            outcome = self.function(made, region).run(event, later=self.later, alias=alias)
        for line in outcome.output.splitlines():
            logger.info("%s: %s", made.function_name, line)
        self._log(made, outcome.output)
        return outcome

    def _log(self, made: Any, output: str) -> None:
        """Write what a function wrote into its log group, in the stream of the one environment that it runs in."""
        group = made.logs_group_name
        now = int(unix_time_millis() + self.later.total_seconds() * 1000)
        events = [{"timestamp": now, "message": line} for line in output.splitlines() if line]
        made.logs_backend.ensure_log_group(group)
        with suppress(ResourceAlreadyExistsException):
            made.logs_backend.create_log_stream(group, _STREAM)
        made.logs_backend.put_log_events(group, _STREAM, events)

    @contextmanager
    def _place(self, made: Any, *, waits: bool) -> Iterator[None]:
        arn, reserved = made.function_arn, made.reserved_concurrency

        def free() -> bool:
            return reserved is None or self._running.get(arn, 0) < int(reserved)

        with self._ended:
            # https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html#API_Invoke_Errors
            if not (self._ended.wait_for(free, _LONGEST_WAIT_SECONDS) if waits else free()):
                raise Refusal("TooManyRequestsException", "Rate Exceeded.")
            self._running[arn] = self._running.get(arn, 0) + 1
        try:
            yield
        finally:
            with self._ended:
                self._running[arn] -= 1
                self._ended.notify_all()


INVOCATIONS = Invocations()


def with_log_group(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return CreateFunction so that the function writes into the log group that it is given.

    https://docs.aws.amazon.com/lambda/latest/api/API_LoggingConfig.html
    """

    @wraps(original)
    def create_function(backend: Any, spec: dict[str, Any]) -> Any:
        made = original(backend, spec)
        made.logs_group_name = spec.get("LoggingConfig", {}).get("LogGroup", made.logs_group_name)
        return made

    return create_function


def invoke(response: Any) -> _Answer:
    """Answer Invoke. One of type Event has ended when the request is answered, so that a test sees its effects."""
    function, alias = event_invocations.qualified(response)
    kind = response.headers.get("X-Amz-Invocation-Type") or "RequestResponse"
    event = _event(response.body)
    if kind == "DryRun":
        return 204, {"status": "204"}, b""
    if kind == "Event":
        handle(function, response.region, event, alias)
        return 202, {"status": "202"}, b""
    outcome = INVOCATIONS.run(function, response.region, event, alias=alias, waits=False)
    headers = {"Content-Type": "application/json", "X-Amz-Executed-Version": "$LATEST"}
    if response.headers.get("X-Amz-Log-Type") == "Tail":
        headers["X-Amz-Log-Result"] = base64.b64encode(outcome.output.encode()[-_TAIL:]).decode()
    if outcome.error is not None:
        headers["X-Amz-Function-Error"] = "Unhandled"
        return 200, headers, json.dumps(outcome.error).encode()
    return 200, headers, json.dumps(outcome.result).encode()


def handle(function: Any, region: str, event: Any, alias: str = "") -> None:
    """Let a function handle an event, as often as its settings say where it fails; a failed one is kept.

    Args:
        function: The function.
        region: Its region.
        event: The event.
        alias: The alias that it is called through. Default: - none.
    """
    tries = 1 + event_invocations.retries(function, alias)
    for done in range(1, tries + 1):
        outcome = INVOCATIONS.run(function, region, event, alias=alias, waits=True)
        if outcome.error is None:
            return
        if done == tries:
            endpoint_url = INVOCATIONS.environment["AWS_ENDPOINT_URL"]
            event_invocations.keep_failed(function, alias, event, outcome, endpoint_url)


def _event(body: str | bytes | None) -> Any:
    try:
        return json.loads(body or "{}")
    except ValueError as error:
        raise Refusal("InvalidRequestContentException", f"Could not parse request body into json: {error}") from error


def set_clock(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Let functions that are invoked believe that it is so many seconds later."""
    INVOCATIONS.later = timedelta(seconds=float(request["seconds"]))
    return {}
