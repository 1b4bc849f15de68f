"""Runs the user's CDK CLI with the app of a cluster file, so that no app.py and no cdk.json is needed."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from cdk_training_cluster_cli.core.session import about_credentials, aws_session, refusal
from cdk_training_cluster_file import (
    ClusterFile,
    has_past_end,
    read_cluster_file,
    refuse_past_ends,
    warn_of_past_ends,
)

if TYPE_CHECKING:
    import boto3

CLI_VERSION = "2.1148.1"
"""The release of the CDK CLI that this library is tested with. What npm calls the latest is an incompatible 3.0."""

_INSTALL = f"npm install --global aws-cdk@{CLI_VERSION}"

# https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping-env.html
_BOOTSTRAP_VERSION = "/cdk-bootstrap/hnb659fds/version"
_OTHER_BOOTSTRAP = "bootstrapQualifier"

# https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html
_NEVER_CREATED = frozenset({"REVIEW_IN_PROGRESS", "CREATE_FAILED", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED"})

# No cdk.json is needed, and what one says of the app does not count.
_APP = shlex.join([sys.executable, "-m", "cdk_training_cluster_stacks.app"])


class CdkCommand(StrEnum):
    """What the CDK CLI is asked to do."""

    SYNTH = "synth"
    DIFF = "diff"
    BOOTSTRAP = "bootstrap"
    DEPLOY = "deploy"
    DESTROY = "destroy"

    def arguments(self, cluster: ClusterFile, *, all: bool) -> list[str]:
        """Return the command's own arguments.

        Args:
            cluster: What the cluster file says.
            all: Whether both stacks are meant. Otherwise it is the one with the nodes alone.
        """
        match self:
            case CdkCommand.SYNTH:
                return ["--quiet"]
            case CdkCommand.DEPLOY | CdkCommand.DESTROY:
                return ["--all"] if all else [cluster.cluster_stack_name, "--exclusively"]
            case _:
                return []


_MAKES = (CdkCommand.SYNTH, CdkCommand.DIFF, CdkCommand.DEPLOY)


def run(
    command: CdkCommand, file: Path, *, profile: str | None = None, all: bool = True, others: Sequence[str] = ()
) -> int:
    """Run the CDK CLI for a cluster file, in this directory and on this terminal, and return its exit status.

    Args:
        command: What it does.
        file: The cluster file.
        profile: The profile of the AWS configuration. Default: - `AWS_PROFILE`, or the default one
        all: Whether `deploy` and `destroy` mean the foundation too. Default: - they do
        others: More arguments for the CDK CLI.

    Raises:
        ValueError: The CLI is missing or another one than 2.x, there are no credentials, or they are of another
            account than the file's, or the account is not bootstrapped.
        ClusterFileError: The file is wrong, or a reservation of a cluster that is not deployed yet has ended.
    """
    cluster = read_cluster_file(file)
    cli = _cli(os.environ)
    session = None if command is CdkCommand.SYNTH else _checked_session(command, cluster, profile, others)
    now = datetime.now(UTC)
    if command in _MAKES and has_past_end(cluster, now):
        if session is not None and not _is_deployed(session, cluster):
            refuse_past_ends(file, cluster, now)
        warn_of_past_ends(file, cluster, now)
    arguments = [*command.arguments(cluster, all=all), "--app", _APP, "--context", f"cluster={file}"]
    arguments += ["--no-version-reporting"] + ([] if profile is None else ["--profile", profile])
    return call([cli, str(command), *arguments, *others])


def _cli(environment: Mapping[str, str]) -> str:
    """Return where the CDK CLI is.

    Raises:
        ValueError: There is none, it does not start, or it is another one than 2.x.
    """
    cli = shutil.which("cdk", path=environment.get("PATH"))
    if cli is None:
        raise ValueError(f"the AWS CDK CLI is not installed: run {_INSTALL}, which needs Node.js 22 or newer")
    said = subprocess.run([cli, "--version"], capture_output=True, text=True, check=False)  # noqa: S603 - the user's own CLI
    version = said.stdout.strip()
    if said.returncode != 0:
        why = said.stderr.strip().splitlines()[-1:] or [f"it ended with {said.returncode}"]
        raise ValueError(f"the AWS CDK CLI at {cli} does not start ({why[0]}): install Node.js 22 or newer")
    if not re.match(r"2\.", version):
        raise ValueError(f"the AWS CDK CLI at {cli} must be a 2.x release, got {version}: run {_INSTALL}")
    return cli


def _checked_session(
    command: CdkCommand, cluster: ClusterFile, profile: str | None, others: Sequence[str]
) -> "boto3.Session":
    """Return a session; refuse credentials that do not work or are of another account, and one without bootstrap.

    Raises:
        ValueError: See there.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - synth does without

    session = aws_session(str(command), profile)
    try:
        account = session.client("sts", region_name=cluster.region).get_caller_identity()["Account"]
    except (BotoCoreError, ClientError) as error:
        code = refusal(error) or ""
        raise ValueError(
            f"{command} cannot ask AWS whose account this is: {about_credentials(code) or code}"
        ) from error
    if cluster.account not in (None, account):
        raise ValueError(
            f"the cluster file names the account {cluster.account} and the credentials are of {account}: set "
            "AWS_PROFILE or --profile, or correct account"
        )
    if command is CdkCommand.DEPLOY and not any(_OTHER_BOOTSTRAP in other for other in others):
        _check_bootstrap(session, account, cluster.region)
    return session


def _is_deployed(session: "boto3.Session", cluster: ClusterFile) -> bool:
    """Tell whether the cluster's stack has been created. An identity that may not ask is taken for an operator's."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - as above

    client = session.client("cloudformation", region_name=cluster.region)
    try:
        stacks = client.describe_stacks(StackName=cluster.cluster_stack_name)["Stacks"]
    except (BotoCoreError, ClientError) as error:
        return refusal(error) != "ValidationError"
    return any(each["StackStatus"] not in _NEVER_CREATED for each in stacks)


def _check_bootstrap(session: "boto3.Session", account: str, region: str) -> None:
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - as above

    try:
        session.client("ssm", region_name=region).get_parameter(Name=_BOOTSTRAP_VERSION)
    except (BotoCoreError, ClientError) as error:
        # An identity that may not read it may deploy all the same: the CLI then uses its own roles.
        if refusal(error) == "ParameterNotFound":
            raise ValueError(
                f"the CDK is not bootstrapped in the account {account} and the region {region}: run "
                "training-cluster bootstrap with the same file once"
            ) from error


def call(command: Sequence[str]) -> int:
    """Run a command on this terminal and return its exit status. An interrupt is the command's to answer.

    Args:
        command: The program and its arguments.
    """

    def leave_it(number: int, frame: FrameType | None) -> None:
        pass

    before = signal.signal(signal.SIGINT, leave_it)
    try:
        return subprocess.run(command, check=False).returncode  # noqa: S603 - the user's own CLI
    finally:
        signal.signal(signal.SIGINT, before)
