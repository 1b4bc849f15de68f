"""Reads YAML into plain values and remembers on which line each of them stands."""

import re
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TypeAlias, cast

import yaml

from cdk_training_cluster.validation.checks import shown
from cdk_training_cluster_file.problems import Location

Value: TypeAlias = "bool | int | float | str | list[Value] | dict[str, Value] | None"

_COLLECTIONS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
_NULL, _MERGE, _TEXT = "tag:yaml.org,2002:null", "tag:yaml.org,2002:merge", "tag:yaml.org,2002:str"


# Far more than the largest cluster has: an anchor of anchors can stand for any number of values.
_MAX_VALUES = 10_000


class TooManyValuesError(Exception):
    """A file has more values than any cluster file."""

    def __str__(self) -> str:
        return f"has more than {_MAX_VALUES} values; write out what its anchors repeat"


class _Loader(yaml.SafeLoader):
    """Reads YAML 1.2's core types, as editors do: `no` and `on` are text, `010` is not eight."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's own name


_SCALARS = {
    _NULL: (re.compile(r"~|null|Null|NULL|"), [*"~nN", ""]),
    "tag:yaml.org,2002:bool": (re.compile("true|True|TRUE|false|False|FALSE"), [*"tTfF"]),
    "tag:yaml.org,2002:int": (re.compile(r"[-+]?(?:0|[1-9][0-9]*)"), [*"-+0123456789"]),
    "tag:yaml.org,2002:float": (
        re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"),
        [*"-+.0123456789"],
    ),
    _MERGE: (re.compile("<<"), ["<"]),
}
for _tag, (_pattern, _first) in _SCALARS.items():
    _Loader.add_implicit_resolver(_tag, re.compile(f"^(?:{_pattern.pattern})$"), _first)
_SCALARS[_TEXT] = (re.compile(r"(?s:.*)"), [])

_FOREIGN_TAG = "the tag {!r} is not one of a cluster file; write the value without it"

# A number with more digits is a slip; Python refuses to read one with more than 4,300.
_MOST_DIGITS = 400


@dataclass
class Source:
    """What a file says, where it says it, and what is already wrong with how it says it.

    Attributes:
        value: The whole file as plain values.
        lines: The line of each setting, counted from 1.
        written_twice: Keys that are there more than once in one place, with the later line and what to say.
        empty: Settings without a value.
    """

    value: Value = None
    lines: dict[Location, int] = field(default_factory=dict)
    written_twice: list[tuple[Location, int, str]] = field(default_factory=list)
    empty: list[Location] = field(default_factory=list)

    def line(self, where: Location) -> int | None:
        """Return the line of a setting or, if the file does not have it, of what it would be part of."""
        while where and where not in self.lines:
            where = where[:-1]
        return self.lines.get(where)


def parse(text: str) -> Source:
    """Read a YAML document.

    Raises:
        yaml.YAMLError: It is not one.
    """
    loader = _Loader(text)
    try:
        document = loader.get_single_node()
        source = Source()
        if document is not None:
            source.value = _Reader(loader, source).value(document, (), ())
        return source
    finally:
        loader.dispose()


@dataclass
class _Reader:
    loader: _Loader
    source: Source
    merged: set[int] = field(default_factory=set)
    read: int = 0

    def value(self, node: yaml.Node, where: Location, inside: tuple[yaml.Node, ...]) -> Value:
        self.read += 1
        if self.read > _MAX_VALUES:
            raise TooManyValuesError
        # The line of an alias is that of its key; of a merged key, that of the key it came from.
        self.source.lines.setdefault(where, node.start_mark.line + 1)
        if node in inside:
            raise yaml.constructor.ConstructorError(
                None, None, "an anchor that contains itself", inside[-1].start_mark
            )
        if isinstance(node, yaml.CollectionNode) and node.tag not in _COLLECTIONS:
            raise yaml.constructor.ConstructorError(None, None, _FOREIGN_TAG.format(node.tag), node.start_mark)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, where, (*inside, node))
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*where, at), (*inside, node)) for at, item in enumerate(node.value)]
        _check_scalar(node)
        if node.tag == _NULL and where:
            self.source.empty.append(where)
        return cast(Value, self.loader.construct_object(node))

    def _mapping(self, node: yaml.MappingNode, where: Location, inside: tuple[yaml.Node, ...]) -> dict[str, Value]:
        if id(node) not in self.merged:  # an anchor is met once for each alias
            self.merged.add(id(node))
            self._refuse_keys_written_twice(node, where)
            self.loader.flatten_mapping(node)
        found: dict[str, Value] = {}
        for key, item in node.value:
            name = _name(key)
            self.source.lines[*where, name] = key.start_mark.line + 1
            found[name] = self.value(item, (*where, name), inside)
        return found

    def _refuse_keys_written_twice(self, node: yaml.MappingNode, where: Location) -> None:
        first: dict[Hashable, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            name = _name(key)
            if name in first and key.tag != _MERGE:
                message = f"is written twice, first in line {first[name]}; leave one of them"
                self.source.written_twice.append(((*where, name), line, message))
            first.setdefault(name, line)


def _check_scalar(node: yaml.Node) -> None:
    """Refuse a tag that no setting has, and a text that does not fit its tag, such as `!!int abc`.

    Raises:
        yaml.constructor.ConstructorError: The value cannot be read.
    """
    tag, text = node.tag.removeprefix("tag:yaml.org,2002:"), str(node.value)
    problem = None
    if node.tag not in _SCALARS or node.tag == _MERGE:
        problem = _FOREIGN_TAG.format(node.tag)
    elif not _SCALARS[node.tag][0].fullmatch(text):
        problem = f"{shown(text)} is not a value of the tag !!{tag}; remove the tag, or correct the value"
    elif node.tag != _TEXT and len(text) > _MOST_DIGITS:
        problem = f"a number must have at most {_MOST_DIGITS} digits, got {len(text)}"
    if problem is not None:
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def _name(key: yaml.Node) -> str:
    """Return a key as it is written: `no` and `8` are names too."""
    if not isinstance(key, yaml.ScalarNode):
        raise yaml.constructor.ConstructorError(None, None, "a key that is not text", key.start_mark)
    return cast(str, key.value)
