"""A small legal node group with a lifecycle hook and a warm pool."""

import copy
from typing import Any

from local_aws_scene import NODES, Template


def warm_nodes(size: int = 2) -> Template:
    """A group of at most four nodes, with `size` of them kept warm while it is empty."""
    template = copy.deepcopy(NODES)
    del template["Resources"]["Files"], template["Resources"]["Link"], template["Outputs"]
    return kept_warm(template, size)


def kept_warm(template: Template, size: int = 2) -> Template:
    """The template with a lifecycle hook and a warm pool for its group."""
    resources = template["Resources"]
    resources["Hook"] = {
        "Type": "AWS::AutoScaling::LifecycleHook",
        "Properties": {
            "AutoScalingGroupName": {"Ref": "Nodes"},
            "LifecycleHookName": "ready",
            "LifecycleTransition": "autoscaling:EC2_INSTANCE_LAUNCHING",
            "DefaultResult": "CONTINUE",
            "HeartbeatTimeout": 1800,
        },
    }
    resources["Warm"] = {
        "Type": "AWS::AutoScaling::WarmPool",
        "DependsOn": "Hook",
        "Properties": {
            "AutoScalingGroupName": {"Ref": "Nodes"},
            "MaxGroupPreparedCapacity": size,
            "MinSize": 0,
            "PoolState": "Stopped",
            "InstanceReusePolicy": {"ReuseOnScaleIn": True},
        },
    }
    return template


def warm_pool(template: Template) -> dict[str, Any]:
    """The warm pool's properties in a template, to be changed."""
    properties: dict[str, Any] = template["Resources"]["Warm"]["Properties"]
    return properties
