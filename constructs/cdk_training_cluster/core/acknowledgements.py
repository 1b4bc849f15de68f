"""How a finding that is right for a training cluster is acknowledged, always with its reason."""

from aws_cdk import Acknowledgment, Annotations, CfnResource, Validations
from constructs import Construct, IConstruct

from cdk_training_cluster.validation.words import words_of


def acknowledge(construct: IConstruct, rule: str, reason: str) -> None:
    """Acknowledge a finding of cdk-nag or of CDK's own template validation on a construct and below it.

    Args:
        construct: What the rule complains about.
        rule: The rule's id, such as `AwsSolutions-IAM5[Resource::*]` or `CloudFormation-Validate::W3010`.
        reason: Why the finding is right here; it is written into the validation report.
    """
    Validations.of(construct).acknowledge(Acknowledgment(id=rule, reason=reason))


def warn(scope: IConstruct, rule: str, sentence: str) -> None:
    """Warn of what is allowed and will surprise.

    Args:
        scope: What the warning is about.
        rule: The warning's name; it is acknowledged as `cdk-training-cluster:<rule>`.
        sentence: What is so, what follows from it, and what to do.
    """
    how = words_of(scope).acknowledge(rule)
    Annotations.of(scope).add_warning_v2(
        f"cdk-training-cluster:{rule}", f"{sentence.removesuffix('.')}. {how}" if how else sentence
    )


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


__all__ = ["acknowledge", "default_child", "ignore_lint", "warn"]
