"""What becomes of single members of an Auto Scaling group: one that was stopped, one that is ordered to go."""

from typing import Any

from moto.autoscaling.models import TerminateInstanceActivity
from moto.core.responses import ActionResult

from local_aws.refusal import Refusal
from local_aws.services import auto_scaling, lifecycle_hooks
from local_aws.services.scaling_activities import remember

# A group that may not do one of these leaves a stopped member alone.
_REPLACING = frozenset({"HealthCheck", "ReplaceUnhealthy", "Terminate"})


def replace_stopped(instance: Any) -> None:
    """Let the group of a stopped member terminate it and launch another, as it does after its health check.

    https://docs.aws.amazon.com/autoscaling/ec2/userguide/health-checks-overview.html
    """
    group = getattr(instance, "autoscaling_group", None)
    if group is None or _REPLACING & {process["ProcessName"] for process in group.suspended_processes}:
        return
    for state in [each for each in group.instance_states if each.instance is instance]:
        if state.lifecycle_state == "InService":
            _take_out(group, state, "an EC2 health check indicating it has been terminated or stopped")
            auto_scaling.reconcile(group)


def terminate_instance_in_auto_scaling_group(response: Any) -> ActionResult:
    """Answer TerminateInstanceInAutoScalingGroup for one instance, or for several of a group: all or none.

    The refusals are as its users quote them.
    https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_TerminateInstanceInAutoScalingGroup.html
    """
    params = response._get_params()
    several = params.get("InstanceIds") or []
    if bool(several) == bool(params.get("InstanceId")) or (several and not params.get("AutoScalingGroupName")):
        raise Refusal(
            "ValidationError", "Specify either InstanceId, or InstanceIds with the AutoScalingGroupName of them all."
        )
    members = [
        _member(response.autoscaling_backend, each, params.get("AutoScalingGroupName"))
        for each in several or [params["InstanceId"]]
    ]
    group, before = members[0][0], members[0][0].desired_capacity
    if response._get_bool_param("ShouldDecrementDesiredCapacity", False):
        if before - len(members) < group.min_size:
            raise Refusal(
                "ValidationError",
                f"Currently, desiredSize equals minSize ({group.min_size}). Terminating instance without "
                "replacement will violate group's min size constraint. Either set shouldDecrementDesiredCapacity "
                "flag to false or lower group's min size.",
            )
        group.desired_capacity -= len(members)
    for _, state in members:
        _take_out(group, state, "a user request")
    auto_scaling.reconcile(group)
    activities = [TerminateInstanceActivity(state.instance, before) for _, state in members]
    return ActionResult({"Activities": activities} if several else {"Activity": activities[0]})


def _member(backend: Any, instance_id: str, group_name: str | None) -> tuple[Any, Any]:
    for group in backend.autoscaling_groups.values():
        for state in group.instance_states if group_name in {None, group.name} else ():
            if state.instance.id == instance_id:
                return group, state
    raise Refusal(
        "ValidationError", f"Instance Id not found - No managed instance found for instance ID: {instance_id}"
    )


def _take_out(group: Any, state: Any, why: str) -> None:
    lifecycle_hooks.terminate(group, [state])
    cause = f"An instance was taken out of service in response to {why}."
    remember(group, f"Terminating EC2 instance: {state.instance.id}", cause, "Successful")
