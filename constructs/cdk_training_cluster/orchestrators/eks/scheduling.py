"""How Kubernetes places pods on nodes: full nodes first, and accelerators count most."""

from aws_cdk import aws_eks_v2 as eks

# All the resources that EKS can weigh. A resource that is left out is not weighed at all, and an accelerator's weight
# is of no account for pods that ask for none.
# https://docs.aws.amazon.com/eks/latest/userguide/control-plane-configuration.html
_WEIGHTS = {
    "nvidia.com/gpu": 10,
    "aws.amazon.com/neuron": 10,
    "aws.amazon.com/neuroncore": 10,
    "cpu": 1,
    "memory": 1,
}


def packing_scheduler() -> eks.CfnCluster.KubeSchedulerConfigProperty:
    """Return the scheduler's settings that fill one node with pods before they start on the next.

    Whole nodes stay free for jobs that need whole nodes, and for the idle stop.
    """
    cluster = eks.CfnCluster
    return cluster.KubeSchedulerConfigProperty(
        node_resources_fit=cluster.NodeResourcesFitConfigProperty(
            scoring_strategy=cluster.ScoringStrategyProperty(
                type="MostAllocated",
                resources=[
                    cluster.ResourceWeightProperty(name=name, weight=weight) for name, weight in _WEIGHTS.items()
                ],
            )
        )
    )
