"""What SageMaker does in the name of who creates or updates a HyperPod cluster.

Sources: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-prerequisites-iam.html,
https://docs.aws.amazon.com/sagemaker/latest/dg/smcluster-cmk.html,
https://docs.aws.amazon.com/sagemaker/latest/dg/hyperpod-custom-ami-cluster-management.html, and the permissions of
the handlers in CloudFormation's schema of AWS::SageMaker::Cluster
"""

from collections.abc import Iterator, Mapping
from typing import Any

from local_aws.policies import Call

# https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonelastickubernetesservice.html
_ON_CLUSTERS = ("eks:DescribeCluster", "eks:CreateAccessEntry")
_ON_ENTRIES = ("eks:DescribeAccessEntry", "eks:DeleteAccessEntry", "eks:AssociateAccessPolicy")

_Needed = tuple[str, str, Mapping[str, str | list[str]]]


def needed(spec: Mapping[str, Any], region: str) -> Iterator[Call]:
    """Yield the calls that SageMaker makes for a cluster.

    Args:
        spec: The request, or a cluster after an update.
        region: The Region.
    """
    for action, resource, context in (
        *_of_eks(spec),
        *(each for group in spec["InstanceGroups"] for each in _of(group, region)),
    ):
        yield Call(action=action, resource=resource, context=context, region=region)


def _of_eks(spec: Mapping[str, Any]) -> Iterator[_Needed]:
    arn = spec.get("Orchestrator", {}).get("Eks", {}).get("ClusterArn")
    if arn is None:
        return
    place, _, name = arn.partition(":cluster/")
    # An entry's ARN names its principal, and ends with an id that EKS makes.
    entry = f"{place}:access-entry/{name}/role/{place.rpartition(':')[2]}/nodes/0ac5e2b3"
    yield from ((action, arn, {}) for action in _ON_CLUSTERS)
    yield from ((action, entry, {}) for action in _ON_ENTRIES)


def _of(group: Mapping[str, Any], region: str) -> Iterator[_Needed]:
    place = f"arn:{group['ExecutionRole'].split(':')[1]}:ec2:{region}:"
    image = group.get("ImageId", "default")
    if image != "default":
        yield "ec2:DescribeImages", "*", {}
        yield "ec2:DescribeSnapshots", "*", {}
        yield "ec2:ModifyImageAttribute", f"{place}:image/{image}", {}
        yield "ec2:ModifySnapshotAttribute", f"{place}:snapshot/snap-0a1b2c3d4e5f67890", {}
    via = {"kms:ViaService": f"sagemaker.{region}.amazonaws.com"}
    for config in group.get("InstanceStorageConfigs", ()):
        key = config.get("EbsVolumeConfig", {}).get("VolumeKmsKeyId")
        if key:
            yield "kms:DescribeKey", key, via
            yield "kms:CreateGrant", key, {**via, "kms:GrantIsForAWSResource": "true"}
