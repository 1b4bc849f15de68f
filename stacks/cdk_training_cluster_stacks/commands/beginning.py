"""The commands for the time before a cluster exists."""

import typer

from cdk_training_cluster_stacks.commands.options import File, Output, Profile, Region
from cdk_training_cluster_stacks.problems import plain_errors

commands = typer.Typer()


@commands.command()
def preflight(file: File, *, region: Region = None, profile: Profile = None, output: Output = "table") -> None:
    """Ask AWS, before money is spent, whether the account can carry a cluster. Changes nothing. Exits with 0: it can,
    1: something fails, 3: something is unknown."""
    from cdk_training_cluster_stacks.preflight.command import run  # noqa: PLC0415 - see the package

    with plain_errors(status=2):
        raise typer.Exit(run(file, region=region, profile=profile, output=output))
