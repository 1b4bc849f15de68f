"""The commands that look at a deployed cluster. They change nothing."""

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
    watch: Annotated[bool, typer.Option("--watch", help="Look every 15 seconds, until Ctrl-C.")] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Look every 15 seconds, until every data set is done or has failed.")
    ] = False,
    all: Annotated[bool, typer.Option("--all", help="Show every node.")] = False,
    region: Region = None,
    profile: Profile = None,
    output: Output = "table",
) -> None:
    """Show nodes, capacity, idle clocks, data sets, checkpoints, spend and alarms. Calls AWS. Exits with 1 if a data
    set has failed."""
    from cdk_training_cluster_stacks.status.command import Wanted, run  # noqa: PLC0415 - see the package

    with plain_errors(status=2):
        wanted = Wanted(output=output, watch=watch, wait=wait, all=all)
        raise typer.Exit(run(cluster, wanted, region=region, profile=profile, pause=sleep))
