"""What NVIDIA says about GPUs that several jobs share."""

from collections.abc import Iterator, Mapping

from cdk_training_cluster.instance_types.mig import MigGpu, mig_gpu
from cdk_training_cluster.nodes.gpu_sharing import SharingMethod
from cdk_training_cluster.nodes.node_group import Placement
from cdk_training_cluster.nodes.orchestrator_kind import OrchestratorKind
from cdk_training_cluster.nodes.rules.context import NodeGroupContext
from cdk_training_cluster.validation.rule import Level, Rules

_MIG_GUIDE = "https://docs.nvidia.com/datacenter/tesla/mig-user-guide"

SHARING_RULES: Rules[NodeGroupContext] = Rules()


@SHARING_RULES.rule("sharingOrchestrator", "https://slurm.schedmd.com/gres.html", "gpu_sharing")
def _orchestrator_that_shares(context: NodeGroupContext) -> Iterator[str]:
    if context.group.gpu_sharing is not None and not context.orchestrator.traits.shares_gpus:
        yield (
            f"gpu_sharing must be left out with {context.orchestrator.value}, where a job gets whole GPUs: use "
            f"{' or '.join(each.value for each in OrchestratorKind if each.traits.shares_gpus)}"
        )


@SHARING_RULES.rule("sharedGpus", "https://github.com/NVIDIA/k8s-device-plugin#shared-access-to-gpus", "gpu_sharing")
def _gpus_to_share(context: NodeGroupContext) -> Iterator[str]:
    for info in context.infos if context.group.gpu_sharing is not None else ():
        if not info.has_nvidia_gpus:
            yield f"gpu_sharing must be left out for {info.name}, which has no NVIDIA GPU to share"


# make test-slurm shows it: 4 of the 16 shares of a node with 4 GPUs are given out.
@SHARING_RULES.rule("mpsOfOneGpu", "https://slurm.schedmd.com/gres.html#MPS_Management", level=Level.WARNING)
def _several_gpus_with_mps(context: NodeGroupContext) -> Iterator[str]:
    sharing = context.group.gpu_sharing
    is_mps = sharing is not None and sharing.method is SharingMethod.MPS
    for info in context.infos if is_mps and context.orchestrator.traits.shares_one_mps_gpu else ():
        if info.nvidia_gpu_count > 1:
            yield (
                f"gpu_sharing is {context.words.call('GpuSharing.mps()')} for {info.name} with "
                f"{info.nvidia_gpu_count} GPUs: Slurm gives out the shares of one of them at a time and leaves the "
                f"others idle; use a type with one GPU, or {context.words.call('GpuSharing.time_slicing()')}"
            )


@SHARING_RULES.rule("migGpu", f"{_MIG_GUIDE}/supported-gpus.html", "gpu_sharing")
def _gpus_with_mig(context: NodeGroupContext) -> Iterator[str]:
    for info in context.infos if _is_mig(context) else ():
        if info.has_nvidia_gpus and mig_gpu(info) is None:
            yield (
                f"gpu_sharing must not be {context.words.call('GpuSharing.mig()')} for {info.name}, whose GPUs "
                f"cannot be partitioned: share them with {context.words.call('GpuSharing.mps()')} or "
                f"{context.words.call('GpuSharing.time_slicing()')}, or choose a type such as p5.48xlarge"
            )


@SHARING_RULES.rule("migProfile", f"{_MIG_GUIDE}/supported-mig-profiles.html", "gpu_sharing")
def _profiles_of_the_gpu(context: NodeGroupContext) -> Iterator[str]:
    sharing = context.group.gpu_sharing
    for info in context.infos if _is_mig(context) else ():
        gpu = mig_gpu(info)
        if sharing is None or gpu is None:
            continue
        unknown = [profile for profile in sharing.partitions if profile not in gpu.profiles]
        for profile in unknown:
            yield (
                f"gpu_sharing must name MIG profiles of the {gpu.name} of {info.name}, which are "
                f"{', '.join(gpu.profiles)}, got {profile}"
            )
        if not unknown:
            yield from _too_much(gpu, sharing.partitions_of(info), info.name)


def _too_much(gpu: MigGpu, partitions: Mapping[str, int], type_name: str) -> Iterator[str]:
    for profile, count in partitions.items():
        if count > gpu.profiles[profile]:
            yield (
                f"gpu_sharing must have at most {gpu.profiles[profile]} of {profile} on a GPU of {type_name}, got "
                f"{count}"
            )
            return
    compute, memory = gpu.slices(partitions)
    if compute > gpu.compute_slices or memory > gpu.memory_slices:
        yield (
            f"gpu_sharing must fit on one GPU of {type_name}, which has {gpu.compute_slices} slices of compute and "
            f"{gpu.memory_slices} of memory, got {compute} and {memory}: take partitions away"
        )


@SHARING_RULES.rule("migGang", f"{_MIG_GUIDE}/deployment-considerations.html", "gpu_sharing")
def _no_gangs_of_partitions(context: NodeGroupContext) -> Iterator[str]:
    group = context.group
    if _is_mig(context) and group.placement is Placement.CLUSTER and group.count != 1:
        yield (
            f"gpu_sharing must not be {context.words.call('GpuSharing.mig()')} beside placement "
            f"{context.words.value(Placement.CLUSTER)}, got {group.count} nodes: NCCL does not run between "
            "partitions, so no job spans the nodes; leave placement out, or gpu_sharing for a gang"
        )


def _is_mig(context: NodeGroupContext) -> bool:
    sharing = context.group.gpu_sharing
    return sharing is not None and sharing.method is SharingMethod.MIG
