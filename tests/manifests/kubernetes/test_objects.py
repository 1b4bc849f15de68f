"""The objects of a folder: what fits the nodes, what teams share, and what the custom resources' own rules demand."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from cdk_training_cluster import Capacity, NodeGroup, Placement
from cdk_training_cluster.instance_types import all_instance_types
from cdk_training_cluster.orchestrators.eks.node_groups import labels
from cdk_training_cluster_manifests.kubernetes import generated_files
from cdk_training_cluster_manifests.kubernetes.cluster import KubernetesCluster
from cdk_training_cluster_manifests.kubernetes.drained_nodes import RESOURCES
from cdk_training_cluster_manifests.kubernetes.group_nodes import GroupNodes
from cdk_training_cluster_manifests.kubernetes.quotas import number
from kubernetes_folder import (
    FOLDERS,
    NEURON,
    PARTITIONED,
    SERVED,
    SLICED,
    WORKERS,
    containers,
    nodes_of,
    objects,
    wanted,
)

_ACCELERATED = [info for info in all_instance_types() if info.has_nvidia_gpus or info.has_neuron_devices]
_DEVICES = ("nvidia.com/", "aws.amazon.com/", "vpc.amazonaws.com/")
_OF_THE_NODE = (
    "/etc/cdk-training-cluster",
    "/run/cdk-training-cluster",
    "/opt/cdk-training-cluster/scripts/job",
)

every_folder = pytest.mark.parametrize("cluster", [pytest.param(each, id=name) for name, each in FOLDERS.items()])


def test_what_the_kubelet_keeps_of_a_node_is_what_eks_reserves() -> None:
    workers = nodes_of(WORKERS)  # 96 vCPUs, 1,152 GiB
    assert workers.allocatable_millicpu == 96_000 - 60 - 10 - 10 - 92 * 2.5
    assert workers.allocatable_mib == int(1_179_648 * 0.925) - (255 + 11 * 737 + 100) - 10_256
    assert workers.efas == 4
    # aws-node 50, kube-proxy 100, FSx 30, EFA 10, DCGM 100, and CloudWatch's agent 250, fluent-bit 50 and DCGM 250.
    others = 840 + number(RESOURCES["cpu"])
    assert number(workers.whole_node["cpu"]) + others <= workers.allocatable_millicpu


@pytest.mark.parametrize("info", _ACCELERATED, ids=lambda info: info.name)
def test_a_job_fits_a_node_of_every_type_with_accelerators(info: Any) -> None:
    nodes = GroupNodes(group=NodeGroup("a", instance_types=[info.name], count=1), info=info)
    for asked in (nodes.whole_node, nodes.one_share):
        assert 0 < number(asked["cpu"]) < nodes.allocatable_millicpu <= info.vcpus * 1000
        assert 0 < number(asked["memory"]) < nodes.allocatable_mib < info.memory_mib
    assert nodes.whole_node.get("vpc.amazonaws.com/efa", "0") == str(len(info.efa_cards))
    assert sum(nodes.accelerators.values()) == info.nvidia_gpu_count + info.neuron_device_count


@every_folder
def test_pods_ask_for_whole_devices_within_a_node_and_tolerate_its_taints(cluster: KubernetesCluster) -> None:
    found = [each for made in objects(cluster) for each in containers(made)]
    assert found
    for container in found:
        asked, limits = container["resources"]["requests"], container["resources"]["limits"]
        assert all(amount.isdigit() for name, amount in asked.items() if name.startswith(_DEVICES))
        # Kubernetes wants the same of both for what cannot be overcommitted.
        assert {name: amount for name, amount in asked.items() if name != "cpu"} == limits
    pods = {each["metadata"]["name"]: each for each in objects(cluster, "TrainingRuntime")}
    for name, runtime in pods.items():
        (node,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
        spec = node["template"]["spec"]["template"]["spec"]
        nodes = next(each for each in cluster.groups if each.name == name)
        assert {each["key"]: each["value"] for each in spec["tolerations"]} == nodes.taints
        assert spec["nodeSelector"] == {nodes.label: name}


@every_folder
def test_trainings_start_with_cluster_run_where_the_nodes_have_it(cluster: KubernetesCluster) -> None:
    has_it = not cluster.settings.karpenter
    for runtime in objects(cluster, "TrainingRuntime"):
        (node,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
        spec = node["template"]["spec"]["template"]["spec"]
        folders = {each["hostPath"]["path"] for each in spec["volumes"] if "hostPath" in each}
        assert folders == ({*_OF_THE_NODE} if has_it else set())
        mounts = {each["mountPath"] for each in spec["containers"][0]["volumeMounts"] if each.get("readOnly")}
        assert folders <= mounts
        names = {each["name"] for each in spec["containers"][0]["env"]}
        assert ({"RUN_NAME", "TRAINING_CLUSTER_ATTEMPT", "PYTHONPATH"} <= names) is has_it
    commands = [each["spec"]["trainer"]["command"] for each in objects(cluster, "TrainJob")]
    started = [command[:-1] for command in commands if command[-1].endswith("train.py")]
    wanted_ = [*(["python3", "-m", "cluster_job.launch", "--term-seconds=95"] if has_it else []), "torchrun"]
    assert started == [wanted_] * len(started)


def test_partitions_run_neither_gangs_nor_efa_jobs() -> None:
    cluster = wanted(PARTITIONED)
    (job,) = objects(cluster, "Job", "TrainJob", "TrainingRuntime")
    (container,) = containers(job)
    assert container["resources"]["limits"]["nvidia.com/mig-3g.40gb"] == "1"
    assert not any("efa" in name or "hugepages" in name for name in container["resources"]["limits"])


@pytest.mark.parametrize(
    ("group", "release", "key", "config"),
    [
        (PARTITIONED, "gpu-operator", "mig-configs", {"3g.40gb": 1, "1g.10gb": 4}),
        (SLICED, "nvidia-device-plugin", "timeSlicing", {"name": "nvidia.com/gpu", "replicas": 4}),
        (SERVED, "nvidia-device-plugin", "mps", {"name": "nvidia.com/gpu", "replicas": 4}),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_the_label_of_a_shared_node_names_a_configuration_that_there_is(
    group: NodeGroup, release: str, key: str, config: dict[str, object]
) -> None:
    values = yaml.safe_load(generated_files(wanted(group, WORKERS))[f"values/{release}.yaml"])
    assert group.gpu_sharing is not None
    label = next(iter(group.gpu_sharing.kubernetes_labels(group.name).values()))
    assert labels(group, nodes_of(group).info).items() >= group.gpu_sharing.kubernetes_labels(group.name).items()
    if key == "mig-configs":
        document = yaml.safe_load(values["migManager"]["config"]["data"]["config.yaml"])
        (layout,) = document[key][label]
        assert layout == {"devices": "all", "mig-enabled": True, "mig-devices": config}
        assert values["driver"]["enabled"] is False
        assert {"name": "WITH_REBOOT", "value": "true"} in values["migManager"]["env"]
    else:
        shared = yaml.safe_load(values["config"]["map"][label])
        assert shared["sharing"] == {key: {"failRequestsGreaterThanOne": True, "resources": [config]}}
        # https://github.com/NVIDIA/k8s-device-plugin/blob/v0.20.0/cmd/nvidia-device-plugin/main.go
        assert key != "mps" or shared["flags"]["migStrategy"] != "mixed", "the plugin ends with MPS beside mixed"
        assert "sharing" not in yaml.safe_load(values["config"]["map"][values["config"]["default"]])


@pytest.mark.parametrize(
    ("release", "path", "group"),
    [
        ("efa-device-plugin", "tolerations", WORKERS),
        ("nvidia-device-plugin", "tolerations", WORKERS),
        ("gpu-operator", "daemonsets.tolerations", PARTITIONED),
        ("gpu-operator", "node-feature-discovery.worker.tolerations", PARTITIONED),
        ("dcgm-exporter", "tolerations", WORKERS),
        ("neuron", "devicePlugin.tolerations", NEURON),
    ],
)
def test_what_runs_on_every_node_tolerates_the_taints_of_spot_nodes(
    release: str, path: str, group: NodeGroup
) -> None:
    spot = replace(group, capacity=Capacity.spot())
    values = yaml.safe_load(generated_files(wanted(spot))[f"values/{release}.yaml"])
    for name in path.split("."):
        values = values[name]
    tolerated = {each.get("key") for each in values if each["operator"] == "Exists"}
    assert None in tolerated or tolerated >= set(nodes_of(spot).taints)


def test_teams_share_what_there_is_and_borrow_the_rest() -> None:
    teams = [{"name": "a", "nodes": {"workers": 6}, "borrow": False}, {"name": "b"}, {"name": "c"}]
    cluster = wanted(teams=teams)
    assert [dict(team.nodes) for team in cluster.teams] == [{"workers": 6}, {"workers": 1}, {"workers": 1}]
    quotas = {each["metadata"]["namespace"]: each["spec"]["hard"] for each in objects(cluster, "ResourceQuota")}
    assert [quotas[name]["requests.nvidia.com/gpu"] for name in "abc"] == ["48", "64", "64"]
    queues = list(objects(cluster, "ClusterQueue"))
    gpus = [_quota(each, "nvidia.com/gpu") for each in queues]
    assert [each["nominalQuota"] for each in gpus] == ["48", "8", "8"]
    assert [each.get("borrowingLimit") for each in gpus] == ["0", None, None]


def _quota(queue: dict[str, Any], resource: str) -> dict[str, Any]:
    ((flavor,),) = (group["flavors"] for group in queue["spec"]["resourceGroups"])
    found: dict[str, Any] = next(each for each in flavor["resources"] if each["name"] == resource)
    return found


@pytest.mark.parametrize(
    ("teams", "message"),
    [
        ([{"name": "a", "nodes": {"workers": 9}}], "kubernetes.teams must share at most the 8 nodes of node group"),
        ([{"name": "a"}, {"name": "a"}], "kubernetes.teams has two teams 'a': give each its own name"),
        (
            [{"name": "a", "nodes": {"wrkers": 1}}],
            "kubernetes.teams: nodes of team 'a' must name node groups of the file, which are workers, got wrkers",
        ),
    ],
)
def test_teams_that_share_what_there_is_not_are_refused(teams: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the text is compared
        generated_files(wanted(teams=teams))
    assert str(refused.value).startswith(message)


@every_folder
def test_the_rules_of_kueues_resources_hold(cluster: KubernetesCluster) -> None:
    """Those in CEL: https://github.com/kubernetes-sigs/kueue/tree/v0.19.2/apis/kueue/v1beta2"""
    for queue in objects(cluster, "ClusterQueue"):
        for group in queue["spec"]["resourceGroups"]:
            assert all(
                [each["name"] for each in flavor["resources"]] == group["coveredResources"]
                for flavor in group["flavors"]
            )
            borrows = any("borrowingLimit" in each for flavor in group["flavors"] for each in flavor["resources"])
            assert not borrows or queue["spec"]["cohortName"]
            assert len(group["coveredResources"]) <= 16
    for flavor in objects(cluster, "ResourceFlavor"):
        assert all(each["operator"] == "Equal" and each["value"] for each in flavor["spec"]["tolerations"])


def test_kueues_configuration_has_what_it_ends_without() -> None:
    """https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/pkg/config/validation.go"""
    values = yaml.safe_load(generated_files(wanted())["values/kueue.yaml"])
    configuration = yaml.safe_load(values["managerConfig"]["controllerManagerConfigYaml"])
    assert configuration["fairSharing"]["preemptionStrategies"] == [
        "LessThanOrEqualToFinalShare",
        "LessThanInitialShare",
    ]
    assert configuration["waitForPodsReady"]["timeout"] == "20m"


def test_kueue_goes_before_pods_of_teams_on_full_system_nodes() -> None:
    """https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/charts/kueue/values.yaml"""
    values = yaml.safe_load(generated_files(wanted())["values/kueue.yaml"])
    assert values["controllerManager"] == {"manager": {"priorityClassName": "system-cluster-critical"}}


@every_folder
def test_the_rules_of_karpenters_resources_hold(cluster: KubernetesCluster) -> None:
    """https://github.com/aws/karpenter-provider-aws/blob/v1.14.1/pkg/apis/crds/karpenter.k8s.aws_ec2nodeclasses.yaml"""
    for each in objects(cluster, "EC2NodeClass"):
        interfaces = each["spec"]["networkInterfaces"]
        places = [(one["networkCardIndex"], one["deviceIndex"]) for one in interfaces]
        assert len(places) == len(set(places)) <= 150
        assert {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"} in interfaces
        efas = [one["networkCardIndex"] for one in interfaces if one["interfaceType"] == "efa-only"]
        nodes = next(one for one in cluster.groups if one.name == each["metadata"]["name"])
        assert len(efas) == len(set(efas)) == nodes.efas


_BLOCK, _RESERVATION = "cr-0b0c0d0e0f0a01234", "cr-0a1b2c3d4e5f67890"
_SHARED = f"arn:aws:ec2:us-east-1:111122223333:capacity-reservation/{_RESERVATION}"


@pytest.mark.parametrize(
    ("capacity", "types", "reservations"),
    [
        (Capacity.on_demand(), ["on-demand"], []),
        (Capacity.spot(), ["spot"], []),
        (Capacity.capacity_block(_BLOCK), ["reserved"], [_BLOCK]),
        (Capacity.from_reservation(_RESERVATION), ["reserved"], [_RESERVATION]),
        (Capacity.from_reservation(_RESERVATION, placement_group="close"), ["reserved"], [_RESERVATION]),
        (Capacity.prioritized(reservations=[_SHARED]), ["reserved", "on-demand"], [_RESERVATION]),
        (
            Capacity.prioritized(reservations=[_RESERVATION], capacity_blocks=[_BLOCK], on_demand=False),
            ["reserved"],
            [_RESERVATION, _BLOCK],
        ),
        (Capacity.reservation(end=datetime(2027, 1, 1, tzinfo=UTC)), [], []),
        (Capacity.spot_fleet(), [], []),
    ],
    ids=lambda each: each.call if isinstance(each, Capacity) else "",
)
def test_karpenter_buys_as_the_node_group_does_and_nothing_beside_a_block(
    capacity: Capacity, types: list[str], reservations: list[str]
) -> None:
    """https://github.com/aws/karpenter-provider-aws/blob/v1.14.1/website/content/en/preview/tasks/odcrs.md"""
    group = replace(WORKERS, capacity=capacity, placement=Placement.NONE if capacity.owned_by_spot_fleet else None)
    cluster = wanted(group, karpenter=True)
    pools = list(objects(cluster, "NodePool"))
    assert bool(pools) is bool(types)
    for pool in pools:
        template = pool["spec"]["template"]
        bought = [each["values"] for each in template["spec"]["requirements"] if "capacity-type" in each["key"]]
        assert bought == [types]
        # NVIDIA's device plugin starts on nodes of these labels alone, and without it Karpenter ends no empty node.
        assert template["metadata"] == {"labels": labels(group, nodes_of(group).info)}
        assert pool["spec"]["limits"] == {"nodes": "8", "nvidia.com/gpu": "64"}
    for node_class in objects(cluster, "EC2NodeClass"):
        selected = node_class["spec"].get("capacityReservationSelectorTerms", [])
        assert selected == [{"id": each} for each in reservations]
        placed = node_class["spec"].get("placementGroupSelector")
        assert placed == (None if capacity.placement_group is None else {"name": "close"})


@every_folder
def test_names_are_host_names_that_trainer_takes(cluster: KubernetesCluster) -> None:
    """https://github.com/kubeflow/trainer/blob/v2.3.0/pkg/apis/trainer/v1alpha1/trainjob_types.go"""
    runtimes = {
        (each["metadata"]["namespace"], each["metadata"]["name"]) for each in objects(cluster, "TrainingRuntime")
    }
    for job in objects(cluster, "TrainJob"):
        name = job["metadata"]["name"]
        assert len(name) <= 63
        assert name[0].isalpha()
        assert (job["metadata"]["namespace"], job["spec"]["runtimeRef"]["name"]) in runtimes


def test_neuron_nodes_have_jobs_with_an_image_only_and_a_process_a_core() -> None:
    assert not list(objects(wanted(NEURON), "TrainJob"))
    (job,) = objects(FOLDERS["neuron"], "TrainJob")
    assert job["spec"]["trainer"]["numProcPerNode"] == 32
