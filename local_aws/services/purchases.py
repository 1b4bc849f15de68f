"""What an Auto Scaling group buys: each way to launch its instances, most wanted first.

A way is a launch template's data with one of the group's types, and where such an instance runs: On-Demand,
Spot, or a Capacity Reservation. What the group says about it overrides what its template says.
https://docs.aws.amazon.com/autoscaling/ec2/userguide/target-capacity-reservations.html
https://docs.aws.amazon.com/autoscaling/ec2/userguide/use-distribution-segments.html
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moto.autoscaling.models import InstanceState
from moto.ec2.models.instance_types import INSTANCE_TYPES

from local_aws.services import launches

_MARKET, _RESERVATION = "InstanceMarketOptions", "CapacityReservationSpecification"
_ONLY = "capacity-reservations-only"
_UNRESERVED = {_RESERVATION: {"CapacityReservationPreference": "none"}}
_MARKET_NAMES = {"spot": "Spot", "capacity-block": "Capacity Block"}


@dataclass(frozen=True, kw_only=True)
class Purchase:
    """One way to launch instances of a group.

    Attributes:
        data: The launch data.
        template_id: The launch template's id.
        template_name: Its name.
        template_version: The version that the data comes from.
        falls_back: Whether the group passes on to the next way without a word where this one has no room.
        segment_type: The capacity type, if it comes from a distribution segment.
    """

    data: Mapping[str, Any]
    template_id: str
    template_name: str
    template_version: int
    falls_back: bool = False
    segment_type: str | None = None

    @property
    def market(self) -> str:
        """How the service calls the market that the instance is bought on."""
        return _MARKET_NAMES.get(str((self.data.get(_MARKET) or {}).get("MarketType")), "On-Demand")


class LaunchedInstance(InstanceState):  # type: ignore[misc] # moto's modules are untyped here
    """A group's instance that remembers the launch template version it came from; moto shows the default."""

    def __init__(self, instance: Any, group: Any, purchase: Purchase) -> None:
        super().__init__(instance, protected_from_scale_in=group.new_instances_protected_from_scale_in)
        self.purchase = purchase

    @property
    def launch_template(self) -> dict[str, str]:
        """The template as DescribeAutoScalingGroups shows it beside the instance."""
        return {
            "LaunchTemplateId": self.purchase.template_id,
            "LaunchTemplateName": self.purchase.template_name,
            "Version": str(self.purchase.template_version),
        }


@dataclass(frozen=True)
class LaunchTemplate:
    """One launch template version of a group, with the type that an override puts in the place of its own."""

    template: Any
    version: Any
    instance_type: str | None = None

    @property
    def data(self) -> dict[str, Any]:
        """The launch data."""
        changes = {"InstanceType": self.instance_type} if self.instance_type else {}
        return {**self.version.data, **changes}


def launch_templates(group: Any) -> Iterator[LaunchTemplate]:
    """Yield a group's launch templates, most wanted first: its own, or those of its mixed policy's overrides.

    https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-mixed-instances-groups-launch-template-overrides.html
    """
    policy = group.mixed_instances_policy
    if not policy:
        named = {**(group.launch_template or {}), "Version": group.launch_template_version}
        yield LaunchTemplate(*launches.launch_template_data(group.ec2_backend, named))
        return
    base = policy["LaunchTemplate"]["LaunchTemplateSpecification"]
    for override in policy["LaunchTemplate"].get("Overrides") or [{}]:
        named = override.get("LaunchTemplateSpecification") or base
        template, version = launches.launch_template_data(group.ec2_backend, named)
        yield LaunchTemplate(template, version, override.get("InstanceType"))


def distribution(group: Any) -> Mapping[str, Any]:
    """Return the InstancesDistribution of a group's mixed policy; empty for a group without one."""
    return (group.mixed_instances_policy or {}).get("InstancesDistribution") or {}


def segment(group: Any) -> Sequence[str]:
    """Return the capacity types of a group's distribution segment, most wanted first; none without one."""
    segments = distribution(group).get("DistributionSegments") or [{}]
    return segments[0].get("TargetCapacityTypes") or []


def reservations_of(group: Any) -> Mapping[str, Any]:
    """Return a group's CapacityReservationSpecification."""
    return getattr(group, _RESERVATION, None) or {}


def purchases(group: Any) -> Iterator[Purchase]:
    """Yield what a group may launch, most wanted first: a capacity type, and in it the launch templates in turn."""
    templates = list(launch_templates(group))
    places = _places(group, blocks=any(_buys_blocks(template.data) for template in templates))
    for rank, place in enumerate(places, start=1):
        for chosen in _fitting(templates, place) if segment(group) else templates:
            data = chosen.data | place
            if group.placement_group:
                data["Placement"] = {**(data.get("Placement") or {}), "GroupName": group.placement_group}
            if place.get(_RESERVATION, {}).get("CapacityReservationPreference") == _ONLY:
                data[_RESERVATION] = {**(chosen.data.get(_RESERVATION) or {}), **place[_RESERVATION]}
            yield Purchase(
                data=data,
                template_id=chosen.template.id,
                template_name=chosen.template.name,
                template_version=chosen.version.number,
                falls_back=rank < len(places),
                segment_type=segment(group)[rank - 1] if segment(group) else None,
            )


def dispensable_first(group: Any, members: Iterable[Any]) -> list[Any]:
    """Return a group's instances in the order in which it scales in: with a segment, against the segment's order.

    Instances of a type that the segment has no longer go first. Without one, the termination policy decides.
    https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-termination-policies.html
    https://docs.aws.amazon.com/autoscaling/ec2/userguide/use-distribution-segments.html
    """
    order = list(segment(group))
    if not order:
        return list(members)[::-1] if group.termination_policies == ["NewestInstance"] else list(members)

    def rank(state: Any) -> int:
        kind = state.purchase.segment_type if isinstance(state, LaunchedInstance) else None
        return order.index(kind) if kind in order else len(order)

    return sorted(members, key=rank, reverse=True)


def _buys_blocks(data: Mapping[str, Any]) -> bool:
    return (data.get(_MARKET) or {}).get("MarketType") == "capacity-block"


def _places(group: Any, *, blocks: bool) -> list[dict[str, Any]]:
    """Return where a group's instances may run, most wanted first, as changes to its launch data.

    Args:
        group: The group.
        blocks: Whether its templates buy Capacity Blocks, from which there is no falling back to On-Demand.
    """
    said = reservations_of(group)
    target = _target(said.get("CapacityReservationTarget") or {})
    if segment(group):
        return [_segment_place(kind, target) for kind in segment(group)]
    if _is_spot(group):
        return [{_MARKET: {"MarketType": "spot"}}]
    preference = said.get("CapacityReservationPreference", "default")
    reserved = {_RESERVATION: {"CapacityReservationPreference": _ONLY} | target}
    if preference == _ONLY or (preference == "capacity-reservations-first" and blocks):
        return [reserved]
    if preference == "capacity-reservations-first":
        return [reserved, _UNRESERVED]
    return [_UNRESERVED] if preference == "none" else [{}]


def _target(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return a group's target in the words of launch data, which names one reservation or one group of them."""
    for ours, theirs in (
        ("CapacityReservationIds", "CapacityReservationId"),
        ("CapacityReservationResourceGroupArns", "CapacityReservationResourceGroupArn"),
    ):
        if said.get(ours):
            return {"CapacityReservationTarget": {theirs: said[ours][0]}}
    return {}


def _segment_place(kind: str, target: Mapping[str, Any]) -> dict[str, Any]:
    """Return the launch data of one capacity type; segments go before what the launch templates say."""
    if kind == "on-demand":
        return {_MARKET: None, **_UNRESERVED}
    reserved = {"CapacityReservationPreference": _ONLY, **target}
    if kind == "on-demand-capacity-reservation":
        return {_MARKET: None, _RESERVATION: reserved}
    return {_MARKET: {"MarketType": kind}, _RESERVATION: reserved}


def _fitting(templates: Sequence[LaunchTemplate], place: Mapping[str, Any]) -> Sequence[LaunchTemplate]:
    """Return the templates whose types are sold in the way of a capacity type, or all if none is.

    The types of a group need not all suit each capacity type: AWS's example has m5.24xlarge, of which there are no
    Capacity Blocks, beside p5.48xlarge.
    """
    market = (place[_MARKET] or {}).get("MarketType", "on-demand")
    return [chosen for chosen in templates if market in _usage_classes(chosen, unknown=market)] or templates


def _usage_classes(chosen: LaunchTemplate, *, unknown: str) -> Sequence[str]:
    facts = INSTANCE_TYPES.get(chosen.data.get("InstanceType", ""), {})
    classes: Sequence[str] = facts.get("SupportedUsageClasses", [unknown])
    return classes


def _is_spot(group: Any) -> bool:
    """Tell whether a mixed group is all Spot; a share of each is refused here rather than half done."""
    said = distribution(group)
    percentage = int(said.get("OnDemandPercentageAboveBaseCapacity", 100))
    if percentage not in {0, 100} or (int(said.get("OnDemandBaseCapacity") or 0) and not percentage):
        raise NotImplementedError("a share of Spot and a share of On-Demand in one Auto Scaling group")
    return not percentage
