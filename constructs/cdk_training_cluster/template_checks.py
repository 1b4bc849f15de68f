"""Looks at a synthesized template, after the last escape hatch, and ends the synth where it breaks a rule."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import jsii
from aws_cdk import (
    IPolicyValidationContext,
    IPolicyValidationPlugin,
    PolicyValidationPluginReport,
    PolicyViolatingResource,
    PolicyViolation,
    Stack,
    Stage,
    Validations,
)
from constructs import Construct

from cdk_training_cluster.template_rules import RULES, broken_rules
from cdk_training_cluster.validation import LIMITS, TAG_COUNT
from cdk_training_cluster.validation.template_texts import Finding, broken_texts

_ID = "CdkTrainingClusterTemplateRules"


def check_templates(scope: Construct) -> None:
    """Check the template of a stack when the app is synthesized.

    Constructs check their own settings; this checks what users and escape hatches made of the template: texts that
    AWS refuses, and settings that AWS accepts and silently bills.

    The template is read once, however many constructs of its stack ask for it. A finding ends the synth, unless it is
    a warning, and can be acknowledged by its id, such as `cdk-training-cluster::groupSize`.

    Args:
        scope: A construct of the stack that is to be looked at.

    Source: https://docs.aws.amazon.com/cdk/v2/guide/policy-validation-synthesis.html
    """
    stack = Stack.of(scope)
    if stack.node.try_find_child(_ID) is None:
        _CheckedTemplate(stack)


class _CheckedTemplate(Construct):
    """Marks a stack whose template is looked at."""

    def __init__(self, stack: Stack) -> None:
        super().__init__(stack, _ID)
        app = self.node.root
        # At the app and not at the stack's stage, which AWS CDK would ask for its templates once more.
        if isinstance(app, Stage):
            Validations.of(app).add_plugins(TemplateRulesPlugin(stack))


@jsii.implements(IPolicyValidationPlugin)
class TemplateRulesPlugin:
    """Report what is wrong with the template of one stack; AWS CDK calls it once in a synth."""

    def __init__(self, stack: Stack) -> None:
        """Look at a stack's template.

        Args:
            stack: The stack; the template of a nested one lies beside that of the stack it is nested in.
        """
        self._file = stack.template_file
        while stack.nested_stack_parent is not None:
            stack = stack.nested_stack_parent
        self._outermost = stack.node.path

    @property
    def name(self) -> str:
        """What findings are signed with, and the first half of the id by which one is acknowledged."""
        return "cdk-training-cluster"

    @property
    def version(self) -> str | None:
        """None: the version is no part of what a synth says."""
        return None

    @property
    def rule_ids(self) -> list[str]:
        """The ids of all rules."""
        return [*(rule.id for rule in RULES), *LIMITS, TAG_COUNT.id]

    def validate(self, context: IPolicyValidationContext) -> PolicyValidationPluginReport:
        """Report every place that breaks a rule.

        Args:
            context: The templates of the whole app.
        """
        found = [
            violation
            for stack in context.stack_templates
            if stack.stack_construct_path == self._outermost
            for violation in _violations(Path(stack.template_path).with_name(self._file))
        ]
        refused = any(violation.severity == "error" for violation in found)
        return PolicyValidationPluginReport(success=not refused, violations=found)


def _violations(path: Path) -> Iterator[PolicyViolation]:
    content = path.read_bytes()
    definition = json.loads(content)
    for (limit, sentence), findings in broken_texts(definition).items():
        yield PolicyViolation(
            rule_name=limit.id,
            description=sentence,
            fix=f"See {limit.source}",
            severity="error",
            violating_resources=_places(path, findings),
        )
    for rule, findings in broken_rules(definition, size=len(content)):
        yield PolicyViolation(
            rule_name=rule.id,
            description=rule.description,
            fix=f"{rule.fix}. See {rule.source}",
            # Said, because a report in which one finding is acknowledged counts only those that say so.
            severity=rule.severity,
            violating_resources=_places(path, findings),
        )


def _places(path: Path, findings: Sequence[Finding]) -> list[PolicyViolatingResource]:
    return [
        PolicyViolatingResource(
            resource_logical_id=finding.logical_id, template_path=str(path), locations=[finding.location]
        )
        for finding in findings
    ]
