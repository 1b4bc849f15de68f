"""`make rehearse`: deploys a cluster file to a local AWS with the real CDK CLI, and takes it down again."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cdk_training_cluster_stacks.cluster_file import read_cluster_file
from cdk_training_cluster_stacks.problems import ClusterFileError
from rehearsal import report
from rehearsal.cdk_cli import CdkCli, CdkFailedError
from rehearsal.functions import FunctionFailedError
from rehearsal.local_aws import LocalAws
from rehearsal.steps import Rehearsal
from rehearsal.user_environment import aws_settings

_BUILD = Path("build")
_RESULTS = _BUILD / "rehearsal.json"


def main(
    cluster: Annotated[Path, typer.Option(help="The cluster file.")] = Path("clusters/base-pod.yaml"),
) -> None:
    """Deploy a cluster to a local AWS, show what came up, and destroy it with the data kept."""
    console = Console(soft_wrap=False)
    workspace = _BUILD / "rehearsal"
    # Nothing of an earlier rehearsal may be taken for this one's.
    shutil.rmtree(workspace, ignore_errors=True)
    workspace.mkdir(parents=True)
    _RESULTS.unlink(missing_ok=True)
    unused = aws_settings(os.environ, Path.home())
    if unused:
        console.print(f"AWS settings are present and will not be used: {', '.join(unused)}", highlight=False)
    try:
        settings = read_cluster_file(cluster)
    except ClusterFileError as error:
        sys.exit(str(error))
    console.print(f"Rehearsing [bold]{cluster}[/bold] on a local AWS; nothing leaves this machine.")
    with LocalAws(workspace / "local-aws.log", region=settings.region) as aws:
        log = workspace / "cdk.log"
        log.write_text("")
        cdk = CdkCli(
            environment=aws.environment(),
            cluster_file=cluster.resolve(),
            output=(workspace / "cdk.out").resolve(),
            log=log,
            account=aws.account,
            region=settings.region,
        )
        rehearsal = Rehearsal(settings, cdk, aws, workspace.resolve(), console)
        try:
            rehearsal.run()
        except (CdkFailedError, FunctionFailedError) as error:
            console.print(f"[red]failed:[/red] {error}", highlight=False)
            rehearsal.differences.append(str(error))
            rehearsal.results["differences"] = rehearsal.differences
    _RESULTS.write_text(json.dumps(rehearsal.results, indent=2, default=str) + "\n")
    report.show_differences(console, rehearsal.differences)
    console.print(f"Details: {_RESULTS}, {log}")
    if rehearsal.differences:
        sys.exit(1)


if __name__ == "__main__":
    typer.run(main)
