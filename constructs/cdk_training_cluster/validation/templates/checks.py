"""Looks at synthesized templates, after the last escape hatch, and ends the synth where one breaks a rule."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from weakref import WeakKeyDictionary

import jsii
from aws_cdk import (
    App,
    IPolicyValidationContext,
    IPolicyValidationPlugin,
    PolicyValidationPluginReport,
    PolicyViolatingResource,
    PolicyViolation,
    Stack,
    Stage,
    Validations,
)
from constructs import Construct, IConstruct

from cdk_training_cluster.validation import LIMITS, TAG_COUNT
from cdk_training_cluster.validation.templates.rules import RULES, broken_rules
from cdk_training_cluster.validation.templates.texts import Finding, broken_texts


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
    app = stack.node.root
    # At the app and not at the stack's stage, which AWS CDK would ask for its templates once more.
    if isinstance(app, Stage):
        if app not in _PLUGINS:
            _PLUGINS[app] = TemplateRulesPlugin()
            Validations.of(app).add_plugins(_PLUGINS[app])
        _PLUGINS[app].look_at(stack)


def collect_refusals(app: App) -> list[str]:
    """Return a list that the synth of an app fills with what its templates break, in place of a report.

    Args:
        app: The app, before anything is made in it.
    """
    refusals: list[str] = []
    _PLUGINS[app] = TemplateRulesPlugin(refusals)
    Validations.of(app).add_plugins(_PLUGINS[app])
    return refusals


@jsii.implements(IPolicyValidationPlugin)
class TemplateRulesPlugin:
    """Report what is wrong with the templates of an app's stacks; AWS CDK calls it once in a synth."""

    def __init__(self, refusals: list[str] | None = None) -> None:
        """Make the plugin.

        Args:
            refusals: Where to put what ends a synth, in place of the report. Default: - into the report.
        """
        self._files: dict[tuple[str, str], None] = {}
        self._refusals = refusals

    def look_at(self, stack: Stack) -> None:
        """Report about a stack, once.

        Args:
            stack: The stack; the template of a nested one lies beside that of the stack it is nested in.
        """
        file, outermost = stack.template_file, stack
        while outermost.nested_stack_parent is not None:
            outermost = outermost.nested_stack_parent
        self._files[outermost.node.path, file] = None

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
        templates = {each.stack_construct_path: Path(each.template_path) for each in context.stack_templates}
        found = [
            violation
            for outermost, file in self._files
            if outermost in templates
            for violation in _violations(templates[outermost].with_name(file))
        ]
        refused = [violation for violation in found if violation.severity == "error"]
        if self._refusals is not None:
            self._refusals += [f"{each.description}. {each.fix}" for each in refused]
            return PolicyValidationPluginReport(
                success=True, violations=[each for each in found if each not in refused]
            )
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


_PLUGINS: WeakKeyDictionary[IConstruct, TemplateRulesPlugin] = WeakKeyDictionary()
"""What checks the templates of each app."""
