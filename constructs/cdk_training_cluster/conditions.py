"""Conditions of IAM policies for actions that know no resources."""

from aws_cdk import Aws


def in_this_region() -> dict[str, dict[str, str]]:
    """Return the condition that a request goes to the stack's region: every request has that key.

    Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html#condition-keys-requestedregion
    """
    return {"StringEquals": {"aws:RequestedRegion": Aws.REGION}}
