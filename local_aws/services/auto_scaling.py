"""Auto Scaling groups: refusals, launches from the launch template with all it says, and their activities.

CreateAutoScalingGroup and UpdateAutoScalingGroup try the launch template out as the service does: they launch
nothing and answer with EC2's own refusal.
https://docs.aws.amazon.com/autoscaling/ec2/userguide/create-launch-template.html
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any

from moto.autoscaling.models import autoscaling_backends, make_int
from moto.core.exceptions import ServiceException
from moto.core.responses import ActionResult, EmptyResult
from moto.core.utils import utcnow

from local_aws.refusal import Refusal
from local_aws.services import launches, lifecycle_hooks, warm_pools
from local_aws.services.group_rules import check_group, check_sizes, group_named
from local_aws.services.purchases import LaunchedInstance, Purchase, dispensable_first, purchases
from local_aws.services.scaling_activities import remember

GROUP_TAG = "aws:autoscaling:groupName"

# What CloudFormation alone can write on a group: requests with such keys are refused. By region and name.
_stack_tags: dict[tuple[str, str], list[dict[str, Any]]] = {}

# Parameters that moto's model has no place for, kept on the group as DescribeAutoScalingGroups names them.
_KEPT = ("CapacityReservationSpecification", "DefaultInstanceWarmup", "DesiredCapacityType")

_ROLES = {"autoscaling.amazonaws.com": "AWSServiceRoleForAutoScaling"}


@contextmanager
def tagged_by_stack(region: str, name: str, tags: Mapping[str, str]) -> Iterator[None]:
    """Put tags of CloudFormation's own on a group that it makes meanwhile, and on all of the group's instances.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-autoscaling-autoscalinggroup-tagproperty.html
    """
    own = {"ResourceId": name, "ResourceType": "auto-scaling-group", "PropagateAtLaunch": True}
    _stack_tags[region, name] = [{**own, "Key": key, "Value": value} for key, value in tags.items()]
    try:
        yield
    finally:
        del _stack_tags[region, name]


def create_auto_scaling_group(response: Any) -> ActionResult:
    """Answer CreateAutoScalingGroup: make the group empty, try its launches out, then fill it."""
    params, backend = response._get_params(), response.autoscaling_backend
    name = params["AutoScalingGroupName"]
    if name in backend.autoscaling_groups:
        raise Refusal("AlreadyExists", f"AutoScalingGroup by this name already exists - A group named {name} exists")
    desired = make_int(params.get("DesiredCapacity"))
    check_sizes(int(params["MinSize"]), int(params["MaxSize"]), desired)
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
        tags=[*params.get("Tags", []), *_stack_tags.get((backend.region_name, name), [])],
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
    """Answer UpdateAutoScalingGroup: what is not said stays; a template that would not launch is refused."""
    params, group = response._get_params(), group_named(response)
    minimum = int(params.get("MinSize", group.min_size))
    maximum = int(params.get("MaxSize", group.max_size))
    desired = make_int(params.get("DesiredCapacity"))
    check_sizes(minimum, maximum, desired)
    before = dict(vars(group))
    try:
        group._set_azs_and_vpcs(params.get("AvailabilityZones", []), params.get("VPCZoneIdentifier"), update=True)
        if params.get("LaunchTemplate") or params.get("MixedInstancesPolicy"):
            group.mixed_instances_policy = params.get("MixedInstancesPolicy")
            group._set_launch_configuration(None, params.get("LaunchTemplate"), group.mixed_instances_policy)
        group.placement_group = params.get("PlacementGroup", group.placement_group) or None
        _keep(group, params)
        check_group(group)
        if group.warm_pool:
            warm_pools.check(group)
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
    """Answer DeleteAutoScalingGroup, which needs ForceDelete while instances are in the group."""
    group = group_named(response)
    occupied = group.instance_states or warm_pools.instances_of(group)
    if occupied and not response._get_bool_param("ForceDelete", False):
        raise Refusal(
            "ResourceInUse",
            "You cannot delete an AutoScalingGroup while there are instances or pending Spot instance request(s) "
            "still in the group.",
        )
    warm_pools.dissolve(group)
    group.min_size = 0
    for state in group.instance_states:
        state.protected_from_scale_in = False
    response.autoscaling_backend.delete_auto_scaling_group(group.name)
    return EmptyResult()


def set_desired_capacity_action(response: Any) -> ActionResult:
    """Answer SetDesiredCapacity within the group's sizes."""
    group, wanted = group_named(response), response._get_int_param("DesiredCapacity")
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


def launch_more(
    group: Any,
    count: int,
    _propagated_tags: Mapping[str, str] | None = None,
    *,
    join: Callable[[LaunchedInstance], None] | None = None,
) -> None:
    """Launch `count` instances; replaces `FakeAutoScalingGroup.replace_autoscaling_group_instances`.

    Args:
        group: The group.
        count: How many.
        join: Takes each in. Default: - it joins the group.
    """
    if _is_suspended(group, "Launch"):
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
        request = launches.LaunchRequest(
            data=purchase.data, subnet_id=subnet_id, count=count, tags=tags, roles=_ROLES
        )
        launched: list[Any] = []
        try:
            launched, failure = launches.launch(group.ec2_backend, request)
        except ServiceException as refusal:
            failure = refusal
        for instance in launched:
            instance.autoscaling_group = group
            (join or partial(warm_pools.join, group))(LaunchedInstance(instance, group, purchase))
            remember(group, f"Launching a new EC2 instance: {instance.id}", cause, "Successful")
        count -= len(launched)
        if failure is not None and not purchase.falls_back:
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
    members = [state for state in group.instance_states if _counts(state)]
    missing = (group.desired_capacity or 0) - len(members)
    if missing > 0 and not _is_suspended(group, "Launch"):
        missing -= warm_pools.enter(group, missing)
        launch_more(group, missing)
    elif missing < 0 and not _is_suspended(group, "Terminate"):
        spare = dispensable_first(group, members)
        spare = [state for state in spare if not state.protected_from_scale_in][:-missing]
        spare = warm_pools.take_back(group, spare)
        lifecycle_hooks.terminate(group, spare)
        for state in spare:
            cause = (
                f"At {utcnow():%Y-%m-%dT%H:%M:%SZ} an instance was taken out of service in response to a difference "
                f"between desired and actual capacity, shrinking the capacity to {group.desired_capacity}."
            )
            remember(group, f"Terminating EC2 instance: {state.instance.id}", cause, "Successful")
    warm_pools.refill(group, launch_more)
    if group.name in group.autoscaling_backend.autoscaling_groups:
        group.autoscaling_backend.update_attached_elbs(group.name)
        group.autoscaling_backend.update_attached_target_groups(group.name)


def _is_suspended(group: Any, process: str) -> bool:
    """Tell whether a process of a group does not run: nodes come, from its warm pool too, by Launch alone."""
    return any(one["ProcessName"] == process for one in group.suspended_processes)


def _counts(state: Any) -> bool:
    """Tell whether an instance counts towards the desired capacity: in service, or on its way there."""
    return state.lifecycle_state == "InService" or str(state.lifecycle_state).startswith("Pending")


def reconcile_all() -> None:
    """Let every group that is short try again, as Auto Scaling does by itself."""
    for _, _, backend in list(autoscaling_backends.iter_backends()):
        for group in list(backend.autoscaling_groups.values()):
            reconcile(group)
