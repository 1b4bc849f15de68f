"""Labels find the nodes of each orchestrator, and what HyperPod brings itself is not installed twice."""

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import botocore.session
import botocore.validate
import pytest
import yaml

from cdk_training_cluster import NodeGroup
from cdk_training_cluster.orchestrators.eks.node_groups import GPU_ACCESS, labels
from cdk_training_cluster_file import read_cluster_file
from cdk_training_cluster_manifests.kubernetes import generated_files
from cdk_training_cluster_manifests.kubernetes.charts import releases
from cdk_training_cluster_manifests.kubernetes.cluster import KubernetesCluster
from cdk_training_cluster_manifests.kubernetes.group_nodes import HYPERPOD_LABEL, GroupNodes
from cdk_training_cluster_manifests.kubernetes.reading import wanted_of
from kubernetes_folder import (
    FOLDERS,
    GOVERNED,
    NEURON,
    PARTITIONED,
    SERVED,
    SPOT,
    WORKERS,
    objects,
    on_hyperpod,
    wanted,
)

_ACCELERATED = ("dcgm-exporter", "efa-device-plugin", "gpu-operator", "neuron", "nvidia-device-plugin")

# What charts select by themselves, each at the version that is installed: terms, one of which has to fit.
# https://github.com/NVIDIA/k8s-device-plugin/blob/v0.20.0/deployments/helm/nvidia-device-plugin/values.yaml
_OWN: Mapping[str, list[dict[str, Any]]] = {
    "nvidia-device-plugin": [{"key": "nvidia.com/gpu.present", "operator": "In", "values": ["true"]}],
}
_INSTANCE_TYPE = "node.kubernetes.io/instance-type"


def _node_labels(nodes: GroupNodes) -> Mapping[str, str]:
    """What a node has: of the kubelet's cloud provider, and of its orchestrator.

    HyperPod's own chart finds types as `ml.…`, and its nodes have no label of NVIDIA's:
    https://github.com/aws/sagemaker-hyperpod-cli/blob/v3.9.0/helm_chart/HyperPodHelmChart/values.yaml
    """
    if nodes.label == HYPERPOD_LABEL:
        return {HYPERPOD_LABEL: nodes.name, _INSTANCE_TYPE: f"ml.{nodes.info.name}"}
    return {_INSTANCE_TYPE: nodes.info.name, **labels(nodes.group, nodes.info)}


def _terms(value: Any) -> Iterator[dict[str, Any]]:
    """All expressions about nodes, wherever they are."""
    if isinstance(value, dict):
        yield from (
            {"key": key, "operator": "In", "values": [one]} for key, one in value.get("nodeSelector", {}).items()
        )
        for term in value.get("nodeSelectorTerms", []):
            yield from term["matchExpressions"]
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _terms(each)


def _selected(name: str, values: Mapping[str, Any]) -> list[dict[str, Any]]:
    types = values.get("supportedInstanceLabels", {}).get("values") or values.get("neuronInstances")
    if types is not None:
        return [{"key": _INSTANCE_TYPE, "operator": "In", "values": types}]
    return [*_terms(values)] or _OWN.get(name, [])


def _fits(expression: Mapping[str, Any], node: Mapping[str, str]) -> bool:
    assert expression["operator"] == "In"
    return node.get(expression["key"]) in expression["values"]


@pytest.mark.parametrize(
    "cluster",
    [
        pytest.param(each, id=name)
        for name, each in {
            **FOLDERS,
            "mixed": wanted(WORKERS, NEURON, SPOT, SERVED),
            "shared": wanted(PARTITIONED, NEURON),
            "hyperpod-mixed": on_hyperpod(WORKERS, NEURON),
        }.items()
    ],
)
def test_each_daemon_set_finds_the_nodes_that_need_it(cluster: KubernetesCluster) -> None:
    needs = {
        "dcgm-exporter": [each for each in cluster.groups if each.info.has_nvidia_gpus],
        "nvidia-device-plugin": [each for each in cluster.groups if each.info.has_nvidia_gpus],
        # The operator finds its nodes with node feature discovery.
        "gpu-operator": [],
        "efa-device-plugin": [each for each in cluster.groups if each.efas],
        "neuron": [each for each in cluster.groups if each.info.has_neuron_devices],
    }
    for release in releases(cluster):
        if release.name not in _ACCELERATED:
            continue
        terms = _selected(release.name, release.values)
        for nodes in needs[release.name]:
            assert any(_fits(each, _node_labels(nodes)) for each in terms), (release.name, nodes.name, terms)
        for nodes in cluster.groups:
            if needs[release.name] and nodes not in needs[release.name]:
                assert not any(_fits(each, _node_labels(nodes)) for each in terms), (release.name, nodes.name)
    (daemon_set,) = objects(cluster, "DaemonSet")
    for nodes in cluster.groups:
        assert all(_fits(each, _node_labels(nodes)) for each in _terms(daemon_set))
    for made in objects(cluster, "TrainingRuntime", "Job", "ScaledJob", "ResourceFlavor"):
        for expression in _terms(made):
            assert any(_fits(expression, _node_labels(nodes)) for nodes in cluster.groups)


def test_task_governance_brings_kueue_namespaces_and_queues() -> None:
    files = generated_files(GOVERNED)
    assert [each for each in files if each.startswith("values/")] == [
        "values/trainer.yaml",
        "values/dcgm-exporter.yaml",
    ]
    helmfile = yaml.safe_load(files["helmfile.yaml"])
    assert "kueue" not in str(helmfile)
    owned = {"Namespace", "ResourceQuota", "LimitRange", "ClusterQueue", "LocalQueue", "ResourceFlavor", "Cohort"}
    assert not {each["kind"] for each in objects(GOVERNED)} & {*owned, "WorkloadPriorityClass", "PriorityClass"}
    for job in objects(GOVERNED, "TrainJob"):
        assert job["metadata"]["namespace"] == "hyperpod-ns-research"
        assert job["metadata"]["labels"] == {
            "kueue.x-k8s.io/queue-name": "hyperpod-ns-research-localqueue",
            "kueue.x-k8s.io/priority-class": "nightly-priority",
        }
    spaces = {each["metadata"]["namespace"] for each in objects(GOVERNED, "TrainingRuntime", "PersistentVolumeClaim")}
    assert spaces == {"hyperpod-ns-research", "hyperpod-ns-products"}


def test_the_page_makes_the_quotas_that_task_governance_makes_queues_of() -> None:
    """The commands fit the service's own model."""
    lines = generated_files(GOVERNED)["README.md"].splitlines()
    commands = [shlex.split(line) for line in lines if line.strip().startswith("aws sagemaker create-compute-quota")]
    model = botocore.session.get_session().get_service_model("sagemaker").operation_model("CreateComputeQuota")
    shape: Any = model.input_shape
    types = shape.members["ComputeQuotaConfig"].members["ComputeQuotaResources"].member
    found = {}
    for command in commands:
        given = dict(zip(command[3::2], command[4::2], strict=True))
        team = given["--compute-quota-target"].removeprefix("TeamName=")
        found[team] = json.loads(given["--compute-quota-config"])
        call = {
            "Name": given["--name"],
            "ClusterArn": "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl",
            "ComputeQuotaTarget": {"TeamName": team},
            "ComputeQuotaConfig": found[team],
        }
        assert not botocore.validate.ParamValidator().validate(call, shape).has_errors()
        assert {each["InstanceType"] for each in found[team]["ComputeQuotaResources"]} <= {
            *types.members["InstanceType"].enum
        }
    assert {team: each["ComputeQuotaResources"][0]["Count"] for team, each in found.items()} == {
        "research": 6,
        "products": 2,
    }
    assert [each["ResourceSharingConfig"]["Strategy"] for each in found.values()] == ["LendAndBorrow", "Lend"]


_FILE = """\
name: pod
availability_zone: us-east-1b
orchestrator:
  hyperpod:
    orchestrator: eks
    eks_cluster_arn: arn:aws:eks:us-east-1:111122223333:cluster/training
    eks_security_group_id: sg-0a1b2c3d4e5f67890
    priority_classes: {production: 100, research: 10}
    kubernetes: {queues: kueue}
network: {vpc_id: vpc-0a1b2c3d4e5f67890, subnet_id: subnet-0a1b2c3d4e5f67890}
node_groups:
  - {name: workers, instance_types: [p5.48xlarge], count: 2, image: latest}
"""


def test_a_file_with_priority_classes_is_governed_and_takes_no_volcano(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(_FILE)
    governance = wanted_of(read_cluster_file(file)).governance
    assert governance is not None
    assert governance.lowest_priority == "research-priority"
    file.write_text(_FILE.replace("queues: kueue", "queues: volcano"))
    with pytest.raises(ValueError, match=r"^kubernetes.queues must be kueue beside priority_classes, got volcano: "):
        wanted_of(read_cluster_file(file))


def test_opencost_prices_each_node_by_its_type_and_says_where_it_cannot() -> None:
    """Custom prices are one price for all nodes: https://opencost.io/docs/configuration/aws"""
    groups = (WORKERS, NodeGroup("small", instance_types=["g6e.12xlarge"], count=1))
    cluster = wanted(*groups, prometheus_url="http://prometheus.monitoring:9090")
    values = yaml.safe_load(generated_files(cluster)["values/opencost.yaml"])
    assert values == {
        "opencost": {
            "exporter": {"defaultClusterId": "llama"},
            "prometheus": {
                "internal": {"enabled": False},
                "external": {"enabled": True, "url": "http://prometheus.monitoring:9090"},
            },
        }
    }
    unpriced = "OpenCost finds no price of HyperPod's types"
    assert unpriced not in generated_files(cluster)["README.md"]
    hyperpod = replace(on_hyperpod(WORKERS), settings=cluster.settings)
    assert unpriced in generated_files(hyperpod)["README.md"]


@pytest.mark.parametrize("group", [WORKERS, SERVED], ids=lambda each: each.name)
def test_the_device_plugin_gives_gpus_as_the_nodes_of_the_cluster_take_them(group: NodeGroup) -> None:
    """https://github.com/NVIDIA/k8s-device-plugin/blob/v0.20.0/deployments/helm/nvidia-device-plugin/templates/_helpers.tpl"""
    (plugin,) = [each for each in releases(wanted(group)) if each.name == "nvidia-device-plugin"]
    assert plugin.values["deviceListStrategy"] == "volume-mounts"


def test_nodes_of_karpenter_give_a_pod_the_gpus_of_its_request_alone() -> None:
    (node_class,) = objects(wanted(karpenter=True), "EC2NodeClass")
    assert node_class["spec"]["userData"] == GPU_ACCESS.read_text()
    for each in objects(wanted(NEURON, karpenter=True), "EC2NodeClass"):
        assert "userData" not in each["spec"]
