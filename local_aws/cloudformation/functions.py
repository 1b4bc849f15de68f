"""Evaluating a template's functions strictly: what cannot be resolved is an error, never left out.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/intrinsic-function-reference.html
"""

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from local_aws.cloudformation.failures import ValidationError
from local_aws.cloudformation.templates import SUBSTITUTION

_NO_VALUE = object()


def _nowhere(*names: str) -> Any:
    raise ValidationError(f"Template error: {'.'.join(names)} cannot be used here")


@dataclass(frozen=True, kw_only=True)
class Resolver:
    """Evaluates the parts of one template; without a stack's functions it can decide conditions and rules only.

    Attributes:
        template: The template.
        parameters: Values of the template's parameters.
        pseudo: Values of the pseudo parameters.
        reference: Returns the physical id of a resource.
        attribute: Returns an attribute of a resource.
        import_value: Returns an exported value by its name.
    """

    template: Mapping[str, Any]
    parameters: Mapping[str, Any]
    pseudo: Mapping[str, Any]
    reference: Callable[[str], str] = _nowhere
    attribute: Callable[[str, str], Any] = _nowhere
    import_value: Callable[[str], str] = _nowhere

    def value(self, node: Any) -> Any:
        """Return `node` with every function in it replaced by its value; AWS::NoValue takes its key along."""
        resolved = self._resolve(node)
        return None if resolved is _NO_VALUE else resolved

    def condition(self, name: str) -> bool:
        """Return whether a condition of the template holds."""
        conditions = self.template.get("Conditions") or {}
        if name not in conditions:
            raise ValidationError(
                f"Template format error: Unresolved condition dependency {name} in the Conditions block"
            )
        return self.holds(conditions[name])

    def holds(self, node: Any) -> bool:
        """Return whether a condition, or an assertion of the template's Rules, holds."""
        if isinstance(node, bool):
            return node
        if isinstance(node, dict) and len(node) == 1:
            ((function, argument),) = node.items()
            decide = self._truths.get(function)
            if decide is not None:
                return decide(self, argument)
        raise ValidationError(f"Template error: {node!r} is not a condition the local AWS can evaluate")

    def _equals(self, argument: Any) -> bool:
        first, second = (_text(self.value(part)) for part in argument)
        return first == second

    def _contains(self, argument: Any) -> bool:
        choices, wanted = (self.value(part) for part in argument)
        return _text(wanted) in [_text(choice) for choice in choices]

    _truths: ClassVar[Mapping[str, Callable[["Resolver", Any], bool]]] = {
        "Condition": condition,
        "Fn::And": lambda self, argument: all(self.holds(part) for part in argument),
        "Fn::Contains": _contains,
        "Fn::Equals": _equals,
        "Fn::Not": lambda self, argument: not self.holds(argument[0]),
    }

    def _resolve(self, node: Any) -> Any:
        if isinstance(node, list):
            return [item for item in map(self._resolve, node) if item is not _NO_VALUE]
        if isinstance(node, str) and "{{resolve:" in node:
            raise ValidationError(f"Template error: the local AWS cannot resolve {node}")
        if not isinstance(node, dict):
            return node
        if len(node) == 1:
            ((function, argument),) = node.items()
            if function == "Ref":
                return self._ref(argument)
            if function.startswith("Fn::"):
                return self._call(function, argument)
        resolved = {key: self._resolve(value) for key, value in node.items()}
        return {key: value for key, value in resolved.items() if value is not _NO_VALUE}

    def _ref(self, name: str) -> Any:
        if name == "AWS::NoValue":
            return _NO_VALUE
        if name in self.pseudo:
            return self.pseudo[name]
        if name in self.parameters:
            return self.parameters[name]
        return self.reference(name)

    def _call(self, function: str, argument: Any) -> Any:
        compute = self._functions.get(function)
        if compute is None:
            raise ValidationError(f"Template error: the local AWS has no function {function}")
        return compute(self, argument)

    def _base64(self, argument: Any) -> str:
        return base64.b64encode(_text(self.value(argument)).encode()).decode()

    def _get_att(self, argument: Any) -> Any:
        name, attribute = argument.split(".", 1) if isinstance(argument, str) else argument
        return self.attribute(name, self.value(attribute))

    def _if(self, argument: Any) -> Any:
        name, when_true, when_false = argument
        return self._resolve(when_true if self.condition(name) else when_false)

    def _import(self, argument: Any) -> str:
        return self.import_value(_text(self.value(argument)))

    def _join(self, argument: Any) -> str:
        delimiter, parts = argument
        values = self.value(parts)
        if not isinstance(values, list) or any(isinstance(value, dict | list) for value in values):
            raise ValidationError(
                "Template error: every Fn::Join object requires two parameters, (1) a string delimiter and (2) a "
                "list of strings to be joined or a function that returns a list of strings"
            )
        return str(delimiter).join(_text(value) for value in values)

    def _select(self, argument: Any) -> Any:
        index, choices = (self.value(part) for part in argument)
        if not isinstance(choices, list) or not 0 <= int(index) < len(choices):
            raise ValidationError(f"Template error: Fn::Select cannot select nonexistent value at index {index}")
        return choices[int(index)]

    def _split(self, argument: Any) -> list[str]:
        delimiter, text = argument
        return _text(self.value(text)).split(str(delimiter))

    def _sub(self, argument: Any) -> str:
        text, own = (argument[0], argument[1]) if isinstance(argument, list) else (argument, {})

        def replaced(match: re.Match[str]) -> str:
            name = match[1]
            if name in own:
                return _text(self.value(own[name]))
            if "." in name and name not in self.parameters:
                return _text(self.attribute(*name.split(".", 1)))
            return _text(self._ref(name))

        return SUBSTITUTION.sub(replaced, text).replace("${!", "${")

    _functions: ClassVar[Mapping[str, Callable[["Resolver", Any], Any]]] = {
        "Fn::Base64": _base64,
        "Fn::GetAtt": _get_att,
        "Fn::If": _if,
        "Fn::ImportValue": _import,
        "Fn::Join": _join,
        "Fn::Select": _select,
        "Fn::Split": _split,
        "Fn::Sub": _sub,
    }


def _text(value: Any) -> str:
    """Return a scalar as CloudFormation writes it into a string."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list) or value is None or value is _NO_VALUE:
        raise ValidationError(f"Template error: a string is needed where the template gives {value!r}")
    return str(value)
