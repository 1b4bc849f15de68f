"""Auto Scaling's lifecycle hooks for instances that launch: they wait until their node reports that it is ready.

No node's scripts run here, so every node reports at once, unless a control request says that none does.
https://docs.aws.amazon.com/autoscaling/ec2/userguide/lifecycle-hooks.html
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from moto.autoscaling.models import autoscaling_backends
from moto.core.responses import ActionResult, EmptyResult
from moto.core.utils import utcnow

from local_aws.refusal import Refusal
from local_aws.services.scaling_activities import remember

_LAUNCHING = "autoscaling:EC2_INSTANCE_LAUNCHING"
_SETTINGS = ("DefaultResult", "HeartbeatTimeout", "NotificationMetadata", "NotificationTargetARN", "RoleARN")
_TIMEOUTS = range(30, 7201)


@dataclass
class Nodes:
    """Whether nodes complete their lifecycle actions when they boot."""

    report: bool = True


NODES = Nodes()


@dataclass
class Arrival:
    """An instance on its way into a group or its warm pool: the hooks that it waits for, and what it then does."""

    waiting_for: set[str]
    settle: Callable[[], None]

    def proceed(self) -> None:
        """Let the instance go on."""
        self.waiting_for = set()
        self.settle()


def hooks_of(group: Any) -> dict[str, dict[str, Any]]:
    """Return a group's hooks by name; they go with the group."""
    hooks: dict[str, dict[str, Any]] = vars(group).setdefault("launching_hooks", {})
    return hooks


def arrive(group: Any, state: Any, settle: Callable[[], None], *, warm: bool = False) -> None:
    """Take an instance in: at once, or when its hooks' actions are complete.

    Args:
        group: The group.
        state: moto's record of the instance.
        settle: Ends the arrival; it sets the instance's lifecycle state.
        warm: Whether the instance goes to the warm pool.
    """
    hooks = set(hooks_of(group))
    state.lifecycle_state = ("Warmed:" if warm else "") + ("Pending:Wait" if hooks else "Pending")
    state.arrival = Arrival(hooks, settle)
    if NODES.report or not hooks:
        state.arrival.proceed()


def _states(group: Any) -> Iterator[Any]:
    """Yield the instances of a group and of its warm pool that wait for a hook."""
    for state in [*group.instance_states, *vars(group).get("warm_instances", [])]:
        arrival = getattr(state, "arrival", None)
        if arrival is not None and arrival.waiting_for:
            yield state


def _group(response: Any) -> Any:
    name = response._get_param("AutoScalingGroupName")
    group = response.autoscaling_backend.autoscaling_groups.get(name)
    if group is None:
        raise Refusal("ValidationError", f"AutoScalingGroup name not found - No such Auto Scaling group: {name}")
    return group


# The actions


def put_lifecycle_hook(response: Any) -> ActionResult:
    """Carry out PutLifecycleHook, for launching instances."""
    group, name = _group(response), response._get_param("LifecycleHookName")
    before = hooks_of(group).get(name, {})
    given = {key: response._get_param(key) for key in ("LifecycleTransition", *_SETTINGS)}
    hook = {**before, **{key: value for key, value in given.items() if value is not None}}
    transition = hook.get("LifecycleTransition")
    if transition is None:
        raise Refusal("ValidationError", "LifecycleTransition is required when a lifecycle hook is created.")
    if transition != _LAUNCHING:
        raise NotImplementedError(f"a lifecycle hook for {transition}")
    timeout = int(hook.get("HeartbeatTimeout", 3600))
    if timeout not in _TIMEOUTS:
        # https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_PutLifecycleHook.html
        raise Refusal(
            "ValidationError", f"HeartbeatTimeout must be from {_TIMEOUTS[0]} to {_TIMEOUTS[-1]} seconds: {timeout}"
        )
    hooks_of(group)[name] = {
        "DefaultResult": "ABANDON",
        **hook,
        "AutoScalingGroupName": group.name,
        "LifecycleHookName": name,
        "HeartbeatTimeout": timeout,
        # 48 hours, or 100 times the heartbeat timeout, whichever is smaller.
        "GlobalTimeout": min(172800, 100 * timeout),
    }
    return EmptyResult()


def describe_lifecycle_hooks(response: Any) -> ActionResult:
    """Carry out DescribeLifecycleHooks."""
    names = response._get_param("LifecycleHookNames", [])
    hooks = hooks_of(_group(response))
    return ActionResult({"LifecycleHooks": [hook for name, hook in hooks.items() if not names or name in names]})


def delete_lifecycle_hook(response: Any) -> ActionResult:
    """Carry out DeleteLifecycleHook; what waits for the hook is given up, as the service does."""
    group, name = _group(response), response._get_param("LifecycleHookName")
    if name not in hooks_of(group):
        raise Refusal("ValidationError", f"Lifecycle hook not found with name {name}")
    del hooks_of(group)[name]
    for state in [state for state in _states(group) if name in state.arrival.waiting_for]:
        _abandon(group, state)
    group.set_desired_capacity(group.desired_capacity)
    return EmptyResult()


def complete_lifecycle_action(response: Any) -> ActionResult:
    """Carry out CompleteLifecycleAction: the instance goes on, or is given up."""
    group, state = _waiting(response)
    if response._get_param("LifecycleActionResult") == "CONTINUE":
        state.arrival.waiting_for.discard(response._get_param("LifecycleHookName"))
        if not state.arrival.waiting_for:
            state.arrival.proceed()
    else:
        _abandon(group, state)
        group.set_desired_capacity(group.desired_capacity)
    return EmptyResult()


def _waiting(response: Any) -> tuple[Any, Any]:
    """Return the group and the instance whose lifecycle action a request is about; tokens are not given out here.

    The refusal is as seen in https://github.com/aws/aws-node-termination-handler.
    """
    group, name = _group(response), response._get_param("LifecycleHookName")
    token, instance_id = response._get_param("LifecycleActionToken"), response._get_param("InstanceId")
    for state in _states(group):
        if token is None and state.instance.id == instance_id and name in state.arrival.waiting_for:
            return group, state
    named = f"token {token}" if token is not None else f"instance ID {instance_id}"
    raise Refusal("ValidationError", f"No active Lifecycle Action found with {named}")


def _abandon(group: Any, state: Any) -> None:
    for states in (group.instance_states, vars(group).get("warm_instances", [])):
        if state in states:
            states.remove(state)
    group.ec2_backend.terminate_instances([state.instance.id])
    cause = f"At {utcnow():%Y-%m-%dT%H:%M:%SZ} the lifecycle action of an instance was completed with ABANDON."
    remember(group, f"Terminating EC2 instance: {state.instance.id}", cause, "Successful")


# The control request


def set_nodes(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Let nodes complete their lifecycle actions when they boot, or never; those that wait go on with the first."""
    NODES.report = bool(request["nodes_report"])
    for _, _, backend in list(autoscaling_backends.iter_backends()) if NODES.report else []:
        for group in list(backend.autoscaling_groups.values()):
            for state in list(_states(group)):
                state.arrival.proceed()
    return {"nodes_report": NODES.report}
