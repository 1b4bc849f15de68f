"""Where a stack is deployed, as its policies name it, and conditions for actions that know no resources."""

from aws_cdk import Aws

# Each look at one is a call to Node.js.
ACCOUNT_ID, PARTITION, REGION, URL_SUFFIX = Aws.ACCOUNT_ID, Aws.PARTITION, Aws.REGION, Aws.URL_SUFFIX


def in_this_region() -> dict[str, dict[str, str]]:
    """Return the condition that a request goes to the stack's region: every request has that key.

    Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html#condition-keys-requestedregion
    """
    return {"StringEquals": {"aws:RequestedRegion": REGION}}
