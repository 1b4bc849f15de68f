"""What a cluster needs of an account, as tests of preflight say it."""

from cdk_training_cluster import Capacity, instance_type_info
from cdk_training_cluster_cli.prepare.preflight.needs import GroupNeed


def group(*types: str, capacity: Capacity | None = None, count: int = 4) -> GroupNeed:
    """Return what a node group needs."""
    infos = tuple(map(instance_type_info, types or ("p5.48xlarge",)))
    return GroupNeed(name="workers", infos=infos, count=count, capacity=capacity or Capacity.on_demand())
