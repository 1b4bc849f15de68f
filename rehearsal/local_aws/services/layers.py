"""Lambda layers of other accounts: moto knows those of the function's own account only."""

import re
from dataclasses import dataclass
from typing import Any

from rehearsal.local_aws.refusal import Refusal

# The account that publishes Powertools for AWS Lambda (Python):
# https://docs.aws.amazon.com/powertools/python/latest/getting-started/install/#lambda-layer
_PUBLIC_LAYERS = re.compile(
    r"arn:aws:lambda:(?P<region>[a-z0-9-]+):017000801446:layer:"
    r"AWSLambdaPowertoolsPythonV3-python3\d{1,2}-(x86_64|arm64):[1-9]\d*"
)


@dataclass(frozen=True)
class PublicLayerVersion:
    """A layer version that another account has published for everybody."""

    arn: str
    code_size: int = 1


def layer_version_by_arn(backend: Any, arn: str) -> Any:
    """Return a layer version or None; replaces `LambdaBackend.layers_versions_by_arn`.

    https://docs.aws.amazon.com/lambda/latest/dg/permissions-layer-cross-account.html
    """
    if f":{backend.account_id}:" in arn:
        return backend._layers.get_layer_version_by_arn(arn)
    public = _PUBLIC_LAYERS.fullmatch(arn)
    if public is None:
        raise Refusal(
            "AccessDeniedException",
            f"User: arn:aws:iam::{backend.account_id}:root is not authorized to perform: lambda:GetLayerVersion on "
            f"resource: {arn} because no resource-based policy allows the lambda:GetLayerVersion action",
        )
    if public["region"] != backend.region_name:
        raise Refusal(
            "InvalidParameterValueException",
            f"Layer version {arn} is in region {public['region']}; the function is in {backend.region_name}.",
        )
    return PublicLayerVersion(arn)
