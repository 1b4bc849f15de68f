"""The commands about what clusters store: file systems, checkpoints, and what a deleted stack has kept."""

from pathlib import Path
from typing import Annotated

import typer

from cdk_training_cluster_cli.core.aws_errors import plain_errors
from cdk_training_cluster_cli.core.options import OutputOrMarkdown, Profile, Region, number

commands = typer.Typer()


@commands.command()
def storage(
    *,
    dataset: Annotated[
        str, typer.Option(metavar="SIZE", help="The data it holds, such as 40TiB.", show_default=False)
    ],
    gbps: Annotated[str, number("Gigabytes a second that all nodes read together.")],
    nodes: Annotated[str, number("How many nodes read.")],
    instance_type: Annotated[str, typer.Option(help="Their instance type.")] = "p5.48xlarge",
    region: Annotated[str, typer.Option(help="The region whose prices count.")] = "us-east-1",
    price: Annotated[
        list[str] | None, typer.Option(metavar="NAME=USD", help="A price that you state, in USD a GiB and month.")
    ] = None,
    output: OutputOrMarkdown = "table",
) -> None:
    """Show the smallest FSx for Lustre file systems that meet a need, and which to take. Calls no AWS service."""
    from cdk_training_cluster_cli.data.storage.command import run  # noqa: PLC0415 - see the package

    with plain_errors():
        run(
            dataset=dataset,
            gbps=gbps,
            nodes=nodes,
            instance_type=instance_type,
            region=region,
            prices=price or [],
            output=output,
        )


@commands.command(name="import-map")
def import_map(
    template: Annotated[
        Path,
        typer.Argument(
            metavar="TEMPLATE", help="The new stack's template, cdk.out/NAME.template.json.", show_default=False
        ),
    ],
    *,
    stack: Annotated[
        str | None, typer.Option(help="The deleted stack's name. [default: the new one's]", show_default=False)
    ] = None,
    region: Annotated[str | None, typer.Option(help="Its region.", show_default=False)] = None,
    profile: Profile = None,
) -> None:
    """Print the resources that a deleted stack has kept, for cdk import --resource-mapping. Calls AWS."""
    from cdk_training_cluster_cli.data.import_map import run  # noqa: PLC0415 - see the package

    with plain_errors():
        run(template, stack=stack, region=region, profile=profile)


checkpoints = typer.Typer(no_args_is_help=True, help="List, verify and restore checkpoints. Calls AWS.")
commands.add_typer(checkpoints, name="checkpoints")

_Source = Annotated[
    str,
    typer.Argument(metavar="SOURCE", help="The cluster file or its name, or s3://bucket/prefix.", show_default=False),
]
_Name = Annotated[
    str, typer.Argument(metavar="NAME", help="The checkpoint's name, as list shows it.", show_default=False)
]


@checkpoints.command(name="list")
def list_checkpoints(
    source: _Source, *, region: Region = None, profile: Profile = None, output: OutputOrMarkdown = "table"
) -> None:
    """Show the checkpoints: their files, sizes, ages, and whether they are complete."""
    from cdk_training_cluster_cli.data.checkpoints.command import Asked, run_list  # noqa: PLC0415 - see the package

    with plain_errors():
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
    region: Region = None,
    profile: Profile = None,
    output: OutputOrMarkdown = "table",
) -> None:
    """Read a checkpoint in S3 and compare sizes and checksums. Exits with 0: proven, 1: not, 3: sizes alone."""
    from cdk_training_cluster_cli.data.checkpoints.command import Asked, run_verify  # noqa: PLC0415 - see the package

    with plain_errors():
        asked = Asked(source=source, region=region, profile=profile, output=output)
        raise typer.Exit(run_verify(asked, name, directory))


@checkpoints.command()
def restore(
    source: _Source,
    name: _Name,
    destination: Annotated[
        str,
        typer.Argument(
            metavar="DESTINATION",
            help="The directory, or s3://bucket/prefix, to put it in.",
            show_default=False,
        ),
    ],
    *,
    version_of: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Restore it as it was then, from the bucket's versions.", show_default=False
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what is there and differs.")] = False,
    region: Region = None,
    profile: Profile = None,
    output: OutputOrMarkdown = "table",
) -> None:
    """Copy a checkpoint to where it is needed, and prove the copy. Exits with 0: proven, 1: not, 3: sizes alone."""
    from cdk_training_cluster_cli.data.checkpoints.command import Asked, run_restore  # noqa: PLC0415 - see the package

    with plain_errors():
        asked = Asked(source=source, region=region, profile=profile, output=output)
        raise typer.Exit(run_restore(asked, name, destination, force=force, at=version_of))
