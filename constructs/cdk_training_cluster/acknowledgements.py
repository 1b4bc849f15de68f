"""How a finding that is right for a training cluster is acknowledged, always with its reason."""

from aws_cdk import Acknowledgment, CfnResource, Validations
from constructs import Construct, IConstruct


def acknowledge(construct: IConstruct, rule: str, reason: str) -> None:
    """Acknowledge a finding of cdk-nag or of CDK's own template validation on a construct and below it.

    Args:
        construct: What the rule complains about.
        rule: The rule's id, such as `AwsSolutions-IAM5[Resource::*]` or `CloudFormation-Validate::W3010`.
        reason: Why the finding is right here; it is written into the validation report.
    """
    Validations.of(construct).acknowledge(Acknowledgment(id=rule, reason=reason))


def ignore_lint(resource: CfnResource, check: str) -> None:
    """Ask cfn-lint, in the template's metadata, to ignore one check on one resource.

    Args:
        resource: The resource to leave alone, of which cfn-lint ignores this check only. The reason stands beside
            the call.
        check: The check's id, such as `W3010`.
    """
    resource.add_metadata("cfn-lint", {"config": {"ignore_checks": [check]}})


def default_child(construct: Construct) -> CfnResource:
    """Return the one CloudFormation resource behind an L2 construct.

    Raises:
        TypeError: The construct has no such resource.
    """
    child = construct.node.default_child
    if not isinstance(child, CfnResource):
        msg = f"{construct.node.path} has no default CloudFormation resource"
        raise TypeError(msg)
    return child


__all__ = ["acknowledge", "default_child", "ignore_lint"]
