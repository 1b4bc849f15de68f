"""What a change of a stack means for its resources: the order, which are replaced, and what makes them."""

from collections.abc import Mapping
from typing import Any

from local_aws.cloudformation import schemas, templates
from local_aws.cloudformation.failures import HandlerError, ResourceError
from local_aws.cloudformation.plans import Plan
from local_aws.cloudformation.resources import handler_of
from local_aws.cloudformation.resources.base import Handler
from local_aws.cloudformation.stacks import Stack, StackResource


def order_of(stack: Stack, resources: Mapping[str, StackResource]) -> list[str]:
    """Return resources of a stack in the order in which its template has them made; what it has no longer is last."""
    if not resources:
        return []  # a stack of which nothing was made has no template
    known = [name for name in templates.dependency_order(stack.template, set(resources)) if name in resources]
    return [*known, *(name for name in resources if name not in known)]


def needs_replacement(was: StackResource, properties: Mapping[str, Any]) -> bool:
    """Tell whether a create-only property differs.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-updating-stacks-update-behaviors.html
    """
    return any(
        schemas.value_at(was.properties, path) != schemas.value_at(properties, path)
        for path in schemas.create_only(was.type)
    )


def refuse_same_name(was: StackResource, properties: Mapping[str, Any]) -> None:
    """Fail a replacement of a resource whose name its user has chosen, and has not changed."""
    name = schemas.name_property(was.type)
    if name and was.properties.get(name) and was.properties.get(name) == properties.get(name):
        error = HandlerError(
            "CloudFormation cannot update a stack when a custom-named resource requires replacing. Rename "
            f"{properties[name]} and update the stack again."
        )
        raise ResourceError(str(error))


def adopt(stack: Stack, plan: Plan) -> None:
    """Give a stack what a plan says of it."""
    stack.template_text, stack.template = plan.template_text, plan.template
    stack.parameters, stack.resolved_parameters = plan.parameters, plan.resolved_parameters
    stack.tags = plan.tags


def failed_to_delete(failed: list[str]) -> str | None:
    """Say which resources could not be deleted. None: all could."""
    return f"The following resource(s) failed to delete: [{', '.join(failed)}]." if failed else None


def handler_for(resource_type: str) -> Handler:
    """Return the handler of a type that there is."""
    handler = handler_of(resource_type)
    if handler is None:
        raise LookupError(resource_type)  # refused before anything is made
    return handler
