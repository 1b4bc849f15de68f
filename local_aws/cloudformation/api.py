"""CloudFormation's actions on stacks: what is refused at once, what is done, how stacks are shown."""

from typing import Any

from moto.core.responses import ActionResult, EmptyResult

from local_aws.cloudformation.change_sets import ChangeSetActions
from local_aws.cloudformation.failures import ValidationError
from local_aws.cloudformation.imports import identifiers
from local_aws.cloudformation.stacks import Stack, StackResource
from local_aws.refusal import Refusal


class CloudFormationApi(ChangeSetActions):
    """Answers CloudFormation's requests. Operations are complete before their answer is sent."""

    # Operations on stacks

    def create_stack(self) -> ActionResult:
        """Answer CreateStack."""
        name = self._get_param("StackName")
        with self._here.lock:
            if self._here.find(name) is not None:
                raise Refusal("AlreadyExistsException", f"Stack [{name}] already exists")
            stack = self._new_stack(name)
            plan = self._plan(stack)
            self._check_capabilities(plan)
            self._here.stacks[stack.id] = stack
            self._deployment(stack).create(plan)
            if self._get_param("OnFailure") == "DELETE" and stack.status == "ROLLBACK_COMPLETE":
                stack.say("DELETE_COMPLETE")
        return ActionResult({"StackId": stack.id})

    def update_stack(self) -> ActionResult:
        """Answer UpdateStack."""
        with self._here.lock:
            stack = self._existing()
            self._check_updatable(stack)
            plan = self._plan(stack)
            self._check_capabilities(plan)
            if plan.changes_nothing_of(stack):
                raise ValidationError("No updates are to be performed.")
            self._check_types(stack, plan)
            self._configure(stack)
            self._deployment(stack).update(plan)
        return ActionResult({"StackId": stack.id})

    def delete_stack(self) -> ActionResult:
        """Answer DeleteStack; a stack that does not exist is deleted already."""
        with self._here.lock:
            stack = self._here.find(self._get_param("StackName"))
            if stack is None or stack.status == "DELETE_COMPLETE":
                return EmptyResult()
            if stack.termination_protection:
                raise ValidationError(
                    f"Stack [{stack.name}] cannot be deleted while TerminationProtection is enabled"
                )
            for export in stack.exports():
                users = [user.name for user in self._here.importers(export) if user is not stack]
                if users:
                    raise ValidationError(f"Export {export} cannot be deleted as it is in use by {', '.join(users)}")
            self._deployment(stack).delete(self._get_param("RetainResources", []))
        return EmptyResult()

    def update_termination_protection(self) -> ActionResult:
        """Answer UpdateTerminationProtection."""
        stack = self._existing()
        stack.termination_protection = self._get_bool_param("EnableTerminationProtection", False)
        return ActionResult({"StackId": stack.id})

    # What there is

    def describe_stacks(self) -> ActionResult:
        """Answer DescribeStacks."""
        name = self._get_param("StackName")
        stacks = [self._here.get(name)] if name else list(self._here.living())
        return self._page("Stacks", [stack.described() for stack in stacks])

    def describe_stack_events(self) -> ActionResult:
        """Answer DescribeStackEvents, newest first."""
        name = self._get_param("StackName")
        stack = self._here.find(name)
        if stack is None:
            raise ValidationError(f"Stack [{name}] does not exist")
        return self._page("StackEvents", stack.events[::-1])

    def describe_events(self) -> ActionResult:
        """Answer DescribeEvents: a stack's events by operation, here all of them."""
        change_set = self._find_change_set() if self._get_param("ChangeSetName") else None
        stack = change_set.stack if change_set else self._existing()
        failed = self._get_param("Filters.FailedEvents")
        shown = [
            {**event, "EventType": "STACK_EVENT"}
            for event in stack.events[::-1]
            if not failed or event["ResourceStatus"].endswith("FAILED")
        ]
        return self._page("OperationEvents", shown)

    def describe_stack_resource(self) -> ActionResult:
        """Answer DescribeStackResource, of a resource that is being made as well."""
        stack, logical_id = self._existing(), self._get_param("LogicalResourceId")
        if logical_id not in stack.resources:
            raise ValidationError(f"Resource {logical_id} does not exist for stack {stack.name}")
        return ActionResult({"StackResourceDetail": _resource_shown(stack, stack.resources[logical_id])})

    def describe_stack_resources(self) -> ActionResult:
        """Answer DescribeStackResources."""
        physical_id, logical_id = self._get_param("PhysicalResourceId"), self._get_param("LogicalResourceId")
        stack = self._here.owner(physical_id) if physical_id else self._existing()
        shown = [
            _resource_shown(stack, resource)
            for resource in stack.resources.values()
            if resource.physical_id and logical_id in {None, resource.logical_id}
        ]
        return ActionResult({"StackResources": shown})

    def list_stacks(self) -> ActionResult:
        """Answer ListStacks, newest first."""
        wanted = self._get_param("StackStatusFilter", [])
        found = sorted(self._here.stacks.values(), key=lambda stack: stack.created, reverse=True)
        return self._page(
            "StackSummaries", [each.described() for each in found if each.status in wanted or not wanted]
        )

    def list_stack_resources(self) -> ActionResult:
        """Answer ListStackResources."""
        stack = self._existing()
        shown = [_resource_shown(stack, resource) for resource in stack.resources.values() if resource.physical_id]
        return self._page("StackResourceSummaries", shown)

    def list_exports(self) -> ActionResult:
        """Answer ListExports."""
        shown = [
            {"ExportingStackId": stack.id, "Name": name, "Value": value}
            for name, (value, stack) in sorted(self._here.exports().items())
        ]
        return self._page("Exports", shown)

    def get_template(self) -> ActionResult:
        """Answer GetTemplate: the very text that was given."""
        change_set = self._find_change_set() if self._get_param("ChangeSetName") else None
        text = change_set.plan.template_text if change_set else self._existing().template_text
        return ActionResult({"TemplateBody": text, "StagesAvailable": ["Original", "Processed"]})

    def get_template_summary(self) -> ActionResult:
        """Answer GetTemplateSummary: what identifies the template's resources for an import."""
        resources = self._plan(Stack("", "", "", {}, {}, {}, {})).template["Resources"]
        by_type: dict[str, list[str]] = {}
        for logical_id, definition in resources.items():
            by_type.setdefault(definition["Type"], []).append(logical_id)
        summaries = [
            {"ResourceType": kind, "LogicalResourceIds": names, "ResourceIdentifiers": [",".join(identifiers(kind))]}
            for kind, names in sorted(by_type.items())
            if identifiers(kind)
        ]
        return ActionResult({"ResourceTypes": sorted(by_type), "ResourceIdentifierSummaries": summaries})


def _resource_shown(stack: Stack, resource: StackResource) -> dict[str, Any]:
    return {
        "StackName": stack.name,
        "StackId": stack.id,
        "LogicalResourceId": resource.logical_id,
        "PhysicalResourceId": resource.physical_id,
        "ResourceType": resource.type,
        "Timestamp": resource.changed,
        "LastUpdatedTimestamp": resource.changed,
        "ResourceStatus": resource.status,
        "ResourceStatusReason": resource.reason,
        "DriftInformation": {"StackResourceDriftStatus": "NOT_CHECKED"},
    }
