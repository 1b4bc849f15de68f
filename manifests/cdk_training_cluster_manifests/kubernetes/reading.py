"""Read the settings of the Kubernetes folder from a cluster file."""

from collections.abc import Mapping

from cdk_training_cluster.instance_types import instance_type_info
from cdk_training_cluster.orchestrators.eks.node_groups import NODE_GROUP_LABEL
from cdk_training_cluster_file import ClusterFile
from cdk_training_cluster_file.kubernetes import KubernetesSettings
from cdk_training_cluster_manifests.kubernetes.cluster import FileSystem, KubernetesCluster
from cdk_training_cluster_manifests.kubernetes.governance import Governance
from cdk_training_cluster_manifests.kubernetes.group_nodes import HYPERPOD_LABEL, GroupNodes

_CHECKPOINTS = "checkpoints"


def wanted_of(cluster: ClusterFile) -> KubernetesCluster:
    """Return what the folder of a cluster file is generated from.

    Args:
        cluster: What the file says.

    Raises:
        ValueError: Its jobs do not run on Kubernetes.
    """
    settings, hyperpod = _kubernetes(cluster)
    governance = _governance(cluster, settings)
    facts = [each.to_info() for each in cluster.instance_type_facts]
    groups = [each.to_node_group(cluster.region) for each in cluster.node_groups]
    nodes = [
        GroupNodes(
            group=group,
            info=instance_type_info(group.instance_types[0], facts),
            label=HYPERPOD_LABEL if hyperpod else NODE_GROUP_LABEL,
            huge_pages=not settings.karpenter,
        )
        for group in groups
    ]
    minutes = (
        {}
        if cluster.idle is None
        else {"idle_minutes": cluster.idle.window_minutes or KubernetesCluster.idle_minutes}
    )
    return KubernetesCluster(
        name=cluster.name,
        region=cluster.region,
        zone=cluster.availability_zone,
        groups=nodes,
        file_system=_file_system(cluster),
        settings=settings,
        hyperpod=hyperpod,
        governance=governance,
        **minutes,
    )


def _kubernetes(cluster: ClusterFile) -> tuple[KubernetesSettings, bool]:
    chosen = cluster.orchestrator
    if chosen.eks is not None:
        return chosen.eks.kubernetes, False
    if chosen.hyperpod is not None and chosen.hyperpod.orchestrator == "eks":
        if chosen.hyperpod.kubernetes.karpenter:
            raise ValueError("kubernetes.karpenter must be left out with HyperPod, whose nodes are instance groups")
        return chosen.hyperpod.kubernetes, True
    raise ValueError(
        f"{cluster.name} runs no jobs on Kubernetes: write orchestrator: eks, or orchestrator: {{hyperpod: "
        "{{orchestrator: eks}}, into its cluster file"
    )


def _governance(cluster: ClusterFile, settings: KubernetesSettings) -> Governance | None:
    hyperpod = cluster.orchestrator.hyperpod
    if hyperpod is None or not hyperpod.priority_classes:
        return None
    if settings.queues != "kueue":
        raise ValueError(
            f"kubernetes.queues must be kueue beside priority_classes, got {settings.queues}: task governance admits "
            "jobs with its own Kueue; leave one of them out"
        )
    return Governance(priority_classes=hyperpod.priority_classes)


def _file_system(cluster: ClusterFile) -> FileSystem | None:
    settings = cluster.file_system
    if settings is None:
        return None
    exported = None if cluster.checkpoints is None else cluster.checkpoints.directory_settings
    directory = f"/{_CHECKPOINTS}" if exported is None else exported.file_system_path
    return FileSystem(
        mount_point=settings.mount_point,
        checkpoint_directory=f"{settings.mount_point}{directory}",
    )


def known_values(cluster: ClusterFile) -> Mapping[str, str]:
    """Return the values of `overlay/deployed.env` that the file says itself: those of a file system that exists.

    Args:
        cluster: What the file says.
    """
    existing = None if cluster.file_system is None else cluster.file_system.existing
    if existing is None:
        return {}
    identity = existing.file_system_id
    # https://docs.aws.amazon.com/fsx/latest/LustreGuide/mounting-ec2-instance.html
    suffix = "amazonaws.com.cn" if cluster.region.startswith("cn-") else "amazonaws.com"
    return {
        "FILE_SYSTEM_ID": identity,
        "FILE_SYSTEM_DNS_NAME": f"{identity}.fsx.{cluster.region}.{suffix}",
        "FILE_SYSTEM_MOUNT_NAME": existing.mount_name,
    }
