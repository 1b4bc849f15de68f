"""What an escape hatch can make of a HyperPod cluster that SageMaker accepts and that later ends nodes of a training.

What SageMaker refuses has no rule here: the deployment fails, and says why.
"""

from typing import Final

from cdk_training_cluster.validation.templates.reading import Resource, is_known
from cdk_training_cluster.validation.templates.rules import resource_rule

CLUSTER: Final = "AWS::SageMaker::Cluster"

_GUIDE = "https://docs.aws.amazon.com/sagemaker/latest/dg"
_SCALING = f"{_GUIDE}/sagemaker-hyperpod-scaling-slurm.html"
_GROUPS = "Properties.InstanceGroups"
_MODE = "Properties.NodeProvisioningMode"


@resource_rule(
    CLUSTER,
    path=_GROUPS,
    id="hyperpodCount",
    source=_SCALING,
    description="InstanceCount of a HyperPod instance group of nodes must not be 0: every deployment that changes "
    "the cluster would terminate the nodes of a running training",
    fix="Leave it at the count of the node group: the power function stops the nodes of a stopped cluster again",
)
def _count(cluster: Resource) -> bool:
    return any(group.get("InstanceCount") in (0, "0") for group in cluster.mappings(_GROUPS))


@resource_rule(
    CLUSTER,
    path=_MODE,
    id="hyperpodProvisioning",
    source=_SCALING,
    description="NodeProvisioningMode of a HyperPod cluster must be Continuous: without it one node that cannot be "
    "had rolls a whole update back",
    fix="Leave it as the library makes it",
)
def _provisioning(cluster: Resource) -> bool:
    return is_known(cluster.get(_MODE)) and cluster.get(_MODE) != "Continuous"
