"""Warm pools and lifecycle hooks of Auto Scaling groups."""

from typing import Any

from local_aws.cloudformation.resources.base import Attributes, Call, Handler, Properties

# What takes a value away: PutWarmPool keeps what is not said.
_WARM_POOL_DEFAULTS: dict[str, Any] = {
    "InstanceReusePolicy": {"ReuseOnScaleIn": False},
    "MaxGroupPreparedCapacity": -1,
    "MinSize": 0,
    "PoolState": "Stopped",
}


class WarmPool(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-autoscaling-warmpool.html."""

    type = "AWS::AutoScaling::WarmPool"
    carries_out = frozenset({"AutoScalingGroupName", *_WARM_POOL_DEFAULTS})

    def create(self, call: Call, properties: Properties) -> Attributes:
        call.client("autoscaling").put_warm_pool(**properties)
        call.made(properties["AutoScalingGroupName"])
        return {}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        self.only_changed(properties, before, *_WARM_POOL_DEFAULTS)
        call.client("autoscaling").put_warm_pool(**_WARM_POOL_DEFAULTS | dict(properties))
        return {}

    def delete(self, call: Call) -> None:
        call.client("autoscaling").delete_warm_pool(AutoScalingGroupName=call.physical_id, ForceDelete=True)


class LifecycleHook(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-autoscaling-lifecyclehook.html."""

    type = "AWS::AutoScaling::LifecycleHook"
    carries_out = frozenset(
        {"AutoScalingGroupName", "DefaultResult", "HeartbeatTimeout", "LifecycleHookName", "LifecycleTransition"}
    )

    def create(self, call: Call, properties: Properties) -> Attributes:
        name = properties.get("LifecycleHookName") or call.physical_name()
        self._put(call, name, properties)
        call.made(name)
        return {}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        self.only_changed(properties, before, "DefaultResult", "HeartbeatTimeout", "LifecycleTransition")
        self._put(call, call.physical_id, properties)
        return {}

    def delete(self, call: Call) -> None:
        call.client("autoscaling").delete_lifecycle_hook(
            AutoScalingGroupName=call.properties["AutoScalingGroupName"], LifecycleHookName=call.physical_id
        )

    @staticmethod
    def _put(call: Call, name: str, properties: Properties) -> None:
        settings = {"DefaultResult": "ABANDON", "HeartbeatTimeout": 3600, **properties, "LifecycleHookName": name}
        call.client("autoscaling").put_lifecycle_hook(**settings)


HANDLERS: tuple[Handler, ...] = (WarmPool(), LifecycleHook())
