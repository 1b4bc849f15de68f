"""The commands that look at a deployed cluster. They change nothing."""

from time import sleep
from typing import Annotated, TypeAlias

import typer

from cdk_training_cluster_cli.core.aws_errors import plain_errors
from cdk_training_cluster_cli.core.options import Output, Profile, Region, Target

commands = typer.Typer()

Since: TypeAlias = Annotated[
    str, typer.Option("--since", metavar="TIME", help="How far to look back, such as 30m, 24h or 7d.")
]


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
    from cdk_training_cluster_cli.observe.status.command import StatusOptions, run  # noqa: PLC0415 - see the package

    with plain_errors():
        wanted = StatusOptions(output=output, watch=watch, wait=wait, all=all)
        raise typer.Exit(run(cluster, wanted, region=region, profile=profile, pause=sleep))


@commands.command()
def events(
    cluster: Target, *, since: Since = "24h", region: Region = None, profile: Profile = None, output: Output = "table"
) -> None:
    """Show what happened to a cluster, and who did it. Calls AWS."""
    from cdk_training_cluster_cli.observe.events import run  # noqa: PLC0415 - see the package

    with plain_errors():
        run(cluster, since=since, region=region, profile=profile, output=output)


@commands.command()
def logs(
    cluster: Target,
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="KIND|NODE",
            help="A function, such as power or idle, or a node, for its console. Default: all.",
            show_default=False,
        ),
    ] = None,
    *,
    since: Since = "1h",
    errors: Annotated[bool, typer.Option("--errors", help="Show only what has failed.")] = False,
    region: Region = None,
    profile: Profile = None,
    output: Output = "table",
) -> None:
    """Show what a cluster's functions logged, or what a node wrote to its console. Calls AWS."""
    from cdk_training_cluster_cli.observe.logs import run  # noqa: PLC0415 - see the package

    with plain_errors():
        run(cluster, what, since=since, errors=errors, region=region, profile=profile, output=output)


@commands.command()
def why(
    cluster: Target,
    subject: Annotated[
        str | None,
        typer.Argument(
            metavar="NODE|GROUP",
            help="A node's id or number, such as workers/0, or a node group. Default: each group that lacks nodes.",
            show_default=False,
        ),
    ] = None,
    *,
    since: Since = "24h",
    region: Region = None,
    profile: Profile = None,
    output: Output = "table",
) -> None:
    """Show why a node failed to start, was stopped or is missing. Calls AWS."""
    from cdk_training_cluster_cli.observe.why import run  # noqa: PLC0415 - see the package

    with plain_errors():
        run(cluster, subject, since=since, region=region, profile=profile, output=output)
