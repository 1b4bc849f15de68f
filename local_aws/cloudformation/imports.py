"""What an import takes: resources that a deleted stack has kept, and that CloudFormation can identify.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/import-resources-manually.html
"""

from collections.abc import Mapping, Sequence
from typing import Any

from local_aws.cloudformation import schemas
from local_aws.cloudformation.failures import ValidationError
from local_aws.cloudformation.plans import Plan
from local_aws.cloudformation.stacks import Region, Stack, StackResource


def identifiers(resource_type: str) -> list[str]:
    """Return the properties that identify a resource for an import. Empty: its type cannot be imported.

    Importable is what Cloud Control API can read: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/resource-import-supported-resources.html
    AWS::FSx::FileSystem is not: its schema has no handlers.
    """
    schema = schemas.schema_of(resource_type) or {}
    if "read" not in schema.get("handlers", {}):
        return []
    return [path.rpartition("/")[2] for path in schema["primaryIdentifier"]]


def found(region: Region, stack: Stack, plan: Plan, wanted: Sequence[Mapping[str, Any]]) -> dict[str, StackResource]:
    """Return the resources that a request wants to import, by logical id, as a deleted stack has left them.

    The local AWS imports nothing else: it would have to read what each type's attributes are.

    Raises:
        ValidationError: as CloudFormation answers.
    """
    imported = {each["LogicalResourceId"]: each for each in wanted}
    kinds = {each["ResourceType"] for each in wanted}
    unable = sorted(kind for kind in kinds if not identifiers(kind))
    if unable:
        raise ValidationError(f"ResourceTypes [{', '.join(unable)}] are not supported for Import")
    resources = plan.template["Resources"]
    unknown = sorted(imported.keys() - set(plan.order))
    if unknown:
        raise ValidationError(f"Resources [{', '.join(unknown)}] to import are not in the template")
    bare = [name for name in imported if "DeletionPolicy" not in resources[name]]
    if bare:
        raise ValidationError(
            f"The following resources to import [{', '.join(bare)}] must have DeletionPolicy attribute specified in "
            "the template."
        )
    if plan.template.get("Outputs", {}) != stack.template.get("Outputs", {}):
        raise ValidationError("As part of the import operation, you cannot modify or add [Outputs]")
    before = stack.template.get("Resources", {})
    others = [name for name in {**before, **resources} if name not in imported]
    changed = [name for name in others if before.get(name) != resources.get(name)]
    if changed or imported.keys() & stack.resources.keys():
        changed += sorted(imported.keys() & stack.resources.keys())
        raise ValidationError(
            f"You have modified resources [{', '.join(changed)}] in your template that are not being imported. "
            "Update, create or delete operations cannot be executed during import operations."
        )
    return {name: _kept(region, each) for name, each in imported.items()}


def _kept(region: Region, wanted: Mapping[str, Any]) -> StackResource:
    kind, given = wanted["ResourceType"], wanted["ResourceIdentifier"]
    names = identifiers(kind)
    if sorted(given) != sorted(names):
        raise ValidationError(
            f"Resource {wanted['LogicalResourceId']} of type {kind} is identified by [{', '.join(names)}], got "
            f"[{', '.join(given)}]"
        )
    physical_id = "|".join(given[name] for name in names)
    kept = None
    for stack in region.stacks.values():
        for resource in stack.resources.values():
            if (resource.type, resource.physical_id) != (kind, physical_id):
                continue
            if stack.status != "DELETE_COMPLETE":
                raise ValidationError(f"{physical_id} already exists in stack {stack.id}")
            kept = resource
    if kept is None or kept.status != "DELETE_SKIPPED":
        raise ValidationError(f"Resource of type '{kind}' with identifier '{physical_id}' was not found.")
    return kept
