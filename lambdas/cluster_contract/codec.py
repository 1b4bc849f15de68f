"""Settings as dataclasses on both sides, and as one compact JSON object in a function's environment between them.

`encode` leaves out what is as its field's default says, since an environment is small; `decode` reads it back by the
types of the fields, and refuses what `encode` does not write. A field made with `variable` is an environment variable
of its own, and no part of the JSON.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from types import UnionType
from typing import Annotated, Any, ClassVar, Self, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from cluster_contract.times import parse_time, time_text

_T = TypeVar("_T")
_VARIABLE = "variable"


class InvalidSettingsError(ValueError):
    """Say that the function's environment is not what its construct writes."""


class FunctionSettings:
    """The settings of a function, as a dataclass that its environment holds.

    Attributes:
        environment_variable: The name of the variable that holds its JSON.
    """

    environment_variable: ClassVar[str]

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Read the settings from the function's environment.

        Args:
            environment: The function's environment.

        Raises:
            InvalidSettingsError: What is there is not what the construct writes.
        """
        return decode(cls, environment, cls.environment_variable)


class Open:
    """A dataclass that is read though there are names that it does not know: a newer function may have written it."""


class Text:
    """A dataclass that is one text in the JSON, since an environment is small."""

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read it from its text.

        Args:
            text: What `str` returns of it.

        Raises:
            ValueError: It is no such text.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Within:
    """The numbers that a field takes; times are compared in seconds.

    Attributes:
        minimum: The least.
        maximum: The greatest.
        above: What it must be above. Default: - nothing.
    """

    minimum: float = -math.inf
    maximum: float = math.inf
    above: float = -math.inf

    def takes(self, number: float) -> bool:
        """Say whether a number is among them."""
        return self.minimum <= number <= self.maximum and number > self.above

    def __str__(self) -> str:
        limits = {"above": self.above, "at least": self.minimum, "at most": self.maximum}
        return " and ".join(f"{name} {limit:.10g}" for name, limit in limits.items() if math.isfinite(limit))


BACKUP_TOPIC_VARIABLE = "BACKUP_TOPIC_ARN"
"""The environment variable that names the topic for what the alert topic does not take. Not set: there is none."""


def variable(name: str) -> Any:  # noqa: ANN401 (as dataclasses.field)
    """Return a field of text that is the environment variable of this name. Default: - empty.

    Args:
        name: The variable's name.
    """
    return field(default="", metadata={_VARIABLE: name})


def encode(settings: Any) -> dict[str, object]:  # noqa: ANN401 (any dataclass)
    """Return the JSON object of a dataclass: what differs from its fields' defaults.

    Args:
        settings: The dataclass. A number that CloudFormation fills in may stand where a time is expected.
    """
    given = ((one, getattr(settings, one.name)) for one in fields(settings) if _VARIABLE not in one.metadata)
    return {one.name: _plain(value) for one, value in given if value != _default(one)}


def variables(settings: Any) -> dict[str, str]:  # noqa: ANN401 (any dataclass)
    """Return the environment variables that a dataclass has beside its JSON, but for empty ones.

    Args:
        settings: The dataclass.
    """
    found = {one.metadata.get(_VARIABLE): getattr(settings, one.name) for one in fields(settings)}
    return {name: value for name, value in found.items() if name and value}


def decode(kind: type[_T], environment: Mapping[str, str], name: str) -> _T:
    """Read a dataclass from a function's environment.

    Args:
        kind: The dataclass.
        environment: The function's environment.
        name: The name of the variable that holds the JSON object.

    Raises:
        InvalidSettingsError: The variable is missing, or what it holds is not what the construct writes.
    """
    text = environment.get(name)
    if not text:
        raise InvalidSettingsError(f"the environment variable {name} is missing")
    try:
        raw = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidSettingsError(f"the environment variable {name} is not JSON: {error}") from None
    more = {one.name: environment.get(one.metadata[_VARIABLE], "") for one in _fields(kind) if one.metadata}
    try:
        return cast(_T, _read_dataclass(kind, raw, "the object", more))
    except ValueError as error:
        raise InvalidSettingsError(f"{name}: {error}") from None


def read(kind: type[_T], raw: object) -> _T:
    """Read a dataclass from what `encode` returns.

    Args:
        kind: The dataclass.
        raw: The JSON object.

    Raises:
        ValueError: It is not what `encode` returns.
    """
    return cast(_T, _read_dataclass(kind, raw, "the object", {}))


def _plain(value: object) -> object:
    if isinstance(value, Text):
        return str(value)
    if is_dataclass(value):
        return encode(value)
    if isinstance(value, datetime):
        return time_text(value)
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)  # Shorter, and a number that CloudFormation fills in is far greater.
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, tuple | list) else value


def _default(one: "Field[Any]") -> object:
    return one.default_factory() if one.default_factory is not MISSING else one.default


def _fields(kind: object) -> "tuple[Field[Any], ...]":
    return fields(cast(Any, kind))


def _read_dataclass(kind: Any, raw: object, at: str, more: Mapping[str, str] | None = None) -> object:  # noqa: ANN401
    if issubclass(kind, Text):
        return _read_text(kind, raw, at)
    known = {one.name: one for one in _fields(kind) if not one.metadata}
    if not isinstance(raw, dict):
        raise ValueError(f"{at} must be an object, got {raw!r}")  # noqa: TRY004 (it is data that is wrong)
    unknown = [] if issubclass(kind, Open) else sorted(set(raw) - set(known))
    missing = sorted(name for name, one in known.items() if _default(one) is MISSING and name not in raw)
    if unknown or missing:
        wrong = [*(f"no {name}" for name in missing), *unknown]
        raise ValueError(f"{at} takes {', '.join(sorted(known))}, got {', '.join(wrong)}")
    kinds = get_type_hints(kind, include_extras=True)
    prefix = "" if more is not None else f"{at}."
    given = {name: _read(kinds[name], one, f"{prefix}{name}") for name, one in raw.items() if name in known}
    return kind(**given, **(more or {}))


def _read(kind: Any, raw: object, at: str) -> object:  # noqa: ANN401 (any type of a field)
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _read_within(args[0], args[1], raw, at)
    if origin in (Union, UnionType):  # None is a default, and never written.
        return _read(args[0], raw, at)
    if origin is tuple:
        return tuple(_read_all(args[0], enumerate(_expect(list, raw, at, "a list")), at))
    if origin is not None:
        objects = _expect(dict, raw, at, "an object")
        return dict(zip(objects, _read_all(args[1], objects.items(), at), strict=True))
    if is_dataclass(kind):
        return _read_dataclass(kind, raw, at)
    return _read_plain(kind, raw, at)


def _read_all(kind: Any, items: Any, at: str) -> Iterator[object]:  # noqa: ANN401 (any type of a field)
    return (_read(kind, one, f"{at}[{key!r}]") for key, one in items)


def _read_within(kind: Any, within: Within, raw: object, at: str) -> object:  # noqa: ANN401 (any type of a field)
    value = _read(kind, raw, at)
    number = value.total_seconds() if isinstance(value, timedelta) else cast(float, value)
    if not within.takes(number):
        raise ValueError(f"{at} must be {within}, got {raw!r}")
    return value


def _read_text(kind: type[Text], raw: object, at: str) -> object:
    text = _expect(str, raw, at, "text")
    try:
        return kind.from_text(text)
    except ValueError as error:
        raise ValueError(f"{at} {error}, got {raw!r}") from None


def _read_plain(kind: Any, raw: object, at: str) -> object:  # noqa: ANN401 (any type of a field)
    if kind is bool:
        return _expect(bool, raw, at, "true or false")
    if kind is int:
        return _expect(int, raw, at, "a whole number")
    if kind is Decimal:
        return Decimal(_expect((int, Decimal), raw, at, "a number"))
    if kind in (float, timedelta):
        number = float(_expect((int, float), raw, at, "a number"))
        if not math.isfinite(number):
            raise ValueError(f"{at} must be a number, got {raw!r}")
        return timedelta(seconds=number) if kind is timedelta else number
    text = _expect(str, raw, at, "text")
    if kind is datetime:
        return parse_time(text)
    if issubclass(kind, StrEnum) and text not in list(kind):
        raise ValueError(f"{at} must be one of {', '.join(kind)}, got {raw!r}")
    if not text:
        raise ValueError(f"{at} must be text, got {raw!r}")
    return kind(text)


def _expect(kind: Any, raw: object, at: str, what: str) -> Any:  # noqa: ANN401 (what the caller names)
    if not isinstance(raw, kind) or (isinstance(raw, bool) and kind is not bool):
        raise ValueError(f"{at} must be {what}, got {raw!r}")
    return raw
