"""What `training-cluster` can do. It ends with 0, with 1 and a sentence a problem, or with 2 if misused.

`plan` takes many figures, and ends with 2 whatever is wrong with what it is given.
"""

import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from time import sleep
from typing import Annotated, Any

import typer

from cdk_training_cluster_stacks.problems import plain_errors

training_cluster = typer.Typer(
    name="training-cluster",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"training-cluster {version('cdk-training-cluster')}\n")
        raise typer.Exit


@training_cluster.callback()
def main(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Cluster files for cdk-training-cluster: a GPU or Trainium cluster in one YAML file."""


@training_cluster.command()
def schema() -> None:
    """Print the JSON Schema of a cluster file, for editors."""
    # Here and below: what a command needs is imported by that command; help and version come at once.
    from cdk_training_cluster_stacks.cluster_file import schema_text  # noqa: PLC0415

    sys.stdout.write(schema_text())


@training_cluster.command()
def check(file: Annotated[Path, typer.Argument(help="The cluster file.", show_default=False)]) -> None:
    """Say everything that is wrong with a cluster file, or show what it would make. Calls no AWS service."""
    from cdk_training_cluster_stacks.cluster_file import read_cluster_file  # noqa: PLC0415
    from cdk_training_cluster_stacks.overview import show  # noqa: PLC0415

    with plain_errors():
        show(read_cluster_file(file), now=datetime.now(UTC))


@training_cluster.command(name="key-policy")
def key_policy(
    file: Annotated[Path, typer.Argument(help="The cluster file.", show_default=False)],
    *,
    new_key: Annotated[
        bool, typer.Option("--new-key", help="Print the whole policy of a key that nothing else uses.")
    ] = False,
) -> None:
    """Print the statements to add to the policy of a cluster file's encryption_key. Calls no AWS service."""
    from cdk_training_cluster_stacks.cluster_file import read_cluster_file  # noqa: PLC0415
    from cdk_training_cluster_stacks.key_policy import key_policy_texts  # noqa: PLC0415

    with plain_errors():
        cluster = read_cluster_file(file)
        texts = key_policy_texts(cluster)
        sys.stdout.write(f"{texts.whole if new_key else texts.statements}\n")
        if cluster.file_system and cluster.file_system.encryption_key not in (None, cluster.encryption_key):
            sys.stderr.write("file_system.encryption_key needs no statement here: KMS's default policy is enough.\n")


def _figure(help: str) -> Any:  # noqa: ANN401 - what typer itself returns
    # Read as text, so that whatever is wrong with it is one sentence, and exact.
    return typer.Option(metavar="NUMBER", help=help, show_default=False)


@training_cluster.command()
def plan(
    file: Annotated[Path, typer.Argument(help="The cluster file.", show_default=False)],
    *,
    hours: Annotated[str, _figure("How many hours the run takes. [default: 730, a month]")] = "730",
    contingency: Annotated[str, _figure("Percent to add for restarts and failures. [default: 20]")] = "20",
    interruption: Annotated[str, _figure("Percent that Spot interruptions add to the time. [default: 10]")] = "10",
    savings_plan: Annotated[str | None, _figure("Percent that your Savings Plan takes off On-Demand prices.")] = None,
    dataset_gb: Annotated[str | None, _figure("Training data in S3, in GB.")] = None,
    checkpoints: Annotated[str, _figure("How many checkpoints are kept in S3 for a month. [default: 0]")] = "0",
    checkpoint_gb: Annotated[str | None, _figure("The size of each, in GB.")] = None,
    nat_gb: Annotated[str | None, _figure("What goes through the NAT gateway in the run, in GB.")] = None,
    parameters: Annotated[str | None, _figure("The model's parameters, such as 70e9.")] = None,
    tokens: Annotated[str | None, _figure("The tokens it is trained on, such as 1.4e12.")] = None,
    utilization: Annotated[str, _figure("Percent of the peak that training sustains. [default: 40]")] = "40",
    price: Annotated[
        list[str] | None, typer.Option(metavar="NAME=USD", help="A price of yours: an instance type's, or a unit's.")
    ] = None,
    cost: Annotated[
        list[str] | None, typer.Option(metavar="LINE=USD", help="What a line of the plan costs in the run.")
    ] = None,
    format: Annotated[str, typer.Option(metavar="table|json|markdown", help="The output format.")] = "table",
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
) -> None:
    """Show what a cluster will cost before it exists. Asks AWS with --live only."""
    from cdk_training_cluster_stacks.plan.command import Wanted, assumptions_of, run  # noqa: PLC0415

    with plain_errors(status=2):
        wanted = Wanted(format=format, all=all, plot=plot, live=live)
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


@training_cluster.command()
def costs(
    file: Annotated[Path, typer.Argument(help="The cluster file.", show_default=False)],
    *,
    days: Annotated[int, typer.Option(help="How many days, up to yesterday.")] = 30,
    format: Annotated[str, typer.Option(metavar="table|json|markdown", help="The output format.")] = "table",
) -> None:
    """Show what a cluster has cost, and what would have cost less. Asks AWS; Cost Explorer bills $0.01 a request."""
    from cdk_training_cluster_stacks.costs.command import run  # noqa: PLC0415

    with plain_errors(status=2):
        run(file, days=days, format=format)


_OUTPUT = typer.Option("--output", metavar="table|json|markdown", help="The output format.")


@training_cluster.command()
def storage(
    *,
    dataset: Annotated[
        str, typer.Option(metavar="SIZE", help="The data it holds, such as 40TiB.", show_default=False)
    ],
    gbps: Annotated[str, _figure("Gigabytes a second that all nodes read together.")],
    nodes: Annotated[str, _figure("How many nodes read.")],
    instance_type: Annotated[str, typer.Option(help="Their instance type.")] = "p5.48xlarge",
    region: Annotated[str, typer.Option(help="The region whose prices count.")] = "us-east-1",
    price: Annotated[
        list[str] | None, typer.Option(metavar="NAME=USD", help="A price that you state, in USD a GiB and month.")
    ] = None,
    output: Annotated[str, _OUTPUT] = "table",
) -> None:
    """Show the smallest FSx for Lustre file systems that meet a need, and which to take. Calls no AWS service."""
    from cdk_training_cluster_stacks.storage.command import run  # noqa: PLC0415

    with plain_errors(status=2):
        run(
            dataset=dataset,
            gbps=gbps,
            nodes=nodes,
            instance_type=instance_type,
            region=region,
            prices=price or [],
            output=output,
        )


_Region = Annotated[str | None, typer.Option(help="The region. Default: the cluster file's.", show_default=False)]
_Profile = Annotated[str | None, typer.Option(help="The profile of the AWS configuration.", show_default=False)]


@training_cluster.command()
def status(
    file: Annotated[Path, typer.Argument(help="The cluster file.", show_default=False)],
    *,
    watch: Annotated[bool, typer.Option("--watch", help="Go on until every data set is done or has failed.")] = False,
    region: _Region = None,
    profile: _Profile = None,
    output: Annotated[str, typer.Option(metavar="table|json", help="The output format.")] = "table",
) -> None:
    """Show the progress of data sets and the age of the last checkpoint. Calls AWS. Exits with 1 if a data set has
    failed."""
    from cdk_training_cluster_stacks.status.command import run  # noqa: PLC0415

    with plain_errors(status=2):
        raise typer.Exit(run(file, region=region, profile=profile, output=output, watch=watch, wait=sleep))


@training_cluster.command(name="import-map")
def import_map(
    template: Annotated[
        Path, typer.Argument(help="The new stack's template, cdk.out/NAME.template.json.", show_default=False)
    ],
    *,
    stack: Annotated[
        str | None, typer.Option(help="The deleted stack's name. [default: the new one's]", show_default=False)
    ] = None,
    region: Annotated[str | None, typer.Option(help="Its region.", show_default=False)] = None,
    profile: Annotated[
        str | None, typer.Option(help="The profile of the AWS configuration.", show_default=False)
    ] = None,
) -> None:
    """Print the resources that a deleted stack has kept, for cdk import --resource-mapping. Calls AWS."""
    from cdk_training_cluster_stacks.import_map import run  # noqa: PLC0415

    with plain_errors(status=2):
        run(template, stack=stack, region=region, profile=profile)


checkpoints = typer.Typer(no_args_is_help=True, help="List, verify and restore checkpoints. Calls AWS.")
training_cluster.add_typer(checkpoints, name="checkpoints")

_Source = Annotated[str, typer.Argument(help="The cluster file, or s3://bucket/prefix.", show_default=False)]
_Name = Annotated[str, typer.Argument(help="The checkpoint's name, as list shows it.", show_default=False)]
_Output = Annotated[str, _OUTPUT]


@checkpoints.command(name="list")
def list_checkpoints(
    source: _Source, *, region: _Region = None, profile: _Profile = None, output: _Output = "table"
) -> None:
    """Show the checkpoints: their files, sizes, ages, and whether they are complete."""
    from cdk_training_cluster_stacks.checkpoints.command import Asked, run_list  # noqa: PLC0415

    with plain_errors(status=2):
        run_list(Asked(source=source, region=region, profile=profile, output=output))


@checkpoints.command()
def verify(
    source: _Source,
    name: _Name,
    *,
    directory: Annotated[
        Path | None,
        typer.Option(help="Compare with the copy of the checkpoint in this directory.", show_default=False),
    ] = None,
    region: _Region = None,
    profile: _Profile = None,
    output: _Output = "table",
) -> None:
    """Read a checkpoint in S3 and compare sizes and checksums. Exits with 0: proven, 1: not, 3: sizes alone."""
    from cdk_training_cluster_stacks.checkpoints.command import Asked, run_verify  # noqa: PLC0415

    with plain_errors(status=2):
        asked = Asked(source=source, region=region, profile=profile, output=output)
        raise typer.Exit(run_verify(asked, name, directory))


@checkpoints.command()
def restore(
    source: _Source,
    name: _Name,
    destination: Annotated[
        str, typer.Argument(help="The directory, or s3://bucket/prefix, to put it in.", show_default=False)
    ],
    *,
    version_of: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Restore it as it was then, from the bucket's versions.", show_default=False
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what is there and differs.")] = False,
    region: _Region = None,
    profile: _Profile = None,
    output: _Output = "table",
) -> None:
    """Copy a checkpoint to where it is needed, and prove the copy. Exits with 0: proven, 1: not, 3: sizes alone."""
    from cdk_training_cluster_stacks.checkpoints.command import Asked, run_restore  # noqa: PLC0415

    with plain_errors(status=2):
        asked = Asked(source=source, region=region, profile=profile, output=output)
        raise typer.Exit(run_restore(asked, name, destination, force=force, at=version_of))


_CDK_ARGUMENTS = {"allow_extra_args": True, "ignore_unknown_options": True}
_File = Annotated[Path, typer.Argument(help="The cluster file.", show_default=False)]


def _run_cdk(
    context: typer.Context, command: str, file: Path, *, profile: str | None = None, all: bool = True
) -> None:
    from cdk_training_cluster_stacks.cdk_cli import CdkCommand, run  # noqa: PLC0415

    with plain_errors():
        status = run(CdkCommand(command), file, profile=profile, all=all, others=context.args)
    raise typer.Exit(status)


@training_cluster.command(context_settings=_CDK_ARGUMENTS)
def synth(context: typer.Context, file: _File) -> None:
    """Write the templates of a cluster file to cdk.out, with your CDK CLI. Calls no AWS service."""
    _run_cdk(context, "synth", file)


@training_cluster.command(context_settings=_CDK_ARGUMENTS)
def diff(context: typer.Context, file: _File, *, profile: _Profile = None) -> None:
    """Show what a deployment of a cluster file would change, with your CDK CLI."""
    _run_cdk(context, "diff", file, profile=profile)


@training_cluster.command(context_settings=_CDK_ARGUMENTS)
def bootstrap(context: typer.Context, file: _File, *, profile: _Profile = None) -> None:
    """Make what the CDK needs in the account and region of a cluster file: once, with your CDK CLI."""
    _run_cdk(context, "bootstrap", file, profile=profile)


@training_cluster.command(context_settings=_CDK_ARGUMENTS)
def deploy(
    context: typer.Context,
    file: _File,
    *,
    profile: _Profile = None,
    only_cluster: Annotated[
        bool, typer.Option("--only-cluster", help="Leave the foundation as it is: before a part of it is taken out.")
    ] = False,
) -> None:
    """Deploy both stacks of a cluster file, with your CDK CLI, which takes whatever else you give."""
    _run_cdk(context, "deploy", file, profile=profile, all=not only_cluster)


@training_cluster.command(context_settings=_CDK_ARGUMENTS)
def destroy(
    context: typer.Context,
    file: _File,
    *,
    profile: _Profile = None,
    all: Annotated[bool, typer.Option("--all", help="The foundation too; its file system and buckets stay.")] = False,
) -> None:
    """Delete the stack with the nodes of a cluster file, with your CDK CLI. Stop the cluster first."""
    _run_cdk(context, "destroy", file, profile=profile, all=all)
