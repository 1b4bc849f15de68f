"""What a template's policies allow, and what of it no call needs."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from local_aws.policies import Call, applies, as_list, is_allowed

__all__ = ["Call", "is_allowed", "resolve", "role_statements", "unused"]


def unused(statements: Sequence[Mapping[str, Any]], calls: Sequence[Call]) -> list[str]:
    """Return each `action on resource` that the statements allow and none of the calls needs."""
    return [
        f"{action} on {resource}"
        for statement in statements
        for action in as_list(statement["Action"])
        for resource in as_list(statement["Resource"])
        if not any(applies({**statement, "Action": action, "Resource": resource}, call) for call in calls)
    ]


def role_statements(template: Mapping[str, Any], role: str, values: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the statements of all policies of a role in a template, with references put in.

    Args:
        template: The CloudFormation template.
        role: The role's logical id.
        values: What `Ref` of a logical id or pseudo parameter is, and `GetAtt` as `LogicalId.Attribute`.
    """
    resources = template["Resources"]
    own = resources[role]["Properties"]
    assert "ManagedPolicyArns" not in own, "a managed policy cannot be evaluated here"
    documents = [policy["PolicyDocument"] for policy in own.get("Policies", [])] + [
        resource["Properties"]["PolicyDocument"]
        for resource in resources.values()
        if resource["Type"] in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")
        and {"Ref": role} in resource["Properties"].get("Roles", [])
    ]
    return [resolve(statement, values) for document in documents for statement in document["Statement"]]


def resolve(value: Any, values: Mapping[str, str]) -> Any:
    """Put values in for `Ref`, `Fn::GetAtt`, `Fn::Join` and `Fn::Sub`."""
    if isinstance(value, list):
        return [resolve(one, values) for one in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        [(function, argument)] = value.items()
        if function in _INTRINSICS:
            return _INTRINSICS[function](argument, values)
        assert not function.startswith("Fn::"), function
    return {key: resolve(one, values) for key, one in value.items()}


_INTRINSICS: dict[str, Callable[[Any, Mapping[str, str]], str]] = {
    "Ref": lambda argument, values: values[argument],
    "Fn::GetAtt": lambda argument, values: values[".".join(argument)],
    "Fn::Join": lambda argument, values: argument[0].join(resolve(argument[1], values)),
    "Fn::Sub": lambda argument, values: re.sub(r"\$\{([^}]+)\}", lambda found: values[found[1]], argument),
}
