"""What the library made in a template: its groups and fleets, and what they refer to there."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from cdk_training_cluster.tags import NODE_GROUP_TAG
from cdk_training_cluster.template_rules.values import (
    is_given,
    items,
    last_of_arn,
    number,
    target_of,
    text,
    value_at,
)

CAPACITY_BLOCK = "capacity-block"
PLACEMENT_GROUP = "AWS::EC2::PlacementGroup"
ROLE = "AWS::IAM::Role"
AUTO_SCALING_GROUP = "AWS::AutoScaling::AutoScalingGroup"
LAUNCH_TEMPLATE = "AWS::EC2::LaunchTemplate"
RESOURCE_GROUP = "AWS::ResourceGroups::Group"

_FLEET = "AWS::EC2::SpotFleet"
_RESERVATION = "AWS::EC2::CapacityReservation"
_SUBNET = "AWS::EC2::Subnet"
_WARM_POOL = "AWS::AutoScaling::WarmPool"
_HOOK = "AWS::AutoScaling::LifecycleHook"

_ALL_ON_DEMAND = 100


@dataclass(frozen=True)
class Finding:
    """One place in a template that breaks a rule.

    Attributes:
        logical_id: The resource.
        location: Where in it, with dots: `Properties.PlacementGroup`.
    """

    logical_id: str
    location: str


@dataclass(frozen=True)
class Resource:
    """One resource of a template."""

    template: "Template"
    logical_id: str
    definition: Mapping[str, object]

    @property
    def type(self) -> object:
        """Its CloudFormation type."""
        return self.definition.get("Type")

    def get(self, path: str) -> object:
        """Return what a property has, as `value_at` does."""
        return value_at(self.definition, f"Properties.{path}")

    def has(self, path: str) -> bool:
        """Tell whether a property certainly has a value, whatever it is."""
        return is_given(self.get(path))

    def at(self, path: str) -> Finding:
        """Return the place of a property."""
        return Finding(self.logical_id, f"Properties.{path}")


@dataclass(frozen=True)
class LaunchTemplate(Resource):
    """A launch template that a group or a fleet names."""

    @property
    def market(self) -> str | None:
        """The market that it names, if that is known."""
        return text(self.get("LaunchTemplateData.InstanceMarketOptions.MarketType"))


@dataclass(frozen=True)
class PlacementGroupName:
    """A placement group that is told from others: by its name, or as the one that the template makes."""

    name: str | None = None
    logical_id: str | None = None


@dataclass(frozen=True)
class Owner(Resource):
    """A resource that launches nodes."""

    def launch_templates_at(self, paths: Sequence[str]) -> tuple[LaunchTemplate, ...]:
        """Return the launch templates that are named at some paths, each once, as far as they are in the template."""
        named = (self.template.find(self.get(f"{path}.LaunchTemplateId"), LAUNCH_TEMPLATE) for path in paths)
        found = {each.logical_id: each for each in named if each is not None}
        return tuple(LaunchTemplate(self.template, name, each.definition) for name, each in found.items())


@dataclass(frozen=True)
class Group(Owner):
    """An Auto Scaling group that the library made."""

    POLICY = "MixedInstancesPolicy"
    DISTRIBUTION = "MixedInstancesPolicy.InstancesDistribution"
    SEGMENTS = "MixedInstancesPolicy.InstancesDistribution.DistributionSegments"
    RESERVED = "CapacityReservationSpecification"
    PREFERENCE = "CapacityReservationSpecification.CapacityReservationPreference"
    IDS = "CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationIds"
    ARNS = "CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationResourceGroupArns"

    @cached_property
    def specifications(self) -> tuple[str, ...]:
        """The paths at which it may name a launch template."""
        overrides = f"{self.POLICY}.LaunchTemplate.Overrides"
        return (
            "LaunchTemplate",
            f"{self.POLICY}.LaunchTemplate.LaunchTemplateSpecification",
            *(f"{overrides}.{place}.LaunchTemplateSpecification" for place in range(len(items(self.get(overrides))))),
        )

    @cached_property
    def launch_templates(self) -> tuple[LaunchTemplate, ...]:
        """Its launch templates, as far as they are in the template."""
        return self.launch_templates_at(self.specifications)

    @property
    def is_mixed(self) -> bool:
        """Whether it certainly has a mixed instances policy."""
        return self.has(self.POLICY)

    @property
    def has_segments(self) -> bool:
        """Whether it certainly has distribution segments."""
        return self.has(self.SEGMENTS)

    @property
    def may_have_segments(self) -> bool:
        """Whether it has distribution segments, or a condition decides."""
        return self.get(self.SEGMENTS) is not None

    @cached_property
    def capacity_types(self) -> tuple[object, ...]:
        """The capacity types of all its distribution segments, in order."""
        segments = range(len(items(self.get(self.SEGMENTS))))
        lists = (self.get(f"{self.SEGMENTS}.{place}.TargetCapacityTypes") for place in segments)
        return tuple(kind for each in lists for kind in items(each))

    @property
    def zones(self) -> frozenset[str] | None:
        """The Availability Zones that it launches in, if all are known."""
        subnets = self.get("VPCZoneIdentifier")
        if subnets is None:
            named = list(items(self.get("AvailabilityZones")))
        else:
            made = (self.template.find(value, _SUBNET) for value in items(subnets))
            named = [None if subnet is None else subnet.get("AvailabilityZone") for subnet in made]
        zones = frozenset(zone for zone in named if isinstance(zone, str))
        return zones if named and all(isinstance(zone, str) for zone in named) else None

    @property
    def market_is_block(self) -> bool:
        """Whether a launch template of it buys Capacity Blocks."""
        return any(each.market == CAPACITY_BLOCK for each in self.launch_templates)

    @property
    def buys_spot(self) -> bool:
        """Whether some of it is certainly Spot."""
        share = number(self.get(f"{self.DISTRIBUTION}.OnDemandPercentageAboveBaseCapacity"))
        shared = share is not None and share < _ALL_ON_DEMAND
        return shared or any(each.market == "spot" for each in self.launch_templates)

    @property
    def warm_pools(self) -> Iterator[Resource]:
        """The warm pools of it."""
        return self._belonging(_WARM_POOL)

    @property
    def hooks(self) -> Iterator[Resource]:
        """The lifecycle hooks of it."""
        return self._belonging(_HOOK)

    def _belonging(self, kind: str) -> Iterator[Resource]:
        for each in self.template.of_type(kind):
            if target_of(each.get("AutoScalingGroupName")) == self.logical_id:
                yield each

    @property
    def placements(self) -> Iterator[tuple[Finding, PlacementGroupName | None]]:
        """Each place where a placement group is named, the group's own first, and which it is if that is known."""
        if self.has("PlacementGroup"):
            yield self.at("PlacementGroup"), self.template.placement_group(self.get("PlacementGroup"))
        for each in self.launch_templates:
            for name in ("GroupName", "GroupId"):
                path = f"LaunchTemplateData.Placement.{name}"
                if each.has(path):
                    value = each.get(path)
                    # A group's id does not tell its name.
                    known = name == "GroupName" or not isinstance(value, str)
                    yield each.at(path), self.template.placement_group(value) if known else None

    @property
    def reservations(self) -> Iterator[Resource]:
        """The reservations that it targets and the template makes, through resource groups too."""
        for value in items(self.get(self.IDS)):
            yield from self._reservation(value)
        for group in self.resource_groups:
            for arn in items(group.get("Resources")):
                yield from self._reservation(last_of_arn(arn, "capacity-reservation/"))

    @property
    def resource_groups(self) -> Iterator[Resource]:
        """The resource groups of reservations that it targets and the template makes."""
        for value in items(self.get(self.ARNS)):
            found = self.template.find(value, RESOURCE_GROUP)
            if found is not None:
                yield found

    def _reservation(self, value: object) -> Iterator[Resource]:
        found = self.template.find(value, _RESERVATION)
        if found is not None:
            yield found


@dataclass(frozen=True)
class Fleet(Owner):
    """A Spot Fleet that the library made."""

    CONFIG = "SpotFleetRequestConfigData"

    @cached_property
    def specifications(self) -> tuple[str, ...]:
        """The paths at which it may name a launch template."""
        configs = f"{self.CONFIG}.LaunchTemplateConfigs"
        count = len(items(self.get(configs)))
        return tuple(f"{configs}.{place}.LaunchTemplateSpecification" for place in range(count))

    @cached_property
    def launch_templates(self) -> tuple[LaunchTemplate, ...]:
        """Its launch templates, as far as they are in the template."""
        return self.launch_templates_at(self.specifications)


@dataclass(frozen=True)
class Template:
    """A template, and what the library made in it.

    Attributes:
        definition: What it says.
        size: How many bytes its file has, if that is known.
    """

    definition: Mapping[str, object]
    size: int | None = None

    @cached_property
    def resources(self) -> Mapping[str, Resource]:
        """All resources, by logical id."""
        found = self.definition.get("Resources")
        named = found.items() if isinstance(found, Mapping) else ()
        return {name: Resource(self, name, each) for name, each in named if isinstance(each, Mapping)}

    @cached_property
    def _by_type(self) -> Mapping[str, Sequence[Resource]]:
        found: dict[str, list[Resource]] = {}
        for each in self.resources.values():
            found.setdefault(str(each.type), []).append(each)
        return found

    def of_type(self, kind: str) -> Sequence[Resource]:
        """Return the resources of a type."""
        return self._by_type.get(kind, ())

    def find(self, value: object, kind: str) -> Resource | None:
        """Return the resource of a type that `Ref` or `Fn::GetAtt` names, or None."""
        found = self.resources.get(target_of(value) or "")
        return found if found is not None and found.type == kind else None

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The Auto Scaling groups that the library made."""
        return tuple(
            Group(self, each.logical_id, each.definition)
            for each in self.of_type(AUTO_SCALING_GROUP)
            if _is_ours(each.get("Tags"))
        )

    @cached_property
    def fleets(self) -> tuple[Fleet, ...]:
        """The Spot Fleets that the library made."""
        specifications = f"{Fleet.CONFIG}.TagSpecifications"
        return tuple(
            Fleet(self, each.logical_id, each.definition)
            for each in self.of_type(_FLEET)
            if _is_ours(each.get("Tags"))
            or any(_is_ours(value_at(one, "Tags")) for one in items(each.get(specifications)))
        )

    @property
    def own_reservations(self) -> Iterator[Resource]:
        """The reservations that the library made."""
        for each in self.of_type(_RESERVATION):
            if any(_is_ours(value_at(one, "Tags")) for one in items(each.get("TagSpecifications"))):
                yield each

    @property
    def owners(self) -> tuple[Group | Fleet, ...]:
        """All that launches nodes."""
        return (*self.groups, *self.fleets)

    def placement_group(self, value: object) -> PlacementGroupName | None:
        """Return which placement group a value names, or None if that is not known."""
        if isinstance(value, str):
            return PlacementGroupName(name=value)
        made = self.find(value, PLACEMENT_GROUP)
        if made is None:
            return None
        name = made.get("GroupName")
        if isinstance(name, str):
            return PlacementGroupName(name=name)
        return PlacementGroupName(logical_id=made.logical_id) if name is None else None


def _is_ours(tags: object) -> bool:
    return any(value_at(tag, "Key") == NODE_GROUP_TAG for tag in items(tags))
