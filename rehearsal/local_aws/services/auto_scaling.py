"""Auto Scaling groups: refusals, launches from the launch template with all it says, and their activities.

CreateAutoScalingGroup and UpdateAutoScalingGroup try the launch template out as the service does: they launch
nothing and answer with EC2's own refusal.
https://docs.aws.amazon.com/autoscaling/ec2/userguide/create-launch-template.html
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any

from moto.autoscaling.models import InstanceState, autoscaling_backends, make_int
from moto.core.exceptions import ServiceException
from moto.core.responses import ActionResult, EmptyResult
from moto.core.utils import utcnow

from rehearsal.local_aws.launch_facts import Ec2Refusal
from rehearsal.local_aws.refusal import Refusal
from rehearsal.local_aws.services import launches
from rehearsal.local_aws.services.scaling_activities import remember

GROUP_TAG = "aws:autoscaling:groupName"

# Parameters that moto's model has no place for, kept on the group as DescribeAutoScalingGroups names them.
_KEPT = (
    "AvailabilityZoneDistribution",
    "AvailabilityZoneImpairmentPolicy",
    "CapacityReservationSpecification",
    "Context",
    "DefaultInstanceWarmup",
    "DesiredCapacityType",
    "InstanceMaintenancePolicy",
    "MaxInstanceLifetime",
)


@dataclass(frozen=True)
class Purchase:
    """One way to launch instances of a group: launch data, the market, and how the service calls it."""

    data: Mapping[str, Any]
    market: str
    template_id: str
    template_name: str
    template_version: int


class LaunchedInstance(InstanceState):  # type: ignore[misc] # moto's modules are untyped here
    """A group's instance that remembers the launch template version it came from; moto shows the default."""

    def __init__(self, instance: Any, group: Any, purchase: Purchase) -> None:
        super().__init__(instance, protected_from_scale_in=group.new_instances_protected_from_scale_in)
        self._purchase = purchase

    @property
    def launch_template(self) -> dict[str, str]:
        """The template as DescribeAutoScalingGroups shows it beside the instance."""
        return {
            "LaunchTemplateId": self._purchase.template_id,
            "LaunchTemplateName": self._purchase.template_name,
            "Version": str(self._purchase.template_version),
        }


def purchases(group: Any) -> Iterator[Purchase]:
    """Yield what a group may launch, most wanted first: its template, or its mixed policy's overrides.

    A mixed group is all On-Demand or all Spot here; a share of each is refused rather than half done.
    """
    policy = group.mixed_instances_policy
    ec2 = group.ec2_backend
    if not policy:
        yield _purchase(
            ec2, {**(group.launch_template or {}), "Version": group.launch_template_version}, group, {}, None
        )
        return
    base = policy["LaunchTemplate"]["LaunchTemplateSpecification"]
    distribution = policy.get("InstancesDistribution") or {}
    percentage = int(distribution.get("OnDemandPercentageAboveBaseCapacity", 100))
    if percentage not in {0, 100} or (int(distribution.get("OnDemandBaseCapacity") or 0) and not percentage):
        raise NotImplementedError("a share of Spot and a share of On-Demand in one Auto Scaling group")
    market = None if percentage else "spot"
    for override in policy["LaunchTemplate"].get("Overrides") or [{}]:
        changes = {"InstanceType": override["InstanceType"]} if override.get("InstanceType") else {}
        yield _purchase(ec2, override.get("LaunchTemplateSpecification") or base, group, changes, market)


def _purchase(
    ec2: Any, specification: Mapping[str, Any], group: Any, changes: Mapping[str, Any], market: str | None
) -> Purchase:
    template, version = launches.launch_template_data(ec2, specification)
    data = {**version.data, **changes}
    if group.placement_group:
        data["Placement"] = {**(data.get("Placement") or {}), "GroupName": group.placement_group}
    if market:
        data["InstanceMarketOptions"] = {"MarketType": market}
    bought = str((data.get("InstanceMarketOptions") or {}).get("MarketType"))
    name = {"spot": "Spot", "capacity-block": "Capacity Block"}.get(bought, "On-Demand")
    return Purchase(data, name, template.id, template.name, version.number)


def check_group(group: Any) -> None:
    """Try the group's launches out in each of its subnets, as the service does, and launch nothing.

    Raises:
        Refusal: what the service answers, with EC2's message and error code in it.
    """
    policy = group.mixed_instances_policy
    for override in (policy or {}).get("LaunchTemplate", {}).get("Overrides") or []:
        for unknown in ("WeightedCapacity", "InstanceRequirements"):
            if override.get(unknown):
                raise NotImplementedError(f"{unknown} in a mixed instances policy")
    subnets = (group.vpc_zone_identifier or "").split(",")
    for purchase in purchases(group):
        _check_template(group, policy)
        for subnet_id in subnets:
            data = {name: value for name, value in purchase.data.items() if name != "SubnetId"}
            try:
                launches.check(group.ec2_backend, data, subnet_id or None)
            except Ec2Refusal as refusal:
                raise Refusal(
                    "ValidationError",
                    f"You must use a valid fully-formed launch template. {refusal.message} "
                    f"(EC2 error code: {refusal.code})",
                ) from refusal


def _check_template(group: Any, policy: Mapping[str, Any] | None) -> None:
    """Refuse what the service itself refuses about a launch template.

    Messages as seen in https://github.com/hashicorp/terraform-provider-aws/issues/4570 and
    https://github.com/kubernetes/kops/pull/7066.
    """
    data = group.ec2_launch_template.get_version(group.launch_template_version).data
    interfaces = data.get("NetworkInterfaces") or []
    if interfaces and (data.get("SecurityGroupIds") or data.get("SecurityGroups")):
        raise Refusal(
            "InvalidQueryParameter",
            "Invalid launch template: When a network interface is provided, the security groups must be a part of "
            "it. (EC2 error code: InvalidParameterCombination)",
        )
    if policy and data.get("InstanceMarketOptions"):
        raise Refusal(
            "InvalidQueryParameter",
            "Incompatible launch template: You cannot use a launch template that is set to request Spot Instances "
            "(InstanceMarketOptions) when you configure an Auto Scaling group with a mixed instances policy. Add a "
            "different launch template to the group and try again.",
        )
    if group.vpc_zone_identifier and any(interface.get("SubnetId") for interface in interfaces):
        raise Refusal(
            "ValidationError",
            "You must use a valid fully-formed launch template. The parameter SubnetId of a network interface may "
            "not be specified: the group's VPCZoneIdentifier decides. (EC2 error code: InvalidParameterCombination)",
        )
    own = (data.get("Placement") or {}).get("GroupName")
    if own and group.placement_group:
        raise Refusal(
            "InvalidQueryParameter",
            f"Incompatible launch template: The launch template names the placement group '{own}' and the Auto "
            f"Scaling group names '{group.placement_group}'. Name it in one of them and try again.",
        )


def _check_sizes(minimum: int, maximum: int, desired: int | None) -> None:
    if minimum > maximum:
        raise Refusal(
            "ValidationError",
            f"Max bound, {maximum}, must be greater than or equal to min bound, {minimum}",
        )
    if desired is not None and not minimum <= desired <= maximum:
        raise Refusal(
            "ValidationError",
            f"Desired capacity:{desired} must be between the specified min size:{minimum} and max size:{maximum}",
        )


def create_auto_scaling_group(response: Any) -> ActionResult:
    """Carry out CreateAutoScalingGroup: make the group empty, try its launches out, then fill it."""
    params, backend = response._get_params(), response.autoscaling_backend
    name = params["AutoScalingGroupName"]
    if name in backend.autoscaling_groups:
        raise Refusal("AlreadyExists", f"AutoScalingGroup by this name already exists - A group named {name} exists")
    desired = make_int(params.get("DesiredCapacity"))
    _check_sizes(int(params["MinSize"]), int(params["MaxSize"]), desired)
    group = backend.create_auto_scaling_group(
        name=name,
        availability_zones=params.get("AvailabilityZones", []),
        desired_capacity=0,
        max_size=params["MaxSize"],
        min_size=params["MinSize"],
        instance_id=params.get("InstanceId"),
        launch_config_name=params.get("LaunchConfigurationName"),
        launch_template=params.get("LaunchTemplate", {}),
        mixed_instances_policy=params.get("MixedInstancesPolicy"),
        vpc_zone_identifier=params.get("VPCZoneIdentifier"),
        default_cooldown=params.get("DefaultCooldown"),
        health_check_period=params.get("HealthCheckGracePeriod"),
        health_check_type=params.get("HealthCheckType"),
        load_balancers=params.get("LoadBalancerNames", []),
        target_group_arns=params.get("TargetGroupARNs", []),
        placement_group=params.get("PlacementGroup"),
        termination_policies=params.get("TerminationPolicies", []),
        tags=params.get("Tags", []),
        capacity_rebalance=params.get("CapacityRebalance", False),
        new_instances_protected_from_scale_in=params.get("NewInstancesProtectedFromScaleIn", False),
    )
    _keep(group, params)
    try:
        check_group(group)
    except Exception:  # whatever it is: a group that is refused is not there
        del backend.autoscaling_groups[name]
        raise
    group.set_desired_capacity(desired)
    return EmptyResult()


def update_auto_scaling_group(response: Any) -> ActionResult:
    """Carry out UpdateAutoScalingGroup: what is not said stays; a template that would not launch is refused."""
    params, group = response._get_params(), _group(response)
    minimum = int(params.get("MinSize", group.min_size))
    maximum = int(params.get("MaxSize", group.max_size))
    desired = make_int(params.get("DesiredCapacity"))
    _check_sizes(minimum, maximum, desired)
    before = dict(vars(group))
    try:
        group._set_azs_and_vpcs(params.get("AvailabilityZones", []), params.get("VPCZoneIdentifier"), update=True)
        if params.get("LaunchTemplate") or params.get("MixedInstancesPolicy"):
            group.mixed_instances_policy = params.get("MixedInstancesPolicy")
            group._set_launch_configuration(None, params.get("LaunchTemplate"), group.mixed_instances_policy)
        group.placement_group = params.get("PlacementGroup", group.placement_group) or None
        _keep(group, params)
        check_group(group)
    except Exception:  # whatever it is: a change that is refused changes nothing
        vars(group).clear()
        vars(group).update(before)
        raise
    group.min_size, group.max_size = minimum, maximum
    for parameter, attribute in (
        ("DefaultCooldown", "default_cooldown"),
        ("HealthCheckGracePeriod", "health_check_grace_period"),
        ("HealthCheckType", "health_check_type"),
        ("TerminationPolicies", "termination_policies"),
        ("CapacityRebalance", "capacity_rebalance"),
        ("NewInstancesProtectedFromScaleIn", "new_instances_protected_from_scale_in"),
    ):
        if parameter in params:
            setattr(group, attribute, params[parameter])
    wanted = group.desired_capacity if desired is None else desired
    group.set_desired_capacity(min(max(wanted, minimum), maximum))
    return EmptyResult()


def _keep(group: Any, params: Mapping[str, Any]) -> None:
    for name in _KEPT:
        if name in params:
            setattr(group, name, params[name])


def _group(response: Any) -> Any:
    name = response._get_param("AutoScalingGroupName")
    group = response.autoscaling_backend.autoscaling_groups.get(name)
    if group is None:
        raise Refusal("ValidationError", f"AutoScalingGroup name not found - no such group: {name}")
    return group


def by_names_or_filters(original: Callable[[Any], ActionResult]) -> Callable[[Any], ActionResult]:
    """Return DescribeAutoScalingGroups so that it refuses names and filters together, as the service does.

    Seen in the field: https://github.com/topfreegames/kubernetes-kops-operator/pull/39.
    """

    @wraps(original)
    def describe_auto_scaling_groups(response: Any) -> ActionResult:
        if response._get_param("AutoScalingGroupNames") and response._get_param("Filters"):
            raise Refusal("ValidationError", "AutoScalingGroupNames and Filters cannot be used together")
        return original(response)

    return describe_auto_scaling_groups


def delete_auto_scaling_group(response: Any) -> ActionResult:
    """Carry out DeleteAutoScalingGroup, which needs ForceDelete while instances are in the group."""
    group = _group(response)
    if group.instance_states and not response._get_bool_param("ForceDelete", False):
        raise Refusal(
            "ResourceInUse",
            "You cannot delete an AutoScalingGroup while there are instances or pending Spot instance request(s) "
            "still in the group.",
        )
    group.min_size = 0
    for state in group.instance_states:
        state.protected_from_scale_in = False
    response.autoscaling_backend.delete_auto_scaling_group(group.name)
    return EmptyResult()


def set_desired_capacity_action(response: Any) -> ActionResult:
    """Carry out SetDesiredCapacity within the group's sizes."""
    group, wanted = _group(response), response._get_int_param("DesiredCapacity")
    for bound, word, outside in (
        (group.max_size, "above max", wanted > group.max_size),
        (group.min_size, "below min", wanted < group.min_size),
    ):
        if outside:
            raise Refusal(
                "ValidationError",
                f"New SetDesiredCapacity value {wanted} is {word} value {bound} for the AutoScalingGroup.",
            )
    group.set_desired_capacity(wanted)
    return EmptyResult()


def set_desired_capacity(group: Any, new_capacity: int | None) -> None:
    """Bring a group to a size; replaces `FakeAutoScalingGroup.set_desired_capacity`."""
    group.desired_capacity = group.min_size if new_capacity is None else new_capacity
    reconcile(group)


def launch_more(group: Any, count: int, _propagated_tags: Mapping[str, str] | None = None) -> None:
    """Launch `count` instances; replaces `FakeAutoScalingGroup.replace_autoscaling_group_instances`."""
    if any(process["ProcessName"] == "Launch" for process in group.suspended_processes):
        return
    propagated = {tag["Key"]: tag["Value"] for tag in group.tags if tag.get("PropagateAtLaunch")}
    cause = (
        f"At {utcnow():%Y-%m-%dT%H:%M:%SZ} an instance was started in response to a difference between desired "
        f"and actual capacity, increasing the capacity from {len(group.instance_states)} to {group.desired_capacity}."
    )
    subnet_id = (group.vpc_zone_identifier or "").split(",")[0] or None
    for purchase in purchases(group):
        tags = {
            **propagated,
            GROUP_TAG: group.name,
            "aws:ec2launchtemplate:id": purchase.template_id,
            "aws:ec2launchtemplate:version": str(purchase.template_version),
        }
        request = launches.LaunchRequest(data=purchase.data, subnet_id=subnet_id, count=count, tags=tags)
        launched: list[Any] = []
        try:
            launched, failure = launches.launch(group.ec2_backend, request)
        except ServiceException as refusal:
            failure = refusal
        for instance in launched:
            instance.autoscaling_group = group
            group.instance_states.append(LaunchedInstance(instance, group, purchase))
            remember(group, f"Launching a new EC2 instance: {instance.id}", cause, "Successful")
        count -= len(launched)
        if failure is not None:
            said = _said(purchase, failure)
            remember(group, f"Launching a new EC2 instance.  Status Reason: {said}", cause, "Failed", said)
        if count == 0:
            return


def _said(purchase: Purchase, failure: ServiceException) -> str:
    """Say why a launch failed as the service's StatusMessage does.

    https://docs.aws.amazon.com/autoscaling/ec2/userguide/ts-as-instancelaunchfailure.html
    """
    if failure.code == "InsufficientInstanceCapacity":
        return (
            f"Could not launch {purchase.market} Instances. {failure.code} - {failure.message} Launching EC2 "
            "instance failed."
        )
    return f"{failure.message} Launching EC2 instance failed."


def reconcile(group: Any) -> None:
    """Launch or terminate until the group has its desired capacity, or EC2 has no more to give."""
    missing = (group.desired_capacity or 0) - len(group.active_instances())
    if missing > 0:
        launch_more(group, missing)
    elif missing < 0:
        spare = [state for state in group.active_instances() if not state.protected_from_scale_in][:-missing]
        if spare:
            group.ec2_backend.terminate_instances([state.instance.id for state in spare])
        for state in spare:
            group.instance_states.remove(state)
            cause = (
                f"At {utcnow():%Y-%m-%dT%H:%M:%SZ} an instance was taken out of service in response to a difference "
                f"between desired and actual capacity, shrinking the capacity to {group.desired_capacity}."
            )
            remember(group, f"Terminating EC2 instance: {state.instance.id}", cause, "Successful")
    if group.name in group.autoscaling_backend.autoscaling_groups:
        group.autoscaling_backend.update_attached_elbs(group.name)
        group.autoscaling_backend.update_attached_target_groups(group.name)


def reconcile_all() -> None:
    """Let every group that is short try again, as Auto Scaling does by itself."""
    for _, _, backend in list(autoscaling_backends.iter_backends()):
        for group in list(backend.autoscaling_groups.values()):
            reconcile(group)
