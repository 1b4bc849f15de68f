"""The commands that run the user's CDK CLI with the stacks of a cluster file."""

from pathlib import Path
from typing import Annotated

import typer

from cdk_training_cluster_cli.core.aws_errors import plain_errors
from cdk_training_cluster_cli.core.options import File, Profile

commands = typer.Typer()

_CDK_ARGUMENTS = {"allow_extra_args": True, "ignore_unknown_options": True}


def _run_cdk(
    context: typer.Context, command: str, file: Path, *, profile: str | None = None, all: bool = True
) -> None:
    from cdk_training_cluster_cli.core.cdk_cli import CdkCommand, run  # noqa: PLC0415 - see the package

    with plain_errors():
        status = run(CdkCommand(command), file, profile=profile, all=all, others=context.args)
    raise typer.Exit(status)


@commands.command(context_settings=_CDK_ARGUMENTS)
def synth(context: typer.Context, file: File) -> None:
    """Write the templates of a cluster file to cdk.out, with your CDK CLI. Calls no AWS service."""
    _run_cdk(context, "synth", file)


@commands.command(context_settings=_CDK_ARGUMENTS)
def diff(context: typer.Context, file: File, *, profile: Profile = None) -> None:
    """Show what a deployment of a cluster file would change, with your CDK CLI."""
    _run_cdk(context, "diff", file, profile=profile)


@commands.command(context_settings=_CDK_ARGUMENTS)
def bootstrap(context: typer.Context, file: File, *, profile: Profile = None) -> None:
    """Make what the CDK needs in the account and region of a cluster file: once, with your CDK CLI."""
    _run_cdk(context, "bootstrap", file, profile=profile)


@commands.command(context_settings=_CDK_ARGUMENTS)
def deploy(
    context: typer.Context,
    file: File,
    *,
    profile: Profile = None,
    only_cluster: Annotated[
        bool, typer.Option("--only-cluster", help="Leave the foundation as it is: before a part of it is taken out.")
    ] = False,
) -> None:
    """Deploy both stacks of a cluster file, with your CDK CLI, which takes whatever else you give."""
    _run_cdk(context, "deploy", file, profile=profile, all=not only_cluster)


@commands.command(context_settings=_CDK_ARGUMENTS)
def destroy(
    context: typer.Context,
    file: File,
    *,
    profile: Profile = None,
    all: Annotated[bool, typer.Option("--all", help="The foundation too; its file system and buckets stay.")] = False,
) -> None:
    """Delete the stack with the nodes of a cluster file, with your CDK CLI. Stop the cluster first."""
    _run_cdk(context, "destroy", file, profile=profile, all=all)
