"""A template as rules read it: its resources, and what refers to what."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cdk_training_cluster.validation.templates.texts import Finding, is_intrinsic
from cluster_contract.tags import NODE_GROUP_TAG

RESERVATION = "AWS::EC2::CapacityReservation"
# The types whose resources have the properties of another type.
_ALIKE = {"Custom::CapacityReservation": RESERVATION}
LAUNCH = "Properties.LaunchTemplateData"
TARGET = "Properties.CapacityReservationSpecification.CapacityReservationTarget"

_ORCHESTRATORS = ("AWS::PCS::", "AWS::EKS::", "AWS::Batch::", "AWS::SageMaker::Cluster")

_VARIABLE = re.compile(r"\$\{(\w+)")


@dataclass(frozen=True)
class Resource:
    """One resource of a template."""

    logical_id: str
    definition: Mapping[str, object]

    @property
    def kind(self) -> str:
        """The type, or the type whose properties the resource has."""
        given = str(self.definition.get("Type"))
        return _ALIKE.get(given, given)

    def get(self, path: str) -> object:
        """Return what is at a path, None if nothing is, and an intrinsic function if one stands there or above."""
        value: object = self.definition
        for key in path.split("."):
            if is_intrinsic(value):
                break
            value = value.get(key) if isinstance(value, Mapping) else None
        return None if value == {"Ref": "AWS::NoValue"} else value

    def items(self, path: str) -> list[object]:
        """Return the list that is at a path, or an empty one."""
        value = self.get(path)
        return value if isinstance(value, list) else []

    def mappings(self, path: str) -> list[Mapping[str, Any]]:
        """Return the mappings in the list at a path, without what only the deployment knows."""
        return [each for each in self.items(path) if isinstance(each, Mapping) and not is_intrinsic(each)]

    def at(self, path: str) -> Finding:
        """Return the place of a path."""
        return Finding(self.logical_id, path)


class Template:
    """A template, and what the library made in it."""

    def __init__(self, definition: Mapping[str, object], size: int | None = None) -> None:
        """Read a template.

        Args:
            definition: What it says.
            size: How many bytes its file has. Default: - not known.
        """
        found = definition.get("Resources")
        self.size = size
        self.resources: dict[str, Resource] = {
            str(name): Resource(str(name), each)
            for name, each in (found.items() if isinstance(found, Mapping) else ())
            if isinstance(each, Mapping)
        }
        self.outputs: object | None = definition.get("Outputs")

    def of_type(self, *kinds: str) -> Sequence[Resource]:
        """Return the resources of some types."""
        return [each for each in self.resources.values() if each.kind in kinds]

    def made(self, kind: str) -> Sequence[Resource]:
        """Return the resources of a type that the library made."""
        return [each for each in self.of_type(kind) if _is_ours(each.get("Properties"))]

    @cached_property
    def has_orchestrator(self) -> bool:
        """Whether an orchestrator that runs jobs is in it, such as AWS PCS."""
        kinds = {str(each.definition.get("Type")) for each in self.resources.values()}
        return any(kind.startswith(_ORCHESTRATORS) for kind in kinds)

    @cached_property
    def groups(self) -> Sequence[Resource]:
        """The Auto Scaling groups that the library made."""
        return self.made("AWS::AutoScaling::AutoScalingGroup")

    @cached_property
    def fleets(self) -> Sequence[Resource]:
        """The Spot Fleets that the library made."""
        return self.made("AWS::EC2::SpotFleet")

    def referred(self, value: object, kind: str) -> Sequence[Resource]:
        """Return the resources of a type that a value refers to, also through a resource group."""
        named = set(_references(value))
        for group in self.of_type("AWS::ResourceGroups::Group"):
            if group.logical_id in named:
                named |= set(_references(group.get("Properties.Resources")))
        return [each for each in self.of_type(kind) if each.logical_id in named]

    def launching(self, kind: str, path: str) -> Iterator[tuple[Resource, Resource]]:
        """Yield each resource of a type with each launch template that it names at a path, if it is known."""
        for resource in self.of_type(kind):
            for launch in self.referred(resource.get(path), "AWS::EC2::LaunchTemplate"):
                if not is_intrinsic(launch.get(LAUNCH)):
                    yield resource, launch

    def launch_templates(self, group: Resource) -> Sequence[Resource]:
        """Return the launch templates of a group."""
        named = [group.get("Properties.LaunchTemplate"), group.get("Properties.MixedInstancesPolicy")]
        return self.referred(named, "AWS::EC2::LaunchTemplate")

    def placement(self, group: Resource) -> object:
        """Return what names the placement group that a group launches into; the group's own name counts first."""
        named = (each.get(f"{LAUNCH}.Placement.GroupName") for each in self.launch_templates(group))
        own = group.get("Properties.PlacementGroup")
        return own if own is not None else next((name for name in named if name is not None), None)

    def reserved(self) -> Iterator[tuple[Resource, Resource]]:
        """Yield each group with each reservation of the template that it targets."""
        for group in self.groups:
            for reservation in self.referred(group.get(TARGET), RESERVATION):
                yield group, reservation


def is_known(value: object) -> bool:
    """Tell whether a template says all of a value: it holds no function that only the deployment resolves."""
    if isinstance(value, Mapping):
        return not is_intrinsic(value) and all(is_known(each) for each in value.values())
    return not isinstance(value, list) or all(is_known(each) for each in value)


def is_plain_user_data(launch: Resource) -> bool:
    """Tell whether the user data of a launch template are certainly no MIME multi-part archive."""
    data = launch.get(f"{LAUNCH}.UserData")
    # As text they are encoded, and not read.
    text = data.get("Fn::Base64") if isinstance(data, Mapping) else None
    is_written = isinstance(text, str) or (isinstance(text, Mapping) and bool(text.keys() & {"Fn::Join", "Fn::Sub"}))
    return is_written and "multipart/" not in str(text)


def _references(value: object) -> Iterator[str]:
    """Yield the logical ids that a value may refer to, wherever in it."""
    match value:
        case {"Fn::GetAtt": [str() as name, *_]} | {"Ref": str() as name}:
            yield name
        case {"Fn::GetAtt": str() as name}:
            yield name.partition(".")[0]
        case str():
            yield from _VARIABLE.findall(value)
        case Mapping():
            for each in value.values():
                yield from _references(each)
        case list():
            for each in value:
                yield from _references(each)


def _is_ours(value: object) -> bool:
    """Tell whether tags of the library are somewhere in a value."""
    if isinstance(value, Mapping):
        # A node group of EKS has its tags as a mapping.
        return NODE_GROUP_TAG in (value.get("Key"), *value) or any(_is_ours(each) for each in value.values())
    return isinstance(value, list) and any(_is_ours(each) for each in value)
