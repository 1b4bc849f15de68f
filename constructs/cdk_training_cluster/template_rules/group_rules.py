"""What keeps a deployment from failing or waiting for nodes, and warm pools from costing more than they should."""

from collections.abc import Iterator

from cdk_training_cluster.template_rules.rule import (
    AUTO_SCALING_API,
    AUTO_SCALING_GUIDE,
    CLOUDFORMATION,
    TemplateRule,
)
from cdk_training_cluster.template_rules.template import Finding, Template
from cdk_training_cluster.template_rules.values import flag, number, value_at

# What CloudFormation's quota calls 1 MB: "Template may not exceed 1000000 bytes in size."
_MOST_BYTES = 1_000_000

_HOOK_SECONDS = range(30, 7200 + 1)

_POLICY = "UpdatePolicy.AutoScalingScheduledAction.IgnoreUnmodifiedGroupSizeProperties"


def _file_size(template: Template) -> Iterator[Finding]:
    if template.size is not None and template.size > _MOST_BYTES:
        # A template has no construct of its own to be found by.
        yield Finding(template.owners[0].logical_id, "Properties")


def _size(template: Template) -> Iterator[Finding]:
    for group in template.groups:
        # The minimum of a block's group has a rule of its own.
        minimum = () if group.market_is_block and not group.may_have_segments else ("MinSize",)
        for name in (*minimum, "DesiredCapacity"):
            if (number(group.get(name)) or 0) > 0:
                yield group.at(name)


def _update_policy(template: Template) -> Iterator[Finding]:
    for group in template.groups:
        value = value_at(group.definition, _POLICY)
        if value is None or flag(value) is False:
            yield Finding(group.logical_id, _POLICY)


def _warm_pool_size(template: Template) -> Iterator[Finding]:
    for group in template.groups:
        for pool in group.warm_pools:
            size = pool.get("MaxGroupPreparedCapacity")
            if size is None or number(size) == -1:
                yield pool.at("MaxGroupPreparedCapacity")


def _warm_pool_of_spot(template: Template) -> Iterator[Finding]:
    for group in template.groups:
        # Segments exclude Spot, and have a rule of their own about warm pools.
        if group.buys_spot and not group.may_have_segments:
            for pool in group.warm_pools:
                yield pool.at("AutoScalingGroupName")


def _warm_pool_of_blocks(template: Template) -> Iterator[Finding]:
    for group in template.groups:
        if group.market_is_block and not group.may_have_segments:
            for pool in group.warm_pools:
                yield pool.at("AutoScalingGroupName")


def _hook_timeout(template: Template) -> Iterator[Finding]:
    for group in template.groups:
        for hook in group.hooks:
            seconds = number(hook.get("HeartbeatTimeout"))
            if seconds is not None and seconds not in _HOOK_SECONDS:
                yield hook.at("HeartbeatTimeout")


def _version(template: Template) -> Iterator[Finding]:
    for owner in template.owners:
        for path in owner.specifications:
            if owner.get(f"{path}.Version") in ("$Latest", "$Default"):
                yield owner.at(f"{path}.Version")


_WARM_POOLS = f"{AUTO_SCALING_GUIDE}/ec2-auto-scaling-warm-pools.html"
_TEMPLATE_REFERENCE = f"{CLOUDFORMATION}/TemplateReference"

GROUP_RULES = (
    TemplateRule(
        id="templateSize",
        source=f"{CLOUDFORMATION}/UserGuide/cloudformation-limits.html",
        description=(
            "The template of a stack with node groups must not be larger than 1 MB (1,000,000 bytes): CloudFormation "
            "takes no larger one"
        ),
        fix=(
            "Use fewer node groups, or fewer instance types in each, in one cluster, or make a second cluster in a "
            "stack of its own"
        ),
        find=_file_size,
    ),
    TemplateRule(
        id="groupSize",
        source=f"{_TEMPLATE_REFERENCE}/aws-resource-autoscaling-autoscalinggroup.html",
        description=(
            "MinSize and DesiredCapacity of a group must not be above 0: the deployment would wait for the nodes, "
            "and be rolled back where EC2 has no capacity"
        ),
        fix="Leave both alone: the power function brings the group to its size afterwards",
        find=_size,
    ),
    TemplateRule(
        id="groupUpdatePolicy",
        source=f"{CLOUDFORMATION}/UserGuide/aws-attribute-updatepolicy.html",
        description=(
            "UpdatePolicy of a group must have AutoScalingScheduledAction.IgnoreUnmodifiedGroupSizeProperties true: "
            "without it every deployment that changes the group sets its sizes anew, and stops or starts nodes"
        ),
        fix="Leave the UpdatePolicy as the library makes it",
        find=_update_policy,
    ),
    TemplateRule(
        id="launchTemplateVersion",
        source=f"{_TEMPLATE_REFERENCE}/aws-properties-autoscaling-autoscalinggroup-launchtemplatespecification.html",
        description=(
            "Version of a launch template must be a number, such as its LatestVersionNumber: CloudFormation takes "
            "neither $Latest nor $Default"
        ),
        fix="Use launch_template.latest_version_number",
        find=_version,
    ),
    TemplateRule(
        id="warmPoolSize",
        source=f"{AUTO_SCALING_API}/API_PutWarmPool.html",
        description=(
            "A warm pool must have a MaxGroupPreparedCapacity: without it Auto Scaling launches as many nodes as "
            "MaxSize allows, at once"
        ),
        fix="Give MaxGroupPreparedCapacity, as WarmPool(size=…) does",
        find=_warm_pool_size,
    ),
    TemplateRule(
        id="hookTimeout",
        source=f"{AUTO_SCALING_API}/API_PutLifecycleHook.html",
        description="HeartbeatTimeout of a lifecycle hook must be from 30 to 7200 seconds",
        fix="Let a longer start record a heartbeat",
        find=_hook_timeout,
    ),
    TemplateRule(
        id="warmPoolSpot",
        source=f"{_WARM_POOLS}#warm-pools-limitations",
        description="A group that launches Spot Instances must have no warm pool",
        fix="Take the AWS::AutoScaling::WarmPool away",
        find=_warm_pool_of_spot,
    ),
    TemplateRule(
        id="warmPoolBlock",
        source=f"{_WARM_POOLS}#warm-pools-limitations",
        description="A group that launches into a Capacity Block must have no warm pool",
        fix="Take the AWS::AutoScaling::WarmPool away",
        find=_warm_pool_of_blocks,
    ),
)
