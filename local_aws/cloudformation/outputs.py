"""A stack's outputs and exports, as a plan says them."""

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from local_aws.cloudformation import templates
from local_aws.cloudformation.failures import ResourceError, ValidationError
from local_aws.cloudformation.functions import Resolver
from local_aws.cloudformation.plans import Plan
from local_aws.cloudformation.stacks import Output, Region, Stack


def outputs_of(plan: Plan, resolver: Resolver, stack: Stack, region: Region) -> list[Output]:
    """Return the plan's outputs.

    Args:
        plan: The plan.
        resolver: Resolves what they refer to.
        stack: The stack, as it was before the plan.
        region: The stacks around it.

    Raises:
        ResourceError: A value cannot be told, or an export is taken, or changed while it is in use.
    """
    definitions = plan.template.get("Outputs") or {}
    try:
        outputs = [
            _output(resolver, key, definition)
            for key, definition in definitions.items()
            if "Condition" not in definition or plan.conditions[definition["Condition"]]
        ]
    except ValidationError as error:
        raise ResourceError(error.message) from error
    except (LookupError, ClientError) as error:
        raise ResourceError(str(error)) from error
    _check_exports({output.export: output.value for output in outputs if output.export}, stack, region)
    return outputs


def _output(resolver: Resolver, key: str, definition: Mapping[str, Any]) -> Output:
    value = resolver.value(definition["Value"])
    if isinstance(value, dict | list) or value is None:
        raise ValidationError(
            f"Template format error: Output {key} is malformed. The Value field of every Outputs member must "
            "evaluate to a String."
        )
    export = resolver.value(definition.get("Export", {}).get("Name"))
    if "Export" in definition:
        templates.check_export(key, export)
    return Output(key, str(value), definition.get("Description"), export)


def _check_exports(exports: Mapping[str, str], own: Stack, region: Region) -> None:
    for name, (_, stack) in region.exports().items():
        if name in exports and stack is not own:
            raise ResourceError(f"Export with name {name} is already exported by stack {stack.name}.")
    for name, value in own.exports().items():
        users = ", ".join(stack.name for stack in region.importers(name))
        if users and name not in exports:
            raise ResourceError(f"Export {name} cannot be deleted as it is in use by {users}")
        if users and exports[name] != value:
            raise ResourceError(f"Export {name} cannot be updated as it is in use by {users}")
