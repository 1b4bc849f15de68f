"""Carrying a plan out: create, update and delete stacks resource by resource, and undo what failed.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html (statuses) and
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/stack-failure-options.html
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from botocore.exceptions import ClientError

from local_aws.cloudformation import schemas, templates
from local_aws.cloudformation.changes import (
    adopt,
    failed_to_delete,
    handler_for,
    needs_replacement,
    order_of,
    refuse_same_name,
)
from local_aws.cloudformation.failures import (
    CannotChangeError,
    HandlerError,
    ResourceError,
    ValidationError,
    is_absent,
    reason_of,
)
from local_aws.cloudformation.functions import Resolver
from local_aws.cloudformation.outputs import outputs_of
from local_aws.cloudformation.plans import Plan
from local_aws.cloudformation.resources import handler_of
from local_aws.cloudformation.resources.base import Call
from local_aws.cloudformation.stack_tags import with_stack_tags
from local_aws.cloudformation.stacks import Region, Stack, StackResource, now

# As CloudWatch Logs says it: https://github.com/hashicorp/terraform-provider-aws/issues/42947
_BEING_UPDATED = "Requested resource is currently being updated. Please try again later."
_RETAINED = frozenset({"Retain", "RetainExceptOnCreate"})


class Deployment:
    """One operation on one stack.

    Args:
        region: The stacks around it, for imports and exports.
        stack: The stack; its fields are set to the plan's once the plan is deployed.
        client: Returns a client of a service of this AWS.
        pseudo: The pseudo parameters' values.
    """

    def __init__(
        self, region: Region, stack: Stack, *, client: Callable[[str], Any], pseudo: Mapping[str, Any]
    ) -> None:
        self._region = region
        self._stack = stack
        self._client = client
        self._pseudo = pseudo
        self._imports: set[str] = set()
        self._touched: dict[str, frozenset[str]] = {}

    def create(self, plan: Plan) -> None:
        """Create the stack's resources; if one fails, delete those that were made (unless the request keeps them)."""
        stack = self._stack
        adopt(stack, plan)
        stack.say("CREATE_IN_PROGRESS", "User Initiated")
        try:
            self._refuse_unknown(plan)
            for logical_id in plan.order:
                self._create(plan, logical_id)
            stack.outputs = outputs_of(plan, self._resolver(plan), stack, self._region)
        except ResourceError as failure:
            if stack.disable_rollback:
                stack.say("CREATE_FAILED", str(failure))
                return
            stack.say("ROLLBACK_IN_PROGRESS", f"{failure} Rollback requested by user.")
            failed = self._delete_all(reversed(list(stack.resources.values())), {"Retain"})
            stack.outputs = []
            stack.say("ROLLBACK_FAILED" if failed else "ROLLBACK_COMPLETE", failed_to_delete(failed))
            return
        stack.imports = self._imports
        stack.say("CREATE_COMPLETE")

    def update(self, plan: Plan) -> None:
        """Bring the stack to the plan; if one resource fails, bring everything back to what it was."""
        stack, before = self._stack, dict(self._stack.resources)
        stack.updated = now()
        stack.say("UPDATE_IN_PROGRESS", "User Initiated")
        replaced: list[StackResource] = []
        try:
            self._refuse_unknown(plan)
            for logical_id in plan.order:
                if logical_id in before:
                    self._change(plan, before[logical_id], replaced)
                else:
                    self._create(plan, logical_id)
            outputs = outputs_of(plan, self._resolver(plan), stack, self._region)
        except ResourceError as failure:
            self._roll_update_back(before, str(failure))
            return
        removed = [before[name] for name in order_of(stack, before) if name not in plan.order]
        adopt(stack, plan)
        stack.outputs, stack.imports = outputs, self._imports
        stack.say("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS")
        for resource in removed:
            del stack.resources[resource.logical_id]
        failed = self._delete_all(
            [resource for resource in reversed(replaced) if resource.update_replace_policy != "Retain"], set()
        )
        for resource in replaced:
            if resource.update_replace_policy == "Retain":
                stack.say_of(resource, "DELETE_SKIPPED")
        failed += self._delete_all(reversed(removed), _RETAINED)
        said = "Update successful. One or more resources could not be deleted." if failed else None
        stack.say("UPDATE_COMPLETE", said)

    def take_over(self, plan: Plan, kept: Mapping[str, StackResource]) -> None:
        """Import what a deleted stack has kept, as it is: whether it is as the template says, is not compared."""
        stack, before = self._stack, dict(self._stack.resources)
        stack.say("IMPORT_IN_PROGRESS", "User Initiated")
        try:
            for logical_id in (name for name in plan.order if name in kept):
                was, definition = kept[logical_id], plan.definition(logical_id)
                resource = replace(was, logical_id=logical_id, definition=definition)
                stack.resources[logical_id] = resource
                stack.say_of(resource, "IMPORT_IN_PROGRESS", "Resource import started.")
                resource.properties = self._properties(plan, logical_id)
                stack.say_of(resource, "IMPORT_COMPLETE", "Resource import completed.")
        except ResourceError as failure:
            stack.say_of(resource, "IMPORT_FAILED", str(failure))
            stack.say("IMPORT_ROLLBACK_IN_PROGRESS", str(failure))
            stack.resources = before
            stack.say("IMPORT_ROLLBACK_COMPLETE")
            return
        adopt(stack, plan)
        for logical_id in kept:
            resource = stack.resources[logical_id]
            stack.say_of(resource, "UPDATE_IN_PROGRESS", "Apply stack-level tags to imported resource if applicable.")
            stack.say_of(resource, "UPDATE_COMPLETE")
        stack.say("IMPORT_COMPLETE")

    def delete(self, retain: Iterable[str] = ()) -> None:
        """Delete the stack's resources in reverse order, but those that are retained."""
        stack = self._stack
        stack.say("DELETE_IN_PROGRESS", "User Initiated")
        doomed = [stack.resources[name] for name in reversed(order_of(stack, stack.resources))]
        spared = {name for name in retain if name in stack.resources}
        for resource in [resource for resource in doomed if resource.logical_id in spared]:
            stack.say_of(resource, "DELETE_SKIPPED")
        failed = self._delete_all([r for r in doomed if r.logical_id not in spared], _RETAINED)
        if failed:
            stack.say("DELETE_FAILED", failed_to_delete(failed))
            return
        stack.outputs, stack.imports, stack.deleted = [], set(), now()
        stack.say("DELETE_COMPLETE")

    # One resource

    def _create(self, plan: Plan, logical_id: str) -> None:
        definition = plan.definition(logical_id)
        resource = StackResource(logical_id, definition["Type"], definition)
        self._stack.resources[logical_id] = resource
        self._stack.say_of(resource, "CREATE_IN_PROGRESS")
        try:
            resource.properties = self._properties(plan, logical_id)
            self._refuse_taken_name(resource)
            self._make(plan, resource)
        except ResourceError as failure:
            self._stack.say_of(resource, "CREATE_FAILED", str(failure))
            raise ResourceError(f"The following resource(s) failed to create: [{logical_id}].") from failure
        self._stack.say_of(resource, "CREATE_COMPLETE")

    def _refuse_taken_name(self, resource: StackResource) -> None:
        """Fail a resource whose name is another's of its type in a stack, before its service is asked.

        Seen in https://github.com/aws/aws-cdk/issues/31058. Newer deployments fail sooner with the same reason:
        https://aws.amazon.com/blogs/devops/ship-infrastructure-faster-with-cloudformation-and-cdk-pre-deployment-validation-on-every-stack-operation/
        """
        name = resource.properties.get(getattr(handler_for(resource.type), "named", "").partition(":")[0])
        # A lifecycle hook's name is its own within its group.
        parts = schemas.identifier(resource.type) & resource.properties.keys()
        for stack in self._region.living() if name else ():
            for other in stack.resources.values():
                is_alike = all(other.properties.get(part) == resource.properties[part] for part in parts)
                if other is not resource and (other.type, other.physical_id) == (resource.type, name) and is_alike:
                    raise ResourceError(f"{name} already exists in stack {stack.id}")

    def _make(self, plan: Plan, resource: StackResource) -> None:
        call = self._call(resource)
        try:
            self._refuse_contention(
                plan, resource.logical_id, handler_for(resource.type).touches(call, resource.properties)
            )
            resource.attributes = handler_for(resource.type).create(call, resource.properties)
        except Exception as error:
            raise ResourceError(reason_of(error, resource.type)) from error
        finally:
            resource.physical_id = call.physical_id or None

    def _refuse_contention(self, plan: Plan, logical_id: str, touched: frozenset[str]) -> None:
        """Fail a resource that changes the same as another that CloudFormation makes at the same time."""
        for other, theirs in self._touched.items():
            if touched & theirs and not templates.depends_on(plan.template, logical_id, other):
                raise HandlerError(_BEING_UPDATED, "ResourceConflict")
        if touched:
            self._touched[logical_id] = touched

    def _change(self, plan: Plan, was: StackResource, replaced: list[StackResource]) -> None:
        logical_id, stack = was.logical_id, self._stack
        resource = replace(was, definition=plan.definition(logical_id))
        try:
            properties = self._properties(plan, logical_id)
            if properties == was.properties:
                stack.resources[logical_id] = resource
                return
            if needs_replacement(was, properties):
                refuse_same_name(was, properties)
                resource = StackResource(logical_id, was.type, plan.definition(logical_id), properties)
                stack.resources[logical_id] = resource
                stack.say_of(
                    resource,
                    "UPDATE_IN_PROGRESS",
                    "Requested update requires the creation of a new physical resource; hence creating one.",
                )
                self._make(plan, resource)
                replaced.append(was)
            else:
                resource.properties = properties
                stack.resources[logical_id] = resource
                stack.say_of(resource, "UPDATE_IN_PROGRESS")
                resource.attributes = was.attributes | self._update(resource, was.properties)
                if resource.physical_id != was.physical_id:
                    replaced.append(was)
        except ResourceError as failure:
            stack.say_of(resource, "UPDATE_FAILED", str(failure))
            if failure.untouched:
                stack.resources[logical_id] = was
            raise ResourceError(f"The following resource(s) failed to update: [{logical_id}].") from failure
        stack.say_of(resource, "UPDATE_COMPLETE")

    def _update(
        self, resource: StackResource, before: Mapping[str, Any], *, rolling_back: bool = False
    ) -> dict[str, Any]:
        call = self._call(resource)
        call.rolling_back = rolling_back
        try:
            attributes = handler_for(resource.type).update(call, resource.properties, before)
        except Exception as error:
            untouched = isinstance(error, CannotChangeError)
            raise ResourceError(reason_of(error, resource.type), untouched=untouched) from error
        resource.physical_id = call.physical_id
        return attributes

    def _delete_all(self, resources: Iterable[StackResource], spared_policies: Iterable[str]) -> list[str]:
        """Delete resources one by one, but those whose policy spares them; return the ids that failed."""
        failed = []
        for resource in resources:
            if resource.physical_id is None or resource.status == "DELETE_COMPLETE":
                continue
            if resource.deletion_policy in spared_policies:
                self._stack.say_of(resource, "DELETE_SKIPPED")
                continue
            self._stack.say_of(resource, "DELETE_IN_PROGRESS")
            try:
                handler_for(resource.type).delete(self._call(resource))
            except Exception as error:  # every failure is reported on the resource that it is of
                if not (isinstance(error, ClientError) and is_absent(error)):
                    self._stack.say_of(resource, "DELETE_FAILED", reason_of(error, resource.type))
                    failed.append(resource.logical_id)
                    continue
            self._stack.say_of(resource, "DELETE_COMPLETE")
        return failed

    def _roll_update_back(self, before: Mapping[str, StackResource], reason: str) -> None:
        stack = self._stack
        stack.say("UPDATE_ROLLBACK_IN_PROGRESS", reason)
        superfluous: list[StackResource] = []
        failed: list[str] = []
        for resource in reversed(list(stack.resources.values())):
            was = before.get(resource.logical_id)
            if was is not None and was.physical_id != resource.physical_id and was.type == resource.type:
                superfluous += self._restore(was, resource, failed)
            elif was is None or was.physical_id != resource.physical_id:
                superfluous.append(resource)
            elif was.properties != resource.properties:
                stack.resources[was.logical_id] = was
                stack.say_of(was, "UPDATE_IN_PROGRESS")
                try:
                    was.attributes |= self._update(was, resource.properties, rolling_back=True)
                    stack.say_of(was, "UPDATE_COMPLETE")
                except ResourceError as failure:
                    stack.say_of(was, "UPDATE_FAILED", str(failure))
                    failed.append(was.logical_id)
        stack.resources = dict(before)
        if failed:
            said = f"The following resource(s) failed to update: [{', '.join(failed)}]."
            stack.say("UPDATE_ROLLBACK_FAILED", said)
            return
        stack.say("UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS")
        self._delete_all(superfluous, {"Retain"})
        stack.say("UPDATE_ROLLBACK_COMPLETE", reason)

    def _restore(self, was: StackResource, resource: StackResource, failed: list[str]) -> list[StackResource]:
        """Return what a rollback deletes of a resource that another has taken the place of.

        The function of a custom resource is asked for the earlier properties once more, and may answer any id.
        https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/crpg-ref-requesttypes-update.html
        """
        if resource.physical_id is None or not handler_for(resource.type).may_answer_another_id:
            return [resource]
        restored = replace(resource, definition=was.definition, properties=was.properties)
        self._stack.resources[was.logical_id] = restored
        self._stack.say_of(restored, "UPDATE_IN_PROGRESS")
        try:
            was.attributes |= self._update(restored, resource.properties, rolling_back=True)
        except ResourceError as failure:
            self._stack.say_of(restored, "UPDATE_FAILED", str(failure))
            failed.append(was.logical_id)
            return []
        left = [replace(each) for each in (was, resource) if each.physical_id != restored.physical_id]
        was.physical_id = restored.physical_id
        self._stack.say_of(was, "UPDATE_COMPLETE")
        return left

    # What the plan says about it

    def _refuse_unknown(self, plan: Plan) -> None:
        """Fail every resource of a type that has no handler, before anything is made."""
        unknown = [name for name in plan.order if handler_of(plan.definition(name)["Type"]) is None]
        for logical_id in unknown:
            definition = plan.definition(logical_id)
            resource = StackResource(logical_id, definition["Type"], definition)
            self._stack.resources.setdefault(logical_id, resource)
            self._stack.say_of(resource, "CREATE_FAILED", f"the local AWS has no {definition['Type']}")
        if unknown:
            raise ResourceError(f"The following resource(s) failed to create: [{', '.join(unknown)}].")

    def _properties(self, plan: Plan, logical_id: str) -> dict[str, Any]:
        """Return a resource's properties: resolved, with the stack's tags, converted and checked."""
        definition = plan.definition(logical_id)
        kind = definition["Type"]
        try:
            resolved = self._resolver(plan).value(definition.get("Properties") or {})
            tagged = with_stack_tags(kind, resolved, plan.tags)
            properties, reason = schemas.check(kind, logical_id, tagged)
        except ValidationError as error:
            raise ResourceError(error.message) from error
        except (LookupError, ClientError) as error:
            raise ResourceError(str(error)) from error
        except Exception as error:
            raise ResourceError(reason_of(error, kind)) from error
        if reason is not None:
            raise ResourceError(reason)
        handler = handler_for(kind)
        left_out = sorted(set(properties) - handler.supported)
        if left_out and not handler.takes_any_property:
            raise ResourceError(f"the local AWS does not support {', '.join(left_out)} of {kind}")
        return properties

    def _resolver(self, plan: Plan) -> Resolver:
        return Resolver(
            template=plan.template,
            parameters=plan.resolved_parameters,
            pseudo=self._pseudo,
            reference=self._reference,
            attribute=self._stack.attribute,
            import_value=self._import,
        )

    def _reference(self, logical_id: str) -> str:
        resource = self._stack.resources.get(logical_id)
        if resource is None or resource.physical_id is None:
            raise ValidationError(
                f"Template format error: Unresolved resource dependencies [{logical_id}] in the Resources block of "
                "the template"
            )
        return resource.physical_id

    def _import(self, name: str) -> str:
        exports = self._region.exports()
        if name not in exports or exports[name][1] is self._stack:
            raise ValidationError(f"No export named {name} found.")
        self._imports.add(name)
        return exports[name][0]

    def _call(self, resource: StackResource) -> Call:
        return Call(
            client=self._client,
            region=str(self._pseudo["AWS::Region"]),
            account=str(self._pseudo["AWS::AccountId"]),
            stack_name=self._stack.name,
            logical_id=resource.logical_id,
            definition=resource.definition,
            properties=resource.properties,
            attributes=resource.attributes,
            physical_id=resource.physical_id or "",
            stack_id=self._stack.id,
        )
