"""Which machine image fits a type's architecture and accelerators."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cdk_training_cluster.instance_types import InstanceTypeInfo
from cdk_training_cluster.nodes.orchestrator_kind import ImageFamily, OrchestratorKind

# AWS Deep Learning Base AMIs: driver, EFA installer and FSx client in one, no framework.
# https://docs.aws.amazon.com/dlami/latest/devguide/find-dlami-id.html
_NVIDIA_PARAMETER = (
    "/aws/service/deeplearning/ami/{architecture}/base-oss-nvidia-driver-gpu-amazon-linux-2023/latest/ami-id"
)
# The open kernel modules in those images need a GPU of the Turing generation or newer, and a whole one: parts of
# GPUs take the GRID driver.
# https://docs.aws.amazon.com/dlami/latest/devguide/aws-deep-learning-ami-gpubaseoss-al2023-2026-05-20.html
_GPUS_WITHOUT_OPEN_DRIVER = frozenset({"V100"})

# Driver, EFA and tools for Inferentia2 and every Trainium; Ubuntu, since PyTorch for Neuron has outgrown Amazon
# Linux 2023's C library. https://awsdocs-neuron.readthedocs-hosted.com/en/latest/deploy/environments/dlami.html
_NEURON_PARAMETER = "/aws/service/neuron/dlami/base/ubuntu-24.04/latest/image_id"
# The NVIDIA image for Ubuntu with the agent of AWS PCS and Slurm, also for types without GPUs; Neuron is not in it.
# https://docs.aws.amazon.com/pcs/latest/userguide/working-with_ami_pcs-ready-dlami.html
_PCS_PARAMETER = "/aws/service/pcs/ami/dlami-base-ubuntu2404/{architecture}/latest/ami-id"
# Inferentia1 was left behind by Neuron's images at 2.26.1.
_OLDEST_NEURON_CORE = 2


@dataclass(frozen=True, kw_only=True)
class PublicImage:
    """An image that AWS publishes through an SSM parameter.

    Attributes:
        parameter_name: The public SSM parameter that holds the newest image's id.
        root_device_name: The device name of its root volume; another name would add a volume, not size the root.
        root_gib: The root volume that AWS suggests for it, in GiB. Default: - 100, as of Deep Learning images.
        has_lustre_client: Whether FSx for Lustre's client is in it. Default: - yes.
    """

    parameter_name: str
    root_device_name: str
    root_gib: int = 100
    has_lustre_client: bool = True


# The image that Batch takes for GPUs, of its own account; not for Arm, nor for the families p3 and g3.
# https://docs.aws.amazon.com/batch/latest/APIReference/API_Ec2Configuration.html
_BATCH_PARAMETER = "/aws/service/ecs/optimized-ami/amazon-linux-2023/gpu/recommended/image_id"


def pcs_image(architecture: str) -> PublicImage:
    """Return AWS's image for nodes of AWS PCS.

    Args:
        architecture: `x86_64` or `arm64`.
    """
    parameter = _PCS_PARAMETER.format(architecture=architecture)
    return PublicImage(parameter_name=parameter, root_device_name="/dev/sda1")


def public_image(
    info: InstanceTypeInfo, orchestrator: OrchestratorKind = OrchestratorKind.NONE
) -> PublicImage | None:
    """Return AWS's image for a type, or None where AWS has none: then the user's own is needed.

    Args:
        info: The facts about the type; architecture and accelerators decide.
        orchestrator: The orchestrator that launches the nodes. Default: - none.
    """
    return _IMAGES[orchestrator.traits.image_family](info)


def _deep_learning_image(info: InstanceTypeInfo) -> PublicImage | None:
    if info.has_neuron_devices:
        return _neuron_image(info)
    parameter = _NVIDIA_PARAMETER.format(architecture=info.architectures[-1])
    return PublicImage(parameter_name=parameter, root_device_name="/dev/xvda") if _has_driven_gpus(info) else None


def _pcs_image(info: InstanceTypeInfo) -> PublicImage | None:
    return pcs_image(info.architectures[-1]) if not info.has_neuron_devices and _has_open_driver(info) else None


def _ecs_image(info: InstanceTypeInfo) -> PublicImage | None:
    if info.has_neuron_devices or info.architectures[-1] != "x86_64" or not _has_driven_gpus(info):
        return None
    return PublicImage(
        parameter_name=_BATCH_PARAMETER, root_device_name="/dev/xvda", root_gib=30, has_lustre_client=False
    )


_IMAGES: Mapping[ImageFamily, Callable[[InstanceTypeInfo], PublicImage | None]] = {
    ImageFamily.DEEP_LEARNING: _deep_learning_image,
    ImageFamily.PCS: _pcs_image,
    ImageFamily.ECS: _ecs_image,
}


def _has_driven_gpus(info: InstanceTypeInfo) -> bool:
    return info.has_nvidia_gpus and _has_open_driver(info)


def _has_open_driver(info: InstanceTypeInfo) -> bool:
    return all(gpu.name not in _GPUS_WITHOUT_OPEN_DRIVER and gpu.fraction == 1 for gpu in info.accelerators)


def _neuron_image(info: InstanceTypeInfo) -> PublicImage | None:
    if any((device.core_version or 0) < _OLDEST_NEURON_CORE for device in info.accelerators):
        return None
    return PublicImage(parameter_name=_NEURON_PARAMETER, root_device_name="/dev/sda1", has_lustre_client=False)
