"""The one place that decides how nodes are bought."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from cdk_training_cluster.instance_types import InstanceTypeInfo


class Capacity(ABC):
    """How the nodes of a group are bought. Make one with `Capacity.on_demand()`.

    It says only how to buy: what and how many stands on `NodeGroup`.
    """

    @staticmethod
    def on_demand() -> "Capacity":
        """Buy On-Demand Instances: always the same price, no promise that they can be had.

        Resources: an Auto Scaling group and, unless the node group says otherwise, a cluster placement group.

        Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-on-demand-instances.html
        """
        return _OnDemand()

    @property
    @abstractmethod
    def market(self) -> str:
        """The usage class that is bought, in DescribeInstanceTypes' words, such as `on-demand`."""

    @abstractmethod
    def problems(self, instance_types: Sequence[InstanceTypeInfo]) -> list[str]:
        """Say why these instance types cannot be bought in this way, a sentence each; none if they can.

        Args:
            instance_types: The facts about the node group's types, in the order the user gave them.
        """


class _OnDemand(Capacity):
    @property
    def market(self) -> str:
        return "on-demand"

    def problems(self, instance_types: Sequence[InstanceTypeInfo]) -> list[str]:
        found = []
        if len(instance_types) != 1:
            names = ", ".join(info.name for info in instance_types)
            found.append(
                f"instance_types must name exactly one type for Capacity.on_demand(), got {names}: "
                "make a node group for each type"
            )
        found += [
            f"{info.name} cannot be bought with Capacity.on_demand(): its usage classes are "
            f"{', '.join(info.usage_classes)}"
            for info in instance_types
            if info.usage_classes and self.market not in info.usage_classes
        ]
        return found
