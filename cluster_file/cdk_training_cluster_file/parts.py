"""Reads parts of a cluster file that may be wrong, for the rules about what one setting demands of another."""

from collections.abc import Iterator, Mapping
from typing import TypeAlias, TypeVar

from pydantic import TypeAdapter, ValidationError

from cdk_training_cluster.validation.rule import Problem
from cdk_training_cluster_file import fields
from cdk_training_cluster_file.model_base import Settings
from cdk_training_cluster_file.problems import Location
from cdk_training_cluster_file.source import Value

Complaint: TypeAlias = tuple[Location, str]
Part: TypeAlias = Mapping[str, Value]

ZONE: TypeAdapter[str] = TypeAdapter(fields.AvailabilityZone)
TYPE: TypeAdapter[str] = TypeAdapter(fields.InstanceTypeName)


def entries(file: Part, key: str) -> Iterator[tuple[int, Part]]:
    """Go through the entries of a list that are mappings, each with its position."""
    given = file.get(key)
    for at, entry in enumerate(given if isinstance(given, list) else []):
        if isinstance(entry, Mapping):
            yield at, entry


def formed(part: Part, key: str, form: TypeAdapter[str]) -> str | None:
    """Return a setting if it has the right form; if not, the form is complained about elsewhere."""
    try:
        return form.validate_python(part.get(key))
    except ValidationError:
        return None


_Model = TypeVar("_Model", bound=Settings)


def valid(model: type[_Model], part: object) -> _Model | None:
    """Return a part of the file if it has the right form; if not, reading the whole file says so."""
    return None if wrong_settings(model, part) else model.model_validate(part)


def wrong_settings(model: type[_Model], part: object) -> frozenset[str]:
    """Return which settings of a part of the file are wrong; `off` stands for all of them."""
    try:
        model.model_validate(part)
    except ValidationError as error:
        return frozenset(str(next(iter(details["loc"]), "off")) for details in error.errors(include_url=False))
    return frozenset()


def right_settings(model: type[_Model], part: object) -> tuple[_Model | None, frozenset[str]]:
    """Return what is right in a part of the file, whose settings may all be left out, and what is wrong."""
    wrong = wrong_settings(model, part)
    given = part if isinstance(part, Mapping) else {}
    return valid(model, {key: value for key, value in given.items() if key not in wrong}), wrong


def beside_its_place(problem: Problem, of: str = "") -> str:
    """Return what is wrong, of what if the place does not say it, without the setting's name, which it does."""
    name = f"{problem.setting[-1]} "
    said = problem.message.removeprefix(name) if problem.message.startswith(f"{name}must ") else problem.message
    return f"{of}: {said}" if of else said
