"""All files of the folder of a cluster."""

from collections.abc import Mapping, Sequence

from cdk_training_cluster_manifests.kubernetes.argocd import applications
from cdk_training_cluster_manifests.kubernetes.charts import helmfile, releases, value_files
from cdk_training_cluster_manifests.kubernetes.cluster import KubernetesCluster
from cdk_training_cluster_manifests.kubernetes.drained_nodes import drained_nodes
from cdk_training_cluster_manifests.kubernetes.job_pods import job_policy, service_accounts
from cdk_training_cluster_manifests.kubernetes.jobs import job_files, runtimes
from cdk_training_cluster_manifests.kubernetes.karpenter import node_pools
from cdk_training_cluster_manifests.kubernetes.kueue import kueue_queues
from cdk_training_cluster_manifests.kubernetes.objects import Object, as_yaml
from cdk_training_cluster_manifests.kubernetes.quotas import limits, namespaces, priorities
from cdk_training_cluster_manifests.kubernetes.readme import readme
from cdk_training_cluster_manifests.kubernetes.scaled_job import scaled_jobs
from cdk_training_cluster_manifests.kubernetes.storage import volumes
from cdk_training_cluster_manifests.kubernetes.volcano import volcano_queues


def generated_files(wanted: KubernetesCluster) -> Mapping[str, str]:
    """Return the files that are generated, by path.

    Args:
        wanted: The cluster.

    Raises:
        ValueError: Teams share what there is not.
    """
    installed = releases(wanted)
    parts = {name: found for name, found in _manifests(wanted).items() if found}
    manifests = {f"manifests/{name}.yaml": as_yaml(*found) for name, found in parts.items()}
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [f"{name}.yaml" for name in parts],
    }
    jobs = {f"jobs/{name}.yaml": as_yaml(job) for name, job in job_files(wanted).items()}
    argocd = wanted.settings.argocd
    return {
        "helmfile.yaml": helmfile(installed),
        **value_files(installed),
        "manifests/kustomization.yaml": as_yaml(kustomization),
        **manifests,
        **jobs,
        **(
            {}
            if argocd is None
            else {"argocd/applications.yaml": as_yaml(*applications(wanted.name, argocd, installed))}
        ),
        "README.md": readme(wanted, installed, [*jobs]),
    }


def _manifests(wanted: KubernetesCluster) -> Mapping[str, Sequence[Object]]:
    """Return the objects that `kubectl apply -k` makes, by file, in the order in which they need each other."""
    settings = wanted.settings
    # Task governance makes these of its own, and undoes what others change in them.
    shared = {
        "namespaces": namespaces(wanted),
        "priorities": priorities(wanted),
        "limits": limits(wanted),
        "queues": kueue_queues(wanted) if settings.queues == "kueue" else volcano_queues(wanted),
    }
    return {
        **(shared if wanted.governance is None else {}),
        "job-pods": [*service_accounts(wanted), *job_policy(wanted)],
        "file-system": [] if wanted.file_system is None else volumes(wanted),
        "drained-nodes": drained_nodes(wanted),
        "runtimes": runtimes(wanted),
        "scaled-jobs": scaled_jobs(wanted),
        "node-pools": node_pools(wanted) if settings.karpenter else [],
    }
