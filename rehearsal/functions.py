"""Runs a deployed function's own code, as the service would: its zip, its environment, a process of its own."""

import io
import json
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_SECONDS = 60

# The interpreter starts with neither the project nor the site's .pth files on its path: only the function's zip
# and, in place of the runtime and its layer, the installed boto3 and Powertools.
_RUNNER = """
import importlib, json, os, sys
code, packages, handler = sys.argv[1:4]
sys.path[:] = [code, *sys.path, packages]
module, name = handler.rsplit(".", 1)
class Context:
    function_name = os.environ["AWS_LAMBDA_FUNCTION_NAME"]
    memory_limit_in_mb = int(os.environ["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"])
    invoked_function_arn = os.environ["REHEARSAL_FUNCTION_ARN"]
    aws_request_id = "00000000-0000-4000-8000-000000000000"
    def get_remaining_time_in_millis(self):
        return 60000
result = getattr(importlib.import_module(module), name)(json.load(sys.stdin), Context())
with open(os.environ["REHEARSAL_RESULT"], "w") as file:
    json.dump(result, file)
"""


class FunctionFailedError(Exception):
    """The function's code failed; the text is one sentence with the error and the log that has the rest."""


class DeployedFunction:
    """A function that CloudFormation made, ready to be called."""

    def __init__(
        self, configuration: Mapping[str, Any], code: bytes, workspace: Path, environment: Mapping[str, str]
    ) -> None:
        """Unpack the code.

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
        self._code = self._directory / "code"
        with zipfile.ZipFile(io.BytesIO(code)) as archive:
            archive.extractall(self._code)

    def __call__(self, event: Mapping[str, Any]) -> Any:
        """Call the handler once and return what it returned.

        Args:
            event: The event, as the schedule or a person would send it.

        Raises:
            FunctionFailedError: The handler raised, or did not end.
        """
        result = self._directory / "result.json"
        try:
            ended = self._run(event, result)
        except subprocess.TimeoutExpired as error:
            raise FunctionFailedError(f"{self.name} did not end within {_SECONDS} s") from error
        log = self._directory / "log.jsonl"
        with log.open("a") as file:
            file.write(ended.stdout + ended.stderr)
        if ended.returncode != 0:
            said = (ended.stderr.strip() or ended.stdout.strip() or f"exit status {ended.returncode}").splitlines()
            raise FunctionFailedError(f"the function {self.name} failed: {said[-1]}; see {log}")
        return json.loads(result.read_text())

    def _run(self, event: Mapping[str, Any], result: Path) -> subprocess.CompletedProcess[str]:
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
            env=self._variables(result),
            cwd=self._code,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )

    def _variables(self, result: Path) -> dict[str, str]:
        configuration = self._configuration
        region = self._environment["AWS_REGION"]
        inherited = {key: value for key, value in self._environment.items() if key.startswith(("AWS_", "NO_PROXY"))}
        return {
            **inherited,
            **configuration.get("Environment", {}).get("Variables", {}),
            "AWS_REGION": region,
            "AWS_DEFAULT_REGION": region,
            "AWS_LAMBDA_FUNCTION_NAME": self.name,
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(configuration["MemorySize"]),
            "AWS_LAMBDA_LOG_STREAM_NAME": "rehearsal",
            "REHEARSAL_FUNCTION_ARN": configuration["FunctionArn"],
            "REHEARSAL_RESULT": str(result),
        }
