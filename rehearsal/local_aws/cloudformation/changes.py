"""What a change set shows: resources that come, go or change, told by the templates alone."""

from typing import Any

from rehearsal.local_aws.cloudformation import schemas
from rehearsal.local_aws.cloudformation.plans import Plan
from rehearsal.local_aws.cloudformation.stacks import Stack


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
            before, after = old[name].get("Properties") or {}, definition.get("Properties") or {}
            names = {key for key in {*before, *after} if before.get(key) != after.get(key)}
            fixed = {path[0] for path in schemas.create_only(definition["Type"])}
            literal = not any(isinstance(after.get(key), dict) for key in names & fixed)
            replacement = ("True" if literal else "Conditional") if names & fixed else "False"
            shown.append(_change("Modify", name, definition["Type"], stack.resources[name].physical_id, replacement))
    shown += [
        _change("Remove", name, resource.type, resource.physical_id)
        for name, resource in stack.resources.items()
        if name not in plan.order
    ]
    return shown


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
