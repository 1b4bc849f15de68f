"""Where a stack is deployed, as its policies name it, and conditions for actions that know no resources."""

from functools import cached_property

from aws_cdk import Aws


class _Here:
    """The place of a stack, as CloudFormation fills it in.

    Each first look is a call to Node.js; none is made before a stack needs it, so that the library is imported fast.
    """

    @cached_property
    def account_id(self) -> str:
        """The account's id."""
        return Aws.ACCOUNT_ID

    @cached_property
    def partition(self) -> str:
        """The partition, such as `aws`."""
        return Aws.PARTITION

    @cached_property
    def region(self) -> str:
        """The region."""
        return Aws.REGION

    @cached_property
    def url_suffix(self) -> str:
        """The end of the names of AWS's hosts, such as `amazonaws.com`."""
        return Aws.URL_SUFFIX

    def arn(self, service: str, resource: str) -> str:
        """Return the ARN of what is in the stack's account and region.

        Args:
            service: The service, as ARNs name it: `autoscaling`.
            resource: The rest of the ARN.
        """
        return f"arn:{self.partition}:{service}:{self.region}:{self.account_id}:{resource}"


HERE = _Here()
"""The place of a stack."""


def in_this_region() -> dict[str, dict[str, str]]:
    """Return the condition that a request goes to the stack's region: every request has that key.

    Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html#condition-keys-requestedregion
    """
    return {"StringEquals": {"aws:RequestedRegion": HERE.region}}
