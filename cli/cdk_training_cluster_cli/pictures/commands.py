"""The commands that show a cluster in pictures."""

from pathlib import Path
from typing import Annotated

import typer

from cdk_training_cluster_cli.core.aws_errors import plain_errors
from cdk_training_cluster_cli.core.options import File, Output, Profile, Region, Target

commands = typer.Typer()


@commands.command()
def dashboard(
    cluster: Target,
    *,
    no_open: Annotated[bool, typer.Option("--no-open", help="Only print the address.")] = False,
    region: Region = None,
    profile: Profile = None,
    output: Output = "table",
) -> None:
    """Print where the console shows a cluster's dashboard; on a terminal, open it in the browser. Calls AWS."""
    from cdk_training_cluster_cli.pictures.dashboard import run  # noqa: PLC0415 - see the package

    with plain_errors():
        run(cluster, opens=not no_open, region=region, profile=profile, output=output)


@commands.command()
def diagram(
    file: File,
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="A .mmd or .md file, or - for standard output. Default: a .mmd file beside the cluster file.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write the architecture of a cluster file as a Mermaid flowchart. Calls nothing."""
    from cdk_training_cluster_cli.pictures.diagram import run  # noqa: PLC0415 - see the package

    with plain_errors():
        written = run(file, out=out)
        if written is not None:
            typer.echo(str(written))
