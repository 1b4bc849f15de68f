"""Stack-level tags, which CloudFormation puts on every resource of the stack that it tags."""

from collections.abc import Mapping
from typing import Any

from local_aws.cloudformation import schemas

_AUTO_SCALING_GROUP = "AWS::AutoScaling::AutoScalingGroup"


def with_stack_tags(resource_type: str, properties: dict[str, Any], tags: Mapping[str, str]) -> dict[str, Any]:
    """Return `properties` with the stack's tags added; the resource's own tags win.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cfn-console-add-tags.html
    """
    name = schemas.tag_property(resource_type)
    if not tags or name is None:
        return properties
    if schemas.is_mapping(resource_type, name):
        return {**properties, name: {**tags, **properties.get(name, {})}}
    own = properties.get(name) or []
    named = {tag["Key"] for tag in own}
    propagated = {"PropagateAtLaunch": True} if resource_type == _AUTO_SCALING_GROUP else {}
    added = [{"Key": key, "Value": value, **propagated} for key, value in tags.items() if key not in named]
    return {**properties, name: [*own, *added]}
