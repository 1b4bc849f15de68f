"""The commands that say what a cluster will cost, and what it has cost."""

from pathlib import Path
from typing import Annotated

import typer

from cdk_training_cluster_cli.core.aws_errors import plain_errors
from cdk_training_cluster_cli.core.options import File, Format, OutputOrMarkdown, Profile, Region, number

commands = typer.Typer()


@commands.command()
def plan(
    file: File,
    *,
    hours: Annotated[
        str,
        number("How many hours the run takes; schedules let nodes run for a part of them. [default: 730, a month]"),
    ] = "730",
    contingency: Annotated[str, number("Percent to add for restarts and failures. [default: 20]")] = "20",
    interruption: Annotated[str, number("Percent that Spot interruptions add to the time. [default: 10]")] = "10",
    savings_plan: Annotated[str | None, number("Percent that your Savings Plan takes off On-Demand prices.")] = None,
    dataset_gb: Annotated[str | None, number("Training data in S3, in GB.")] = None,
    checkpoints: Annotated[str, number("How many checkpoints are kept in S3 for a month. [default: 0]")] = "0",
    checkpoint_gb: Annotated[str | None, number("The size of each, in GB.")] = None,
    nat_gb: Annotated[str | None, number("What goes through the NAT gateway in the run, in GB.")] = None,
    parameters: Annotated[str | None, number("The model's parameters, such as 70e9.")] = None,
    tokens: Annotated[str | None, number("The tokens it is trained on, such as 1.4e12.")] = None,
    utilization: Annotated[str, number("Percent of the peak that training sustains. [default: 40]")] = "40",
    price: Annotated[
        list[str] | None, typer.Option(metavar="NAME=USD", help="A price of yours: an instance type's, or a unit's.")
    ] = None,
    cost: Annotated[
        list[str] | None, typer.Option(metavar="LINE=USD", help="What a line of the plan costs in the run.")
    ] = None,
    output: OutputOrMarkdown = "table",
    format: Format = None,
    all: Annotated[
        bool, typer.Option("--all", help="Show every line, way to buy, region, assumption and source.")
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw cost against time into a .png or .svg file.", show_default=False),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Ask AWS for prices and Spot Instances, and keep them.")
    ] = False,
    profile: Profile = None,
) -> None:
    """Show what a cluster will cost before it exists. Asks AWS with --live only."""
    from cdk_training_cluster_cli.money.plan.command import PlanOptions, assumptions_of, run  # noqa: PLC0415 - see the package

    with plain_errors():
        wanted = PlanOptions(format=format or output, all=all, plot=plot, live=live, profile=profile)
        assumptions = assumptions_of(
            hours=hours,
            contingency_percent=contingency,
            interruption_percent=interruption,
            savings_plan_percent=savings_plan,
            dataset_gb=dataset_gb,
            checkpoints=checkpoints,
            checkpoint_gb=checkpoint_gb,
            nat_gb=nat_gb,
            parameters=parameters,
            tokens=tokens,
            utilization_percent=utilization,
            prices=price or [],
            costs=cost or [],
        )
        run(file, wanted, assumptions)


@commands.command()
def costs(
    file: File,
    *,
    days: Annotated[int, typer.Option(help="How many days, up to yesterday.")] = 30,
    region: Region = None,
    profile: Profile = None,
    output: OutputOrMarkdown = "table",
    format: Format = None,
) -> None:
    """Show what a cluster has cost, and what would have cost less. Asks AWS; Cost Explorer bills $0.01 a request."""
    from cdk_training_cluster_cli.money.costs.command import run  # noqa: PLC0415 - see the package

    with plain_errors():
        run(file, days=days, format=format or output, region=region, profile=profile)
