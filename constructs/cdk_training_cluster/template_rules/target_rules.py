"""What a reservation of the template, and the groups that launch into it, must say of each other."""

from collections.abc import Iterator, Sequence

from cdk_training_cluster.template_rules.rule import EC2_API, EC2_GUIDE, TemplateRule
from cdk_training_cluster.template_rules.template import (
    AUTO_SCALING_GROUP,
    LAUNCH_TEMPLATE,
    RESOURCE_GROUP,
    Finding,
    Group,
    Template,
)
from cdk_training_cluster.template_rules.values import UNKNOWN, is_intrinsic, last_of_arn, target_of, text

_TARGET = "LaunchTemplateData.CapacityReservationSpecification.CapacityReservationTarget"
_CRITERIA = "InstanceMatchCriteria"


def _untargeted(template: Template) -> Iterator[Finding]:
    named = tuple(_named(template))
    if any(_is_unknown(template, value) for value in named):
        return
    targets = {target_of(value) for value in named}
    for reservation in template.own_reservations:
        if reservation.get(_CRITERIA) == "targeted" and reservation.logical_id not in targets:
            yield reservation.at(_CRITERIA)


def _named(template: Template) -> Iterator[object]:
    """Yield all that names a reservation that is launched into."""
    for group in template.of_type(AUTO_SCALING_GROUP):
        yield from _listed(group.get(Group.IDS))
        for arn in _listed(group.get(Group.ARNS)):
            yield from _members(template, arn)
    for launch in template.of_type(LAUNCH_TEMPLATE):
        yield launch.get(f"{_TARGET}.CapacityReservationId")
        yield from _members(template, launch.get(f"{_TARGET}.CapacityReservationResourceGroupArn"))


def _members(template: Template, arn: object) -> Iterator[object]:
    group = template.find(arn, RESOURCE_GROUP)
    if group is None:
        yield arn
        return
    for member in _listed(group.get("Resources")):
        name = last_of_arn(member, "capacity-reservation/")
        yield member if name is None else name


def _listed(value: object) -> Sequence[object]:
    if isinstance(value, list):
        return value
    return () if value is None else (value,)


def _is_unknown(template: Template, value: object) -> bool:
    """Tell whether only the deployment knows what a value names."""
    return value is UNKNOWN or (is_intrinsic(value) and target_of(value) not in template.resources)


def _open(template: Template) -> Iterator[Finding]:
    for group in template.groups:
        for reservation in group.reservations:
            # Where nothing is said, open is the default.
            if reservation.get(_CRITERIA) in (None, "open"):
                yield reservation.at(_CRITERIA)


def _zone(template: Template) -> Iterator[Finding]:
    for group in template.groups:
        zones = group.zones
        if zones is None:
            continue
        for reservation in group.reservations:
            reserved = text(reservation.get("AvailabilityZone"))
            if reserved is not None and reserved not in zones:
                yield reservation.at("AvailabilityZone")


def _outside(template: Template) -> Iterator[Finding]:
    for group in template.groups:
        for reservation in group.reservations if any(group.placements) else ():
            if reservation.get("PlacementGroupArn") is None:
                yield reservation.at("PlacementGroupArn")


TARGET_RULES = (
    TemplateRule(
        id="reservationUntargeted",
        source=f"{EC2_GUIDE}/capacity-reservations-pricing-billing.html",
        description=(
            "A reservation of a node group with InstanceMatchCriteria targeted must be named by an Auto Scaling "
            "group or a launch template: otherwise it is billed unused, and the nodes run On-Demand, billed beside it"
        ),
        fix=(
            "Name it in CapacityReservationIds of the group, beside CapacityReservationPreference "
            "capacity-reservations-only, or take the AWS::EC2::CapacityReservation away"
        ),
        find=_untargeted,
    ),
    TemplateRule(
        id="reservationZone",
        source=f"{EC2_GUIDE}/capacity-reservations-launch.html",
        description=(
            "AvailabilityZone of a reservation must be one that its group launches in: what is reserved in a zone "
            "cannot be used in another"
        ),
        fix="Reserve in the zone of the group's subnet",
        find=_zone,
    ),
    TemplateRule(
        id="reservationOpen",
        source=f"{EC2_API}/API_CreateCapacityReservation.html",
        description=(
            "InstanceMatchCriteria of a reservation that a group launches into should be targeted: an open one, "
            "which is the default, is taken by any other instance of the account that fits as well"
        ),
        fix="Set InstanceMatchCriteria to targeted",
        find=_open,
        severity="warning",
    ),
    TemplateRule(
        id="reservationNoPlacementGroup",
        source=f"{EC2_GUIDE}/cr-cpg.html",
        description=(
            "A reservation should be made in the placement group that its group launches into (PlacementGroupArn): "
            "otherwise EC2 may find too little of it close together, or launch a part of the nodes"
        ),
        fix="Leave PlacementGroupArn as the library makes it, or use Placement.NONE",
        find=_outside,
        severity="warning",
    ),
)
