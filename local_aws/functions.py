"""Runs a deployed function's own code, as the service would: its zip, its environment, a process of its own."""

import atexit
import io
import json
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

from local_aws import defaults, function_process

_NOW = timedelta()


class FunctionFailedError(Exception):
    """The function's code failed; the text is one sentence with the error and the log that has the rest."""


@dataclass(frozen=True)
class Outcome:
    """How one call of a function ended.

    Attributes:
        output: What it wrote, and what the interpreter said.
        result: What the handler returned.
        error: If it failed, Lambda's payload for that: `errorMessage` and `errorType`.
    """

    output: str
    result: Any = None
    error: Mapping[str, str] | None = None


class _Runtime:
    """The process in whose forks functions run: it starts with the first call, and ends with this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def call(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """Run a function, and return what it wrote, its outcome as JSON, and its process's exit status.

        Args:
            call: What `function_process` needs to know.
        """
        ours, theirs = socket.socketpair()
        with ours:
            with theirs, self._lock:
                socket.send_fds(self._reach(), [b"."], [theirs.fileno()])
            ours.sendall(json.dumps(call).encode())
            ours.shutdown(socket.SHUT_WR)
            with ours.makefile("rb") as file:
                answer = file.read()
        if not answer:
            raise FunctionFailedError("the process that functions run in ended while one ran")
        ended: dict[str, Any] = json.loads(answer)
        return ended

    def _reach(self) -> socket.socket:
        """Return the socket of the process, which is started where there is none."""
        if self._process is None or self._process.poll() is not None:
            self._control, theirs = socket.socketpair()
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", function_process.__file__, sysconfig.get_path("purelib")],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    env={"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull},
                )
            atexit.register(self._end, self._process, self._control)
        return self._control

    @staticmethod
    def _end(process: subprocess.Popen[bytes], control: socket.socket) -> None:
        control.close()
        process.wait()


_RUNTIME = _Runtime()


class DeployedFunction:
    """A function that CloudFormation made, ready to be called."""

    def __init__(
        self, configuration: Mapping[str, Any], code: bytes, workspace: Path, environment: Mapping[str, str]
    ) -> None:
        """Unpack the code, if it is not unpacked there.

        Args:
            configuration: What GetFunctionConfiguration says of it.
            code: The zip that was uploaded for it.
            workspace: A directory for the code and the log.
            environment: The variables that point clients at the local AWS; nothing else is inherited.
        """
        self.name = str(configuration["FunctionName"])
        self._configuration = configuration
        self._environment = environment
        self._directory = workspace / self.name
        # Unpacked again, the same code would be compiled again.
        self._code = self._directory / sha256(code).hexdigest()[:16]
        if not self._code.exists():
            with zipfile.ZipFile(io.BytesIO(code)) as archive:
                archive.extractall(self._code)

    def __call__(self, event: Any, *, later: timedelta = _NOW, alias: str = "") -> Any:
        """Call the handler once and return what it returned.

        Args:
            event: The event, as the schedule or a person would send it.
            later: How much later than now the function's process believes it to be.
            alias: The alias that it is called through. Default: - none.

        Raises:
            FunctionFailedError: The handler raised, or did not end.
        """
        outcome = self.run(event, later=later, alias=alias)
        if outcome.error is not None:
            said = (outcome.output.strip() or outcome.error["errorMessage"]).splitlines()
            raise FunctionFailedError(f"the function {self.name} failed: {said[-1]}; see {self._log}")
        return outcome.result

    def run(self, event: Any, *, later: timedelta = _NOW, alias: str = "") -> Outcome:
        """Call the handler once and tell how that ended; what it wrote is appended to the log.

        Args:
            event: As for a call.
            later: As for a call.
            alias: As for a call.
        """
        ended = _RUNTIME.call(
            {
                "code": str(self._code),
                "handler": self._configuration["Handler"],
                "arn": self._configuration["FunctionArn"] + (f":{alias}" if alias else ""),
                "variables": self._variables(),
                "timeout": self._timeout,
                "later": later.total_seconds(),
                "event": event,
            }
        )
        error = None
        if ended["status"] == -signal.SIGALRM:
            # https://docs.aws.amazon.com/lambda/latest/dg/troubleshooting-invocation.html
            error = "Sandbox.Timedout", f"Task timed out after {self._timeout:.2f} seconds"
            ended["output"] += f"{error[1]}\n"
        elif not ended["outcome"]:
            error = "Runtime.ExitError", f"{self.name} ended with exit status {ended['status']}"
        with self._log.open("a") as file:
            file.write(ended["output"])
        if error is not None:
            return Outcome(ended["output"], error={"errorMessage": error[1], "errorType": error[0]})
        return Outcome(ended["output"], **json.loads(ended["outcome"]))

    @property
    def _log(self) -> Path:
        return self._directory / "log.jsonl"

    @property
    def _timeout(self) -> float:
        """The function's own, in seconds."""
        return float(self._configuration["Timeout"])

    def _variables(self) -> dict[str, str]:
        configuration = self._configuration
        region = self._environment["AWS_REGION"]
        inherited = {key: value for key, value in self._environment.items() if key.startswith(("AWS_", "NO_PROXY"))}
        # The CDK CLI, which has the same variables, needs S3 by its other name.
        inherited["AWS_ENDPOINT_URL_S3"] = defaults.for_directory_buckets(inherited["AWS_ENDPOINT_URL"])
        inherited["AWS_S3_DISABLE_EXPRESS_SESSION_AUTH"] = "true"
        return {
            **inherited,
            **configuration.get("Environment", {}).get("Variables", {}),
            "AWS_ACCESS_KEY_ID": defaults.access_key_of(configuration.get("Role", "")),
            "AWS_REGION": region,
            "AWS_DEFAULT_REGION": region,
            "AWS_LAMBDA_FUNCTION_NAME": self.name,
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(configuration["MemorySize"]),
            "AWS_LAMBDA_LOG_STREAM_NAME": "rehearsal",
        }
