"""`make rehearse`: deploys a cluster file to a local AWS with the real CDK CLI, and takes it down again."""

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from cdk_training_cluster_file import read_cluster_file
from local_aws import LocalAws
from rehearsal import report
from rehearsal.cdk_cli import CdkCli
from rehearsal.outcome import Findings, conduct
from rehearsal.preparation import account_of
from rehearsal.steps import Rehearsal
from rehearsal.user_environment import aws_settings


def main(
    cluster: Annotated[Path, typer.Option(help="The cluster file.")],
    build: Annotated[Path, typer.Option(help="Where logs and rehearsal.json are written to.")] = Path("build"),
    remove_parts: Annotated[
        bool, typer.Option(help="Also take the file's optional parts away, one after another.")
    ] = False,
) -> None:
    """Deploy a cluster to a local AWS, show what came up, and destroy it with the data kept."""
    console, results = report.make_console(), build / "rehearsal.json"
    status = conduct(
        lambda findings: _rehearse(cluster, build / "rehearsal", console, findings, remove_parts), results, console
    )
    if (build / "rehearsal" / "cdk.log").exists():
        console.print(f"Details: {results}, {build / 'rehearsal' / 'cdk.log'}", soft_wrap=True)
    sys.exit(status)


def _rehearse(file: Path, workspace: Path, console: Console, findings: Findings, remove_parts: bool) -> None:
    shutil.rmtree(workspace, ignore_errors=True)
    workspace.mkdir(parents=True)
    unused = aws_settings(os.environ, Path.home())
    if unused:
        console.print(f"AWS settings are present and will not be used: {', '.join(unused)}")
    cluster = read_cluster_file(file)
    findings.results["cluster"] = cluster.name
    console.print(
        Text.assemble("Rehearsing ", (str(file), "bold"), " on a local AWS; nothing leaves this machine."),
        soft_wrap=True,
    )
    with LocalAws(workspace / "local-aws.log", region=cluster.region, account=account_of(cluster)) as aws:
        cdk = CdkCli(
            environment=aws.environment(),
            cluster_file=file.resolve(),
            output=(workspace / "cdk.out").resolve(),
            log=workspace / "cdk.log",
            account=aws.account,
            region=aws.region,
        )
        Rehearsal(
            cluster,
            cdk=cdk,
            aws=aws,
            workspace=workspace.resolve(),
            console=console,
            findings=findings,
            parts_of=file if remove_parts else None,
        ).run()


if __name__ == "__main__":
    typer.run(main)
