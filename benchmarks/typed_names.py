"""How CDK's typed classes are called, and what their arguments may be."""

import importlib.util
import keyword
import typing
from types import ModuleType, UnionType
from typing import Any

import aws_cdk

SEQUENCE = typing.get_origin(typing.Sequence[int])
MAPPING = typing.get_origin(typing.Mapping[str, int])


def choices_of(hint: Any) -> list[Any]:  # noqa: ANN401 - any type
    """Return what a type may be, where it is a union of unions."""
    if typing.get_origin(hint) in {typing.Union, UnionType}:
        return [choice for part in typing.get_args(hint) for choice in choices_of(part)]
    return [hint]


def as_wanted(condition: str, hint: Any) -> str:  # noqa: ANN401 - any type
    """Write a choice, which CDK leaves open, as the type that is wanted."""
    choices = choices_of(hint)
    if str in choices:
        return f"cdk.Token.as_string({condition})"
    if any(typing.get_origin(choice) is SEQUENCE for choice in choices) and aws_cdk.IResolvable not in choices:
        return f"cdk.Token.as_list({condition})"
    if bool in choices or aws_cdk.IResolvable in choices:
        return condition
    return f"cdk.Token.as_number({condition})"


def typed_class(resource_type: str) -> tuple[str, str]:
    """Return the module and the name of a resource type's typed class.

    Raises:
        NotImplementedError: aws_cdk has no such class.
    """
    _, service, kind = resource_type.split("::")
    module, name = f"aws_{service.lower()}", f"Cfn{kind}"
    if importlib.util.find_spec(f"aws_cdk.{module}") is None or not hasattr(module_of(module), name):
        raise NotImplementedError(f"aws_cdk has no class for {resource_type}")
    return module, name


def module_of(service: str) -> ModuleType:
    """Return the module of a service, such as `aws_ec2`."""
    return importlib.import_module(f"aws_cdk.{service}")


def identifier(name: str) -> str:
    """Return a variable's name for a stack."""
    result = "".join(character if character.isalnum() else "_" for character in name)
    return f"{result}_" if keyword.iskeyword(result) or result[0].isdigit() else result


def snake(name: str) -> str:
    """Return a name as Python writes it."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).removeprefix("_")
