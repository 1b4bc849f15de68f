"""Evaluates admission policies of Kubernetes with the CEL project's own evaluator."""

from collections.abc import Callable
from typing import Any

import pytest

POLICY = "ValidatingAdmissionPolicy"


def _evaluator(data: dict[str, Any]) -> Callable[[str], Any]:
    cel = pytest.importorskip("cel_expr_python.cel", reason="only with `make test-kubernetes`, which installs it")
    optional = pytest.importorskip("cel_expr_python.ext.ext_optional").ExtOptional()
    names = cel.NewEnv(variables=dict.fromkeys(data, cel.Type.DYN), extensions=[optional])
    return lambda expression: names.compile(expression).eval(data=data).plain_value()


def is_matched(spec: dict[str, Any], data: dict[str, Any]) -> bool:
    """Whether a policy looks at a request."""
    value = _evaluator(data)
    return all(value(each["expression"]) is True for each in spec["matchConditions"])


def refusals(spec: dict[str, Any], data: dict[str, Any]) -> list[str]:
    """What a policy says against a request; what fails to evaluate counts."""
    known: dict[str, Any] = {}
    value = _evaluator({**data, "variables": known})
    for each in spec["variables"]:
        known[each["name"]] = value(each["expression"])
    return [each["message"] for each in spec["validations"] if value(each["expression"]) is not True]
