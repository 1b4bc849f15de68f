"""The commands that look at a deployed cluster."""

from time import sleep
from typing import Annotated

import typer

from cdk_training_cluster_stacks.commands.options import Output, Profile, Region, Target
from cdk_training_cluster_stacks.problems import plain_errors

commands = typer.Typer()


@commands.command()
def status(
    cluster: Target,
    *,
    watch: Annotated[bool, typer.Option("--watch", help="Go on until every data set is done or has failed.")] = False,
    region: Region = None,
    profile: Profile = None,
    output: Output = "table",
) -> None:
    """Show the progress of data sets and the age of the last checkpoint. Calls AWS. Exits with 1 if a data set has
    failed."""
    from cdk_training_cluster_stacks.status.command import run  # noqa: PLC0415 - see the package

    with plain_errors(status=2):
        raise typer.Exit(run(cluster, region=region, profile=profile, output=output, watch=watch, wait=sleep))
