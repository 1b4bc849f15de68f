"""boto3 clients, made once a process and set up the same way for every function."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import boto3
from botocore.config import Config

from cluster_contract.price_list import REGION as PRICE_LIST_REGION

if TYPE_CHECKING:
    from mypy_boto3_autoscaling.client import AutoScalingClient
    from mypy_boto3_cloudwatch.client import CloudWatchClient
    from mypy_boto3_dynamodb.client import DynamoDBClient
    from mypy_boto3_ec2.client import EC2Client
    from mypy_boto3_fsx.client import FSxClient
    from mypy_boto3_lambda.client import LambdaClient
    from mypy_boto3_pricing.client import PricingClient
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_sns.client import SNSClient
    from mypy_boto3_ssm.client import SSMClient

    from cluster_contract.bill import CostExplorer

Untyped: TypeAlias = Any
"""The client of a service whose types boto3's stubs have in a package of their own, which nothing else needs."""

# Throttling and passing faults are retried with growing pauses; the time-outs keep a silent endpoint from
# using up a function's whole time.
# https://docs.aws.amazon.com/boto3/latest/guide/retries.html#standard-retry-mode
_CONFIG = Config(
    retries={"mode": "standard", "total_max_attempts": 4},
    connect_timeout=3,
    read_timeout=10,
)


# For what the other work must not wait for.
_BRIEF = Config(retries={"mode": "standard", "total_max_attempts": 2}, connect_timeout=2, read_timeout=3)

# For what must not be done twice: where no answer came, it may have been done.
_ONCE = Config(retries={"mode": "standard", "total_max_attempts": 1}, connect_timeout=3, read_timeout=10)

# For another function's answer, which may take as long as that function may run. Where none came, it may have run
# all the same.
_PATIENT = Config(retries={"mode": "standard", "total_max_attempts": 1}, connect_timeout=3, read_timeout=60)

# For what every run begins with and ends with: a run of 50 seconds has time left to report that no answer came.
_QUICK = Config(retries={"mode": "standard", "total_max_attempts": 3}, connect_timeout=2, read_timeout=3)


@cache
def auto_scaling() -> "AutoScalingClient":
    """Return the client of EC2 Auto Scaling."""
    return boto3.client("autoscaling", config=_CONFIG)


@cache
def auto_scaling_once() -> "AutoScalingClient":
    """Return a client of EC2 Auto Scaling that sends a request once."""
    return boto3.client("autoscaling", config=_ONCE)


@cache
def batch() -> Untyped:
    """Return the client of AWS Batch."""
    return boto3.client("batch", config=_CONFIG)


@cache
def cloudformation() -> Untyped:
    """Return the client of CloudFormation."""
    return boto3.client("cloudformation", config=_CONFIG)


@cache
def cloudwatch(region: str | None = None) -> "CloudWatchClient":
    """Return the client of CloudWatch in a region. Default: - the function's own."""
    return boto3.client("cloudwatch", region_name=region, config=_CONFIG)


@cache
def cost_explorer() -> "CostExplorer":
    """Return the client of Cost Explorer, which is in one region of each partition; botocore knows which."""
    client: CostExplorer = boto3.client("ce", config=_CONFIG)
    return client


@cache
def dynamodb() -> "DynamoDBClient":
    """Return the client of DynamoDB, which answers within milliseconds or is called again soon."""
    return boto3.client("dynamodb", config=_QUICK)


@cache
def ec2() -> "EC2Client":
    """Return the client of EC2."""
    return boto3.client("ec2", config=_CONFIG)


@cache
def eks() -> Untyped:
    """Return the client of EKS."""
    return boto3.client("eks", config=_CONFIG)


@cache
def fsx() -> "FSxClient":
    """Return the client of FSx."""
    return boto3.client("fsx", config=_CONFIG)


@cache
def lambda_() -> "LambdaClient":
    """Return the client of Lambda, which invokes a function once and waits for it."""
    return boto3.client("lambda", config=_PATIENT)


@cache
def pcs() -> Untyped:
    """Return the client of AWS PCS."""
    return boto3.client("pcs", config=_CONFIG)


@cache
def pricing() -> "PricingClient":
    """Return the client of the Price List, which gives up soon."""
    return boto3.client("pricing", region_name=PRICE_LIST_REGION, config=_BRIEF)


@cache
def s3() -> "S3Client":
    """Return the client of S3, which opens sessions itself where a bucket is a directory bucket."""
    return boto3.client("s3", config=_CONFIG)


@cache
def sagemaker() -> Untyped:
    """Return the client of SageMaker."""
    return boto3.client("sagemaker", config=_CONFIG)


@cache
def sns(region: str | None = None) -> "SNSClient":
    """Return the client of SNS in a region. Default: - the function's own."""
    return boto3.client("sns", region_name=region, config=_CONFIG)


@cache
def ssm() -> "SSMClient":
    """Return the client of Systems Manager, which gives up soon."""
    return boto3.client("ssm", config=_BRIEF)


@cache
def ssm_once() -> "SSMClient":
    """Return a client of Systems Manager that sends a request once."""
    return boto3.client("ssm", config=_ONCE)


@dataclass(frozen=True, kw_only=True)
class Clients:
    """What a function talks to. Each client is made when it is needed: most runs do with two or three.

    Attributes:
        auto_scaling: Makes the client of EC2 Auto Scaling.
        auto_scaling_once: Makes another that sends a request once.
        batch: Makes the client of AWS Batch.
        cloudformation: Makes the client of CloudFormation.
        cloudwatch: Makes the client of CloudWatch.
        cost_explorer: Makes the client of Cost Explorer.
        dynamodb: Makes the client of DynamoDB.
        ec2: Makes the client of EC2.
        eks: Makes the client of EKS.
        fsx: Makes the client of FSx.
        lambda_: Makes the client of Lambda.
        pcs: Makes the client of AWS PCS.
        pricing: Makes the client of the Price List.
        s3: Makes the client of S3.
        sagemaker: Makes the client of SageMaker.
        sns: Makes the client of SNS.
        ssm: Makes the client of Systems Manager.
        ssm_once: Makes another that sends a request once.
        pause: Waits for some seconds.
    """

    auto_scaling: "Callable[[], AutoScalingClient]" = auto_scaling
    auto_scaling_once: "Callable[[], AutoScalingClient]" = auto_scaling_once
    batch: Callable[[], Untyped] = batch
    cloudformation: Callable[[], Untyped] = cloudformation
    cloudwatch: "Callable[[], CloudWatchClient]" = cloudwatch
    cost_explorer: "Callable[[], CostExplorer]" = cost_explorer
    dynamodb: "Callable[[], DynamoDBClient]" = dynamodb
    ec2: "Callable[[], EC2Client]" = ec2
    eks: Callable[[], Untyped] = eks
    fsx: "Callable[[], FSxClient]" = fsx
    lambda_: "Callable[[], LambdaClient]" = lambda_
    pcs: Callable[[], Untyped] = pcs
    pricing: "Callable[[], PricingClient]" = pricing
    s3: "Callable[[], S3Client]" = s3
    sagemaker: Callable[[], Untyped] = sagemaker
    sns: "Callable[[], SNSClient]" = sns
    ssm: "Callable[[], SSMClient]" = ssm
    ssm_once: "Callable[[], SSMClient]" = ssm_once
    pause: Callable[[float], None] = time.sleep
