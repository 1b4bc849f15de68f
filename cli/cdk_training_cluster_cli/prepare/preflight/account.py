"""The account: whose it is, its service-linked roles, and what Lambda lets functions reserve."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from cdk_training_cluster_cli.prepare.preflight.checks import Aws, Check, Verdict, failed, found, passed
from cdk_training_cluster_cli.prepare.preflight.needs import Needs
from cdk_training_cluster_cli.prepare.preflight.quotas import Quota

# Lambda keeps so many for functions that reserve none:
# https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html
_KEPT_UNRESERVED = 100
_CONCURRENCY = Quota(service="lambda", code="L-B99A9384", name="Concurrent executions", unit="of them")


@dataclass(frozen=True, kw_only=True)
class LinkedRole:
    """A service-linked role.

    Attributes:
        name: Its name.
        service: The service that uses it.
        made: What makes it where it is missing. Empty: an operator has to, before the deployment.
    """

    name: str
    service: str
    made: str = ""


def linked_roles(needs: Needs) -> Iterator[LinkedRole]:
    """Yield the service-linked roles that a cluster's services use.

    https://docs.aws.amazon.com/autoscaling/ec2/userguide/autoscaling-service-linked-role.html
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/service-linked-roles-spot-instance-requests.html
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/service-linked-roles-spot-fleet-requests.html
    https://docs.aws.amazon.com/fsx/latest/LustreGuide/using-service-linked-roles.html

    Args:
        needs: What the cluster needs.
    """
    yield from (
        LinkedRole(name=name, service=service, made=made)
        for kind, (name, service, made) in _ROLES_OF_ORCHESTRATORS.items()
        if kind in needs.nodes
    )
    fleets = any(group.capacity.owned_by_spot_fleet for group in needs.groups)
    if any(kind in needs.nodes for kind in _ON_AUTO_SCALING):
        # A key's policy names the role, and KMS takes no principal that does not exist.
        by_hand = needs.cluster.encryption_key is not None
        made = "" if by_hand else "the first Auto Scaling group"
        yield LinkedRole(name="AWSServiceRoleForAutoScaling", service="autoscaling.amazonaws.com", made=made)
    if any(group.capacity.uses_spot for group in needs.groups):
        # Of AWS PCS no document says that it makes the role, which of EC2 only the console does.
        by_hand = fleets or "AWS::PCS::ComputeNodeGroup" in needs.nodes
        made = "" if by_hand else "Auto Scaling's first Spot Instance"
        yield LinkedRole(name="AWSServiceRoleForEC2Spot", service="spot.amazonaws.com", made=made)
    if fleets:
        yield LinkedRole(name="AWSServiceRoleForEC2SpotFleet", service="spotfleet.amazonaws.com")
    files = needs.cluster.file_system
    if files is not None and files.existing is None:
        made = "the first file system"
        yield LinkedRole(name="AWSServiceRoleForAmazonFSx", service="fsx.amazonaws.com", made=made)


_ROLES_OF_ORCHESTRATORS: Mapping[str, tuple[str, str, str]] = {
    # https://docs.aws.amazon.com/pcs/latest/userguide/service-linked-roles.html
    "AWS::PCS::Cluster": ("AWSServiceRoleForPCS", "pcs.amazonaws.com", "the first cluster of AWS PCS"),
    # https://docs.aws.amazon.com/eks/latest/userguide/using-service-linked-roles-eks.html
    "AWS::EKS::Cluster": ("AWSServiceRoleForAmazonEKS", "eks.amazonaws.com", "the first EKS cluster"),
    # https://docs.aws.amazon.com/eks/latest/userguide/using-service-linked-roles-eks-nodegroups.html
    "AWS::EKS::Nodegroup": (
        "AWSServiceRoleForAmazonEKSNodegroup",
        "eks-nodegroup.amazonaws.com",
        "the first managed node group",
    ),
    # https://docs.aws.amazon.com/sagemaker/latest/dg/security-iam-awsmanpol-AmazonSageMakerHyperPodServiceRolePolicy.html
    "AWS::SageMaker::Cluster": (
        "AWSServiceRoleForSageMakerHyperPod",
        "hyperpod.sagemaker.amazonaws.com",
        "the first HyperPod cluster",
    ),
    # https://docs.aws.amazon.com/batch/latest/userguide/using-service-linked-roles.html
    "AWS::Batch::ComputeEnvironment": (
        "AWSServiceRoleForBatch",
        "batch.amazonaws.com",
        "the first compute environment",
    ),
}
"""The service-linked role of each orchestrator, by the type of the resource that uses it: name, service and maker."""


# An EKS node group is run by an Auto Scaling group of EKS's.
_ON_AUTO_SCALING = ("AWS::AutoScaling::AutoScalingGroup", "AWS::EKS::Nodegroup")


def judge_role(role: LinkedRole, exists: bool) -> Verdict:
    """Say whether a service-linked role is there when it is needed.

    Args:
        role: The role.
        exists: Whether it exists.
    """
    if exists:
        return passed(f"{role.name} exists")
    if role.made:
        return passed(f"{role.name} does not exist yet: {role.made} makes it")
    return failed(
        f"{role.name} does not exist", f"aws iam create-service-linked-role --aws-service-name {role.service}"
    )


def judge_account(wanted: str | None, account: str, caller: str) -> Verdict:
    """Say whether the credentials are of the cluster file's account.

    Args:
        wanted: The account of the cluster file. None: it names none.
        account: The account of the credentials.
        caller: The ARN of the caller.
    """
    if wanted not in (None, account):
        return failed(
            f"the credentials are of {account}, and the file names {wanted}", "set AWS_PROFILE or --profile"
        )
    return passed(f"the caller is {caller}")


def judge_concurrency(reserves: int, region: str, answer: tuple[Mapping[str, Any], int]) -> Verdict:
    """Say whether Lambda lets the functions reserve what they do.

    Args:
        reserves: How many executions they reserve.
        region: The region.
        answer: The limits of the account, and how many of the functions exist already.
    """
    limits, made = answer
    free, new = limits["UnreservedConcurrentExecutions"], max(reserves - made, 0)
    said = f"{new} functions reserve 1 each; {free} of {limits['ConcurrentExecutions']} executions are unreserved"
    if not new or free - new >= _KEPT_UNRESERVED:
        return passed(said)
    more = limits["ConcurrentExecutions"] + _KEPT_UNRESERVED + new - free
    return failed(f"{said}, and Lambda keeps {_KEPT_UNRESERVED}", _CONCURRENCY.increase(region, more))


def account_checks(needs: Needs) -> Iterator[Check]:
    """Yield the checks of the account.

    Args:
        needs: What the cluster needs.
    """
    yield Check(
        name="account",
        ask=lambda aws: (aws.account, aws.caller),
        judge=lambda who: judge_account(needs.cluster.account, *who),
    )
    for role in linked_roles(needs):
        yield Check(
            name=f"service-linked role of {role.service}", ask=partial(_role, role), judge=partial(judge_role, role)
        )
    yield Check(
        name=f"quota {_CONCURRENCY.code}, {_CONCURRENCY.name}",
        ask=partial(_concurrency, needs.cluster.cluster_stack_name),
        judge=partial(judge_concurrency, needs.reserved_functions, needs.region),
    )


def _role(role: LinkedRole, aws: Aws) -> bool:
    return found(partial(aws.client("iam").get_role, RoleName=role.name), "NoSuchEntity") is not None


def _concurrency(stack: str, aws: Aws) -> tuple[Mapping[str, Any], int]:
    # https://docs.aws.amazon.com/lambda/latest/api/API_GetAccountSettings.html
    limits = aws.client("lambda").get_account_settings()["AccountLimit"]
    pages = aws.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=stack)
    resources = found(lambda: list(pages.search("StackResourceSummaries[].ResourceType")), "ValidationError")
    return limits, (resources or []).count("AWS::Lambda::Function")
