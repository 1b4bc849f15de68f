"""Lambda layers of other accounts: moto knows those of the function's own account only."""

import re
from dataclasses import dataclass
from typing import Any

from local_aws.refusal import Refusal

# The accounts that publish Powertools for AWS Lambda (Python):
# https://docs.aws.amazon.com/powertools/python/latest/getting-started/install/
_PUBLIC_LAYERS = re.compile(
    r"arn:(?:aws:lambda:(?!us-gov-|cn-)[a-z0-9-]+:017000801446|"
    r"aws-us-gov:lambda:us-gov-east-1:165087284144|"
    r"aws-us-gov:lambda:us-gov-west-1:165093116878|"
    r"aws-cn:lambda:cn-north-1:498634801083):layer:"
    r"AWSLambdaPowertoolsPythonV3-python3\d{1,2}-(x86_64|arm64):[1-9]\d*"
)

# ARNs of layers that a rehearsal says another account has published, and lets this account use.
_shared: set[str] = set()


@dataclass(frozen=True)
class PublicLayerVersion:
    """A layer version that another account has published for everybody."""

    arn: str
    code_size: int = 1


def share(arn: str) -> None:
    """Let functions use a layer version that is not published here."""
    _shared.add(arn)


def layer_version_by_arn(backend: Any, arn: str) -> Any:
    """Return a layer version or None; replaces `LambdaBackend.layers_versions_by_arn`.

    https://docs.aws.amazon.com/lambda/latest/dg/permissions-layer-cross-account.html
    """
    own = f":{backend.account_id}:" in arn
    if own and arn not in _shared:
        return backend._layers.get_layer_version_by_arn(arn)
    public = _PUBLIC_LAYERS.fullmatch(arn)
    if public is None and arn not in _shared:
        raise Refusal(
            "AccessDeniedException",
            f"User: arn:{backend.partition}:iam::{backend.account_id}:root is not authorized to perform: "
            f"lambda:GetLayerVersion on resource: {arn} because no resource-based policy allows the "
            "lambda:GetLayerVersion action",
        )
    region = arn.split(":")[3]
    if region != backend.region_name:
        raise Refusal(
            "InvalidParameterValueException",
            f"Layer version {arn} is in region {region}; the function is in {backend.region_name}.",
        )
    return PublicLayerVersion(arn)
