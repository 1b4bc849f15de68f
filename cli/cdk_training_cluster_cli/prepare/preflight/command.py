"""`training-cluster preflight`: runs the checks and shows a line for each."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from cdk_training_cluster_cli.core.output import check_format, json_text
from cdk_training_cluster_cli.core.session import about_credentials, aws_session, refusal
from cdk_training_cluster_cli.prepare.preflight.account import account_checks
from cdk_training_cluster_cli.prepare.preflight.checks import Aws, Check, Line, Outcome, exit_status, run_checks
from cdk_training_cluster_cli.prepare.preflight.credentials import credential_checks
from cdk_training_cluster_cli.prepare.preflight.hyperpod import hyperpod_checks
from cdk_training_cluster_cli.prepare.preflight.images import image_checks
from cdk_training_cluster_cli.prepare.preflight.needs import Needs, needs_of
from cdk_training_cluster_cli.prepare.preflight.orchestrators import orchestrator_checks
from cdk_training_cluster_cli.prepare.preflight.permissions import permission_checks
from cdk_training_cluster_cli.prepare.preflight.purchases import purchase_checks
from cdk_training_cluster_cli.prepare.preflight.quotas import quota_checks
from cdk_training_cluster_cli.prepare.preflight.stacks import stack_checks
from cdk_training_cluster_cli.prepare.preflight.storage import storage_checks
from cdk_training_cluster_cli.prepare.preflight.topics import topic_checks
from cdk_training_cluster_cli.prepare.preflight.zones import zone_checks
from cdk_training_cluster_file import read_cluster_file
from cdk_training_cluster_file.problems import printable

if TYPE_CHECKING:
    import boto3

FORMATS = ("table", "json")
_STYLES = {Outcome.PASS: "green", Outcome.FAIL: "bold red", Outcome.UNKNOWN: "yellow"}
_WIDTH = max(map(len, Outcome))


def run(file: Path, *, region: str | None = None, profile: str | None = None, output: str = "table") -> int:
    """Check an account for a cluster file, show what is found, and return the exit status.

    Args:
        file: The cluster file.
        region: The region. Default: - the cluster file's
        profile: The profile of the AWS configuration. Default: - `AWS_PROFILE`, or the default one
        output: How to show it: `table` or `json`.

    Raises:
        ValueError: A setting is not allowed, or AWS does not take the credentials.
        ClusterFileError: The file is wrong.
    """
    check_format(output, option="--output", formats=FORMATS)
    cluster = read_cluster_file(file)
    if region not in (None, cluster.region):
        raise ValueError(
            f"--region must be {cluster.region}, which follows from availability_zone: {cluster.availability_zone}, "
            f"got {region}"
        )
    aws = _aws(aws_session("preflight", profile), cluster.region)
    needs = needs_of(str(file), cluster)
    checks = checks_of(needs, datetime.now(UTC))
    with _progress(len(checks)) as advance:
        lines = run_checks(checks, aws, advance)
    if output == "json":
        sys.stdout.write(f"{json_text(values(needs, aws, lines))}\n")
    else:
        show(needs, lines, Console(highlight=False))
    return exit_status(lines)


def checks_of(needs: Needs, now: datetime) -> Sequence[Check]:
    """Return every check of a cluster.

    Args:
        needs: What it needs.
        now: The time.
    """
    return (
        *account_checks(needs),
        *permission_checks(needs),
        *stack_checks(needs),
        *zone_checks(needs),
        *orchestrator_checks(needs, now),
        *hyperpod_checks(needs),
        *credential_checks(needs),
        *quota_checks(needs),
        *purchase_checks(needs, now),
        *image_checks(needs),
        *storage_checks(needs),
        *topic_checks(needs),
    )


def values(needs: Needs, aws: Aws, lines: Sequence[Line]) -> dict[str, Any]:
    """Return what a program reads.

    Args:
        needs: What the cluster needs.
        aws: AWS.
        lines: What was found.
    """
    outcome = (Outcome.PASS, Outcome.FAIL, None, Outcome.UNKNOWN)[exit_status(lines)]
    return {
        "cluster": needs.cluster.name,
        "region": needs.region,
        "account": aws.account,
        "outcome": outcome,
        "checks": lines,
    }


def show(needs: Needs, lines: Sequence[Line], console: Console) -> None:
    """Write what was found, in colour and folded on a terminal, and a line for each check elsewhere.

    Args:
        needs: What the cluster needs.
        lines: What was found.
        console: Where it is written.
    """
    if console.is_terminal:
        for line in lines:
            console.print(_row(line))
            if line.mend:  # folded by the terminal alone, so that it can be copied
                console.print(f"{'':{_WIDTH}} → {escape(printable(line.mend))}", soft_wrap=True)
    else:
        for line in lines:
            text = f"{line.outcome:{_WIDTH}} {line.name}: {line.said}"
            sys.stdout.write(printable(text + (f" -> {line.mend}" if line.mend else "")) + "\n")
    count = {outcome: sum(line.outcome is outcome for line in lines) for outcome in Outcome}
    said = ", ".join(f"{count[outcome]} {outcome}" for outcome in Outcome if count[outcome])
    console.print(f"[bold]{needs.cluster.name} in {needs.zone}: {said}[/bold]", soft_wrap=True)


def _row(line: Line) -> Table:
    row = Table.grid(padding=(0, 1))
    row.add_column(no_wrap=True, width=_WIDTH)
    row.add_column()
    said = f"[bold]{escape(printable(line.name))}[/bold]: {escape(printable(line.said))}"
    row.add_row(f"[{_STYLES[line.outcome]}]{line.outcome}[/]", said)
    return row


def _aws(session: "boto3.Session", region: str) -> Aws:
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - slow

    try:
        caller = session.client("sts", region_name=region).get_caller_identity()
    except (BotoCoreError, ClientError) as error:
        code = refusal(error) or ""
        raise ValueError(
            f"preflight cannot ask AWS whose account this is: {about_credentials(code) or code}"
        ) from error
    return Aws(session=session, region=region, account=caller["Account"], caller=caller["Arn"])


@contextmanager
def _progress(total: int) -> Iterator[Callable[[], object]]:
    """Show on a terminal how far the checks are, and yield what a finished one calls."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda: None
        return
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("preflight asks AWS", total=total)
        yield lambda: progress.advance(task)
