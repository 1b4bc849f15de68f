"""The commands for the time before a cluster exists."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from cdk_training_cluster_cli.core.aws_errors import plain_errors
from cdk_training_cluster_cli.core.options import File, Output, Profile, Region, complete_file, number

commands = typer.Typer()


def _text(metavar: str, help: str) -> Any:  # noqa: ANN401 - what typer itself returns
    return typer.Option(metavar=metavar, help=help, show_default=False)


@commands.command()
def init(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="The cluster file to write. Default: the cluster's name with .yaml.",
            show_default=False,
            autocompletion=complete_file,
        ),
    ] = None,
    *,
    name: Annotated[str | None, _text("NAME", "The cluster's name. Default: the file's, or training.")] = None,
    accelerators: Annotated[str | None, number("How many accelerators the job takes together.")] = None,
    memory: Annotated[str | None, number("The memory that each accelerator needs, in GiB. Default: 24.")] = None,
    instance_type: Annotated[str | None, _text("TYPE", "The type, in place of what the job takes.")] = None,
    nodes: Annotated[str | None, number("How many nodes. Default: as many as the accelerators take.")] = None,
    hours: Annotated[str | None, number("How many hours the run takes, for prices. Default: 336.")] = None,
    availability_zone: Annotated[str | None, _text("ZONE", "Where all of it is.")] = None,
    buy: Annotated[
        str | None,
        _text("WAY", "on_demand, spot, reservation, from_reservation or capacity_block. Default: on_demand."),
    ] = None,
    capacity_id: Annotated[str | None, _text("ID", "The reservation's or block's id.")] = None,
    orchestrator: Annotated[
        str | None, _text("ORCHESTRATOR", "What runs jobs: none, slurm, eks, hyperpod or batch. Default: none.")
    ] = None,
    image: Annotated[
        str | None, _text("AMI", "The image that nodes start from. Default: AWS's newest, where there is one.")
    ] = None,
    dataset: Annotated[
        str | None, _text("SIZE", "The training data, such as 40TiB. Default: no file system.")
    ] = None,
    bucket: Annotated[str | None, _text("NAME", "The bucket that has it. Default: a new one.")] = None,
    budget: Annotated[str | None, number("What may be spent in a month, in USD. Default: no budget.")] = None,
    price: Annotated[
        list[str] | None, _text("NAME=USD", "A price that the budget states; may be repeated. AWS PCS needs some.")
    ] = None,
    email: Annotated[list[str] | None, _text("ADDRESS", "Who hears of trouble; may be repeated.")] = None,
    live: Annotated[bool, typer.Option("--live", help="Ask AWS which zones have the type.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
    region: Annotated[
        str | None, _text("REGION", "The region. Default: the zone's, AWS_REGION or us-east-1.")
    ] = None,
    profile: Profile = None,
) -> None:
    """Write a commented cluster file: on a terminal from a few answers, elsewhere from options. Asks AWS with --live
    only."""
    from cdk_training_cluster_cli.prepare.init.command import Given, Zones, run  # noqa: PLC0415 - see the package

    given = Given(
        name=name,
        accelerators=accelerators,
        memory=memory,
        instance_type=instance_type,
        nodes=nodes,
        hours=hours,
        region=region,
        zone=availability_zone,
        buy=buy,
        capacity_id=capacity_id,
        orchestrator=orchestrator,
        dataset=dataset,
        bucket=bucket,
        budget=budget,
        image=image,
        prices=tuple(price or ()),
        emails=tuple(email or ()),
    )
    asks = sys.stdin.isatty() and sys.stdout.isatty()
    with plain_errors():
        run(file, given, zones=Zones(profile=profile, live=live), force=force, ask=_ask if asks else None)


def _ask(question: str, default: str | None) -> str:
    # Without a default it would repeat the question, and not say why.
    return str(typer.prompt(question, default=default or "", show_default=bool(default), prompt_suffix=" "))


@commands.command()
def preflight(file: File, *, region: Region = None, profile: Profile = None, output: Output = "table") -> None:
    """Ask AWS, before money is spent, whether the account can carry a cluster. Changes nothing. Exits with 0: it can,
    1: something fails, 3: something is unknown."""
    from cdk_training_cluster_cli.prepare.preflight.command import run  # noqa: PLC0415 - see the package

    with plain_errors():
        raise typer.Exit(run(file, region=region, profile=profile, output=output))
