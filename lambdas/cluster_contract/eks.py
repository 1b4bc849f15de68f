"""What the power function sends to an EKS node group with its size, which the template therefore does not say.

CloudFormation may send a template's DesiredSize with any of these: no document says that it does not.
https://docs.aws.amazon.com/eks/latest/APIReference/API_UpdateNodegroupConfig.html
"""

from collections.abc import Mapping

REPAIR, REPAIRS, REPAIRS_NVIDIA, REPAIRS_NOT = "repair", "on", "nvidia", "off"
"""Whether EKS repairs nodes, and that they have NVIDIA GPUs."""

WARM_NODES = "warm"
"""How many stopped nodes are kept."""

SHARING_LABELS = ("nvidia.com/mig.config", "nvidia.com/device-plugin.config", "nvidia.com/mps.capable")
"""The labels by which NVIDIA's device plugin and MIG manager find how a node is shared."""


def eks_options(
    *, repairs: bool, nvidia: bool, warm_nodes: int | None = None, labels: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the options of a node group's owner.

    Args:
        repairs: Whether EKS repairs its nodes.
        nvidia: Whether they have NVIDIA GPUs.
        warm_nodes: How many stopped nodes are kept. None: there is no warm pool.
        labels: Its labels of `SHARING_LABELS`.
    """
    repair = (REPAIRS_NVIDIA if nvidia else REPAIRS) if repairs else REPAIRS_NOT
    warm = {} if warm_nodes is None else {WARM_NODES: str(warm_nodes)}
    return tuple(f"{name}={value}" for name, value in {REPAIR: repair, **warm, **labels}.items())
