"""What a change set shows: resources that come, go or change, by the templates alone."""

from collections.abc import Mapping
from typing import Any

from local_aws.cloudformation import schemas
from local_aws.cloudformation.plans import Plan
from local_aws.cloudformation.stacks import Stack


def changes_between(stack: Stack, plan: Plan) -> list[dict[str, Any]]:
    """Return the changes as DescribeChangeSet shows them.

    A change of a property whose value a function gives is shown as conditional, as CloudFormation does: only
    the deployment itself knows whether the value differs.
    """
    old = {name: resource.definition for name, resource in stack.resources.items()}
    shown = [_change("Add", name, plan.definition(name)["Type"]) for name in plan.order if name not in old]
    for name in plan.order:
        definition = plan.definition(name)
        if name in old and definition != old[name]:
            replacement = _replacement(definition["Type"], old[name], definition)
            shown.append(_change("Modify", name, definition["Type"], stack.resources[name].physical_id, replacement))
    shown += [
        _change("Remove", name, resource.type, resource.physical_id)
        for name, resource in stack.resources.items()
        if name not in plan.order
    ]
    return shown


def _replacement(kind: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Tell whether a resource will be replaced: True, False, or Conditional if a function gives what differs."""
    verdicts = set()
    for path in schemas.create_only(kind):
        before, after = old.get("Properties") or {}, new.get("Properties") or {}
        # A function above the property gives it too.
        depth = next((n for n in range(1, len(path)) if _is_function(schemas.value_at(after, path[:n]))), len(path))
        was, will_be = (schemas.value_at(properties, path[:depth]) for properties in (before, after))
        if was != will_be:
            verdicts.add("Conditional" if _holds_function(will_be) else "True")
    return next((verdict for verdict in ("True", "Conditional") if verdict in verdicts), "False")


def _is_function(value: Any) -> bool:
    return isinstance(value, dict) and len(value) == 1 and str(next(iter(value))).startswith(("Fn::", "Ref"))


def _holds_function(value: Any) -> bool:
    if isinstance(value, dict):
        return _is_function(value) or any(_holds_function(item) for item in value.values())
    return isinstance(value, list) and any(_holds_function(item) for item in value)


def _change(
    action: str, logical_id: str, kind: str, physical_id: str | None = None, replacement: str | None = None
) -> dict[str, Any]:
    return {
        "Type": "Resource",
        "ResourceChange": {
            "Action": action,
            "LogicalResourceId": logical_id,
            "PhysicalResourceId": physical_id,
            "ResourceType": kind,
            "Replacement": replacement,
            "Scope": [],
            "Details": [],
        },
    }
