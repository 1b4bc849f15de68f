"""Which of EKS's own images fits a type."""

from collections.abc import Mapping

from cdk_training_cluster.instance_types import InstanceTypeInfo

_ARCHITECTURES = {"x86_64": "x86_64", "arm64": "ARM_64"}

# The table of AWS, whose Trn1 and Trn2 have Trn1n and Trn2u with them. G7, for one, wants another driver than the
# image has: its nodes would run and be billed without a GPU.
# https://docs.aws.amazon.com/eks/latest/userguide/ml-eks-optimized-ami.html
_FAMILIES: Mapping[str, str] = {
    "AL2023_x86_64_NVIDIA": "p6-b300 p6-b200 p5 p5e p5en p4d p4de p3 p3dn g7e gr6 g6 g6e g6f gr6f g5 g4dn",
    "AL2023_ARM_64_NVIDIA": "p6e-gb200 p6e-gb300 g5g",
    "AL2023_x86_64_NEURON": "inf1 inf2 trn1 trn1n trn2 trn2u",
}


def ami_type(info: InstanceTypeInfo) -> str | None:
    """Return what EKS calls its Amazon Linux 2023 image for a type; None: it has none with a driver for the type.

    Args:
        info: The facts about the type.

    Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_Nodegroup.html
    """
    if not info.is_accelerated:
        return f"AL2023_{_ARCHITECTURES[info.architectures[-1]]}_STANDARD"
    family = info.name.partition(".")[0]
    return next((image for image, families in _FAMILIES.items() if family in families.split()), None)
