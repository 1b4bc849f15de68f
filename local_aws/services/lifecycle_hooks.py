"""Lifecycle hooks that hold a node which its group terminates, until the node's job has ended.

https://docs.aws.amazon.com/autoscaling/ec2/userguide/lifecycle-hooks-overview.html
"""

from collections.abc import Iterable, Mapping
from typing import Any

from moto.autoscaling.models import autoscaling_backends
from moto.core.responses import ActionResult

from local_aws.refusal import Refusal
from local_aws.services.group_rules import group_named

_TERMINATING = "autoscaling:EC2_INSTANCE_TERMINATING"
WAITING = "Terminating:Wait"
"""The state of a node that a hook holds."""

# The instances whose jobs do not end by themselves: every other node tells its group at once that it may go.
_BUSY: set[str] = set()


def terminate(group: Any, leaving: Iterable[Any]) -> None:
    """Terminate members of a group, but for those that a hook holds while their jobs run.

    Args:
        group: The group.
        leaving: What it knows of each.
    """
    held = any(hook.lifecycle_transition == _TERMINATING for hook in _hooks(group))
    for state in list(leaving):
        if held and state.instance.id in _BUSY:
            state.lifecycle_state = WAITING
        else:
            group.instance_states.remove(state)
            group.ec2_backend.terminate_instances([state.instance.id])


def _hooks(group: Any) -> list[Any]:
    hooks = group.autoscaling_backend.lifecycle_hooks.values()
    return [hook for hook in hooks if hook.auto_scaling_group_name == group.name]


def complete_lifecycle_action(response: Any) -> ActionResult:
    """Answer CompleteLifecycleAction, which both results of a terminating hook let go on.

    The refusal is as its users quote it: https://github.com/aws/aws-node-termination-handler/issues/467
    """
    params, group = response._get_params(), group_named(response)
    named = any(hook.name == params["LifecycleHookName"] for hook in _hooks(group))
    waiting = [
        state
        for state in group.instance_states
        if state.instance.id == params.get("InstanceId") and state.lifecycle_state == WAITING
    ]
    if not named or not waiting:
        raise Refusal("ValidationError", f"No active Lifecycle Action found with instance ID {params['InstanceId']}")
    _BUSY.discard(params["InstanceId"])
    terminate(group, waiting)
    return ActionResult({})


def keep_busy(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Let jobs run on nodes, or end: a node whose job has ended lets its group go on."""
    ids = set(request["instance_ids"])
    if request["busy"]:
        _BUSY.update(ids)
        return {}
    _BUSY.difference_update(ids)
    for _, _, backend in list(autoscaling_backends.iter_backends()):
        for group in backend.autoscaling_groups.values():
            waiting = [one for one in group.instance_states if one.lifecycle_state == WAITING]
            terminate(group, [one for one in waiting if one.instance.id in ids])
    return {}
