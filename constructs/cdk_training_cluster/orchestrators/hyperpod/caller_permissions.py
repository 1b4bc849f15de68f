"""The permissions that SageMaker demands of whoever creates or updates a HyperPod cluster.

The functions that set sizes need them: without them UpdateCluster is denied, and no function starts or stops nodes.

Sources: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-prerequisites-iam.html (EKS),
https://docs.aws.amazon.com/sagemaker/latest/dg/smcluster-cmk.html (keys) and
https://docs.aws.amazon.com/sagemaker/latest/dg/hyperpod-custom-ami-cluster-management.html (images)
"""

from collections.abc import Iterator

from aws_cdk import Fn
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from cdk_training_cluster.core.conditions import HERE, in_this_region

# https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonelastickubernetesservice.html
_ON_CLUSTERS = ("eks:CreateAccessEntry", "eks:DescribeCluster")
_ON_ENTRIES = ("eks:AssociateAccessPolicy", "eks:DeleteAccessEntry", "eks:DescribeAccessEntry")
EKS_ACTIONS = (*_ON_CLUSTERS, *_ON_ENTRIES)
"""What whoever creates or updates a cluster on EKS needs."""

KEY_ACTIONS = ("kms:CreateGrant", "kms:DescribeKey")
"""What whoever creates or updates a cluster needs of the key of its root volumes."""

IMAGE_ACTIONS = (
    *("ec2:DescribeImages", "ec2:DescribeSnapshots"),
    *("ec2:ModifyImageAttribute", "ec2:ModifySnapshotAttribute"),
)
"""What whoever creates or updates a cluster needs of an image of the account."""


def eks_statements(arn: str) -> Iterator[iam.PolicyStatement]:
    """Yield what a cluster on EKS needs.

    Args:
        arn: The EKS cluster's ARN.
    """
    place, name = (Fn.select(part, Fn.split(":cluster/", arn)) for part in (0, 1))
    yield iam.PolicyStatement(actions=list(_ON_CLUSTERS), resources=[arn])
    yield iam.PolicyStatement(actions=list(_ON_ENTRIES), resources=[f"{place}:access-entry/{name}/*"])


def key_statements(key: kms.IKey) -> Iterator[iam.PolicyStatement]:
    """Yield what root volumes with a key of the user's need, by way of SageMaker alone.

    Args:
        key: The key.
    """
    via = {"kms:ViaService": f"sagemaker.{HERE.region}.{HERE.url_suffix}"}
    granting, *others = KEY_ACTIONS
    yield iam.PolicyStatement(
        actions=[granting],
        resources=[key.key_arn],
        conditions={"StringEquals": via, "Bool": {"kms:GrantIsForAWSResource": "true"}},
    )
    yield iam.PolicyStatement(actions=others, resources=[key.key_arn], conditions={"StringEquals": via})


def image_statements(image_id: str) -> Iterator[iam.PolicyStatement]:
    """Yield what an image of the account needs, which HyperPod is let use.

    Args:
        image_id: The image.
    """
    *reads, image, snapshot = IMAGE_ACTIONS
    place = f"arn:{HERE.partition}:ec2:{HERE.region}:"
    yield iam.PolicyStatement(actions=list(reads), resources=["*"], conditions=in_this_region())
    yield iam.PolicyStatement(actions=[image], resources=[f"{place}:image/{image_id}"])
    yield iam.PolicyStatement(actions=[snapshot], resources=[f"{place}:snapshot/*"])
