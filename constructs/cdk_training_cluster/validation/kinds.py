"""Whether settings are what their annotations say: what no rule could check is refused before, in one sentence.

An annotation says the kind; what it carries beside the kind, as in `Annotated[float, Number(above=0)]`, says what is
allowed of it.
"""

import collections.abc
import functools
import inspect
import operator
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from enum import Enum
from typing import Annotated, Any, NotRequired, TypeAlias, TypeVar, Unpack, get_args, get_origin

from cdk_training_cluster.validation.checks import MAX_INTEGER, is_finite, is_unknown, shown
from cdk_training_cluster.validation.rule import Problem, refuse

Together: TypeAlias = Callable[[Mapping[str, Any], Collection[str]], Iterable[Problem]]
Call = TypeVar("Call", bound=Callable[..., Any])


def checked(call: Call) -> Call:
    """Refuse calls of a function, or of a dataclass, with arguments that are not what the annotations say.

    Args:
        call: The function, the `__init__` of a class, or a dataclass.

    Raises:
        SettingsError: When it is called: an argument is wrong; every reason, a line each.
    """
    if inspect.isclass(call):
        call.__init__ = checked(call.__init__)  # type: ignore[method-assign]
        return call
    return checked_together(_nothing_more)(call)


def checked_together(together: Together) -> Callable[[Call], Call]:
    """Return a decorator that also refuses arguments that do not fit each other, in the same error.

    Args:
        together: Yields what is wrong with the arguments that were given and have the right kind, beside the names
            of those that have not; what it says of these is not told.
    """

    def decorator(call: Call) -> Call:
        signature = _with_unpacked(inspect.signature(call))

        @functools.wraps(call)
        def checking(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever the call takes
            given, hints = _bound(call, signature, args, kwargs), _hints(call)
            kinds = {name: list(problems(name, given[name], hints[name])) for name in given if name in hints}
            wrong = {name for name, found in kinds.items() if found}
            right = {name: value for name, value in given.items() if name not in wrong}
            more = [each for each in together(right, wrong) if each.setting[0] not in wrong]
            refuse(kinds, more, order=list(signature.parameters))
            return call(*args, **kwargs)

        checking.__signature__ = signature  # type: ignore[attr-defined]
        return typing.cast(Call, checking)

    return decorator


def _bound(
    call: Callable[..., Any], signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a call by name.

    Raises:
        TypeError: An argument is unknown or missing: the call, and the name that is meant.
    """
    try:
        return dict(signature.bind(*args, **kwargs).arguments)
    except TypeError as error:
        name = call.__qualname__.removesuffix(".__init__")
        names = [each for each in signature.parameters if each != "self"]
        unknown = [each for each in kwargs if each not in names]
        if not unknown:
            raise TypeError(f"{name}(): {error}") from None
        near = get_close_matches(unknown[0], names, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known here: {', '.join(names)}"
        raise TypeError(f"{name}() has no argument {unknown[0]!r}; {hint}") from None


def _nothing_more(_: Mapping[str, Any], __: Collection[str]) -> Iterator[Problem]:
    yield from ()


@functools.cache
def _hints(call: Callable[..., Any]) -> Mapping[str, Any]:
    hints = typing.get_type_hints(call, include_extras=True)
    unpacked = (_keys(get_args(hint)[0]) for hint in hints.values() if get_origin(hint) is Unpack)
    return functools.reduce(operator.or_, unpacked, hints)


def _with_unpacked(signature: inspect.Signature) -> inspect.Signature:
    """Return a signature that has the keys of `**arguments: Unpack[…]` as arguments of their own."""
    found = []
    for each in signature.parameters.values():
        if get_origin(each.annotation) is not Unpack:
            found.append(each)
            continue
        (kind,) = get_args(each.annotation)
        found += [
            each.replace(
                name=name,
                kind=each.KEYWORD_ONLY,
                annotation=hint,
                default=each.empty if name in kind.__required_keys__ else ...,
            )
            for name, hint in _keys(kind).items()
        ]
    return signature.replace(parameters=found)


def _keys(kind: Any) -> dict[str, Any]:  # noqa: ANN401 - a TypedDict
    """Return the annotations of a TypedDict's keys."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return {name: get_args(hint)[0] if get_origin(hint) is NotRequired else hint for name, hint in hints.items()}


def problems(setting: str, value: object, kind: Any) -> Iterator[str]:  # noqa: ANN401 - any annotation
    """Yield a sentence for each way in which a value is not what an annotation says.

    Args:
        setting: The setting as the user spelled it.
        value: What was given.
        kind: The annotation.
    """
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        for check in inner[1:]:
            yield from check(setting, value)
    elif origin in _UNIONS and inner[1:] == (type(None),):
        # What may be left out.
        yield from () if value is None else problems(setting, value, inner[0])
    elif origin in _ITEMS and _is_list(value):
        for item in typing.cast(Iterable[object], value):
            yield from _problems_of_an_item(setting, item, inner[0])
    elif origin is collections.abc.Mapping and isinstance(value, Mapping):
        for name, item in value.items():
            yield from problems(f"names of {setting}", name, inner[0])
            yield from problems(f"{setting}[{shown(name)}]", item, inner[1])
    elif not _fits(value, kind):
        yield f"{setting} must be {_words(kind)}, got {shown(value)}"


def _problems_of_an_item(setting: str, item: object, kind: Any) -> Iterator[str]:  # noqa: ANN401 - any annotation
    if get_origin(kind) in {Annotated, *_ITEMS}:
        yield from problems(setting, item, kind)
    elif not _fits(item, kind):
        yield f"{setting} must be {_words_of_a_list(kind)}, got {shown(item)} in it"


_UNIONS = (typing.Union, types.UnionType)
_ITEMS = (tuple, collections.abc.Sequence)


def _is_list(value: object) -> bool:
    return isinstance(value, collections.abc.Sequence) and not isinstance(value, str | bytes)


def _fits(value: Any, kind: Any) -> bool:  # noqa: ANN401 - any value and annotation
    origin, inner = get_origin(kind), get_args(kind)
    if origin in _UNIONS:
        return any(_fits(value, each) for each in inner)
    if kind in {int, float, str} and is_unknown(value):
        return True
    if kind in {int, float}:
        return is_finite(value) and (kind is float or (isinstance(value, int) and abs(value) <= MAX_INTEGER))
    if origin in {*_ITEMS, collections.abc.Mapping}:  # what is one has been looked into
        return False
    if getattr(kind, "_is_protocol", False):
        return _is_of_interface(value, kind)
    return isinstance(value, origin or kind)


def _is_of_interface(value: object, kind: Any) -> bool:  # noqa: ANN401 - any protocol
    """Tell whether a value has all members of an interface of CDK's; `isinstance` and typeguard take any for one."""
    # What CDK returns as an interface is an object that passes everything on to others.
    parts = [type(each) for each in getattr(value, "_delegates", (value,))]
    return all(any(hasattr(part, member) for part in parts) for member in _members(kind))


@functools.cache
def _members(kind: Any) -> list[str]:  # noqa: ANN401 - any protocol
    return [each for each in dir(kind) if not each.startswith("_")]


def _words(kind: Any) -> str:  # noqa: ANN401 - any annotation
    """Say what suits an annotation."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in _UNIONS:
        return " or ".join(_words(each) for each in inner if each is not type(None))
    if origin is Annotated:
        return _words(inner[0])
    if origin in _ITEMS:
        return _words_of_a_list(inner[0])
    if origin is collections.abc.Mapping:
        return f"a mapping of {_words(inner[0])} to {_words(inner[1])}"
    return _PLAIN[kind] if kind in _PLAIN else _words_of_a_class(kind)


def _words_of_a_list(kind: Any) -> str:  # noqa: ANN401 - any annotation
    name = getattr(kind, "__name__", "")
    if name in _EXAMPLES:
        return f"a list of {name} objects, such as [{_EXAMPLES[name]}]"
    return f"a list, each item of it {_words(kind)}"


def _words_of_a_class(kind: Any) -> str:  # noqa: ANN401 - any class
    name = kind.__name__
    if issubclass(kind, Enum):
        return " or ".join(f"{name}.{member.name}" for member in kind)
    example = f", such as {_EXAMPLES[name]}" if name in _EXAMPLES else ""
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}{example}"


_PLAIN: Mapping[Any, str] = {
    bool: "True or False",
    int: f"a whole number of at most {MAX_INTEGER}",
    float: "a number",
    str: "text",
}

_EXAMPLES: Mapping[str, str] = {
    "Budget": "Budget(monthly_usd=20_000)",
    "Capacity": "Capacity.on_demand()",
    "ClusterNetwork": "ClusterNetwork.from_subnet(…)",
    "ClusterPower": "cluster.power",
    "Dataset": "Dataset(bucket=bucket, file_system_path='/data')",
    "Duration": "Duration.minutes(60)",
    "IBucket": "s3.Bucket.from_bucket_name(…)",
    "IKey": "kms.Key.from_key_arn(…)",
    "ILayerVersion": "lambda_.LayerVersion.from_layer_version_arn(…)",
    "IMachineImage": "ec2.MachineImage.generic_linux({'us-east-1': 'ami-0a1b2c3d4e5f67890'})",
    "ISubnet": "ec2.Subnet.from_subnet_attributes(…)",
    "ITopic": "sns.Topic.from_topic_arn(…)",
    "IVpc": "ec2.Vpc.from_vpc_attributes(…)",
    "IdleGroup": "IdleGroup()",
    "IdlePolicy": "IdlePolicy(window=Duration.minutes(90))",
    "IdleSignal": "IdleSignal.network()",
    "InstanceTypeInfo": "replace(instance_type_info('p5.48xlarge'), name='p9.48xlarge')",
    "NodeGroup": "NodeGroup('workers', instance_types=['p5.48xlarge'], count=8)",
    "Schedule": "Schedule(['weekdays 08:00-20:00 Europe/Berlin'])",
    "TrainingFileSystem": "TrainingFileSystem(…)",
    "WarmPool": "WarmPool(size=2)",
}
