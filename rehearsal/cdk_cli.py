"""The real CDK CLI, run as a user runs it, against the local AWS."""

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rehearsal.cdk_output import reason

_PROJECT = Path(__file__).parents[1]
# The CLI needs `node`, and the app `python`: the virtual environment has both.
_TOOLS = f"{Path(sys.executable).parent}:{_PROJECT / 'node_modules' / '.bin'}"
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class CdkFailedError(Exception):
    """The CDK CLI failed; the text is one sentence with the reason and the log that has the rest."""


@dataclass(frozen=True, kw_only=True)
class CdkCli:
    """Runs the pinned CDK CLI of this project.

    Attributes:
        environment: The variables that point it at the local AWS.
        cluster_file: The cluster file, given to the app as context.
        output: Where the cloud assembly is written to.
        log: Where all that it says is written to.
        account: The account of the local AWS.
        region: The region of the cluster file.
        seconds: How long one command may take. Default: 1800
        synthesized: Whether the cloud assembly is there already, and no app is to be run. Default: False
    """

    environment: Mapping[str, str]
    cluster_file: Path
    output: Path
    log: Path
    account: str
    region: str
    seconds: float = 1800
    synthesized: bool = False

    def bootstrap(self) -> None:
        """Make CDK's own resources in the account and region: `cdk bootstrap`."""
        # Beside cdk.json CDK would run the app too, for environments that are named already.
        self._run(["bootstrap", f"aws://{self.account}/{self.region}"], directory=self.log.parent)

    def synth(self) -> None:
        """Run the app and write its cloud assembly, with CDK's own template validation: `cdk synth`."""
        self._run(["synth", "--quiet", *self._app()], validation=True)

    def deploy(self, stack: str | None = None, *, assembly: bool = False, exclusively: bool = False) -> str:
        """Deploy one stack, or all: `cdk deploy`. Returns what the CLI said.

        Args:
            stack: The stack's name. Default: - all.
            assembly: Deploy what `synth` wrote, instead of running the app again.
            exclusively: Leave the stacks alone that it depends on.
        """
        app = ["--app", str(self.output)] if assembly else self._app()
        # Direct: the local AWS evaluates no outputs in change sets.
        return self._run(
            [
                "deploy",
                stack or "--all",
                "--method=direct",
                "--require-approval=never",
                "--concurrency=1",
                *(["--exclusively"] if exclusively else []),
                *app,
            ]
        )

    def destroy(self, stack: str) -> str:
        """Destroy one stack: `cdk destroy --exclusively`. Returns what the CLI said."""
        return self._run(["destroy", stack, "--force", "--exclusively", "--app", str(self.output)])

    def take_over(self, stack: str, mapping: Path) -> str:
        """Bring what exists under a stack: `cdk import --resource-mapping`. Returns what the CLI said.

        Args:
            stack: The stack's name.
            mapping: The file with the identifiers of resources, by their logical ids.
        """
        return self._run(["import", stack, "--resource-mapping", str(mapping), *self._app()])

    def _app(self) -> list[str]:
        if self.synthesized:
            return ["--app", str(self.output)]
        return ["--context", f"cluster={self.cluster_file}", "--output", str(self.output)]

    def _run(self, arguments: Sequence[str], *, directory: Path = _PROJECT, validation: bool = False) -> str:
        """Run a command with its output going to the log, which can be read while it runs.

        CDK validates templates in each process that synthesizes, which takes seconds: once is enough.
        """
        command = ["cdk", *arguments, "--no-notices", "--no-color", "--ci", "--progress=events"]
        name = f"cdk {arguments[0]}"
        with self.log.open("a+", encoding="utf-8", errors="replace") as log:
            log.write(f"$ {' '.join(command)}\n")
            log.flush()
            start = log.tell()
            try:
                ended = subprocess.run(
                    command,
                    cwd=directory,
                    env={
                        **self.environment,
                        "PATH": f"{_TOOLS}:{self.environment['PATH']}",
                        **({} if validation else {"CDK_VALIDATION": "false"}),
                    },
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    timeout=self.seconds,
                    check=False,
                )
            except subprocess.TimeoutExpired as error:
                raise CdkFailedError(f"{name} did not end within {self.seconds:g} s; see {self.log}") from error
            except FileNotFoundError as error:
                raise CdkFailedError(
                    f"{name} could not start: there is no {error.filename}; run make setup"
                ) from error
            log.seek(start)
            said = _COLOURS.sub("", log.read())
        if ended.returncode != 0:
            raise CdkFailedError(f"{name} failed: {reason(said)}; see {self.log}")
        return said
