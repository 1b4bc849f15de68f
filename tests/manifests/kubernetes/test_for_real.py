"""Kubernetes' own schemas, Trainer's models and real Helm take what is generated: `make test-kubernetes`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cdk_training_cluster.orchestrators.eks.settings import DEFAULT_VERSION
from cdk_training_cluster_manifests.kubernetes import generated_files
from cdk_training_cluster_manifests.kubernetes.charts import all_charts
from cdk_training_cluster_manifests.kubernetes.cluster import KubernetesCluster
from kubernetes_folder import FOLDERS, LOADER, objects

_WHY = "only with `make test-kubernetes`, which installs it"
schemas = pytest.importorskip("kubernetes_validate", reason=_WHY)
trainer = pytest.importorskip("kubeflow_trainer_api.models", reason=_WHY)
helm = pytest.importorskip("helm_python", reason=_WHY)

CHARTS = Path("build/charts")
_TRAINER = {"TrainJob": "TrainerV1alpha1TrainJob", "TrainingRuntime": "TrainerV1alpha1TrainingRuntime"}
_OWN = (
    "v1",
    "admissionregistration.k8s.io/v1",
    "apps/v1",
    "batch/v1",
    "rbac.authorization.k8s.io/v1",
    "scheduling.k8s.io/v1",
)

every_folder = pytest.mark.parametrize("cluster", [pytest.param(each, id=name) for name, each in FOLDERS.items()])


@every_folder
def test_kubernetes_schemas_take_every_object_of_its_own(cluster: KubernetesCluster) -> None:
    found = [each for each in objects(cluster) if each["apiVersion"] in _OWN]
    shared = {"Namespace", "ResourceQuota"} if cluster.governance is None else set()
    stored = set() if cluster.file_system is None else {"PersistentVolume"}
    assert {each["kind"] for each in found} >= {*shared, *stored, "DaemonSet"}
    for each in found:
        schemas.validate(each, DEFAULT_VERSION, strict=True)


@every_folder
def test_the_pods_of_custom_resources_are_kubernetes_pods(cluster: KubernetesCluster) -> None:
    for each in objects(cluster, "TrainingRuntime", "ScaledJob"):
        for spec in _pods(each):
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": spec}
            schemas.validate(pod, DEFAULT_VERSION, strict=True)


def _pods(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if "containers" in value:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _pods(each)


@every_folder
def test_trainers_models_know_every_setting_of_its_jobs(cluster: KubernetesCluster) -> None:
    found = list(objects(cluster, *_TRAINER))
    assert {each["kind"] for each in found} == set(_TRAINER)
    for each in found:
        # What a model does not know it drops.
        assert getattr(trainer, _TRAINER[each["kind"]]).from_dict(each).to_dict() == each


@pytest.mark.parametrize("release", all_charts())
def test_helm_renders_the_chart_with_the_values(release: str) -> None:
    chart = CHARTS / release
    if not chart.is_dir():
        reason = f"{chart} is not there: helm pull could not fetch {all_charts()[release].repository}"
        pytest.skip(reason=reason)  # there is no way to the chart repositories
    values = [
        text
        for cluster in FOLDERS.values()
        for path, text in generated_files(cluster).items()
        if path.startswith(f"values/{release}.yaml")
    ]
    assert values
    for text in values:
        given = yaml.safe_load(text)
        rendered = helm.Chart.load(chart).render(given, name=release, namespace="there")
        documents = [text for path, text in rendered.items() if path.endswith((".yaml", ".yml"))]
        assert [each for text in documents for each in yaml.load_all(text, Loader=LOADER) if each]


def test_every_chart_is_one_that_some_cluster_installs() -> None:
    paths = {path for cluster in FOLDERS.values() for path in generated_files(cluster)}
    installed = {Path(path).name.partition(".")[0] for path in paths if path.startswith("values/")}
    assert installed | {"nvidia-device-plugin", "dcgm-exporter"} == set(all_charts())
