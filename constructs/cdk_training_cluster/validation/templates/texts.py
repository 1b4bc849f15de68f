"""Finds the texts of a template that AWS refuses."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from cdk_training_cluster.validation.text_limit import TextLimit
from cdk_training_cluster.validation.texts import LIMITS, TAG_COUNT

_VARIABLE = re.compile(r"\$\{[^!][^}]*\}")


@dataclass(frozen=True)
class Finding:
    """One place in a template that breaks a rule.

    Attributes:
        logical_id: The resource.
        location: Where in it, with dots: `Properties.PlacementGroup`.
    """

    logical_id: str
    location: str


def is_intrinsic(value: object) -> TypeGuard[Mapping[str, object]]:
    """Tell whether a value is a function that CloudFormation evaluates."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return False
    (name,) = value
    return name in {"Ref", "Condition"} or str(name).startswith("Fn::")


def broken_texts(
    definition: Mapping[str, Any], limits: Mapping[str, TextLimit] = LIMITS
) -> Mapping[tuple[TextLimit, str], Sequence[Finding]]:
    """Return the texts of a template that AWS refuses, as far as that is certain before the deployment.

    Args:
        definition: The template.
        limits: The rows to go by. Default: - all of them.

    Returns:
        The places of each text, by the row that it breaks and the sentence that says so.
    """
    found: dict[tuple[TextLimit, str], list[Finding]] = {}
    kinds: dict[str, list[tuple[str, Any]]] = {"Template": [("", definition)]}
    for logical_id, resource in (definition.get("Resources") or {}).items():
        kinds.setdefault(str(resource.get("Type")), []).append((logical_id, resource.get("Properties") or {}))
    for row in limits.values():
        for place in row.places:
            kind, _, path = place.partition(" ")
            for logical_id, properties in _of_kind(kinds, kind):
                for at, pieces in texts_at(properties, path):
                    sentence = row.problem(_property(at), pieces)
                    if sentence is not None:
                        finding = Finding(logical_id, f"Properties.{at}") if logical_id else _of_section(at)
                        found.setdefault((row, sentence), []).append(finding)
    for logical_id, properties in (each for resources in kinds.values() for each in resources):
        tags = properties.get("Tags")
        if isinstance(tags, list | Mapping) and len(tags) > TAG_COUNT.maximum:
            sentence = (
                f"Tags must have {TAG_COUNT.allowed}, got {len(tags)}: take {len(tags) - TAG_COUNT.maximum} out"
            )
            found.setdefault((TAG_COUNT, sentence), []).append(Finding(logical_id, "Properties.Tags"))
    return found


def _property(at: str) -> str:
    """Name a property without the places of items, so that one text in many resources is one finding."""
    return ".".join(part for part in at.split(".") if not part.isdigit())


def _of_section(at: str) -> Finding:
    """Return the place of a text outside of the resources: outputs and parameters have logical ids too."""
    _, _, rest = at.partition(".")
    return Finding(rest.partition(".")[0] or at, at)


def _of_kind(kinds: Mapping[str, Sequence[tuple[str, Any]]], kind: str) -> Iterator[tuple[str, Any]]:
    for name, resources in kinds.items():
        if name == kind or (kind.endswith("*") and name.startswith(kind[:-1])):
            yield from resources


def texts_at(properties: object, path: str) -> Iterator[tuple[str, Sequence[str | None]]]:
    """Yield where the texts at a path are, and their pieces; None is a piece that only the deployment knows.

    Args:
        properties: Where the path begins.
        path: The path, as in a row's place.
    """
    path, _, condition = path.partition(" if ")
    yield from _texts(properties, path.split("."), "", condition)


def _texts(value: object, path: Sequence[str], at: str, condition: str) -> Iterator[tuple[str, Sequence[str | None]]]:
    if not path:
        pieces = _pieces(value)
        if any(piece is not None for piece in pieces):
            yield at, pieces
        return
    key, rest = path[0], path[1:]
    if key == "*" and isinstance(value, list):
        for place, item in enumerate(value):
            yield from _texts(item, rest, f"{at}.{place}", condition)
    if not isinstance(value, Mapping) or is_intrinsic(value):
        return
    if key == "~":
        yield from ((f"{at}.{name}", (name,)) for name in value)
    elif key == "*":
        for name, item in value.items():
            yield from _texts(item, rest, f"{at}.{name}", condition)
    elif key in value:
        name, _, wanted = condition.partition("=")
        if rest or not condition or value.get(name, "") == wanted:
            yield from _texts(value[key], rest, f"{at}.{key}".lstrip("."), condition)


def _pieces(value: object) -> Sequence[str | None]:
    """Return the pieces of a text: what Fn::Join and Fn::Sub have between what the deployment puts in."""
    match value:
        case str():
            return (value,)
        case {"Fn::Join": [str() as between, list() as parts]}:
            pieces = [piece for part in parts for piece in (between, *_pieces(part))]
            return pieces[1:] or ("",)
        case {"Fn::Sub": str() as pattern} | {"Fn::Sub": [str() as pattern, _]}:
            known = [text.replace("${!", "${") for text in _VARIABLE.split(pattern)]
            return [piece for text in known for piece in (None, text)][1:]
    return (None,)
