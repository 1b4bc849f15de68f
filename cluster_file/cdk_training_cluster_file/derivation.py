"""Settings that the constructs have too: their bounds come from the constructs, and their values go there."""

import types
from collections.abc import Callable, Mapping
from enum import Enum
from itertools import zip_longest
from typing import Annotated, Any, ClassVar, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

from aws_cdk import Duration

from cdk_training_cluster.validation import bounds
from cdk_training_cluster_file.forms import text_of, within

Made = TypeVar("Made")

_MINUTES = {"_minutes": 1, "_hours": 60, "_days": 24 * 60}
"""The minutes of the unit that a setting's name ends with, where the constructs take a `Duration`."""


class ModelOf(Generic[Made]):
    """A part of a cluster file that becomes one value of the constructs, such as a `HealthPolicy`.

    Each setting becomes the argument of its name. An argument that is a `Duration`, such as `window` or
    `drain_timeout`, has a setting with a unit, such as `window_hours` or `drain_minutes`. A setting that states no
    bounds or form of its own has those of the argument's annotation.
    """

    _maker: ClassVar[Callable[..., Any]]
    _arguments: ClassVar[Mapping[str, tuple[str, Any]]] = {}

    def __init_subclass__(
        cls, maker: Callable[..., Any] | None = None, names: Mapping[str, str] | None = None, **options: object
    ) -> None:
        """Find the argument of each setting.

        Args:
            maker: What makes the value. Default: - the class that this is a model of.
            names: The arguments of other names, by setting.
            options: What pydantic takes.

        Raises:
            TypeError: A setting has no argument.
        """
        super().__init_subclass__(**options)
        bases = [get_args(each)[0] for each in cls.__dict__.get("__orig_bases__", ()) if get_origin(each) is ModelOf]
        if maker or bases:
            cls._maker = staticmethod(maker or bases[0])
        hints = get_type_hints(get_origin(cls._maker) or cls._maker, include_extras=True)
        found = {name: _argument(name, names or {}, hints) for name in cls.__annotations__ if name[0] != "_"}
        missing = [name for name, argument in found.items() if argument not in hints]
        if missing and "for_constructs" not in vars(cls):
            raise TypeError(f"{cls.__name__}: no argument for {', '.join(missing)}; name it, or convert it")
        cls._arguments = {**cls._arguments, **{name: (each, hints.get(each)) for name, each in found.items()}}
        cls.__annotations__ |= {
            name: _bounded(cls.__annotations__[name], hints.get(each), _minutes(name)) for name, each in found.items()
        }

    def for_constructs(self, **others: object) -> Made:
        """Return the value as the constructs take it.

        Args:
            others: Arguments that the settings alone do not give, which replace those that they give.

        Raises:
            ValueError: The settings contradict each other; every reason, a line each.
        """
        own = {
            argument: _converted(getattr(self, name), hint, _minutes(name))
            for name, (argument, hint) in self._arguments.items()
            if argument not in others
        }
        made: Made = self._maker(**own, **others)
        return made


def _minutes(name: str) -> int:
    return next((minutes for unit, minutes in _MINUTES.items() if name.endswith(unit)), 1)


def _argument(name: str, names: Mapping[str, str], hints: Mapping[str, Any]) -> str:
    """Return the argument of a setting, which may be none of the call's."""
    stem = next((name.removesuffix(unit) for unit in _MINUTES if name.endswith(unit)), name)
    likely = (name, stem, *(f"{stem}_{word}" for word in ("time", "timeout", "interval")))
    return names.get(name) or next((each for each in likely if each in hints), name)


def _is_optional(kind: Any) -> bool:  # noqa: ANN401 - any annotation
    return get_origin(kind) in {Union, types.UnionType} and get_args(kind)[1:] == (type(None),)


def _bounded(kind: Any, wanted: Any, minutes: int) -> Any:  # noqa: ANN401 - any annotation
    """Return the annotation of a setting with the bounds and forms of the argument's."""
    if _is_optional(wanted):
        wanted = get_args(wanted)[0]
    if _is_optional(kind):
        return _bounded(get_args(kind)[0], wanted, minutes) | None
    origin = get_origin(kind)
    if origin is Annotated:
        is_own = get_origin(wanted) is Annotated
        return kind if is_own else Annotated[(_bounded(kind.__origin__, wanted, minutes), *kind.__metadata__)]
    if kind in {int, float, str}:
        marks = [mark for each in getattr(wanted, "__metadata__", ()) for mark in _marks(each, minutes)]
        return Annotated[(kind, *marks)] if marks else kind
    if origin in {tuple, dict}:
        return origin[tuple(_bounded(*each, minutes) for each in zip_longest(get_args(kind), get_args(wanted)))]
    return kind


def _marks(check: object, minutes: int) -> list[Any]:
    if isinstance(check, bounds.Form):
        return [text_of(check)]
    return [within(check, minutes)] if isinstance(check, bounds.Number | bounds.Whole | bounds.Minutes) else []


def _choices(kind: Any) -> type[Enum] | None:  # noqa: ANN401 - any annotation
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    return next((found for inner in get_args(kind) if (found := _choices(inner))), None)


def _is_duration(kind: Any) -> bool:  # noqa: ANN401 - any annotation
    return kind is Duration or any(map(_is_duration, get_args(kind)))


def _converted(value: Any, kind: Any, minutes: int) -> Any:  # noqa: ANN401 - any value and annotation
    if isinstance(value, ModelOf):
        return value.for_constructs()
    if isinstance(value, tuple):
        return tuple(_converted(each, kind, minutes) for each in value)
    if isinstance(value, dict):
        return {name: _converted(each, kind, minutes) for name, each in value.items()}
    choices = _choices(kind)
    if choices and isinstance(value, str):
        return next(each for each in choices if value in {each.value, each.name.lower()})
    if value is not None and _is_duration(kind):
        return Duration.seconds(value * minutes * 60)
    return value
