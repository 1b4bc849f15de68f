"""Whether settings are of the kinds that their annotations say: what no rule could look at is refused before."""

import collections.abc
import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any, TypeVar, get_args, get_origin

from cdk_training_cluster.checks import MAX_INTEGER, is_finite, is_unknown, shown
from cdk_training_cluster.validation.rule import refuse

Call = TypeVar("Call", bound=Callable[..., Any])


def checked(*own: str) -> Callable[[Call], Call]:
    """Refuse calls of a function, or of the `__init__` of a class, with arguments of other kinds than annotated.

    Args:
        own: The arguments that have checks of their own.

    Raises:
        SettingsError: When it is called: an argument is of another kind; every reason, a line each.
    """

    def check(call: Call) -> Call:
        signature = inspect.signature(call)

        @functools.wraps(call)
        def checking(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever the call takes
            given = signature.bind(*args, **kwargs).arguments
            check_kinds({name: value for name, value in given.items() if name not in own}, call)
            return call(*args, **kwargs)

        return typing.cast(Call, checking)

    return check


def check_kinds(given: Mapping[str, object], owner: Callable[..., Any]) -> None:
    """Refuse settings of another kind than their annotations.

    Args:
        given: The settings.
        owner: The class or the function whose annotations hold.

    Raises:
        SettingsError: A setting is of another kind; every reason, a line each.
    """
    hints = _hints(owner)
    refuse({name: _problems(name, value, hints[name]) for name, value in given.items() if name in hints})


@functools.cache
def _hints(owner: Callable[..., Any]) -> Mapping[str, Any]:
    return typing.get_type_hints(owner)


def _problems(name: str, value: object, kind: Any) -> Iterator[str]:  # noqa: ANN401 - any annotation
    if not _fits(value, kind):
        yield f"{name} must be {_words(kind)}, got {shown(value)}"


def _fits(value: Any, kind: Any) -> bool:  # noqa: ANN401 - any value and annotation
    origin, inner = get_origin(kind), get_args(kind)
    if origin in {typing.Union, types.UnionType}:
        return any(_fits(value, each) for each in inner)
    if kind in {int, float, str} and is_unknown(value):
        return True
    if kind in {int, float}:
        return is_finite(value) and (kind is float or (isinstance(value, int) and abs(value) <= MAX_INTEGER))
    if origin is tuple or origin is collections.abc.Sequence:
        is_list = isinstance(value, collections.abc.Sequence) and not isinstance(value, str | bytes)
        return is_list and all(_fits(each, inner[0]) for each in value)
    if origin is collections.abc.Mapping:
        parts = value.items() if isinstance(value, Mapping) else [(None, None)]
        return all(_fits(name, inner[0]) and _fits(each, inner[1]) for name, each in parts)
    return _is_of_interface(value, kind) if getattr(kind, "_is_protocol", False) else isinstance(value, kind)


def _is_of_interface(value: object, kind: Any) -> bool:  # noqa: ANN401 - any protocol
    """Tell whether a value has all members of an interface of CDK's; `isinstance` and typeguard take any for one."""
    # What CDK returns as an interface is an object that passes everything on to others.
    parts = [type(each) for each in getattr(value, "_delegates", (value,))]
    members = [each for each in dir(kind) if not each.startswith("_")]
    return all(any(hasattr(part, member) for part in parts) for member in members)


def _words(kind: Any) -> str:  # noqa: ANN401 - any annotation
    """Say what suits an annotation."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in {typing.Union, types.UnionType}:
        return " or ".join(_words(each) for each in inner if each is not type(None))
    if kind in _PLAIN:
        return _PLAIN[kind]
    if origin is tuple or origin is collections.abc.Sequence:
        return f"a list, each item of it {_words(inner[0])}"
    if origin is collections.abc.Mapping:
        return f"a mapping of {_words(inner[0])} to {_words(inner[1])}"
    if inspect.isclass(kind) and issubclass(kind, Enum):
        return " or ".join(f"{kind.__name__}.{member.name}" for member in kind)
    return f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"


_PLAIN: Mapping[Any, str] = {
    bool: "True or False",
    int: f"a whole number of at most {MAX_INTEGER}",
    float: "a number",
    str: "text",
}
