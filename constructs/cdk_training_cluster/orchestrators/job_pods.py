"""Which pods of a Kubernetes cluster get the job role: those of one service account, in the namespaces of jobs."""

import re
from collections.abc import Iterator, Sequence

from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk_training_cluster.nodes.job_role import JOB_SERVICE_ACCOUNT
from cdk_training_cluster.validation.checks import is_unknown, shown

DEFAULT_NAMESPACES = ("training",)
"""The namespaces of jobs where none are named."""

# https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-label-names
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def job_namespace(setting: str, value: object) -> Iterator[str]:
    """Yield why a value is no namespace of jobs.

    Args:
        setting: The setting's name.
        value: The value.
    """
    if not isinstance(value, str) or is_unknown(value) or not _NAME.fullmatch(value):
        yield (
            f"{setting} must hold names of Kubernetes namespaces that are known when the template is made, such as "
            f"'training', got {shown(value)} in it"
        )


def give_pods_role(cluster: Construct, role: iam.IRole, *, eks_cluster: str, namespaces: Sequence[str]) -> None:
    """Let the pods of jobs have the job role. On each node the agent of EKS Pod Identity gives them its credentials.

    Resources: an `AWS::EKS::PodIdentityAssociation` for each namespace.

    Args:
        cluster: The training cluster.
        role: The job role.
        eks_cluster: The EKS cluster's name.
        namespaces: The namespaces of jobs.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/pod-id-association.html
    """
    from aws_cdk import aws_eks_v2 as eks  # noqa: PLC0415 - only clusters on Kubernetes need the module

    scope = Construct(cluster, "JobPods")
    for namespace in dict.fromkeys(namespaces):
        eks.CfnPodIdentityAssociation(
            scope,
            namespace,
            cluster_name=eks_cluster,
            namespace=namespace,
            service_account=JOB_SERVICE_ACCOUNT,
            role_arn=role.role_arn,
        )
