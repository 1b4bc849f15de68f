"""What an escape hatch can make of a template that AWS accepts, and then bills or stops without a message.

What AWS refuses has no rule here: the deployment or the first launch fails, and says why. What only the deployment
knows breaks no rule.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cdk_training_cluster.validation.templates.reading import LAUNCH, RESERVATION, TARGET, Resource, Template
from cdk_training_cluster.validation.templates.texts import Finding

_Find: TypeAlias = Callable[[Template], Iterator[Finding]]
_Breaks: TypeAlias = Callable[[Resource], bool]

# What CloudFormation's quota calls 1 MB: "Template may not exceed 1000000 bytes in size."
_MAX_BYTES = 1_000_000

_PREFERENCE = "Properties.CapacityReservationSpecification.CapacityReservationPreference"
_CRITERIA = "Properties.InstanceMatchCriteria"
_UPDATE = "UpdatePolicy.AutoScalingScheduledAction.IgnoreUnmodifiedGroupSizeProperties"


def _is_conditional(value: object) -> bool:
    return "Fn::If" in str(value)


def _number(value: object) -> int | None:
    """Return a whole number that is known, or None; templates spell some as text."""
    try:
        return int(value) if isinstance(value, str | int) else None
    except ValueError:
        return None


_DOCS = "https://docs.aws.amazon.com"
_EC2_GUIDE = f"{_DOCS}/AWSEC2/latest/UserGuide"
_CLOUDFORMATION = f"{_DOCS}/AWSCloudFormation/latest"
_REFERENCE = f"{_CLOUDFORMATION}/TemplateReference"


@dataclass(frozen=True, kw_only=True)
class TemplateRule:
    """One thing that a template should not say.

    Attributes:
        id: The rule's name; a finding is acknowledged as `cdk-training-cluster::<id>`.
        source: Where AWS documents it.
        description: What must be, in the words of the template, and what happens otherwise.
        fix: How to mend it.
        find: Yields each place that breaks the rule. What only the deployment knows breaks none.
        severity: Whether a finding ends the synth, or is only reported. Default: - it ends the synth.
    """

    id: str
    source: str
    description: str
    fix: str
    find: _Find
    severity: Literal["error", "warning"] = "error"


RULES: list[TemplateRule] = []
"""All rules, in the order in which findings are reported."""


def template_rule(
    *, id: str, source: str, description: str, fix: str, severity: Literal["error", "warning"] = "error"
) -> Callable[[_Find], _Find]:
    """Add a function to the rules, as the `find` of one.

    Args:
        id: The rule's name.
        source: Where AWS documents it.
        description: What must be, in the words of the template, and what happens otherwise.
        fix: How to mend it.
        severity: Whether a finding ends the synth, or is only reported. Default: - it ends the synth.
    """

    def add(find: _Find) -> _Find:
        RULES.append(
            TemplateRule(id=id, source=source, description=description, fix=fix, find=find, severity=severity)
        )
        return find

    return add


def resource_rule(
    *kinds: str, path: str, id: str, source: str, description: str, fix: str
) -> Callable[[_Breaks], _Breaks]:
    """Add a rule about a property of each resource of some types: the function tells whether one breaks it.

    Args:
        kinds: The types of the resources.
        path: The property.
        id: The rule's name.
        source: Where AWS documents it.
        description: What must be, in the words of the template, and what happens otherwise.
        fix: How to mend it.
    """

    def add(breaks: _Breaks) -> _Breaks:
        @template_rule(id=id, source=source, description=description, fix=fix)
        def _find(template: Template) -> Iterator[Finding]:
            return (each.at(path) for each in template.of_type(*kinds) if breaks(each))

        return breaks

    return add


@template_rule(
    id="groupSize",
    source=f"{_REFERENCE}/aws-resource-autoscaling-autoscalinggroup.html",
    description=(
        "MinSize and DesiredCapacity of a group must not be above 0: the deployment would launch and bill nodes, "
        "even while the cluster is stopped, and be rolled back where EC2 has no capacity"
    ),
    fix="Leave both alone: the power function brings the group to its size afterwards",
)
def _size(template: Template) -> Iterator[Finding]:
    for group in template.groups:
        for path in ("Properties.MinSize", "Properties.DesiredCapacity"):
            if (_number(group.get(path)) or 0) > 0:
                yield group.at(path)


@template_rule(
    id="groupUpdatePolicy",
    source=f"{_CLOUDFORMATION}/UserGuide/aws-attribute-updatepolicy.html",
    description=(
        "UpdatePolicy of a group must have AutoScalingScheduledAction.IgnoreUnmodifiedGroupSizeProperties true: "
        "without it every deployment that changes the group sets its sizes anew, and stops or starts nodes"
    ),
    fix="Leave the UpdatePolicy as the library makes it",
)
def _update_policy(template: Template) -> Iterator[Finding]:
    return (group.at(_UPDATE) for group in template.groups if str(group.get(_UPDATE)).lower() in {"none", "false"})


@template_rule(
    id="fleetTarget",
    source=f"{_REFERENCE}/aws-resource-ec2-spotfleet.html",
    description=(
        "TargetCapacity of a Spot Fleet must be 0: a deployment would launch that many, and every later one that "
        "changes the fleet would do so again, even while the cluster is stopped"
    ),
    fix="Leave TargetCapacity at 0: the power function sets it to the node group's count",
)
def _fleet_target(template: Template) -> Iterator[Finding]:
    path = "Properties.SpotFleetRequestConfigData.TargetCapacity"
    return (fleet.at(path) for fleet in template.fleets if _number(fleet.get(path)) not in {None, 0})


@template_rule(
    id="warmPoolSize",
    source=f"{_DOCS}/autoscaling/ec2/APIReference/API_PutWarmPool.html",
    description=(
        "A warm pool must have a MaxGroupPreparedCapacity: without it Auto Scaling launches as many nodes as "
        "MaxSize allows, at once"
    ),
    fix="Give MaxGroupPreparedCapacity, as WarmPool(size=…) does",
)
def _warm_pool_size(template: Template) -> Iterator[Finding]:
    path = "Properties.MaxGroupPreparedCapacity"
    for pool in template.of_type("AWS::AutoScaling::WarmPool"):
        kept_for = template.referred(
            pool.get("Properties.AutoScalingGroupName"), "AWS::AutoScaling::AutoScalingGroup"
        )
        if any(group in template.groups for group in kept_for) and str(pool.get(path)) in {"None", "-1"}:
            yield pool.at(path)


@template_rule(
    id="reservationFallback",
    source=f"{_DOCS}/autoscaling/ec2/userguide/target-capacity-reservations.html",
    description=(
        "CapacityReservationPreference must be capacity-reservations-only where a CapacityReservationTarget is "
        "named: any other silently launches On-Demand Instances, which are billed beside the reservation"
    ),
    fix="Set CapacityReservationPreference to capacity-reservations-only",
)
def _fallback(template: Template) -> Iterator[Finding]:
    segments = "Properties.MixedInstancesPolicy.InstancesDistribution.DistributionSegments"
    for group in template.groups:
        preference, target = group.get(_PREFERENCE), group.get(TARGET)
        # Segments say themselves when On-Demand Instances are launched, and the market of a Capacity Block has none.
        markets = [
            each.get(f"{LAUNCH}.InstanceMarketOptions.MarketType") for each in template.launch_templates(group)
        ]
        if (
            (preference is None or isinstance(preference, str))
            and preference not in {"capacity-reservations-only", "none"}
            and target is not None
            and not _is_conditional(target)
            and group.get(segments) is None
            and "capacity-block" not in markets
        ):
            yield group.at(_PREFERENCE)


@template_rule(
    id="reservationUntargeted",
    source=f"{_EC2_GUIDE}/capacity-reservations-pricing-billing.html",
    description=(
        "A reservation of a node group with InstanceMatchCriteria targeted must be named by an Auto Scaling "
        "group or a launch template: otherwise it is billed unused, and the nodes run On-Demand, billed beside it"
    ),
    fix=(
        "Name it in CapacityReservationIds of the group, beside CapacityReservationPreference "
        "capacity-reservations-only, or take the AWS::EC2::CapacityReservation away"
    ),
)
def _untargeted(template: Template) -> Iterator[Finding]:
    launching = template.of_type(
        "AWS::AutoScaling::AutoScalingGroup", "AWS::EC2::LaunchTemplate", "AWS::CloudFormation::Stack"
    )
    naming = [template.outputs, *(each.get("Properties") for each in launching)]
    used = template.referred(naming, RESERVATION)
    for reservation in template.made(RESERVATION):
        if reservation.get(_CRITERIA) == "targeted" and reservation not in used:
            yield reservation.at(_CRITERIA)


@template_rule(
    id="reservationUnusable",
    source=f"{_EC2_GUIDE}/capacity-reservations-launch.html",
    description=(
        "AvailabilityZone, InstanceType, Tenancy and PlacementGroupArn of a reservation must be those of the "
        "nodes that its group launches: otherwise it is billed, and no node can be launched into it"
    ),
    fix="Leave the reservation and what its group launches as the library makes them",
)
def _unusable(template: Template) -> Iterator[Finding]:
    for group, reservation in template.reserved():
        for name, values in _launched(template, group).items():
            path = f"Properties.{name}"
            reserved = reservation.get(path) or ("default" if name == "Tenancy" else None)
            if values and all(isinstance(one, str) for one in (reserved, *values)) and reserved not in values:
                yield reservation.at(path)
        bound = _placement_names(template, reservation.get("Properties.PlacementGroupArn"))
        named = _placement_names(template, template.placement(group))
        if bound and named and not bound & named:
            yield reservation.at("Properties.PlacementGroupArn")


@template_rule(
    id="reservationCount",
    source=f"{_EC2_GUIDE}/capacity-reservations-pricing-billing.html",
    description=(
        "InstanceCount of a reservation must be the MaxSize of all groups together that launch into it: of fewer "
        "instances some nodes launch and are billed while the group is never whole, and more are billed unused"
    ),
    fix="Leave InstanceCount as the library makes it, and set the node group's count",
)
def _reserved_count(template: Template) -> Iterator[Finding]:
    path = "Properties.InstanceCount"
    for reservation in template.of_type(RESERVATION):
        sharing = [group for group, each in template.reserved() if each is reservation]
        # A group with several things to launch into needs only a part of each.
        alone = all(len(group.items(f"{TARGET}.CapacityReservationIds")) == 1 for group in sharing)
        sizes = [_number(group.get("Properties.MaxSize")) for group in sharing]
        known = [size for size in sizes if size is not None]
        count = _number(reservation.get(path))
        if sharing and alone and len(known) == len(sizes) and count not in {None, sum(known)}:
            yield reservation.at(path)


@template_rule(
    id="reservationOpen",
    source=f"{_DOCS}/AWSEC2/latest/APIReference/API_CreateCapacityReservation.html",
    description=(
        "InstanceMatchCriteria of a reservation that a group launches into should be targeted: an open one, "
        "which is the default, is taken by any other instance of the account that fits as well"
    ),
    fix="Set InstanceMatchCriteria to targeted",
    severity="warning",
)
def _open(template: Template) -> Iterator[Finding]:
    for _, reservation in template.reserved():
        # Where nothing is said, open is the default.
        if reservation.get(_CRITERIA) in (None, "open"):
            yield reservation.at(_CRITERIA)


@template_rule(
    id="reservationNoPlacementGroup",
    source=f"{_EC2_GUIDE}/cr-cpg.html",
    description=(
        "A reservation should be made in the placement group that its group launches into (PlacementGroupArn): "
        "otherwise EC2 may find too little of it close together, or launch a part of the nodes"
    ),
    fix="Leave PlacementGroupArn as the library makes it, or use Placement.NONE",
    severity="warning",
)
def _outside(template: Template) -> Iterator[Finding]:
    path = "Properties.PlacementGroupArn"
    for group, reservation in template.reserved():
        placement = template.placement(group)
        if placement is not None and not _is_conditional(placement) and reservation.get(path) is None:
            yield reservation.at(path)


def _launched(template: Template, group: Resource) -> Mapping[str, Sequence[object]]:
    """Return what the nodes of a group may have, by the property of a reservation; nothing if not known."""
    launches = template.launch_templates(group)
    ids = group.items("Properties.VPCZoneIdentifier")
    subnets = template.referred(ids, "AWS::EC2::Subnet")
    is_mixed = group.get("Properties.MixedInstancesPolicy") is not None
    return {
        "AvailabilityZone": (
            [each.get("Properties.AvailabilityZone") for each in subnets]
            if len(subnets) == len(ids) > 0
            else group.items("Properties.AvailabilityZones")
        ),
        "InstanceType": [] if is_mixed else [each.get(f"{LAUNCH}.InstanceType") for each in launches],
        "Tenancy": [each.get(f"{LAUNCH}.Placement.Tenancy") or "default" for each in launches],
    }


def _placement_names(template: Template, value: object) -> set[str]:
    """Return by what a placement group is known, or nothing if that is not certain."""
    made = template.referred(value, "AWS::EC2::PlacementGroup")
    names = [each.get("Properties.GroupName") for each in made]
    if isinstance(value, str):
        return {value.rpartition("/")[2]}
    if not all(name is None or isinstance(name, str) for name in names):
        return set()
    return {each.logical_id for each in made} | {str(name) for name in names if name is not None}


# AWS refuses it, but only once the foundation is deployed and its file system billed.
@template_rule(
    id="templateSize",
    source=f"{_CLOUDFORMATION}/UserGuide/cloudformation-limits.html",
    description=(
        "The template of a stack with node groups must not be larger than 1 MB (1,000,000 bytes): CloudFormation "
        "takes no larger one"
    ),
    fix=(
        "Give the stack suppress_template_indentation=True, use fewer node groups in one cluster, or fewer instance "
        "types in each, or make a second cluster in a stack of its own"
    ),
)
def _file_size(template: Template) -> Iterator[Finding]:
    if template.size is not None and template.size > _MAX_BYTES:
        # A template has no construct of its own to be found by.
        yield [*template.groups, *template.fleets][0].at("Properties")


def broken_rules(
    definition: Mapping[str, object], rules: Sequence[TemplateRule] = RULES, *, size: int | None = None
) -> Iterator[tuple[TemplateRule, Sequence[Finding]]]:
    """Yield each rule that a template breaks, with the places where it does, in the order of the template.

    Args:
        definition: The template.
        rules: The rules to go by. Default: - all of them.
        size: How many bytes its file has. Default: - not known.
    """
    template = Template(definition, size)
    if not template.groups and not template.fleets and not template.has_orchestrator:
        return
    for rule in rules:
        found = tuple(dict.fromkeys(rule.find(template)))
        if found:
            yield rule, found
