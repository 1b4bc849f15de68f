"""Batch scripts for the nodes of a Slurm cluster, filled from its settings."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from cdk_training_cluster.instance_types import InstanceTypeInfo
from cdk_training_cluster.nodes.node_group import NodeGroup
from cdk_training_cluster.orchestrators.slurm.configuration import queues_of
from cdk_training_cluster.orchestrators.slurm.settings import SlurmQueue, SlurmSettings

_TEMPLATES = Path(__file__).parent / "sbatch"

# Processes of a training for each Neuron device, one a logical NeuronCore.
# https://awsdocs-neuron.readthedocs-hosted.com/en/latest/about-neuron/arch/neuron-features/logical-neuroncore-config.html
_PROCESSES_OF_A_NEURON_DEVICE = {"trn2": 4}
_PROCESSES_OF_OLDER_ONES = 2
_OF_GPUS = ("torchrun", "nccl-tests")


def job_scripts(
    slurm: SlurmSettings,
    groups: Sequence[tuple[NodeGroup, InstanceTypeInfo]],
    *,
    mount_point: str | None,
    datasets: Sequence[str] = (),
) -> Mapping[str, str]:
    """Return batch scripts for each node group with whole accelerators, by their paths: `workers/torchrun.sbatch`.

    Args:
        slurm: The settings of Slurm.
        groups: All node groups, each with the facts about its type.
        mount_point: Where the file system is mounted. None: there is none.
        datasets: The directories of data sets, which a training waits for. Default: - it waits for none.
    """
    scripts = {}
    names = [group.name for group, _ in groups]
    for group, info in groups:
        if group.gpu_sharing is not None or not (info.has_nvidia_gpus or info.has_neuron_devices):
            continue
        queue = _queue_of(slurm, group.name, names)
        values = {
            **_values(group, info),
            "QUEUE": queue.name,
            "CONSTRAINT": _constraint(group.name, queue, names),
            "PREPARATION": "\n".join(_preparation(info, mount_point, datasets)),
        }
        templates = {"neuron": "torchrun"} if info.has_neuron_devices else {each: each for each in _OF_GPUS}
        for name, template in templates.items():
            script = f"{name}.sbatch"
            scripts[f"{group.name}/{script}"] = _filled(template, {**values, "SCRIPT": script})
    return scripts


def _queue_of(slurm: SlurmSettings, group: str, groups: Sequence[str]) -> SlurmQueue:
    """Return the first queue of a node group alone, or else the first with it, which the rules see to."""
    queues = [queue for queue in queues_of(slurm, groups) if queue.node_groups is None or group in queue.node_groups]
    return next((queue for queue in queues if _is_of_one(queue, groups)), queues[0])


def _is_of_one(queue: SlurmQueue, groups: Collection[str]) -> bool:
    return len(groups if queue.node_groups is None else queue.node_groups) == 1


def _constraint(group: str, queue: SlurmQueue, groups: Collection[str]) -> str:
    """Return what keeps a job on one node group.

    While a group is stopped, AWS PCS has taken its nodes out of Slurm. A queue without nodes keeps its jobs; a
    feature that no node has is refused with a new job, and holds those that wait.
    """
    if _is_of_one(queue, groups):
        return f"# The queue has the node group {group} alone; while that is stopped, jobs wait."
    return (
        f"# While {group} is stopped Slurm refuses this, and holds jobs that wait (BadConstraints): release these\n"
        "# with scontrol after the start. In a queue of the node group alone jobs just wait.\n"
        f"#SBATCH --constraint={group}"
    )


def _preparation(info: InstanceTypeInfo, mount_point: str | None, datasets: Sequence[str]) -> Iterator[str]:
    if datasets:
        yield "# Fails where a data set cannot be had."
        yield f"wait-for-dataset {' '.join(datasets)} --timeout 4h"
    if info.has_neuron_devices and mount_point is not None:
        yield "# A graph is compiled once for all nodes and runs of its user, and runs as no other."
        yield "export NEURON_COMPILE_CACHE_URL=${NEURON_COMPILE_CACHE_URL:-$HOME/neuron-cache}"


def _values(group: NodeGroup, info: InstanceTypeInfo) -> Mapping[str, str]:
    gpus, devices = info.nvidia_gpu_count, info.neuron_device_count
    return {
        "NODES": str(group.count),
        "ACCELERATORS": f"gpus-per-node={gpus}" if gpus else f"gres=neuron:{devices}",
        "PROCESSES": str(gpus or devices * _processes_of_a_device(info)),
    }


def _processes_of_a_device(info: InstanceTypeInfo) -> int:
    family = info.name.partition(".")[0].rstrip("nu")
    return _PROCESSES_OF_A_NEURON_DEVICE.get(family, _PROCESSES_OF_OLDER_ONES)


def _filled(name: str, values: Mapping[str, str]) -> str:
    text = (_TEMPLATES / f"{name}.sbatch").read_text(encoding="utf-8")
    for placeholder, value in values.items():
        text = text.replace(f"@{placeholder}@", value)
    return text
