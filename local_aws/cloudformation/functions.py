"""Evaluating a template's functions strictly: what cannot be resolved is an error, never left out.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/intrinsic-function-reference.html
"""

import base64
import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Any

from local_aws.cloudformation.failures import ValidationError
from local_aws.cloudformation.templates import SUBSTITUTION

_NO_VALUE = object()
_DYNAMIC_REFERENCE = re.compile(r"\{\{resolve:([^}]*)\}\}")


class Resolver:
    """Evaluates the parts of one template.

    Args:
        template: The template.
        parameters: Values of the template's parameters.
        pseudo: Values of the pseudo parameters.
        reference: Returns the physical id of a resource.
        attribute: Returns an attribute of a resource.
        import_value: Returns an exported value by its name.
        zones: Returns the region's Availability Zones.
        dynamic: Returns the value of a dynamic reference, such as "ssm:/name".
    """

    def __init__(
        self,
        template: Mapping[str, Any],
        *,
        parameters: Mapping[str, Any],
        pseudo: Mapping[str, Any],
        reference: Callable[[str], str],
        attribute: Callable[[str, str], Any],
        import_value: Callable[[str], str],
        zones: Callable[[], list[str]],
        dynamic: Callable[[str], str],
    ) -> None:
        self._template = template
        self._parameters = parameters
        self._pseudo = pseudo
        self._reference = reference
        self._attribute = attribute
        self._import_value = import_value
        self._zones = zones
        self._dynamic = dynamic

    def value(self, node: Any) -> Any:
        """Return `node` with every function in it replaced by its value; AWS::NoValue takes its key along."""
        resolved = self._resolve(node)
        return None if resolved is _NO_VALUE else resolved

    def condition(self, name: str) -> bool:
        """Return whether a condition of the template holds."""
        conditions = self._template.get("Conditions") or {}
        if name not in conditions:
            raise ValidationError(
                f"Template format error: Unresolved condition dependency {name} in the Conditions block"
            )
        return self._truth(conditions[name])

    def rule_holds(self, assertion: Any) -> bool:
        """Return whether an assertion of the template's Rules holds."""
        return self._truth(assertion)

    def _truth(self, node: Any) -> bool:
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

    _truths: Mapping[str, Callable[["Resolver", Any], bool]] = {
        "Condition": condition,
        "Fn::And": lambda self, argument: all(self._truth(part) for part in argument),
        "Fn::Contains": _contains,
        "Fn::Equals": _equals,
        "Fn::Not": lambda self, argument: not self._truth(argument[0]),
        "Fn::Or": lambda self, argument: any(self._truth(part) for part in argument),
    }

    def _resolve(self, node: Any) -> Any:
        if isinstance(node, list):
            return [item for item in map(self._resolve, node) if item is not _NO_VALUE]
        if isinstance(node, str):
            return _DYNAMIC_REFERENCE.sub(lambda match: self._dynamic(match[1]), node)
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
        if name in self._pseudo:
            return self._pseudo[name]
        if name in self._parameters:
            return self._parameters[name]
        return self._reference(name)

    def _call(self, function: str, argument: Any) -> Any:
        carry_out = self._functions.get(function)
        if carry_out is None:
            raise ValidationError(f"Template error: the local AWS has no function {function}")
        return carry_out(self, argument)

    def _base64(self, argument: Any) -> str:
        return base64.b64encode(_text(self.value(argument)).encode()).decode()

    def _find_in_map(self, argument: Any) -> Any:
        found: Any = self._template.get("Mappings") or {}
        keys = [self.value(key) for key in argument]
        for key in keys:
            if not isinstance(found, dict) or _text(key) not in found:
                raise ValidationError(
                    f"Template error: Unable to get mapping for {'::'.join(_text(key) for key in keys)}"
                )
            found = found[_text(key)]
        return found

    def _get_att(self, argument: Any) -> Any:
        name, attribute = argument.split(".", 1) if isinstance(argument, str) else argument
        return self._attribute(name, self.value(attribute))

    def _get_azs(self, argument: Any) -> list[str]:
        region = self.value(argument) or self._pseudo["AWS::Region"]
        if region != self._pseudo["AWS::Region"]:
            raise ValidationError(f"Template error: Fn::GetAZs cannot see the zones of {region}")
        return self._zones()

    def _if(self, argument: Any) -> Any:
        name, when_true, when_false = argument
        return self._resolve(when_true if self.condition(name) else when_false)

    def _import(self, argument: Any) -> str:
        return self._import_value(_text(self.value(argument)))

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
        index, choices = int(self.value(argument[0])), self.value(argument[1])
        if not isinstance(choices, list) or not 0 <= index < len(choices):
            raise ValidationError(f"Template error: Fn::Select cannot select nonexistent value at index {index}")
        return choices[index]

    def _split(self, argument: Any) -> list[str]:
        return _text(self.value(argument[1])).split(argument[0])

    def _sub(self, argument: Any) -> str:
        text, own = (argument[0], argument[1]) if isinstance(argument, list) else (argument, {})

        def replaced(match: re.Match[str]) -> str:
            name = match[1]
            if name in own:
                return _text(self.value(own[name]))
            if "." in name and name not in self._parameters:
                return _text(self._attribute(*name.split(".", 1)))
            return _text(self._ref(name))

        return self._resolve_text(SUBSTITUTION.sub(replaced, text).replace("${!", "${"))

    def _resolve_text(self, text: str) -> str:
        resolved: str = self._resolve(text)
        return resolved

    def _cidr(self, argument: Any) -> list[str]:
        block, count, bits = (self.value(part) for part in [*argument, "8"][:3])
        network = ipaddress.ip_network(block)
        subnets = network.subnets(new_prefix=network.max_prefixlen - int(bits))
        return [str(next(subnets)) for _ in range(int(count))]

    _functions: Mapping[str, Callable[["Resolver", Any], Any]] = {
        "Fn::Base64": _base64,
        "Fn::Cidr": _cidr,
        "Fn::FindInMap": _find_in_map,
        "Fn::GetAZs": _get_azs,
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
