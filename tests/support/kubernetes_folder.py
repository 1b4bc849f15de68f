"""Clusters whose Kubernetes folder is generated, and what is in it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import yaml

from cdk_training_cluster import Capacity, GpuSharing, NodeGroup, instance_type_info
from cdk_training_cluster_file.kubernetes import KubernetesSettings
from cdk_training_cluster_manifests.kubernetes import generated_files
from cdk_training_cluster_manifests.kubernetes.cluster import FileSystem, KubernetesCluster
from cdk_training_cluster_manifests.kubernetes.governance import Governance
from cdk_training_cluster_manifests.kubernetes.group_nodes import HYPERPOD_LABEL, GroupNodes

# The C library reads the thousands of lines in a tenth of the time.
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

QUEUE = "https://sqs.us-east-1.amazonaws.com/111122223333/jobs"
_REPOSITORY = "https://github.com/example/clusters.git"

EVERYTHING: Mapping[str, Any] = {
    "teams": [{"name": "research", "nodes": {"workers": 6}}, {"name": "products", "borrow": False}],
    "karpenter": True,
    "prometheus_url": "http://prometheus.monitoring:9090",
    "job_queue_url": QUEUE,
    "argocd": {"repository": _REPOSITORY, "path": "clusters/llama"},
}
"""Settings with all that can be chosen."""

WORKERS = NodeGroup("workers", instance_types=["p4de.24xlarge"], count=8)
SPOT = NodeGroup("spot", instance_types=["p5.48xlarge"], count=2, capacity=Capacity.spot())
PARTITIONED = NodeGroup(
    "notebooks", instance_types=["p5.48xlarge"], count=1, gpu_sharing=GpuSharing.mig({"3g.40gb": 1, "1g.10gb": 4})
)
SLICED = NodeGroup("small", instance_types=["g6.12xlarge"], count=2, gpu_sharing=GpuSharing.time_slicing(4))
SERVED = NodeGroup("served", instance_types=["g6.12xlarge"], count=2, gpu_sharing=GpuSharing.mps(4))
NEURON = NodeGroup("trn", instance_types=["trn1.32xlarge"], count=2)


def nodes_of(group: NodeGroup) -> GroupNodes:
    """A group as Kubernetes sees it."""
    return GroupNodes(group=group, info=instance_type_info(group.instance_types[0]))


def wanted(*groups: NodeGroup, **settings: Any) -> KubernetesCluster:
    """A cluster of these groups, or of workers alone."""
    return KubernetesCluster(
        name="llama",
        region="us-east-1",
        zone="us-east-1b",
        groups=[nodes_of(each) for each in groups or (WORKERS,)],
        file_system=FileSystem(mount_point="/fsx", checkpoint_directory="/fsx/checkpoints"),
        settings=KubernetesSettings.model_validate(settings),
    )


def on_hyperpod(*groups: NodeGroup, **settings: Any) -> KubernetesCluster:
    """The same with HyperPod's nodes."""
    cluster = wanted(*groups, **settings)
    return replace(cluster, hyperpod=True, groups=[replace(each, label=HYPERPOD_LABEL) for each in cluster.groups])


GOVERNED = replace(
    on_hyperpod(
        WORKERS, teams=[{"name": "research", "nodes": {"workers": 6}}, {"name": "products", "borrow": False}]
    ),
    governance=Governance(priority_classes={"production": 100, "nightly": 10}),
)
"""A cluster of HyperPod's that task governance shares."""

FOLDERS: Mapping[str, KubernetesCluster] = {
    "workers": wanted(),
    "everything": wanted(WORKERS, SPOT, PARTITIONED, SLICED, **EVERYTHING),
    "volcano": wanted(WORKERS, SPOT, SERVED, **{**EVERYTHING, "queues": "volcano"}),
    "alone": replace(wanted(), file_system=None),
    "governed": GOVERNED,
    "neuron": wanted(NEURON, image="public.ecr.aws/neuron/pytorch-training-neuronx:2.8"),
}
"""Clusters that have everything between them."""


def objects(cluster: KubernetesCluster, *kinds: str) -> Iterator[dict[str, Any]]:
    """The objects of a folder, of all or of some kinds; values of charts are none."""
    for path, text in generated_files(cluster).items():
        if path.startswith(("manifests/", "jobs/", "argocd/")):
            for each in yaml.load_all(text, Loader=LOADER):
                if not kinds or each["kind"] in kinds:
                    yield each


def containers(value: Any) -> Iterator[dict[str, Any]]:
    """All containers in an object, wherever they are."""
    if isinstance(value, dict):
        yield from value.get("containers", [])
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from containers(each)
