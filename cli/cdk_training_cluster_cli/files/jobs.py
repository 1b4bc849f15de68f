"""Writes batch scripts for the node groups of a cluster file whose jobs Slurm runs."""

from collections.abc import Mapping

from cdk_training_cluster.orchestrators.slurm.job_scripts import job_scripts
from cdk_training_cluster.orchestrators.slurm.slurm_orchestrator import SlurmOrchestrator
from cdk_training_cluster_file import ClusterFile
from cdk_training_cluster_stacks.building import built_stacks


def job_files(cluster: ClusterFile) -> Mapping[str, str]:
    """Return the scripts by their paths.

    Args:
        cluster: What the file says.

    Raises:
        ValueError: A construct refuses its settings, or Slurm does not run the cluster's jobs, or it has no
            accelerators that a job may have for itself.
    """
    with built_stacks(cluster) as (_, stack):
        made = stack.training_cluster
        orchestrator = made.orchestrator
        if not isinstance(orchestrator, SlurmOrchestrator):
            raise ValueError(  # noqa: TRY004 - what the file says is wrong, and no type
                f"{cluster.name} has no Slurm on AWS PCS that runs batch scripts: add orchestrator: slurm to its "
                "cluster file"
            )
        mount_point = None if made.mount is None else made.mount.mount_point
        scripts = job_scripts(
            orchestrator.slurm,
            [(fleet.node_group, fleet.instance_type) for fleet in made.node_groups],
            mount_point=mount_point,
            datasets=[f"{mount_point}{dataset.file_system_path}" for dataset in cluster.datasets],
        )
    if not scripts:
        raise ValueError(f"{cluster.name} has no node group whose jobs take whole GPUs or Neuron devices")
    return scripts
