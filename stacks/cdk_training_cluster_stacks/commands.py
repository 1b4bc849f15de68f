"""What `training-cluster` can do. It ends with 0, with 1 and a sentence a problem, or with 2 if misused."""

import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

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
    """Say everything that is wrong with a cluster file, or show what it would make. Asks nothing of AWS."""
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
    """Print the statements to add to the policy of a cluster file's encryption_key. Asks nothing of AWS."""
    from cdk_training_cluster_stacks.cluster_file import read_cluster_file  # noqa: PLC0415
    from cdk_training_cluster_stacks.key_policy import key_policy_texts  # noqa: PLC0415

    with plain_errors():
        cluster = read_cluster_file(file)
        texts = key_policy_texts(cluster)
        sys.stdout.write(f"{texts.whole if new_key else texts.statements}\n")
        if cluster.file_system and cluster.file_system.encryption_key not in (None, cluster.encryption_key):
            sys.stderr.write("file_system.encryption_key needs no statement here: KMS's default policy is enough.\n")
