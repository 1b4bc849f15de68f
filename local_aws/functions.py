"""Runs a deployed function's own code, as the service would: its zip, its environment, a process of its own."""

import io
import json
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

from local_aws import settings

_NOW = timedelta()

# The interpreter starts with neither the project nor the site's .pth files on its path: only the function's zip
# and, in place of the runtime and its layer, the installed boto3 and Powertools.
_RUNNER = """
import importlib, json, os, sys, traceback
from time import monotonic
code, packages, handler = sys.argv[1:4]
sys.path[:] = [code, *sys.path, packages]
started, timeout = monotonic(), float(os.environ.pop("LOCAL_AWS_TIMEOUT"))
result, later = os.environ.pop("LOCAL_AWS_RESULT"), float(os.environ.pop("LOCAL_AWS_LATER"))
if later:
    import time, time_machine
    time_machine.travel(time.time() + later, tick=True).start()
module, name = handler.rsplit(".", 1)
class Context:
    function_name = os.environ["AWS_LAMBDA_FUNCTION_NAME"]
    memory_limit_in_mb = int(os.environ["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"])
    invoked_function_arn = os.environ["LOCAL_AWS_FUNCTION_ARN"]
    aws_request_id = "00000000-0000-4000-8000-000000000000"
    def get_remaining_time_in_millis(self):
        return int((started + timeout - monotonic()) * 1000)
try:
    outcome = {"result": getattr(importlib.import_module(module), name)(json.load(sys.stdin), Context())}
    said = json.dumps(outcome)
except Exception as error:
    traceback.print_exc()
    outcome = {"error": {"errorMessage": str(error), "errorType": type(error).__name__}}
    said = json.dumps(outcome)
with open(result, "w") as file:
    file.write(said)
"""


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
        result = self._directory / f"{uuid4()}.json"
        try:
            ended = self._start(event, self._variables(result, later, alias))
        except subprocess.TimeoutExpired as stopped:
            # https://docs.aws.amazon.com/lambda/latest/dg/troubleshooting-invocation.html
            message = f"Task timed out after {self._timeout:.2f} seconds"
            said = b"".join(part for part in (stopped.stdout, stopped.stderr) if isinstance(part, bytes))
            with self._log.open("a") as file:
                file.write(f"{said.decode(errors='replace')}{message}\n")
            return Outcome(message, error={"errorMessage": message, "errorType": "Sandbox.Timedout"})
        output = ended.stdout + ended.stderr
        with self._log.open("a") as file:
            file.write(output)
        if not result.exists():
            message = f"{self.name} ended with exit status {ended.returncode}"
            return Outcome(output, error={"errorMessage": message, "errorType": "Runtime.ExitError"})
        outcome = Outcome(output, **json.loads(result.read_text()))
        result.unlink()
        return outcome

    @property
    def _log(self) -> Path:
        return self._directory / "log.jsonl"

    @property
    def _timeout(self) -> float:
        """The function's own, in seconds."""
        return float(self._configuration["Timeout"])

    def _start(self, event: Any, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [
                sys.executable,
                "-I",
                "-S",
                "-c",
                _RUNNER,
                str(self._code),
                sysconfig.get_path("purelib"),
                self._configuration["Handler"],
            ],
            input=json.dumps(event),
            env=variables,
            cwd=self._code,
            capture_output=True,
            text=True,
            timeout=self._timeout,
            check=False,
        )

    def _variables(self, result: Path, later: timedelta, alias: str) -> dict[str, str]:
        configuration = self._configuration
        region = self._environment["AWS_REGION"]
        inherited = {key: value for key, value in self._environment.items() if key.startswith(("AWS_", "NO_PROXY"))}
        # The CDK CLI, which has the same variables, needs S3 by its other name.
        inherited["AWS_ENDPOINT_URL_S3"] = settings.for_directory_buckets(inherited["AWS_ENDPOINT_URL"])
        inherited["AWS_S3_DISABLE_EXPRESS_SESSION_AUTH"] = "true"
        return {
            **inherited,
            **configuration.get("Environment", {}).get("Variables", {}),
            "AWS_REGION": region,
            "AWS_DEFAULT_REGION": region,
            "AWS_LAMBDA_FUNCTION_NAME": self.name,
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(configuration["MemorySize"]),
            "AWS_LAMBDA_LOG_STREAM_NAME": "rehearsal",
            "LOCAL_AWS_FUNCTION_ARN": configuration["FunctionArn"] + (f":{alias}" if alias else ""),
            "LOCAL_AWS_LATER": str(later.total_seconds()),
            "LOCAL_AWS_RESULT": str(result),
            "LOCAL_AWS_TIMEOUT": str(self._timeout),
        }
