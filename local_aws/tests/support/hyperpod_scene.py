"""An EKS cluster in the network of the local AWS's tests, for HyperPod."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from local_aws import LocalAws
from local_aws_scene import Stacks
from wrong_hyperpod import EKS_GROUP, EKS_NAME

TASK_GOVERNANCE = "amazon-sagemaker-hyperpod-taskgovernance"


@contextmanager
def eks_cluster(aws: LocalAws, stacks: Stacks, **settings: Any) -> Iterator[None]:
    """Make the EKS cluster that the templates name, and delete it afterwards."""
    own = stacks.physical_ids("network")
    ec2 = aws.client("ec2")
    subnet = ec2.create_subnet(VpcId=own["Vpc"], CidrBlock="10.0.254.0/28", AvailabilityZone="us-east-1a")["Subnet"]
    second = subnet["SubnetId"]
    aws.add_eks_cluster(EKS_NAME, subnet_ids=[own["Subnet"], second], security_group_id=EKS_GROUP, **settings)
    try:
        yield
    finally:
        stacks.clean_up()
        aws.client("eks").delete_cluster(name=EKS_NAME)
        ec2.delete_subnet(SubnetId=second)
