"""A small evaluator of IAM's policies: does one allow a request?

It knows what this library's policies and AWS's own examples use, and refuses what it does not know: an unknown
operator that was taken for "allowed" would prove nothing.
Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from local_aws import defaults

_VARIABLE = re.compile(r"\$\{[^}]*\}")
_KNOWN_ELEMENTS = {"Sid", "Effect", "Principal", "Action", "Resource", "Condition"}


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request to AWS, as IAM sees it.

    Attributes:
        action: The action, such as `autoscaling:SetDesiredCapacity`.
        resource: The ARN it acts on; `*` where the action takes none.
        context: The condition keys of the request, such as `aws:ResourceTag/team`.
        principal: Who calls, where a policy of a resource is asked: the ARN of an identity or a service's name.
            Default: - the identity whose policy it is.
        region: The region that it is sent to.
    """

    action: str
    resource: str
    context: Mapping[str, str | list[str]] = field(default_factory=dict)
    principal: str | None = None
    region: str = defaults.REGION


def is_allowed(statements: Sequence[Mapping[str, Any]], call: Call) -> bool:
    """Say whether the statements allow a call: one allows it and none denies it."""
    effects = {statement["Effect"] for statement in statements if applies(statement, call)}
    return "Allow" in effects and "Deny" not in effects


def applies(statement: Mapping[str, Any], call: Call) -> bool:
    """Say whether a statement is about a call, whatever its effect."""
    unknown = set(statement) - _KNOWN_ELEMENTS
    if unknown:
        raise NotImplementedError(f"cannot evaluate {sorted(unknown)}")
    return (
        any(_like(action.lower(), call.action.lower()) for action in as_list(statement["Action"]))
        and any(_like(resource, call.resource) for resource in _resources(statement, call))
        and _is_principal(statement, call)
        and _conditions_hold(statement.get("Condition", {}), {"aws:RequestedRegion": call.region, **call.context})
    )


def _resources(statement: Mapping[str, Any], call: Call) -> list[str]:
    """Return what a statement names, with variables filled in.

    A variable stands for a part of an ARN: IAM refuses a policy whose resource is neither an ARN nor an asterisk.
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_resource.html
    """
    named = as_list(statement["Resource"])
    alone = [one for one in named if str(one).startswith("${")]
    if alone:
        raise NotImplementedError(f"cannot evaluate the resource {alone[0]}: IAM refuses it as malformed")
    return _filled(named, call.context)


def _is_principal(statement: Mapping[str, Any], call: Call) -> bool:
    """Say whether a statement is about who calls; a policy of an identity names no principal."""
    if "Principal" not in statement:
        return call.principal is None
    named = statement["Principal"]
    principals = ["*"] if named == "*" else [one for values in named.values() for one in as_list(values)]
    return "*" in principals or call.principal in principals


def _conditions_hold(conditions: Mapping[str, Mapping[str, Any]], context: Mapping[str, str | list[str]]) -> bool:
    return all(
        _condition_holds(operator, _filled(as_list(expected), context), context.get(key))
        for operator, keys in conditions.items()
        for key, expected in keys.items()
    )


def _filled(expected: list[Any], context: Mapping[str, str | list[str]]) -> list[Any]:
    """Return values with what the request says in place of variables; one that it does not say matches nothing.

    The case of a key does not count.
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_variables.html
    """
    known = {f"${{{key}}}".lower(): value for key, value in context.items() if isinstance(value, str)}
    values = [_VARIABLE.sub(lambda found: known.get(found[0].lower(), found[0]), str(one)) for one in expected]
    return [one for one in values if not _VARIABLE.search(one)]


def _condition_holds(operator: str, expected: list[Any], actual: str | list[str] | None) -> bool:
    set_operator, _, plain = operator.rpartition(":")
    if plain == "Null":
        return (actual is None) == (str(expected[0]).lower() == "true")
    if plain == "StringNotLike" and set_operator in ("", "ForAllValues"):
        # True of no values at all, too.
        return not any(_like(str(one), value) for one in expected for value in as_list(actual or []))
    if plain not in _OPERATORS:
        raise NotImplementedError(f"cannot evaluate the condition operator {operator}")
    matches = _OPERATORS[plain]
    if set_operator == "ForAllValues":
        # True of no values at all, as in IAM.
        return all(any(matches(str(one), value) for one in expected) for value in as_list(actual or []))
    if set_operator == "ForAnyValue":
        return any(any(matches(str(one), value) for one in expected) for value in as_list(actual or []))
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


def as_list(value: Any) -> list[Any]:
    """Return what a policy may write as one value or as a list of them."""
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str | Mapping) else [value]
