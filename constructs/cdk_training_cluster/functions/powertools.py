"""Powertools for AWS Lambda, from the layer that AWS publishes."""

from collections.abc import Mapping, Sequence

from aws_cdk import CfnMapping, Stack
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from cdk_training_cluster.validation.checks import is_unknown

# Layer version 27 of AWSLambdaPowertoolsPythonV3 is Powertools 3.23.0, in every partition that has it.
# https://docs.aws.amazon.com/powertools/python/3.24.0/getting-started/install/
POWERTOOLS_VERSION = "3.23.0"
"""The version of aws-lambda-powertools in the layer, which the tests run with too."""

_LAYER_VERSION = 27
_LAYER_NAME = "AWSLambdaPowertoolsPythonV3-python314-arm64"
_MAPPING_ID = "PowertoolsLayerAccounts"


# The publishers, by partition and account, and their regions. China (Ningxia), cn-northwest-1, has no layer.
# https://docs.aws.amazon.com/powertools/python/3.24.0/getting-started/install/#lambda-layer
_PUBLISHERS: Mapping[tuple[str, str], Sequence[str]] = {
    ("aws", "017000801446"): (
        *("af-south-1", "ap-east-1", "ap-northeast-1", "ap-northeast-2", "ap-northeast-3"),
        *("ap-south-1", "ap-south-2", "ap-southeast-1", "ap-southeast-2", "ap-southeast-3"),
        *("ap-southeast-4", "ap-southeast-5", "ap-southeast-7", "ca-central-1", "ca-west-1"),
        *("eu-central-1", "eu-central-2", "eu-north-1", "eu-south-1", "eu-south-2"),
        *("eu-west-1", "eu-west-2", "eu-west-3", "il-central-1", "me-central-1", "me-south-1"),
        *("mx-central-1", "sa-east-1", "us-east-1", "us-east-2", "us-west-1", "us-west-2"),
    ),
    ("aws-cn", "498634801083"): ("cn-north-1",),
    ("aws-us-gov", "165087284144"): ("us-gov-east-1",),
    ("aws-us-gov", "165093116878"): ("us-gov-west-1",),
}


def powertools_layer(scope: Construct, id: str) -> lambda_.ILayerVersion:
    """Return AWS's public layer of Powertools for AWS Lambda (Python 3.14, arm64).

    In a stack that names its region the ARN is literal. In one that does not, the publisher's account is
    looked up in a mapping at deployment; CloudFormation then refuses a region that is not in it.

    Args:
        scope: The parent construct.
        id: The layer's id.

    Raises:
        ValueError: No layer is published in the stack's region.
    """
    region = Stack.of(scope).region
    arn = _mapped_arn(scope) if is_unknown(region) else _literal_arn(region)
    return lambda_.LayerVersion.from_layer_version_arn(scope, id, arn)


def checked_layer(scope: Construct, layer: lambda_.ILayerVersion) -> lambda_.ILayerVersion:
    """Return a layer of the user's own, unless Lambda refuses it.

    Args:
        scope: What uses it.
        layer: The layer.

    Raises:
        ValueError: The layer is in another region than the stack.

    Source: https://docs.aws.amazon.com/lambda/latest/dg/adding-layers.html
    """
    arn, region = layer.layer_version_arn, Stack.of(scope).region
    given = None if is_unknown(arn) or is_unknown(region) else arn.split(":")[3]
    if given not in (None, region):
        raise ValueError(
            f"powertools_layer must be in {region}, the stack's region, got one in {given}: publish it in {region}"
        )
    return layer


def _literal_arn(region: str) -> str:
    for (partition, account), regions in _PUBLISHERS.items():
        if region in regions:
            return _arn(partition, region, account)
    raise ValueError(
        f"powertools_layer is required in the region {region}: AWS is not known to publish Powertools "
        f"{POWERTOOLS_VERSION} there; give a layer of your own that holds it, for Python 3.14 on arm64 "
        "(powertools_layer_arn in a cluster file)"
    )


def _mapped_arn(scope: Construct) -> str:
    stack = Stack.of(scope)
    found = stack.node.try_find_child(_MAPPING_ID)
    accounts = (
        found
        if isinstance(found, CfnMapping)
        else CfnMapping(
            stack,
            _MAPPING_ID,
            mapping={
                region: {"Account": account} for (_, account), regions in _PUBLISHERS.items() for region in regions
            },
        )
    )
    return _arn(stack.partition, stack.region, accounts.find_in_map(stack.region, "Account"))


def _arn(partition: str, region: str, account: str) -> str:
    return f"arn:{partition}:lambda:{region}:{account}:layer:{_LAYER_NAME}:{_LAYER_VERSION}"
