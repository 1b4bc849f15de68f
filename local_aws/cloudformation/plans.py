"""From a request to a plan: the template read, parameters valued, conditions decided, order found."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from local_aws.cloudformation import parameters, schemas, templates
from local_aws.cloudformation.failures import ValidationError
from local_aws.cloudformation.functions import Resolver
from local_aws.cloudformation.stacks import Stack


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a stack shall be after an operation."""

    template_text: str
    template: dict[str, Any]
    parameters: dict[str, str]
    resolved_parameters: dict[str, Any]
    tags: dict[str, str]
    order: list[str]
    conditions: dict[str, bool]

    def definition(self, logical_id: str) -> Mapping[str, Any]:
        """Return a resource's definition in the template."""
        definition: Mapping[str, Any] = self.template["Resources"][logical_id]
        return definition

    def changes_nothing_of(self, stack: Stack) -> bool:
        """Tell whether CloudFormation would answer that there is nothing to update."""
        return (
            all(self.template.get(name) == stack.template.get(name) for name in ("Resources", "Outputs"))
            and self.resolved_parameters == stack.resolved_parameters
            and self.tags == stack.tags
            and set(self.order) == set(stack.resources)
        )


def make_plan(
    template_text: str,
    given: Mapping[str, str],
    tags: Mapping[str, str],
    *,
    client: Callable[[str], Any],
    pseudo: Mapping[str, Any],
) -> Plan:
    """Return the plan of a request.

    Args:
        template_text: The template.
        given: The parameters that the request gives.
        tags: The stack-level tags.
        client: Returns a client of a service.
        pseudo: The pseudo parameters' values.

    Raises:
        ValidationError: as CloudFormation answers before it starts.
    """
    template = templates.parse(template_text)
    _check_types(template, str(pseudo["AWS::Region"]))
    resolved = parameters.resolve(template.get("Parameters") or {}, given, client)
    resolver = Resolver(template=template, parameters=resolved, pseudo=pseudo)
    _check_rules(template, resolver)
    conditions = {name: resolver.condition(name) for name in template.get("Conditions") or {}}
    active = set()
    for logical_id, definition in template["Resources"].items():
        condition = definition.get("Condition")
        if condition is not None and condition not in conditions:
            raise ValidationError(
                f"Template format error: Unresolved condition dependency {condition} in the Resources block"
            )
        if condition is None or conditions[condition]:
            active.add(logical_id)
    return Plan(
        template_text=template_text,
        template=template,
        parameters=dict(given),
        resolved_parameters=resolved,
        tags=dict(tags),
        order=templates.dependency_order(template, active),
        conditions=conditions,
    )


def _check_types(template: Mapping[str, Any], region: str) -> None:
    """Refuse types of AWS's that CloudFormation does not have in a region, whatever their conditions."""
    kinds = {definition["Type"] for definition in template["Resources"].values()}
    absent = sorted(kind for kind in kinds if not schemas.is_in(kind, region))
    if absent:
        raise ValidationError(f"Template format error: Unrecognized resource types: [{', '.join(absent)}]")


def _check_rules(template: Mapping[str, Any], resolver: Resolver) -> None:
    for name, rule in (template.get("Rules") or {}).items():
        if "RuleCondition" in rule and not resolver.holds(rule["RuleCondition"]):
            continue
        for assertion in rule["Assertions"]:
            if not resolver.holds(assertion["Assert"]):
                said = assertion.get("AssertDescription", name)
                raise ValidationError(f"Template validation error: Rule {name}: {said}")
