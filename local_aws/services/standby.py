"""Nodes that an Auto Scaling group takes out of service and back: Standby.

https://docs.aws.amazon.com/autoscaling/ec2/userguide/as-enter-exit-standby.html
"""

from typing import Any

from moto.autoscaling.models import EnterStandbyActivity, ExitStandbyActivity
from moto.core.responses import ActionResult

from local_aws.refusal import Refusal
from local_aws.services import auto_scaling
from local_aws.services.group_rules import group_named

_IN_SERVICE, _STANDBY = "InService", "Standby"


def enter_standby(response: Any) -> ActionResult:
    """Answer EnterStandby: all of the instances or none.

    https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_EnterStandby.html
    """
    group, members = group_named(response), _members(response, _IN_SERVICE)
    before, decrement = group.desired_capacity, response._get_bool_param("ShouldDecrementDesiredCapacity")
    if decrement is None:
        raise Refusal("ValidationError", "ShouldDecrementDesiredCapacity must be given")
    if decrement and before - len(members) < group.min_size:
        raise Refusal(
            "ValidationError",
            f"AutoScalingGroup {group.name} has min-size={group.min_size}, max-size={group.max_size}, and "
            f"desired-size={before}. To place into standby {len(members)} instance, please update the "
            "AutoScalingGroup sizes appropriately.",
        )
    for state in members:
        state.lifecycle_state = _STANDBY
    group.desired_capacity -= len(members) if decrement else 0
    auto_scaling.reconcile(group)
    return ActionResult({"Activities": [EnterStandbyActivity(state.instance, before) for state in members]})


def exit_standby(response: Any) -> ActionResult:
    """Answer ExitStandby, which raises the desired capacity.

    https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_ExitStandby.html
    """
    group, members = group_named(response), _members(response, _STANDBY)
    before = group.desired_capacity
    if before + len(members) > group.max_size:
        raise Refusal(
            "ValidationError",
            f"AutoScalingGroup {group.name} has min-size={group.min_size}, max-size={group.max_size}, and "
            f"desired-size={before}. To place into service {len(members)} instance, please update the "
            "AutoScalingGroup sizes appropriately.",
        )
    for state in members:
        state.lifecycle_state = _IN_SERVICE
    group.desired_capacity += len(members)
    auto_scaling.reconcile(group)
    return ActionResult({"Activities": [ExitStandbyActivity(state.instance, before) for state in members]})


def _members(response: Any, wanted: str) -> list[Any]:
    """Return members of a group in a state.

    The refusal is the service's own: https://github.com/aws-samples/aws-codedeploy-samples/issues/50
    """
    states = {state.instance.id: state for state in group_named(response).instance_states}
    ids: list[str] = response._get_param("InstanceIds", [])
    for each in ids:
        if each not in states:
            raise Refusal(
                "ValidationError", f"Instance Id not found - No managed instance found for instance ID: {each}"
            )
        if states[each].lifecycle_state != wanted:
            raise Refusal("ValidationError", f"The instance {each} is not in {wanted}.")
    return [states[each] for each in ids]
