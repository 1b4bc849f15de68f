"""The charts that a cluster installs, and the values that they are given."""

import functools
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from cdk_training_cluster.nodes.gpu_sharing import SharingMethod
from cdk_training_cluster_manifests.kubernetes.cluster import KubernetesCluster
from cdk_training_cluster_manifests.kubernetes.group_nodes import GPU, GroupNodes, affinity_to
from cdk_training_cluster_manifests.kubernetes.objects import as_yaml
from cdk_training_cluster_manifests.kubernetes.volcano import SCHEDULER

_SYSTEM = {"key": "CriticalAddonsOnly", "operator": "Exists"}


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart at a version.

    Attributes:
        chart: Its name.
        repository: Where it is: an index over HTTPS, or a registry (oci://).
        version: The version.
        namespace: The namespace that it is installed into.
        source: Where the version was found.
        purpose: What it does.
    """

    chart: str
    repository: str
    version: str
    namespace: str
    source: str
    purpose: str

    @property
    def is_oci(self) -> bool:
        """Whether it lies in a registry of container images."""
        return self.repository.startswith("oci://")


@dataclass(frozen=True, kw_only=True)
class Release:
    """A chart that is installed, with its values.

    Attributes:
        name: The release's name.
        chart: The chart.
        values: The values.
        needs: The releases that come before it.
    """

    name: str
    chart: Chart
    values: Mapping[str, Any]
    needs: Sequence[str] = ()


@functools.cache
def all_charts() -> Mapping[str, Chart]:
    """Return every chart that a folder can install, by the release's name."""
    text = resources.files(__package__).joinpath("charts.toml").read_text(encoding="utf-8")
    return {name: Chart(**row) for name, row in tomllib.loads(text).items()}


def releases(wanted: KubernetesCluster) -> Sequence[Release]:
    """Return what a cluster installs, in this order.

    Args:
        wanted: The cluster.
    """
    return [
        Release(name=name, chart=all_charts()[name], values=values, needs=needs)
        for name, values, needs in _chosen(wanted)
    ]


_VOLCANO = {
    "custom": {
        "scheduler_config_override": SCHEDULER,
        # The list of the chart, and /podgroups/mutate, which gives pods without a queue the queue of their namespace.
        # Without it, they are in the queue `default`, which the policy of the folder refuses.
        # https://github.com/volcano-sh/volcano/pull/4128
        "enabled_admissions": "/jobs/mutate,/jobs/validate,/podgroups/mutate,/podgroups/validate,/queues/mutate,"
        "/queues/validate,/hypernodes/validate,/cronjobs/validate",
    }
}


def _chosen(wanted: KubernetesCluster) -> Iterator[tuple[str, Mapping[str, Any], Sequence[str]]]:
    nvidia = [each for each in wanted.groups if each.info.has_nvidia_gpus]
    settings = wanted.settings
    if not wanted.hyperpod:
        yield from _plugins(wanted, nvidia)
    if settings.karpenter:
        yield "karpenter", _karpenter(wanted), ()
    queues = [settings.queues] if wanted.governance is None else []
    for queue in queues:
        yield queue, _kueue() if queue == "kueue" else _VOLCANO, ()
    # Its runtimes stand in the folder, with this cluster's nodes.
    yield "trainer", {}, queues
    if nvidia and not _is_partitioned(nvidia):
        yield "dcgm-exporter", _dcgm(nvidia), ()
    if settings.job_queue_url is not None:
        yield "keda", {}, ()
    if settings.prometheus_url is not None:
        yield "opencost", _opencost(wanted), ()


def _plugins(
    wanted: KubernetesCluster, nvidia: Sequence[GroupNodes]
) -> Iterator[tuple[str, Mapping[str, Any], Sequence[str]]]:
    with_efa = [each for each in wanted.groups if each.efas]
    if with_efa:
        labels = {"values": _types(with_efa)}
        yield "efa-device-plugin", {"supportedInstanceLabels": labels, "tolerations": _tolerations(wanted.groups)}, ()
    if _is_partitioned(nvidia):
        yield "gpu-operator", _gpu_operator(nvidia), ()
    elif nvidia:
        # Nodes ignore the variable that the plugin sets by default. With mounts, the chart gives the plugin's own
        # container CAP_SYS_ADMIN, and the container toolkit takes the variable from containers with it alone.
        # https://github.com/NVIDIA/k8s-device-plugin/issues/856
        own = {"deviceListStrategy": "volume-mounts", "tolerations": [_SYSTEM, *_tolerations(nvidia)]}
        yield "nvidia-device-plugin", {**_plugin_config(nvidia, "config", "map"), **own}, ()
    neuron = [each for each in wanted.groups if each.info.has_neuron_devices]
    if neuron:
        # Node repair is EKS's.
        plugin = {"tolerations": [_SYSTEM, *_tolerations(neuron)]}
        yield "neuron", {"npd": {"enabled": False}, "neuronInstances": _types(neuron), "devicePlugin": plugin}, ()


def _is_partitioned(nvidia: Sequence[GroupNodes]) -> bool:
    return any(each.is_partitioned for each in nvidia)


def _gpu_operator(nvidia: Sequence[GroupNodes]) -> Mapping[str, Any]:
    # EKS's images have the driver and the container toolkit.
    # https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/amazon-eks.html
    layouts = {each.name: _mig_layout(each) for each in nvidia if each.is_partitioned}
    off = [{"devices": "all", "mig-enabled": False}]
    document = {"version": "v1", "mig-configs": {"all-disabled": off, **layouts}}
    plugin = _plugin_config(nvidia, "config", "data")
    return {
        "driver": {"enabled": False},
        "toolkit": {"enabled": False},
        "mig": {"strategy": "mixed"},
        "migManager": {
            # Where a GPU takes the mode with a restart alone, as A100 does here.
            # https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-operator-mig.html
            "env": [{"name": "WITH_REBOOT", "value": "true"}],
            "config": {
                "create": True,
                "name": "mig-parted",
                "default": "all-disabled",
                "data": {"config.yaml": _text(document)},
            },
        },
        "devicePlugin": {**plugin, "config": {"create": True, "name": "device-plugin", **plugin["config"]}}
        if plugin
        else {"enabled": True},
        "dcgmExporter": {"serviceMonitor": {"enabled": False}},
        "daemonsets": {"tolerations": _tolerations(nvidia)},
        # A chart of its own, which finds the GPUs' nodes for the operator.
        "node-feature-discovery": {"worker": {"tolerations": _tolerations(nvidia)}},
    }


def _tolerations(groups: Sequence[GroupNodes]) -> list[Mapping[str, str]]:
    """Return what lets a daemon set run on all nodes of some groups."""
    keys = {key for each in groups for key in each.taints}
    return [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in sorted(keys)]


def _types(groups: Sequence[GroupNodes]) -> list[str]:
    return sorted({name for each in groups for name in each.group.instance_types})


def _mig_layout(nodes: GroupNodes) -> list[Mapping[str, Any]]:
    """Return a layout as NVIDIA's mig-parted reads it: https://github.com/NVIDIA/mig-parted"""
    partitions = {} if nodes.sharing is None else dict(nodes.sharing.partitions_of(nodes.info))
    return [{"devices": "all", "mig-enabled": True, "mig-devices": partitions}]


def _plugin_config(nvidia: Sequence[GroupNodes], outer: str, inner: str) -> dict[str, Any]:
    """Return the device plugin's configuration for each way to share; a node's label chooses.

    Source: https://github.com/NVIDIA/k8s-device-plugin#configuration-option-details
    """
    shared = {each.name: _shared(each) for each in nvidia if each.sharing is not None and not each.is_partitioned}
    if not shared:
        return {}
    whole = {"version": "v1", "flags": {"migStrategy": "mixed"}}
    texts = {"whole": _text(whole), **{name: _text({**whole, **each}) for name, each in shared.items()}}
    return {outer: {inner: texts, "default": "whole"}}


def _shared(nodes: GroupNodes) -> Mapping[str, Any]:
    sharing = nodes.sharing
    resources_ = [{"name": GPU, "replicas": None if sharing is None else sharing.replicas}]
    of_all = {"failRequestsGreaterThanOne": True, "resources": resources_}
    if sharing is not None and sharing.method is SharingMethod.MPS:
        # The plugin ends with MPS beside "mixed".
        return {"flags": {"migStrategy": "none"}, "sharing": {"mps": of_all}}
    return {"sharing": {"timeSlicing": of_all}}


def _dcgm(nvidia: Sequence[GroupNodes]) -> Mapping[str, Any]:
    return {
        "serviceMonitor": {"enabled": False},
        "affinity": affinity_to(nvidia),
        "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
    }


def _kueue() -> Mapping[str, Any]:
    # The chart's own configuration, of which a part cannot be given: with fair sharing, gangs that start as one, and
    # only the kinds of jobs that this folder has. A job of a team that names no queue waits.
    # https://kueue.sigs.k8s.io/docs/reference/kueue-config.v1beta2/
    configuration = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": ":8081"},
        "metrics": {"bindAddress": ":8443"},
        "webhook": {"port": 9443},
        "leaderElection": {"leaderElect": True, "resourceName": "c1f6bfd2.kueue.x-k8s.io"},
        "manageJobsWithoutQueueName": True,
        "managedJobsNamespaceSelector": {"matchLabels": {"cdk-training-cluster/team": "true"}},
        "waitForPodsReady": {"timeout": "20m", "recoveryTimeout": "10m"},
        "fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]},
        "integrations": {"frameworks": ["batch/job", "jobset.x-k8s.io/jobset", "trainer.kubeflow.org/trainjob"]},
    }
    return {
        "managerConfig": {"controllerManagerConfigYaml": _text(configuration)},
        # Without it no job is admitted, and pods of teams may fill the system nodes.
        "controllerManager": {"manager": {"priorityClassName": "system-cluster-critical"}},
    }


def _karpenter(wanted: KubernetesCluster) -> Mapping[str, Any]:
    return {"settings": {"clusterName": wanted.name}, "serviceAccount": {"name": "karpenter"}}


def _opencost(wanted: KubernetesCluster) -> Mapping[str, Any]:
    # OpenCost takes the On-Demand price of each node's type from AWS's price list, which needs no credentials. Its
    # custom prices are one price of a CPU, a GiB and a GPU for all nodes.
    # https://opencost.io/docs/configuration/aws
    prometheus = {
        "internal": {"enabled": False},
        "external": {"enabled": True, "url": wanted.settings.prometheus_url},
    }
    return {"opencost": {"exporter": {"defaultClusterId": wanted.name}, "prometheus": prometheus}}


def _text(document: Mapping[str, Any]) -> str:
    return as_yaml(json.loads(json.dumps(document))).partition("\n")[2]


def helmfile(installed: Sequence[Release]) -> str:
    """Return the helmfile of some releases, whose values lie beside it.

    Args:
        installed: The releases.
    """
    indexes = {each.chart.repository: each.name for each in installed}
    repositories = [
        {"name": name, "url": url.removeprefix("oci://"), **({"oci": True} if url.startswith("oci://") else {})}
        for url, name in indexes.items()
    ]
    entries = [
        {
            "name": each.name,
            "namespace": each.chart.namespace,
            "chart": f"{indexes[each.chart.repository]}/{each.chart.chart}",
            "version": each.chart.version,
            "values": [_values_path(each)],
            **({"needs": [_qualified(need, installed) for need in each.needs]} if each.needs else {}),
        }
        for each in installed
    ]
    document = {
        "repositories": repositories,
        "helmDefaults": {"createNamespace": True, "wait": True, "timeout": 600},
        "releases": entries,
    }
    return as_yaml(document, about="Charts at fixed versions. Apply them with: helmfile apply")


def _qualified(name: str, installed: Sequence[Release]) -> str:
    return next(f"{each.chart.namespace}/{each.name}" for each in installed if each.name == name)


def value_files(installed: Sequence[Release]) -> Mapping[str, str]:
    """Return the files with the releases' values, by path.

    Args:
        installed: The releases.
    """
    files = {}
    for each in installed:
        about = f"{each.chart.chart} {each.chart.version} {each.chart.purpose}.\n{each.chart.source}"
        files[_values_path(each)] = as_yaml(dict(each.values), about=about)
    return files


def _values_path(release: Release) -> str:
    return f"values/{release.name}.yaml"
