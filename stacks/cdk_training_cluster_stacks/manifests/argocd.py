"""Applications of Argo CD: one a chart, and one for the manifests, in the order in which they need each other."""

from collections.abc import Sequence

from cdk_training_cluster_stacks.cluster_file.kubernetes import ArgoCdSettings
from cdk_training_cluster_stacks.manifests.charts import Release
from cdk_training_cluster_stacks.manifests.objects import Object, an_object, plain

_CLUSTER = "https://kubernetes.default.svc"
_SYNC = {
    "automated": {"prune": True, "selfHeal": True},
    "syncOptions": ["CreateNamespace=true", "ServerSideApply=true"],
}


def applications(name: str, settings: ArgoCdSettings, installed: Sequence[Release]) -> Sequence[Object]:
    """Return the applications, charts first: the manifests are of kinds that charts bring.

    Args:
        name: The cluster's name.
        settings: Where the folder lies.
        installed: The charts.

    Source: https://argo-cd.readthedocs.io/en/stable/user-guide/multiple_sources/
    """
    charts = [
        _application(
            f"{name}-{each.name}",
            wave=0,
            namespace=each.chart.namespace,
            sources=[
                {
                    "repoURL": each.chart.repository.removeprefix("oci://"),
                    "chart": each.chart.chart,
                    "targetRevision": each.chart.version,
                    "helm": {"valuesObject": plain(each.values)},
                }
            ],
        )
        for each in installed
    ]
    git = {"repoURL": settings.repository, "targetRevision": settings.revision, "path": f"{settings.path}/overlay"}
    return [*charts, _application(f"{name}-manifests", wave=1, namespace="default", sources=[git])]


def _application(name: str, *, wave: int, namespace: str, sources: Sequence[Object]) -> Object:
    made = an_object(
        "Application",
        name,
        api="argoproj.io/v1alpha1",
        namespace="argocd",
        spec={
            "project": "default",
            "destination": {"server": _CLUSTER, "namespace": namespace},
            "sources": [*sources],
            "syncPolicy": _SYNC,
        },
    )
    made["metadata"]["annotations"] = {"argocd.argoproj.io/sync-wave": str(wave)}
    return made
