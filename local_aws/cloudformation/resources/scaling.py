"""Warm pools and lifecycle hooks of Auto Scaling groups."""

from dataclasses import replace
from typing import Any

from local_aws.cloudformation.resources.action import Action
from local_aws.cloudformation.resources.base import Handler
from local_aws.cloudformation.resources.regular import Regular

# What takes a value away: PutWarmPool keeps what is not said.
_WARM_POOL_DEFAULTS: dict[str, Any] = {
    "InstanceReusePolicy": {"ReuseOnScaleIn": False},
    "MaxGroupPreparedCapacity": -1,
    "MinSize": 0,
    "PoolState": "Stopped",
}
_WARM_POOL = f"AutoScalingGroupName {' '.join(_WARM_POOL_DEFAULTS)}"
_HOOK = Action(
    "put_lifecycle_hook",
    "AutoScalingGroupName DefaultResult HeartbeatTimeout LifecycleTransition",
    absent={"DefaultResult": "ABANDON", "HeartbeatTimeout": 3600},
)

HANDLERS: tuple[Handler, ...] = (
    Regular(
        type="AWS::AutoScaling::WarmPool",
        service="autoscaling",
        create_with=Action("put_warm_pool", _WARM_POOL),
        updates=(Action("put_warm_pool", _WARM_POOL, absent=_WARM_POOL_DEFAULTS),),
        delete_with=Action("delete_warm_pool", id="AutoScalingGroupName", also={"ForceDelete": True}),
        id="{AutoScalingGroupName}",
        can_tag=False,
    ),
    Regular(
        type="AWS::AutoScaling::LifecycleHook",
        service="autoscaling",
        create_with=_HOOK,
        updates=(replace(_HOOK, id="LifecycleHookName"),),
        delete_with=Action("delete_lifecycle_hook", "AutoScalingGroupName", id="LifecycleHookName"),
        named="LifecycleHookName:LifecycleHookName",
        can_tag=False,
    ),
)
