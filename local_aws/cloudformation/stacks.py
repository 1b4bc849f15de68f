"""What CloudFormation remembers: stacks, their resources, events, exports and change sets."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import RLock
from typing import Any
from uuid import uuid4

from local_aws.cloudformation import parameters, schemas
from local_aws.cloudformation.failures import ValidationError


def now() -> datetime:
    """Return the current time as AWS's answers carry it."""
    return datetime.now(UTC)


@dataclass
class StackResource:
    """One resource of a stack as it is: its physical id, and the properties that it was made with."""

    logical_id: str
    type: str
    definition: Mapping[str, Any]
    properties: dict[str, Any] = field(default_factory=dict)
    physical_id: str | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    status: str = "CREATE_IN_PROGRESS"
    reason: str | None = None
    changed: datetime = field(default_factory=now)

    @property
    def deletion_policy(self) -> str:
        """What happens to the resource when it leaves the stack."""
        return str(self.definition.get("DeletionPolicy", "Delete"))

    @property
    def update_replace_policy(self) -> str:
        """What happens to the physical resource when another takes its place."""
        return str(self.definition.get("UpdateReplacePolicy", "Delete"))


@dataclass(frozen=True)
class Output:
    """One output of a stack, and the name that it is exported under."""

    key: str
    value: str
    description: str | None
    export: str | None


@dataclass
class Stack:
    """One stack: what was asked for, what there is, and what happened."""

    name: str
    id: str
    template_text: str
    template: dict[str, Any]
    parameters: dict[str, str]
    resolved_parameters: dict[str, Any]
    tags: dict[str, str]
    status: str = "REVIEW_IN_PROGRESS"
    reason: str | None = None
    termination_protection: bool = False
    role_arn: str | None = None
    notification_arns: list[str] = field(default_factory=list)
    capabilities: list[str] = field(default_factory=list)
    disable_rollback: bool = False
    resources: dict[str, StackResource] = field(default_factory=dict)
    outputs: list[Output] = field(default_factory=list)
    imports: set[str] = field(default_factory=set)
    events: list[dict[str, Any]] = field(default_factory=list)
    created: datetime = field(default_factory=now)
    updated: datetime | None = None
    deleted: datetime | None = None

    def say(self, status: str, reason: str | None = None) -> None:
        """Set the stack's status and record it as an event."""
        self.status, self.reason = status, reason
        self._record(self.name, self.id, "AWS::CloudFormation::Stack", status, reason)

    def say_of(self, resource: StackResource, status: str, reason: str | None = None) -> None:
        """Set a resource's status and record it as an event."""
        resource.status, resource.reason, resource.changed = status, reason, now()
        self._record(resource.logical_id, resource.physical_id, resource.type, status, reason)

    def _record(self, logical_id: str, physical_id: str | None, kind: str, status: str, reason: str | None) -> None:
        self.events.append(
            {
                "StackId": self.id,
                "EventId": f"{logical_id}-{status}-{uuid4()}",
                "StackName": self.name,
                "LogicalResourceId": logical_id,
                "PhysicalResourceId": physical_id or "",
                "ResourceType": kind,
                "Timestamp": now(),
                "ResourceStatus": status,
                "ResourceStatusReason": reason,
            }
        )

    def exports(self) -> dict[str, str]:
        """Return what the stack exports: values by name."""
        return {output.export: output.value for output in self.outputs if output.export}

    def attribute(self, logical_id: str, name: str) -> Any:
        """Return an attribute of a resource for Fn::GetAtt.

        Raises:
            ValidationError: if the resource's type has no such attribute.
            LookupError: if it has, and the local AWS does not know its value.
        """
        resource = self.resources.get(logical_id)
        if resource is None or resource.physical_id is None:
            raise ValidationError(
                f"Template error: instance of Fn::GetAtt references undefined resource {logical_id}"
            )
        if name in resource.attributes:
            return resource.attributes[name]
        if name not in schemas.attributes_of(resource.type):
            raise ValidationError(
                f"Template error: resource {logical_id} does not support attribute type {name} in Fn::GetAtt"
            )
        if name in resource.properties:
            return resource.properties[name]
        raise LookupError(f"the local AWS does not know the attribute {name} of {resource.type}")

    def described(self) -> dict[str, Any]:
        """Return the stack as DescribeStacks shows it."""
        return {
            "StackId": self.id,
            "StackName": self.name,
            "Description": self.template.get("Description"),
            "Parameters": parameters.shown(self.template.get("Parameters") or {}, self.parameters_shown()),
            "CreationTime": self.created,
            "LastUpdatedTime": self.updated,
            "DeletionTime": self.deleted,
            "StackStatus": self.status,
            "StackStatusReason": self.reason,
            "DisableRollback": self.disable_rollback,
            "NotificationARNs": self.notification_arns,
            "Capabilities": self.capabilities,
            "Outputs": [
                {
                    "OutputKey": output.key,
                    "OutputValue": output.value,
                    "Description": output.description,
                    "ExportName": output.export,
                }
                for output in self.outputs
            ],
            "RoleARN": self.role_arn,
            "Tags": [{"Key": key, "Value": value} for key, value in self.tags.items()],
            "EnableTerminationProtection": self.termination_protection,
            "DriftInformation": {"StackDriftStatus": "NOT_CHECKED"},
        }

    def parameters_shown(self) -> dict[str, Any]:
        """Return what was given, or the default, for each parameter of the template."""
        definitions = self.template.get("Parameters") or {}
        return {
            name: self.parameters.get(name, definition.get("Default", "")) for name, definition in definitions.items()
        }


@dataclass
class ChangeSet:
    """A prepared creation of a stack or import into one, with its plan and what a deleted stack has kept."""

    name: str
    id: str
    stack: Stack
    plan: Any
    imported: Mapping[str, StackResource] = field(default_factory=dict)
    execution: str = "AVAILABLE"
    created: datetime = field(default_factory=now)


class Region:
    """The stacks of one account and region; one operation at a time runs on them."""

    def __init__(self) -> None:
        self.stacks: dict[str, Stack] = {}
        self.change_sets: dict[str, ChangeSet] = {}
        self.lock = RLock()

    def living(self) -> Iterator[Stack]:
        """Yield the stacks that are not deleted."""
        return (stack for stack in self.stacks.values() if stack.status != "DELETE_COMPLETE")

    def find(self, name_or_id: str) -> Stack | None:
        """Return a living stack by name, or any stack by id."""
        if name_or_id in self.stacks:
            return self.stacks[name_or_id]
        return next((stack for stack in self.living() if stack.name == name_or_id), None)

    def get(self, name_or_id: str) -> Stack:
        """Return a stack.

        Raises:
            ValidationError: as CloudFormation answers, if there is none.
        """
        stack = self.find(name_or_id)
        if stack is None:
            raise ValidationError(f"Stack with id {name_or_id} does not exist")
        return stack

    def owner(self, physical_id: str) -> Stack:
        """Return the living stack that has a resource.

        Raises:
            ValidationError: as CloudFormation answers, if none has.
        """
        for stack in self.living():
            if any(resource.physical_id == physical_id for resource in stack.resources.values()):
                return stack
        raise ValidationError(f"Stack for {physical_id} does not exist")

    def exports(self) -> dict[str, tuple[str, Stack]]:
        """Return every export: its value and the stack that exports it, by name."""
        return {name: (value, stack) for stack in self.living() for name, value in stack.exports().items()}

    def importers(self, export: str) -> list[Stack]:
        """Return the stacks that use an export."""
        return [stack for stack in self.living() if export in stack.imports]


REGIONS: dict[tuple[str, str], Region] = defaultdict(Region)
