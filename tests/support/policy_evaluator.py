"""A small evaluator of IAM identity policies: is a recorded call allowed, and what is never used?

It knows what this library's policies use, and refuses what it does not know: an unknown operator that was
taken for "allowed" would prove nothing.
Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_KNOWN_ELEMENTS = {"Sid", "Effect", "Action", "Resource", "Condition"}


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request to AWS, as IAM sees it.

    Attributes:
        action: The action, such as `autoscaling:SetDesiredCapacity`.
        resource: The ARN it acts on; `*` where the action takes none.
        context: The condition keys of the request, such as `aws:ResourceTag/team`.
    """

    action: str
    resource: str
    context: Mapping[str, str | list[str]] = field(default_factory=dict)


def is_allowed(statements: Sequence[Mapping[str, Any]], call: Call) -> bool:
    """Say whether the statements allow a call: one allows it and none denies it."""
    effects = {statement["Effect"] for statement in statements if _applies(statement, call)}
    return "Allow" in effects and "Deny" not in effects


def unused(statements: Sequence[Mapping[str, Any]], calls: Sequence[Call]) -> list[str]:
    """Return each `action on resource` that the statements allow and none of the calls needs."""
    return [
        f"{action} on {resource}"
        for statement in statements
        for action in _list(statement["Action"])
        for resource in _list(statement["Resource"])
        if not any(_applies({**statement, "Action": action, "Resource": resource}, call) for call in calls)
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


def _applies(statement: Mapping[str, Any], call: Call) -> bool:
    unknown = set(statement) - _KNOWN_ELEMENTS
    assert not unknown, f"cannot evaluate {sorted(unknown)}"
    return (
        any(_like(action.lower(), call.action.lower()) for action in _list(statement["Action"]))
        and any(_like(resource, call.resource) for resource in _list(statement["Resource"]))
        and _conditions_hold(statement.get("Condition", {}), call.context)
    )


def _conditions_hold(conditions: Mapping[str, Mapping[str, Any]], context: Mapping[str, str | list[str]]) -> bool:
    return all(
        _condition_holds(operator, _list(expected), context.get(key))
        for operator, keys in conditions.items()
        for key, expected in keys.items()
    )


def _condition_holds(operator: str, expected: list[Any], actual: str | list[str] | None) -> bool:
    set_operator, _, plain = operator.rpartition(":")
    if plain == "Null":
        return (actual is None) == (str(expected[0]).lower() == "true")
    if plain not in _OPERATORS:
        raise NotImplementedError(f"cannot evaluate the condition operator {operator}")
    matches = _OPERATORS[plain]
    if set_operator == "ForAllValues":
        # True of no values at all, as in IAM.
        return all(any(matches(str(one), value) for one in expected) for value in _list(actual or []))
    if set_operator == "ForAnyValue":
        return any(any(matches(str(one), value) for one in expected) for value in _list(actual or []))
    if set_operator:
        raise NotImplementedError(f"cannot evaluate the condition operator {operator}")
    # A key that the request lacks does not match.
    return isinstance(actual, str) and any(matches(str(one), actual) for one in expected)


def _like(pattern: str, text: str) -> bool:
    wildcards = {"*": ".*", "?": "."}
    expression = "".join(wildcards.get(char, re.escape(char)) for char in pattern)
    return re.fullmatch(expression, text, re.DOTALL) is not None


_OPERATORS: dict[str, Callable[[str, str], bool]] = {
    "StringEquals": lambda expected, actual: expected == actual,
    "StringLike": _like,
    "ArnEquals": _like,
    "ArnLike": _like,
    "Bool": lambda expected, actual: expected.lower() == actual.lower(),
}


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]
