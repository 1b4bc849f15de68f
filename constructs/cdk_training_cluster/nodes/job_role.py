"""The role of jobs, which is not that of their nodes: what root may do to the cluster, no job may do."""

from collections.abc import Sequence

from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk_training_cluster.core.acknowledgements import acknowledge
from cdk_training_cluster.core.conditions import in_this_region

JOB_SERVICE_ACCOUNT = "cluster-job"
"""The Kubernetes service account with which pods get the job role."""


def make_job_role(
    scope: Construct,
    *,
    node_role: iam.IRole | None = None,
    services: Sequence[str] = (),
    eks_cluster_arn: str | None = None,
) -> iam.Role:
    """Make the role of a cluster's jobs, to which permissions are granted.

    Args:
        scope: The cluster.
        node_role: The instance role, with which a node gets credentials of the job role for its users.
            Default: - nodes get none.
        services: The services that give jobs the role, such as `ecs-tasks.amazonaws.com`. Default: - none.
        eks_cluster_arn: The EKS cluster whose pods get the role, with the service account of jobs. Default: - none.

    Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles_terms-and-concepts.html
    """
    principals: list[iam.IPrincipal] = [iam.ServicePrincipal(name) for name in services]
    if eks_cluster_arn is not None:
        principals.append(_pods(eks_cluster_arn))
    if node_role is not None:
        principals.append(node_role)
    role = iam.Role(
        scope,
        "JobRole",
        assumed_by=principals[0] if len(principals) == 1 else iam.CompositePrincipal(*principals),
        description="The jobs of a training cluster",
    )
    if node_role is not None:
        role.grant_assume_role(node_role)
    acknowledge(
        role,
        "AwsSolutions-IAM5[Resource::*]",
        "CloudWatch's PutMetricData knows no resources; it is limited to one namespace and the region.",
    )
    return role


def let_write_metrics(principal: iam.IPrincipal, namespace: str) -> None:
    """Let nodes or jobs write metrics to their namespace.

    Args:
        principal: Their role.
        namespace: The namespace, as `node_namespace` or `job_namespace` returns it.

    Source: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/iam-cw-condition-keys-namespace.html
    """
    own = {"cloudwatch:namespace": namespace, **in_this_region()["StringEquals"]}
    principal.add_to_principal_policy(
        iam.PolicyStatement(actions=["cloudwatch:PutMetricData"], resources=["*"], conditions={"StringEquals": own})
    )


def _pods(eks_cluster_arn: str) -> iam.IPrincipal:
    """Return the pods of jobs: EKS tags the sessions of pods with their cluster and service account.

    https://docs.aws.amazon.com/eks/latest/userguide/pod-id-role.html and
    https://docs.aws.amazon.com/eks/latest/userguide/pod-id-abac.html
    """
    tags = {"eks-cluster-arn": eks_cluster_arn, "kubernetes-service-account": JOB_SERVICE_ACCOUNT}
    conditions = {"StringEquals": {f"aws:RequestTag/{key}": value for key, value in tags.items()}}
    return iam.SessionTagsPrincipal(iam.ServicePrincipal("pods.eks.amazonaws.com", conditions=conditions))
