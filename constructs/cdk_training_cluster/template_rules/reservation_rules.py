"""What Capacity Reservations, and resource groups of them, ask of a group."""

from collections.abc import Iterator

from cdk_training_cluster.template_rules.rule import (
    AUTO_SCALING_API,
    AUTO_SCALING_GUIDE,
    EC2_API,
    EC2_GUIDE,
    TemplateRule,
)
from cdk_training_cluster.template_rules.template import PLACEMENT_GROUP, Finding, Resource, Template
from cdk_training_cluster.template_rules.values import is_given, items, last_of_arn, number, text, value_at


def _reservation_elsewhere(template: Template) -> Iterator[Finding]:
    for group in template.groups:
        for reservation in group.reservations:
            arn = reservation.get("PlacementGroupArn")
            bound = template.placement_group(last_of_arn(arn, "placement-group/"))
            # The first that is named is the one that nodes go into.
            for place, named in list(group.placements)[:1]:
                if bound is not None and named is not None and named != bound:
                    yield place


def _strategy(template: Template) -> Iterator[Finding]:
    for reservation in _reservations(template):
        arn = reservation.get("PlacementGroupArn")
        placement = template.find(last_of_arn(arn, "placement-group/"), PLACEMENT_GROUP)
        if placement is not None and text(placement.get("Strategy")) not in {None, "cluster"}:
            yield placement.at("Strategy")


def _reservations(template: Template) -> Iterator[Resource]:
    return (reservation for group in template.groups for reservation in group.reservations)


def _fallback(template: Template) -> Iterator[Finding]:
    for group in template.groups:
        preference = group.get(group.PREFERENCE)
        if not group.has(group.IDS) or group.market_is_block or group.may_have_segments or preference == "none":
            continue
        if preference is None or (isinstance(preference, str) and preference != "capacity-reservations-only"):
            yield group.at(group.PREFERENCE)


def _none_and_a_target(template: Template) -> Iterator[Finding]:
    for group in template.groups:
        if group.get(group.PREFERENCE) == "none" and (group.has(group.IDS) or group.has(group.ARNS)):
            yield group.at(group.PREFERENCE)


def _one_target(template: Template) -> Iterator[Finding]:
    for group in template.groups:
        if not group.may_have_segments and len(items(group.get(group.IDS))) + len(items(group.get(group.ARNS))) > 1:
            yield group.at(group.IDS if items(group.get(group.IDS)) else group.ARNS)


def _type(template: Template) -> Iterator[Finding]:
    for group in template.groups:
        if group.get(group.POLICY) is not None:
            continue
        for reservation in group.reservations:
            reserved = text(reservation.get("InstanceType"))
            for launch in group.launch_templates:
                launched = text(launch.get("LaunchTemplateData.InstanceType"))
                if reserved is not None and launched is not None and launched != reserved:
                    yield reservation.at("InstanceType")


def _tenancy(template: Template) -> Iterator[Finding]:
    for group in template.groups:
        launched = [_tenancy_of(launch, "LaunchTemplateData.Placement.Tenancy") for launch in group.launch_templates]
        for reservation in group.reservations:
            reserved = _tenancy_of(reservation, "Tenancy")
            if any(reserved is not None and one is not None and one != reserved for one in launched):
                yield reservation.at("Tenancy")


def _tenancy_of(resource: Resource, path: str) -> str | None:
    return "default" if resource.get(path) is None else text(resource.get(path))


def _end(template: Template) -> Iterator[Finding]:
    for reservation in _reservations(template):
        kind, given = text(reservation.get("EndDateType")), reservation.get("EndDate")
        if (kind == "limited" and given is None) or (kind == "unlimited" and is_given(given)):
            yield reservation.at("EndDate")


def _count(template: Template) -> Iterator[Finding]:
    sizes: dict[str, int] = {}
    made: dict[str, Resource] = {}
    for group in template.groups:
        for reservation in () if group.may_have_segments else group.reservations:
            made[reservation.logical_id] = reservation
            size = max(number(group.get(name)) or 1 for name in ("MaxSize", "DesiredCapacity"))
            sizes[reservation.logical_id] = sizes.get(reservation.logical_id, 0) + size
    for name, reservation in made.items():
        reserved = number(reservation.get("InstanceCount"))
        if reserved is not None and sizes[name] > reserved:
            yield reservation.at("InstanceCount")


def _resource_group(template: Template) -> Iterator[Finding]:
    for group in template.groups:
        for found in group.resource_groups:
            configuration = found.get("Configuration")
            if not _holds_reservations(configuration):
                yield found.at("Configuration")


def _holds_reservations(configuration: object) -> bool:
    if not isinstance(configuration, list):
        return configuration is not None
    types = [value_at(entry, "Type") for entry in configuration]
    if not all(isinstance(kind, str) for kind in types):
        return True  # not known before the deployment
    return "AWS::EC2::CapacityReservationPool" in types and any(
        value_at(entry, "Type") == "AWS::ResourceGroups::Generic" and _takes_reservations(entry)
        for entry in configuration
    )


def _takes_reservations(entry: object) -> bool:
    parameters = value_at(entry, "Parameters")
    if not isinstance(parameters, list):
        return parameters is not None
    for parameter in parameters:
        values = value_at(parameter, "Values")
        if value_at(parameter, "Name") == "allowed-resource-types":
            return not isinstance(values, list) or "AWS::EC2::CapacityReservation" in values
    return False


_TARGETS = f"{AUTO_SCALING_GUIDE}/target-capacity-reservations.html"
_RESERVED = f"{EC2_GUIDE}/capacity-reservations-using.html"

RESERVATION_RULES = (
    TemplateRule(
        id="reservationPlacementGroup",
        source=f"{EC2_GUIDE}/cr-cpg.html",
        description=(
            "The placement group that a group launches into must be the one that its reservation was made in "
            "(PlacementGroupArn): elsewhere, its capacity cannot be used"
        ),
        fix="Name the reservation's placement group, or none",
        find=_reservation_elsewhere,
    ),
    TemplateRule(
        id="reservationStrategy",
        source=f"{EC2_GUIDE}/cr-cpg.html",
        description=(
            "Strategy of the placement group that a reservation is made in (PlacementGroupArn) must be cluster: EC2 "
            "reserves in no other"
        ),
        fix="Set Strategy to cluster, or use Placement.NONE",
        find=_strategy,
    ),
    TemplateRule(
        id="reservationFallback",
        source=_TARGETS,
        description=(
            "CapacityReservationPreference must be capacity-reservations-only where CapacityReservationIds are "
            "named: any other silently launches On-Demand Instances, which are billed beside the reservation"
        ),
        fix="Set CapacityReservationPreference to capacity-reservations-only",
        find=_fallback,
    ),
    TemplateRule(
        id="reservationUnused",
        source=f"{AUTO_SCALING_API}/API_CapacityReservationSpecification.html",
        description="CapacityReservationPreference must not be none where a CapacityReservationTarget is named",
        fix="Set CapacityReservationPreference to capacity-reservations-only",
        find=_none_and_a_target,
    ),
    TemplateRule(
        id="reservationTarget",
        source=_TARGETS,
        description=(
            "CapacityReservationTarget must name a single reservation or a single resource group of reservations"
        ),
        fix="Make a node group for each reservation, or use Capacity.prioritized()",
        find=_one_target,
    ),
    TemplateRule(
        id="reservationType",
        source=_RESERVED,
        description=(
            "InstanceType of a reservation must be that of the nodes which are launched into it: only instances of "
            "the reserved type fit"
        ),
        fix="Reserve the type of the node group",
        find=_type,
    ),
    TemplateRule(
        id="reservationTenancy",
        source=_RESERVED,
        description=(
            "Tenancy of a reservation must be that of the nodes which are launched into it (Placement.Tenancy of the "
            "launch template): only instances of the reserved tenancy fit"
        ),
        fix="Leave both Tenancy and Placement.Tenancy out",
        find=_tenancy,
    ),
    TemplateRule(
        id="reservationEnd",
        source=f"{EC2_API}/API_CreateCapacityReservation.html",
        description=(
            "EndDate of a reservation must stand beside EndDateType limited, and be left out beside EndDateType "
            "unlimited"
        ),
        fix="Say when it ends with Capacity.reservation(end=…)",
        find=_end,
    ),
    TemplateRule(
        id="reservationCount",
        source=_RESERVED,
        description=(
            "InstanceCount of a reservation must be at least 1, and as many as MaxSize (or DesiredCapacity) of all "
            "groups that launch into it: the rest could never start"
        ),
        fix="Reserve as many instances as the node groups count",
        find=_count,
    ),
    TemplateRule(
        id="resourceGroupConfiguration",
        source=f"{EC2_GUIDE}/cr-groups-create.html",
        description=(
            "Configuration of a resource group of reservations must have AWS::EC2::CapacityReservationPool, and "
            "AWS::ResourceGroups::Generic with allowed-resource-types AWS::EC2::CapacityReservation"
        ),
        fix="Give both entries: without them nothing can be launched into the group",
        find=_resource_group,
    ),
)
