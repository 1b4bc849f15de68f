"""Applications of Argo CD: one a chart, and one for the manifests, tried again until the charts are there."""

from collections.abc import Sequence

from cdk_training_cluster_file.kubernetes import ArgoCdSettings
from cdk_training_cluster_manifests.kubernetes.charts import Release
from cdk_training_cluster_manifests.kubernetes.objects import Object, an_object, plain

_CLUSTER = "https://kubernetes.default.svc"
_SYNC = {
    "automated": {"prune": True, "selfHeal": True},
    # Argo CD syncs all of them at once, and tries no failed commit again by itself.
    # https://argo-cd.readthedocs.io/en/stable/user-guide/auto_sync/
    "syncOptions": ["CreateNamespace=true", "ServerSideApply=true", "SkipDryRunOnMissingResource=true"],
    "retry": {"limit": -1, "backoff": {"duration": "30s", "factor": 2, "maxDuration": "5m"}},
}


def applications(name: str, settings: ArgoCdSettings, installed: Sequence[Release]) -> Sequence[Object]:
    """Return the applications: of the charts, and of the manifests, whose kinds charts bring.

    Args:
        name: The cluster's name.
        settings: Where the folder lies.
        installed: The charts.

    Source: https://argo-cd.readthedocs.io/en/stable/user-guide/multiple_sources/
    """
    charts = [
        _application(
            f"{name}-{each.name}",
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
    return [*charts, _application(f"{name}-manifests", namespace="default", sources=[git])]


def _application(name: str, *, namespace: str, sources: Sequence[Object]) -> Object:
    return an_object(
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
