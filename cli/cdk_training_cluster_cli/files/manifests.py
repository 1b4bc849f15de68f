"""`training-cluster manifests`: writes the Kubernetes folder of a cluster file."""

from collections.abc import Iterator
from pathlib import Path

from cdk_training_cluster_cli.core.target import resolve
from cdk_training_cluster_cli.files.deployed_values import deployed_values
from cdk_training_cluster_file import read_cluster_file
from cdk_training_cluster_manifests.kubernetes.folder import write_folder
from cdk_training_cluster_manifests.kubernetes.generating import generated_files
from cdk_training_cluster_manifests.kubernetes.overlay import deployed_env, overlay_files, places
from cdk_training_cluster_manifests.kubernetes.reading import known_values, wanted_of
from cdk_training_cluster_stacks.building import refusals_in


def run(file: Path, directory: Path, *, from_deployed: bool, force: bool, profile: str | None) -> Iterator[str]:
    """Write the folder, and yield a line for each file that was changed or removed.

    Args:
        file: The cluster file.
        directory: The folder.
        from_deployed: Whether AWS is asked for the values of the deployed cluster.
        force: Whether files that were changed by hand are overwritten.
        profile: The profile of the AWS configuration. None: the default one.

    Raises:
        ValueError: The file runs no jobs on Kubernetes, files were changed by hand, or AWS refuses.
        ClusterFileError: The file is wrong.
    """
    with refusals_in(file):
        cluster = read_cluster_file(file)
        wanted = wanted_of(cluster)
        generated = generated_files(wanted)
    known = known_values(cluster)
    if from_deployed:
        target = resolve(str(file), region=None, profile=profile, asker="training-cluster manifests")
        known = deployed_values(cluster, target)
    written = write_folder(directory, generated, overlay_files(wanted, known), force=force)
    yield from (f"{directory / path}" for path in written.changed)
    yield from (f"{directory / path} removed" for path in written.removed)
    if from_deployed and places(wanted):
        env = directory / "overlay" / "deployed.env"
        before = _values(env.read_text(encoding="utf-8"))
        # What AWS does not say stays as its user has filled it in.
        text = deployed_env(places(wanted), {**before, **known})
        if env.read_text(encoding="utf-8") != text:
            env.write_text(text, encoding="utf-8")
            yield f"{env}"


def _values(text: str) -> dict[str, str]:
    lines = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
    return {name.strip(): value.strip() for name, sign, value in lines if sign}
