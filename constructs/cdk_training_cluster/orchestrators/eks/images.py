"""Which of EKS's own images fits a type."""

from cdk_training_cluster.instance_types import InstanceTypeInfo

# The oldest NeuronCore that the Neuron driver in the image takes is that of Inf1.
# https://docs.aws.amazon.com/eks/latest/userguide/ml-eks-optimized-ami.html
_ARCHITECTURES = {"x86_64": "x86_64", "arm64": "ARM_64"}


def ami_type(info: InstanceTypeInfo) -> str | None:
    """Return what EKS calls its Amazon Linux 2023 image for a type; None: it has none for such accelerators.

    Args:
        info: The facts about the type; architecture and accelerators decide.

    Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_Nodegroup.html
    """
    architecture = _ARCHITECTURES[info.architectures[-1]]
    if info.has_neuron_devices:
        return "AL2023_x86_64_NEURON" if architecture == "x86_64" else None
    if info.has_nvidia_gpus:
        return f"AL2023_{architecture}_NVIDIA"
    return None if info.accelerators else f"AL2023_{architecture}_STANDARD"
