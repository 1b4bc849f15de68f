"""The commands that read a file and call no AWS service."""

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from cdk_training_cluster_cli.core.aws_errors import plain_errors
from cdk_training_cluster_cli.core.options import File, Profile

commands = typer.Typer()


@commands.command()
def schema() -> None:
    """Print the JSON Schema of a cluster file, for editors."""
    from cdk_training_cluster_file import schema_text  # noqa: PLC0415 - see the package

    sys.stdout.write(schema_text())


@commands.command()
def check(file: File) -> None:
    """Say everything that is wrong with a cluster file, or show what it would make. Calls no AWS service."""
    from cdk_training_cluster_cli.files.overview import show  # noqa: PLC0415
    from cdk_training_cluster_file import read_cluster_file, warn_of_past_ends  # noqa: PLC0415
    from cdk_training_cluster_stacks.building import refusals_in  # noqa: PLC0415

    # The problems of a wrong file are the answer of this command, and of no other.
    with plain_errors(status=1, unreadable=2), refusals_in(file):
        cluster = read_cluster_file(file)
        now = datetime.now(UTC)
        warn_of_past_ends(file, cluster, now)
        show(cluster, now=now)


@commands.command(name="key-policy")
def key_policy(
    file: File,
    *,
    new_key: Annotated[
        bool, typer.Option("--new-key", help="Print the whole policy of a key that nothing else uses.")
    ] = False,
) -> None:
    """Print the statements to add to the policy of a cluster file's encryption_key. Calls no AWS service."""
    from cdk_training_cluster_cli.files.key_policy import key_policy_texts  # noqa: PLC0415
    from cdk_training_cluster_file import read_cluster_file  # noqa: PLC0415

    with plain_errors():
        cluster = read_cluster_file(file)
        texts = key_policy_texts(cluster)
        sys.stdout.write(f"{texts.whole if new_key else texts.statements}\n")
        if cluster.file_system and cluster.file_system.encryption_key not in (None, cluster.encryption_key):
            sys.stderr.write("file_system.encryption_key needs no statement here: KMS's default policy is enough.\n")


@commands.command()
def grafana(
    file: File,
    *,
    directory: Annotated[
        Path, typer.Option("--directory", "-o", metavar="DIRECTORY", help="Where to write them.", show_default=True)
    ] = Path("grafana"),
) -> None:
    """Write a Grafana dashboard of a cluster file, its data sources and Prometheus rules. Calls no AWS service."""
    from cdk_training_cluster_cli.files.grafana import grafana_files  # noqa: PLC0415
    from cdk_training_cluster_file import read_cluster_file  # noqa: PLC0415

    with plain_errors():
        cluster = read_cluster_file(file)
        _write(directory, grafana_files(cluster))
    sys.stderr.write(
        f"Give Grafana the output PrometheusUrl of stack {cluster.cluster_stack_name} as environment variable "
        "PROMETHEUS_URL, and a role that may query the workspace.\n"
    )


@commands.command()
def sbatch(
    file: File,
    *,
    directory: Annotated[
        Path, typer.Option("--directory", "-o", metavar="DIRECTORY", help="Where to write them.", show_default=True)
    ] = Path("jobs"),
) -> None:
    """Write batch scripts for Slurm: a training and NCCL tests of each node group. Calls no AWS service."""
    from cdk_training_cluster_cli.files.jobs import job_files  # noqa: PLC0415
    from cdk_training_cluster_file import read_cluster_file  # noqa: PLC0415

    with plain_errors():
        _write(directory, job_files(read_cluster_file(file)))


def _write(directory: Path, files: Mapping[str, str]) -> None:
    """Write files and print their paths; what is there already is overwritten."""
    for name, text in files.items():
        path = directory / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise ValueError(f"{path} cannot be written: {error.strerror}") from None
        sys.stdout.write(f"{path}\n")


@commands.command(name="hyperpod-job")
def hyperpod_job(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The job, in YAML.", show_default=False)],
) -> None:
    """Print the manifests of a HyperPod training job, or all that is wrong with it. Calls no AWS service."""
    from cdk_training_cluster_manifests.hyperpod.manifest import manifests  # noqa: PLC0415
    from cdk_training_cluster_manifests.hyperpod.reading import read_job  # noqa: PLC0415

    with plain_errors():
        sys.stdout.write(manifests(read_job(file)))


@commands.command()
def manifests(
    file: File,
    *,
    directory: Annotated[
        Path, typer.Option("--directory", "-o", metavar="DIRECTORY", help="Where to write them.", show_default=True)
    ] = Path("kubernetes"),
    from_deployed: Annotated[
        bool,
        typer.Option(
            "--from-deployed",
            help="Ask AWS for the file system and subnet of the deployed cluster, and write them down.",
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite generated files that were changed by hand.")
    ] = False,
    profile: Profile = None,
) -> None:
    """Write charts with values, manifests and jobs for Kubernetes. Calls AWS with --from-deployed only."""
    from cdk_training_cluster_cli.files.manifests import run  # noqa: PLC0415

    with plain_errors():
        for line in run(file, directory, from_deployed=from_deployed, force=force, profile=profile):
            sys.stdout.write(f"{line}\n")
